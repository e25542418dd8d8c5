"""Mistakes that can be made in the machinery of reuse. `python -m tools.mutations` makes each."""

from __future__ import annotations

from dataclasses import dataclass

CLASSES = "src/moorage/engine/classes/classes.py"
ROW_CHOICE = "src/moorage/engine/classes/row_choice.py"
POD_CLASS = "src/moorage/engine/classes/pod_class.py"
WIDE_FILTERS = "src/moorage/engine/classes/wide_filters.py"
RELATIVE_SCORES = "src/moorage/engine/classes/relative_scores.py"
SCORES = "src/moorage/engine/classes/scores.py"
BATCH = "src/moorage/engine/classes/batch.py"
SIGNATURE = "src/moorage/engine/classes/signature.py"
STANCES = "src/moorage/engine/classes/stances.py"
PARTS = "src/moorage/engine/classes/parts.py"
FAILURES = "src/moorage/engine/classes/failures.py"
REFUSALS = "src/moorage/engine/classes/refusals.py"
CACHE = "src/moorage/engine/classes/answer_cache.py"
STATISTICS = "src/moorage/engine/classes/statistics.py"
SETTINGS = "src/moorage/engine/settings.py"
REMEDIES = "src/moorage/engine/remedies.py"
ATTEMPTS = "src/moorage/engine/attempts.py"
ROW_VIEW = "src/moorage/cluster/row_view.py"
CHANGES = "src/moorage/cluster/changes.py"
CLUSTER = "src/moorage/cluster/cluster.py"
NODE_ROWS = "src/moorage/cluster/node_rows.py"
USAGE = "src/moorage/cluster/usage.py"
WORKLOADS = "src/moorage/cluster/workloads.py"
LABELS = "src/moorage/cluster/label_index.py"
NODES = "src/moorage/cluster/nodes.py"
STORAGE = "src/moorage/cluster/storage/writer.py"
SPREAD = "src/moorage/plugins/topology_spread/pod_topology_spread.py"
AFFINITY = "src/moorage/plugins/inter_pod_affinity/inter_pod_affinity.py"
GPU = "src/moorage/plugins/gpu_aware.py"
LIMITS = "src/moorage/plugins/volumes/node_volume_limits.py"
COEXIST = "src/moorage/plugins/coexist_policy.py"
VERDICT = "src/moorage/framework/verdict.py"


@dataclass(frozen=True, slots=True)
class Mutation:
    """A piece of a file that occurs once, and what stands there instead."""

    name: str
    path: str
    old: str
    new: str
    #: Why nobody can notice, where that is so.
    equivalent: str = ""


MUTATIONS: tuple[Mutation, ...] = (
    # Who is served
    Mutation(
        "the gates are swapped",
        SETTINGS,
        'classes=gates["EquivalenceCache"], batches=gates["OpportunisticBatching"]',
        'classes=gates["OpportunisticBatching"], batches=gates["EquivalenceCache"]',
    ),
    Mutation(
        "one gate is enough",
        CLASSES,
        "settings.classes or settings.batches",
        "settings.classes and settings.batches",
    ),
    Mutation(
        "a silent plugin is not reported",
        CLASSES,
        "if self.is_on and self._signer.silent:",
        "if False:",
    ),
    Mutation(
        "a verified difference is ignored",
        CLASSES,
        "        return plain\n",
        "        return outcome\n",
    ),
    Mutation(
        "a verified difference leaves reuse on",
        CLASSES,
        "        self.is_on = False\n",
        "        pass\n",
    ),
    Mutation("nothing is verified", CLASSES, ">= self._settings.verify_share * 2**32", ">= 0"),
    Mutation(
        "a break is told each time",
        CLASSES,
        "            self._broke.add(plugin)\n",
        "            pass\n",
    ),
    Mutation(
        "percentages use classes",
        CLASSES,
        "if (window.percentage and window.percentage < 100) or not self._profile.score:",
        "if not self._profile.score:",
    ),
    Mutation(
        "profiles without scores use classes",
        CLASSES,
        "(window.percentage and window.percentage < 100) or not self._profile.score",
        "(window.percentage and window.percentage < 100)",
    ),
    Mutation(
        "nominated pods use classes",
        CLASSES,
        "nominations.are_there and (pod.spec.volumes or nominations.node_of(pod))",
        "nominations.are_there and pod.spec.volumes",
    ),
    Mutation(
        "volumes beside nominated pods use classes",
        CLASSES,
        "nominations.are_there and (pod.spec.volumes or nominations.node_of(pod))",
        "nominations.are_there and nominations.node_of(pod)",
    ),
    Mutation(
        "volumes that nominated pods share are like others",
        CLASSES,
        "if nodes.storage.nominated.are_shared_by(pod):",
        "if False:",
    ),
    Mutation(
        "named pods ignore nominations",
        CLASSES,
        "if nodes.nominations.are_there or names is None or len(names) != 1:",
        "if names is None or len(names) != 1:",
    ),
    Mutation(
        "named pods ignore what others narrow",
        CLASSES,
        "prepared.rejected is not None or prepared.node_names != names",
        "prepared.rejected is not None",
    ),
    Mutation(
        "named pods ignore rejections",
        CLASSES,
        "prepared.rejected is not None or prepared.node_names != names",
        "prepared.node_names != names",
    ),
    Mutation(
        "a ranking beside nominated pods",
        ROW_CHOICE,
        "if not nodes.nominations.are_there and kept.has_own_totals and self._batches:",
        "if kept.has_own_totals and self._batches:",
    ),
    Mutation(
        "a ranking while others have a say",
        ROW_CHOICE,
        "if not nodes.nominations.are_there and kept.has_own_totals and self._batches:",
        "if not nodes.nominations.are_there and self._batches:",
    ),
    Mutation(
        "a ranking of rows that others reject",
        ROW_CHOICE,
        "ranking.best_where(kept.feasible())",
        "ranking.best()",
    ),
    Mutation(
        "classes ignore nominated pods",
        ROW_CHOICE,
        "            feasible = self._without_crowded(kept, pod, feasible)\n",
        "            pass\n",
    ),
    Mutation(
        "what was prepared at first is used for nominated pods",
        ROW_CHOICE,
        "pod, kept.newest_prepared()",
        "pod, kept.pre_filtered",
    ),
    Mutation(
        "what was prepared at first is used to look for reasons",
        POD_CLASS,
        "newest = self.newest_prepared()",
        "newest = self.pre_filtered",
    ),
    Mutation(
        "ties go to the last",
        ROW_CHOICE,
        "(scored.totals * count - of_row).argmax()",
        "(scored.totals * count + of_row).argmax()",
    ),
    Mutation(
        "turns outlive the visit order",
        ROW_CHOICE,
        "known is None or known[0] is not order or known[1].start != start",
        "known is None or known[1].start != start",
    ),
    Mutation(
        "turns ignore where they start",
        ROW_CHOICE,
        "known is None or known[0] is not order or known[1].start != start",
        "known is None or known[0] is not order",
    ),
    Mutation(
        "everything is explained",
        CLASSES,
        "return changed.rows.keys() <= {kept.last_row}",
        "return True",
    ),
    Mutation("failures of nominated pods are kept", CLASSES, "    DecisionPath.NOMINATED,\n", ""),
    Mutation(
        "failures are kept while a percentage is looked at",
        CLASSES,
        "    DecisionPath.SAMPLING,\n",
        "",
    ),
    Mutation(
        "classes outlive a recount",
        CLASSES,
        "        self._signer.forget()\n",
        "",
        "a version never comes back: `Cluster.adopt` sees to it",
    ),
    # Signatures
    Mutation(
        "pods that sign anything are signed once",
        SIGNATURE,
        "if self._asked and isinstance(signature, int):",
        "if False:",
    ),
    Mutation(
        "an unsignable part is a part",
        SIGNATURE,
        "        if part is UNSIGNABLE:\n            return Unsigned(plugin.name",
        "        if False:\n            return Unsigned(plugin.name",
    ),
    Mutation(
        "namespaces are not told apart",
        SIGNATURE,
        "key = id(spec), pod.namespace, ",
        "key = id(spec), ",
    ),
    Mutation(
        "owners are not told apart",
        SIGNATURE,
        "pod.node_name, pod.owner, self._texts",
        "pod.node_name, self._texts",
    ),
    Mutation(
        "annotations are not told apart",
        SIGNATURE,
        "tuple(map(held.get, self._annotations)) if held else None",
        "None",
    ),
    Mutation(
        "labels that are read are not told apart",
        SIGNATURE,
        "tuple(labels.items()) if any_label else nodes.labels_that_matter(pod)",
        "tuple(labels.items()) if any_label else ()",
    ),
    Mutation(
        "labels that only plugins read are not told apart",
        SIGNATURE,
        "tuple(labels.items()) if any_label else nodes.labels_that_matter(pod)",
        "nodes.labels_that_matter(pod)",
    ),
    Mutation(
        "pods with claims are signed once",
        SIGNATURE,
        "if spec.volumes:\n            return self._sign_with_volumes(",
        "if False:\n            return self._sign_with_volumes(",
    ),
    Mutation(
        "granted resources are not told apart",
        SIGNATURE,
        "if pod.status.sizes:\n            return self._complete(",
        "if False:\n            return self._complete(",
    ),
    Mutation(
        "services that change no signature",
        SIGNATURE,
        "        if nodes.workloads.siblings(pod) != known.siblings:\n            return False\n",
        "",
    ),
    Mutation(
        "pods with many rules are signed",
        SIGNATURE,
        "-> Signature:\n        if not is_ordinary(pod):\n",
        "-> Signature:\n        if False:\n",
    ),
    Mutation(
        "long annotations are remembered",
        SIGNATURE,
        "signature is not TOO_MANY_RULES and not self._is_long(pod)",
        "signature is not TOO_MANY_RULES",
    ),
    Mutation(
        "a broken signature is not told",
        SIGNATURE,
        "Unsigned(broken.plugin, Unsignable.BROKEN, broken.__cause__)\n\n    def find_alike",
        "Unsigned(broken.plugin, Unsignable.BROKEN)\n\n    def find_alike",
    ),
    Mutation(
        "post-filters need not sign",
        REMEDIES,
        "        if not isinstance(plugin, Sign):\n            return None\n",
        "        if not isinstance(plugin, Sign):\n            continue\n",
    ),
    Mutation(
        "what a post-filter cannot sign is shared",
        REMEDIES,
        "        if part is UNSIGNABLE:\n            return None\n",
        "",
    ),
    Mutation(
        "remedies are shared whatever is signed",
        ATTEMPTS,
        "remedied is None and signed is not None and found.is_final",
        "remedied is None and found.is_final",
    ),
    # Failures
    Mutation(
        "failures outlive what they depend on",
        FAILURES,
        "if union & known.watch and not (",
        "if False and not (",
    ),
    Mutation(
        "failures outlive the log",
        FAILURES,
        "        if changed is None:\n            return False\n",
        "        if changed is None:\n            return True\n",
    ),
    Mutation(
        "failures ignore how many nodes there are",
        FAILURES,
        "union & _MEMBERSHIP\n            or changed.everywhere",
        "changed.everywhere",
    ),
    Mutation(
        "failures ignore nominated pods",
        FAILURES,
        "self.row_watch = _NOMINATED",
        "self.row_watch = 0",
    ),
    Mutation(
        "failures ignore post-filters",
        FAILURES,
        "(*profile.pre_filter, *profile.filter, *profile.post_filter)",
        "(*profile.pre_filter, *profile.filter)",
    ),
    Mutation(
        "failures ignore rows that changed",
        FAILURES,
        "self.row_watch |= watch",
        "pass",
    ),
    Mutation(
        "failures ignore rows that changed for filters that watch the same for all pods",
        FAILURES,
        "unite(int(each.reads) for each in asked if each.scope is Scope.ROW)",
        "0",
    ),
    Mutation(
        "failures ignore rows that wide filters see",
        FAILURES,
        "self.wide_watch |= watch",
        "pass",
    ),
    Mutation(
        "failures ignore what plugins say of the pod as a whole",
        FAILURES,
        "or (union & known.stances.watch and known.stances.have_turned(pod, union))",
        "",
    ),
    Mutation(
        "failures ignore that a row suits by now",
        FAILURES,
        "if refused < len(rows):",
        "if False:",
    ),
    Mutation(
        "failures keep what post-filters said",
        FAILURES,
        "self.failed = replace(self.failed, known={})",
        "pass",
    ),
    Mutation(
        "failures keep the reasons of before",
        REFUSALS,
        "            each.clear(positions)\n",
        "            pass\n",
    ),
    Mutation(
        "failures take every outcome for known",
        FAILURES,
        "known is not None and all(map(known.say, answers))",
        "known is not None",
    ),
    Mutation(
        "failures ignore the priority",
        FAILURES,
        "return Key(self._profile.name, signature, pod.priority)",
        "return Key(self._profile.name, signature, 0)",
    ),
    Mutation(
        "nominated pods ignore others on their node",
        CLASSES,
        "row is None or self._is_crowded(pod, name)",
        "row is None",
    ),
    Mutation(
        "failures take no room",
        FAILURES,
        "own = filtered.rows.nbytes + ",
        "own = 0 * filtered.rows.nbytes + 0 * ",
    ),
    # What is kept
    Mutation(
        "nothing is evicted",
        CACHE,
        "while self.bytes > self.most_bytes and len(self._entries) > 1:",
        "while False:",
    ),
    Mutation(
        "the newest is evicted",
        CACHE,
        "self._drop(next(iter(self._entries)), Flush.FULL)",
        "self._drop(next(reversed(self._entries)), Flush.FULL)",
    ),
    Mutation(
        "bytes are never given back",
        CACHE,
        "            self.bytes -= entry.size\n",
        "            pass\n",
    ),
    Mutation(
        "what is unused stays",
        CACHE,
        "            if key.signature not in signatures:\n",
        "            if False:\n",
    ),
    Mutation(
        "classes are counted by all profiles",
        CACHE,
        "return [key for key in self._entries if key.profile == profile]",
        "return list(self._entries)",
    ),
    Mutation(
        "each profile has room of its own",
        CLASSES,
        "AnswerCache(settings.most_bytes) if cache is None else cache",
        "AnswerCache(settings.most_bytes)",
    ),
    # Catching up
    Mutation(
        "a class that lags behind goes on",
        POD_CLASS,
        "        if changed is None or changed.everywhere & _MEMBERSHIP:\n",
        "        changed = changed or Changed.of({})\n"
        "        if changed.everywhere & _MEMBERSHIP:\n",
    ),
    Mutation(
        "nodes that come and go are not seen",
        POD_CLASS,
        "if changed is None or changed.everywhere & _MEMBERSHIP:",
        "if changed is None:",
    ),
    Mutation(
        "a change everywhere is taken for one of a row",
        ROW_VIEW,
        "newest is not None and newest[0] != EVERYWHERE:",
        "newest is not None:",
    ),
    Mutation(
        "only the newest of several changes is seen",
        ROW_VIEW,
        "if now - generation == 1 and newest is not None",
        "if newest is not None",
    ),
    Mutation(
        "the last change before a restart is taken for the newest",
        CHANGES,
        "        self.newest = None\n        self.generation += 1\n",
        "        self.generation += 1\n",
    ),
    Mutation(
        "what skipped stays so",
        POD_CLASS,
        "self._stances.watch & union and self._stances.have_turned(pod, union)",
        "False",
    ),
    Mutation(
        "labels that begin to be read are not seen",
        POD_CLASS,
        "if self._labels_version != self._nodes.labels_version:",
        "if False:",
    ),
    Mutation(
        "wide filters are not asked again",
        POD_CLASS,
        "        if unlike or self._wide_watch & union:\n",
        "        if unlike:\n",
    ),
    Mutation(
        "what is asked for each pod is not asked about an unlike one",
        POD_CLASS,
        "        return [plugin for plugin, part in own.items() if part != before[plugin]]\n",
        "        return ()\n",
    ),
    Mutation(
        "a score that skipped one pod skips an unlike one",
        RELATIVE_SCORES,
        "is_unlike = score.is_due or score.plugin in unlike\n",
        "is_unlike = score.is_due\n",
    ),
    Mutation(
        "a score that was not asked about a pod that fits nowhere is not asked when it fits",
        RELATIVE_SCORES,
        "is_unlike = score.is_due or score.plugin in unlike\n",
        "is_unlike = score.plugin in unlike\n",
    ),
    Mutation(
        "one row that a wide filter rejects stands for all",
        WIDE_FILTERS,
        "wide.rejects_all = count == len(rejected)",
        "wide.rejects_all = True",
    ),
    Mutation(
        "what was prepared for one pod is taken for the newest",
        WIDE_FILTERS,
        "        self._newest = None\n        wide.verdict",
        "        wide.verdict",
    ),
    Mutation(
        "pods share answers of plugins that sign them differently",
        SIGNATURE,
        "            if plugin in self._asked_anew:\n                own[plugin] = part\n",
        "            if True:\n                own[plugin] = part\n",
    ),
    Mutation(
        "a failed pod is remedied with the volumes of another",
        POD_CLASS,
        "        if not pod.spec.volumes:\n            return newest\n",
        "        return newest\n",
    ),
    Mutation(
        "pods with volumes fail together although some plugin cannot sign them",
        SIGNATURE,
        "if isinstance(self._sign_but_volumes(pod, nodes), Unsigned):",
        "if False:",
    ),
    Mutation(
        "pods fail together whatever their volumes are",
        SIGNATURE,
        "shared = tuple(signed), template,",
        "shared = template,",
    ),
    Mutation(
        "what pods share is told by what volumes are alone",
        SIGNATURE,
        "(_SHARED, plugins, number)",
        "(_SHARED, plugins)",
    ),
    Mutation(
        "all filters that reject a row give the reasons",
        POD_CLASS,
        "            decided = feasible & rejected\n",
        "            decided = rejected\n",
    ),
    Mutation(
        "wide filters' watches are not renewed",
        WIDE_FILTERS,
        "                wide.watch = ask_watch(wide.plugin, pod, self._nodes)\n",
        "",
    ),
    Mutation(
        "a ranking although a wide filter rejects some rows",
        POD_CLASS,
        "self._unrejected = 0 if self.wide_filters.rejections else self._unrejected + 1",
        "self._unrejected += 1",
    ),
    Mutation(
        "wide filters that begin to have a say are not noticed",
        WIDE_FILTERS,
        "is_same &= wide.watch == watched and (wide.prepared is None) == skipped",
        "pass",
    ),
    Mutation(
        "scores that begin to have a say are not noticed",
        RELATIVE_SCORES,
        "is_same &= score.watch == watched and score.is_active == was_active",
        "pass",
    ),
    Mutation(
        "a score that skips once is inactive for good",
        RELATIVE_SCORES,
        "score.is_active = stays or self._may_add(score, pod)",
        "pass",
    ),
    Mutation(
        "changes everywhere are not seen by row plugins",
        POD_CLASS,
        "if self._far_watch & union or self._near_watch & changed.everywhere:",
        "if self._far_watch & union:",
    ),
    Mutation(
        "scores that reach far are kept",
        POD_CLASS,
        "if self._far_watch & union or self._near_watch & changed.everywhere:",
        "if self._near_watch & changed.everywhere:",
    ),
    Mutation(
        "rows stay unscored while many change at once",
        POD_CLASS,
        "changed[rows] = changed[list(self._unscored)] = True",
        "changed[rows] = True",
    ),
    Mutation(
        "gains are lost while totals are behind",
        SCORES,
        "if self._is_behind and not (self._whole is None and self._among is None):",
        "if False:",
    ),
    Mutation(
        "a row that comes back has its old scores",
        POD_CLASS,
        "self._find_readers(kinds | self._unscored.pop(row, 0))",
        "self._find_readers(kinds)",
    ),
    Mutation(
        "a row that leaves stays ranked",
        POD_CLASS,
        "                self.scores.leave(row)\n",
        "                pass\n",
    ),
    Mutation(
        "a changed row is not scored",
        POD_CLASS,
        "        elif asked.columns:\n            self.scores.move(facts, asked)\n",
        "",
    ),
    Mutation(
        "filters keep their old bits",
        POD_CLASS,
        "bits = before & ~asked.bits | rejecting",
        "bits = before | rejecting",
    ),
    Mutation(
        "many rows keep their old bits",
        POD_CLASS,
        "bits = (bits & ~np.int64(each.bit)) | (rejected * np.int64(each.bit))",
        "bits = bits | (rejected * np.int64(each.bit))",
    ),
    Mutation(
        "rows without a node are feasible",
        POD_CLASS,
        "np.where(nodes.alive[rows], 0, _DEAD)",
        "np.where(nodes.alive[rows], 0, 0)",
    ),
    Mutation(
        "what a filter says of all rows is kept when one of them changes",
        PARTS,
        "            each.verdict = None\n",
        "            pass\n",
    ),
    Mutation(
        "wide filters reject nobody",
        POD_CLASS,
        "            fits &= ~rejected\n",
        "            pass\n",
    ),
    Mutation(
        "raw scores are the plugin's own array",
        POD_CLASS,
        "raw.copy(),",
        "raw,",
        "no built-in score keeps the array that it returns",
    ),
    Mutation(
        "scores that see feasible rows are kept",
        PARTS,
        "is_own and (ignores_feasible_rows(plugin) or not isinstance(plugin, PreScore))",
        "is_own",
    ),
    Mutation(
        "figures tell filters alike that are not",
        PARTS,
        "reads_figures(each.plugin, each.watch) for each in self.filters",
        "True for each in self.filters",
    ),
    Mutation(
        "figures tell scores alike that are not",
        PARTS,
        "each.is_plain and reads_figures(each.plugin, each.watch) for each in self.columns",
        "True for each in self.columns",
    ),
    Mutation(
        "steady plugins are asked again",
        "src/moorage/framework/calls.py",
        "    if plugin.is_steady or not watch:\n        return 0\n",
        "",
        "it only costs time",
    ),
    Mutation(
        "a watch that grows is not seen",
        STANCES,
        "        if ask_watch(plugin, pod, nodes) != stance.watch:\n            return True\n",
        "",
    ),
    Mutation(
        "a door that closes is not seen",
        STANCES,
        "        if isinstance(answer, Rejected | Narrowed):\n            return True\n",
        "",
    ),
    # Scores and rankings
    Mutation(
        "who leaves does not matter to normalised scores",
        SCORES,
        "        if self._moves_largest(row):\n",
        "        if False:\n",
    ),
    Mutation(
        "who comes does not matter to normalised scores",
        SCORES,
        "if gain is None or self._raises_largest(row):",
        "if gain is None:",
    ),
    Mutation(
        "many who come and go do not matter to normalised scores",
        SCORES,
        "bool(self._normalized) and bool(((before == 0) != (bits == 0)).any())",
        "False",
    ),
    Mutation(
        "the largest is counted wrongly as rows leave",
        SCORES,
        "                if count <= 1:\n                    return True\n",
        "",
    ),
    Mutation(
        "a ranking is not told who is rejected",
        BATCH,
        "        return np.where(fits, keys, _NONE)\n",
        "        return keys\n",
    ),
    Mutation(
        "a ranking stays though many rows changed",
        SCORES,
        "        self.ranking = None\n        for ranking",
        "        for ranking",
    ),
    Mutation(
        "a ranking of all rows is not told of many",
        SCORES,
        "                ranking.put_together(rows, fits, self.totals[rows])\n",
        "                pass\n",
    ),
    Mutation(
        "a ranking of all rows is not told of one",
        SCORES,
        "            self._whole.move(row, gain)\n",
        "            pass\n",
    ),
    Mutation(
        "a ranking of all rows is not told of one that comes",
        SCORES,
        "                ranking.put(row, total)\n",
        "                pass\n",
    ),
    Mutation(
        "a ranking of all rows stays though others are normalised",
        SCORES,
        "self.ranking = self._whole = self._among = None",
        "self.ranking = self._among = None",
    ),
    Mutation(
        "equals are not ranked by their turn",
        BATCH,
        "        keys -= self.turns.of_row[rows]\n",
        "",
    ),
    Mutation(
        "a number by which others are normalised stays after it has changed",
        SCORES,
        "        if self._normalized and not self._largest:\n",
        "        if False:\n",
    ),
    Mutation(
        "totals stay behind their ranking",
        SCORES,
        "            self._normalize()\n            self._add_up()\n        totals",
        "            pass\n        totals",
    ),
    Mutation(
        "weights do not count in gains",
        SCORES,
        "gain += (after - before) * column.weight",
        "gain += after - before",
    ),
    Mutation(
        "numbers out of range are kept",
        SCORES,
        "if column.is_plain and not 0 <= after <= MAX_SCORE:",
        "if False:",
    ),
    Mutation(
        "a ranking takes entries that are out of date",
        BATCH,
        "                if now[row] == total:\n",
        "                if now[row] >= total:\n",
        "the total of a row that has become better is looked at first",
    ),
    Mutation(
        "rows that were dropped are still the best",
        BATCH,
        "        self._now[row] = _NONE\n",
        "        pass\n",
    ),
    # The log of changes, and what is noted in it
    Mutation(
        "the log forgets kinds",
        CHANGES,
        "rows[row] = rows.get(row, 0) | kinds",
        "rows[row] = kinds",
    ),
    Mutation(
        "the log is trimmed and nobody is told",
        CHANGES,
        "        self._dropped += excess\n",
        "        self._dropped += 0\n",
    ),
    Mutation("what somebody reads is not noted", CHANGES, "_ON_DEMAND & ~int(kinds)", "_ON_DEMAND"),
    Mutation(
        "the status of running pods is not noted",
        USAGE,
        "        kinds |= _POD_STATUS\n",
        "        pass\n",
    ),
    Mutation(
        "the annotations of running pods are not noted",
        USAGE,
        "        kinds |= _POD_ANNOTATIONS\n",
        "        pass\n",
    ),
    Mutation(
        "owners of running pods are not noted", USAGE, "        and known.owner == seen.owner\n", ""
    ),
    Mutation(
        "conditions are not noted",
        NODE_ROWS,
        "        kinds |= Change.CONDITIONS\n",
        "        pass\n",
    ),
    Mutation(
        "another node of the same name is not noted",
        NODE_ROWS,
        "    if node.uid != before.uid:\n",
        "    if False:\n",
    ),
    Mutation(
        "a controller that goes is not noted",
        CLUSTER,
        "        self._state.workloads.drop(item)\n"
        "        self._note(EVERYWHERE, _workload_change(item))\n",
        "        self._state.workloads.drop(item)\n",
    ),
    Mutation(
        "services that change no version",
        WORKLOADS,
        "    def _drop_service(self, item: Service) -> None:\n        self.version += 1\n",
        "    def _drop_service(self, item: Service) -> None:\n",
    ),
    Mutation(
        "controllers that change no version",
        WORKLOADS,
        "            self.version += 1\n            self._label_keys.discard(None",
        "            self._label_keys.discard(None",
    ),
    Mutation(
        "labels that begin to be read change no version",
        LABELS,
        "            if key not in self.uses:\n                self.version += 1\n",
        "",
    ),
    Mutation(
        "terms of nominated pods read no labels",
        CLUSTER,
        "                label_keys.add(term.selector)\n",
        "                pass\n",
    ),
    # What plugins say of themselves
    Mutation(
        "spreading signs no tolerations",
        SPREAD,
        "            spec.tolerations,\n        )\n",
        "        )\n",
    ),
    Mutation("spreading signs no node terms", SPREAD, "            spec.node_terms,\n", ""),
    Mutation("spreading signs no siblings", SPREAD, "            siblings,\n", ""),
    Mutation(
        "affinity signs no namespace",
        AFFINITY,
        "return pod.namespace, nodes.labels_that_matter(pod), pod.terms",
        "return nodes.labels_that_matter(pod), pod.terms",
    ),
    Mutation(
        "remembered GPU labels are not watched",
        GPU,
        "return kinds | Change.LABELS if self._labels else kinds",
        "return kinds",
    ),
    Mutation(
        "volumes in use are signed like others",
        LIMITS,
        "frozenset(filter(use.of, keys))",
        "frozenset()",
    ),
    Mutation(
        "a policy is not signed",
        COEXIST,
        "return is_exclusive(pod), is_ordinary(pod), unknown_policy(pod)",
        "return is_ordinary(pod), unknown_policy(pod)",
    ),
    Mutation(
        "other rows of a reason count as the same",
        VERDICT,
        "self.reasons == other.reasons and self.failed.tobytes() == other.failed.tobytes()",
        "self.reasons == other.reasons",
    ),
    Mutation(
        "other reasons count as the same",
        VERDICT,
        "self.reasons == other.reasons and self.failed.tobytes() == other.failed.tobytes()",
        "self.failed.tobytes() == other.failed.tobytes()",
    ),
)
