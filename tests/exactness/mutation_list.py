"""Mistakes that can be made in the machinery of reuse. `python -m tools.mutations` makes each."""

from __future__ import annotations

from dataclasses import dataclass

CLASSES = "src/moorage/engine/classes/classes.py"
ANSWERS = "src/moorage/engine/classes/answers.py"
RANKING = "src/moorage/engine/classes/ranking.py"
ROW_CHOICE = "src/moorage/engine/classes/row_choice.py"
POD_CLASS = "src/moorage/engine/classes/pod_class.py"
RELATIVE_SCORES = "src/moorage/engine/classes/relative_scores.py"
SIGNATURE = "src/moorage/engine/classes/signature.py"
STANCES = "src/moorage/engine/classes/stances.py"
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
    # Kept answers
    Mutation(
        "an answer holds for all pods",
        ANSWERS,
        "        key = FilterAnswer, plugin, ask\n",
        "        key = FilterAnswer, plugin\n",
    ),
    Mutation(
        "a score holds for all pods",
        ANSWERS,
        "        key = ScoreAnswer, plugin, ask\n",
        "        key = ScoreAnswer, plugin\n",
    ),
    Mutation(
        "an answer that is found is out of date",
        ANSWERS,
        "            known.current()\n",
        "            pass\n",
    ),
    Mutation(
        "labels that begin to be read are not seen",
        ANSWERS,
        "        if version != self._labels_version:\n",
        "        if False:\n",
    ),
    Mutation(
        "a class asks about labels of its first pod",
        POD_CLASS,
        "                each.meet(pod)\n",
        "                pass\n",
    ),
    Mutation(
        "wide filters are not asked again",
        ANSWERS,
        "(is_far and self.prepared is not None) or self._has_turned()",
        "self._has_turned()",
    ),
    Mutation(
        "what skipped stays so",
        ANSWERS,
        "(is_far and self.prepared is not None) or self._has_turned()",
        "is_far",
    ),
    Mutation(
        "a plugin that watches more is not asked again",
        ANSWERS,
        "        if self._find_kinds() != self.kinds:\n",
        "        if False:\n",
    ),
    Mutation(
        "classes do not hear that a plugin watches more",
        ANSWERS,
        "            self._answers.version += 1\n",
        "            pass\n",
    ),
    Mutation(
        "nothing is prepared again",
        ANSWERS,
        "        self.prepared = self.prepare(pod)\n",
        "        self.prepared = self.prepared or self.prepare(pod)\n",
    ),
    Mutation(
        "a plugin is asked about the first pod for ever",
        ANSWERS,
        "        pod = self.pod = self.asker\n",
        "        pod = self.pod\n",
    ),
    Mutation(
        "figures tell answers alike that are not",
        ANSWERS,
        "not self.is_wide and reads_figures(self.plugin, self.kinds)",
        "not self.is_wide",
    ),
    Mutation(
        "pods that are rejected as a whole have answers",
        ANSWERS,
        "        if isinstance(prepared, _AS_A_WHOLE):\n            raise Unserved\n",
        "",
    ),
    Mutation(
        "one row that a wide filter rejects stands for all",
        POD_CLASS,
        "any(0 < count == len(wide[0].values) for count in counts)",
        "any(counts)",
    ),
    Mutation(
        "what a filter says of all rows is kept when one of them changes",
        ANSWERS,
        "    def compute_row(self, row: int) -> Any:\n        self._derived = None\n",
        "    def compute_row(self, row: int) -> Any:\n",
    ),
    Mutation(
        "an unknown answer means that the row fits",
        ANSWERS,
        "            if answer is not UPDATED:\n                return bool(",
        "            if False:\n                return bool(",
    ),
    Mutation(
        "an unknown score stays as it was",
        ANSWERS,
        "        if answer is not UPDATED:\n            return int(",
        "        if False:\n            return int(",
    ),
    Mutation(
        "numbers out of range are kept",
        ANSWERS,
        "        if self.is_plain and not 0 <= score <= MAX_SCORE:\n            raise Unserved\n",
        "",
    ),
    Mutation(
        "many numbers out of range are kept",
        ANSWERS,
        "return check_range(scores) if self.is_plain else scores",
        "return scores",
    ),
    Mutation(
        "scores that see feasible rows are kept",
        RELATIVE_SCORES,
        "is_own and (ignores_feasible_rows(plugin) or not isinstance(plugin, PreScore))",
        "is_own",
    ),
    Mutation(
        "answers are never checked",
        POD_CLASS,
        ">> 20 == 0",
        ">> 20 < 0",
    ),
    Mutation(
        "a plugin that was wrong is believed again",
        ANSWERS,
        "        if self.plugin in self._answers.widened:\n",
        "        if False:\n",
    ),
    # Rows that are followed
    Mutation(
        "changed rows keep their values",
        ROW_VIEW,
        "                        values[row] = after\n",
        "                        pass\n",
    ),
    Mutation(
        "many changed rows keep their values",
        ROW_VIEW,
        "            self._values[at] = self.compute(at)\n",
        "            pass\n",
    ),
    Mutation(
        "followers do not hear of many rows",
        ROW_VIEW,
        "            self._values[at] = self.compute(at)\n            self._report_all()\n",
        "            self._values[at] = self.compute(at)\n",
    ),
    Mutation(
        "changes everywhere are not seen by row plugins",
        ROW_VIEW,
        "        if everywhere & kinds & ~_MEMBERSHIP or (",
        "        if (",
    ),
    Mutation(
        "a view that another class brought further goes back",
        ROW_VIEW,
        "        if not _NEVER < self._generation <= changed.since:\n",
        "        if False:\n",
        "an answer that is computed twice is the same",
    ),
    Mutation(
        "a view that lags behind goes on",
        ROW_VIEW,
        "        if changed is None:\n            self.renew()\n            return\n",
        "        if changed is None:\n            return\n",
    ),
    Mutation(
        "rows that come are not there",
        ROW_VIEW,
        "        if everywhere & _MEMBERSHIP:\n            self._grow()\n",
        "",
    ),
    Mutation(
        "nodes that come and go are not seen",
        ROW_VIEW,
        "self._take_rows(rows, kinds | _MEMBERSHIP)",
        "self._take_rows(rows, kinds)",
        "a row where a node comes or goes is noted with all kinds of change",
    ),
    Mutation(
        "only the newest of several changes is seen",
        ROW_VIEW,
        "    if log.generation - generation == 1 and newest is not None",
        "    if newest is not None",
    ),
    Mutation(
        "a class that lags behind goes on",
        POD_CLASS,
        "            changed = EVERYTHING\n",
        "            return\n",
    ),
    # Classes
    Mutation(
        "a class is not told of what plugins watch",
        POD_CLASS,
        "if everyone or each.kinds & union]",
        "if everyone]",
    ),
    Mutation(
        "wide filters reject nobody",
        POD_CLASS,
        "            fits &= ~(rejected if among is None else rejected[among])\n",
        "            pass\n",
    ),
    Mutation(
        "a wide filter that begins to reject is not noticed",
        POD_CLASS,
        "        if has_turned:\n            self._look_wide()\n",
        "",
    ),
    Mutation(
        "what is asked for each pod is not asked about an unlike one",
        POD_CLASS,
        "if ask != before.own.get(plugin)]",
        "if False]",
    ),
    Mutation(
        "scores are not asked about an unlike pod",
        POD_CLASS,
        "        if unlike or self.relative.watch & union:\n",
        "        if self.relative.watch & union:\n",
    ),
    Mutation(
        "scores that begin to have a say are not noticed",
        POD_CLASS,
        "        if unlike or self.relative.watch & union:\n",
        "        if unlike:\n",
    ),
    Mutation(
        "what was prepared at first is used for all pods",
        POD_CLASS,
        "        self.fits_nowhere = any(0 < count == len(wide[0].values) for count in counts)\n"
        "        self._pre_filtered = None\n",
        "        self.fits_nowhere = any(0 < count == len(wide[0].values) for count in counts)\n",
    ),
    Mutation(
        "a failed pod is remedied with the volumes of another",
        POD_CLASS,
        "        if not pod.spec.volumes:\n            return self.pre_filtered\n",
        "        return self.pre_filtered\n",
    ),
    Mutation(
        "pods share answers of plugins that sign them differently",
        SIGNATURE,
        "            if part is not None and plugin not in self._apart\n",
        "            if part is not None and plugin in self._apart\n",
    ),
    Mutation(
        "pods that sign anything are signed once",
        SIGNATURE,
        "        if self._asked and isinstance(asks, Asks):\n",
        "        if False:\n",
    ),
    Mutation(
        "pods with many rules are signed",
        SIGNATURE,
        "    def _sign_anew(self, pod: Pod, nodes: Nodes) -> Asks | Unsigned:\n"
        "        if not is_ordinary(pod):\n",
        "    def _sign_anew(self, pod: Pod, nodes: Nodes) -> Asks | Unsigned:\n        if False:\n",
    ),
    Mutation(
        "long annotations are remembered",
        SIGNATURE,
        "asks is not TOO_MANY_RULES and not self._is_long(pod)",
        "asks is not TOO_MANY_RULES",
    ),
    Mutation(
        "what is unused stays",
        CACHE,
        "                self._drop(key, Flush.UNUSED)\n",
        "                pass\n",
    ),
    Mutation(
        "what is dropped is followed",
        CACHE,
        "            entry.value.close()\n",
        "            pass\n",
    ),
    # The ranking
    Mutation(
        "a ranking beside nominated pods",
        ROW_CHOICE,
        "kept.has_own_totals and not self._cluster.nodes.nominations.are_there",
        "kept.has_own_totals",
    ),
    Mutation(
        "a ranking while others have a say",
        ROW_CHOICE,
        "kept.has_own_totals and not self._cluster.nodes.nominations.are_there",
        "not self._cluster.nodes.nominations.are_there",
    ),
    Mutation(
        "a ranking of rows that others reject",
        ROW_CHOICE,
        "        is_ranked = is_ranked and not kept.is_rejected\n",
        "",
    ),
    Mutation(
        "a ranking of all rows for a domain",
        ROW_CHOICE,
        "if is_ranked and window.rows is None:",
        "if is_ranked:",
    ),
    Mutation(
        "classes ignore nominated pods",
        ROW_CHOICE,
        "            rows = self._without_crowded(kept, pod, rows)\n",
        "            pass\n",
    ),
    Mutation(
        "ties go to the last",
        RANKING,
        "        np.subtract(size, turns.of_row, out=keys)\n",
        "        np.add(1, turns.of_row, out=keys)\n",
    ),
    Mutation(
        "a ranking keeps its visit order",
        RANKING,
        "            self.keys += before.of_row - turns.of_row\n",
        "            pass\n",
    ),
    Mutation(
        "a ranking stays though many rows changed",
        RANKING,
        "    def renew(self, values: NDArray[Any]) -> None:\n"
        "        self.ranking.is_summed = False\n",
        "    def renew(self, values: NDArray[Any]) -> None:\n        pass\n",
    ),
    Mutation(
        "weights do not count in gains",
        RANKING,
        "(after - before) * self.weight * ranking.size",
        "(after - before) * ranking.size",
    ),
    Mutation(
        "a rejection is given back twice",
        RANKING,
        "+= _REJECTED if before else -_REJECTED",
        "+= 2 * _REJECTED if before else -_REJECTED",
    ),
    Mutation(
        "who comes or leaves does not matter to normalised scores",
        RANKING,
        "            ranking.is_summed = not ranking.is_uneven\n",
        "            pass\n",
    ),
    Mutation(
        "the rows that fit stay the same",
        RANKING,
        "            ranking.fitting = None\n",
        "            pass\n",
    ),
    Mutation(
        "numbers by which others are normalised stay after they have changed",
        RANKING,
        'normalised may have changed."""\n        self.ranking.is_summed = False\n',
        'normalised may have changed."""\n',
    ),
    Mutation(
        "normalised scores do not count",
        RANKING,
        "            keys += self.normal\n",
        "            pass\n",
    ),
    Mutation(
        "some rows are normalised like all",
        RANKING,
        "if self.normal is not None and len(rows) != len(self.list_fitting()):",
        "if False:",
    ),
    Mutation(
        "what others add does not count",
        RANKING,
        "            keys = np.add(added, keys, out=added)\n",
        "            pass\n",
    ),
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
        "an unsignable part is a part",
        SIGNATURE,
        "            if part is UNSIGNABLE:\n                alone[plugin]",
        "            if False:\n                alone[plugin]",
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
        "a change everywhere is taken for one of a row",
        ROW_VIEW,
        "newest is not None and newest[0] != EVERYWHERE:",
        "newest is not None:",
    ),
    Mutation(
        "the last change before a restart is taken for the newest",
        CHANGES,
        "        self.newest = None\n        self.generation += 1\n",
        "        self.generation += 1\n",
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
        "pods with volumes fail together although some plugin cannot sign them",
        SIGNATURE,
        "if not _is_shared(self._sign_but_volumes(pod, nodes)):",
        "if False:",
    ),
    Mutation(
        "pods fail together whatever their volumes are",
        SIGNATURE,
        "shared = tuple(signed), template,",
        "shared = template,",
    ),
    Mutation(
        "all filters that reject a row give the reasons",
        POD_CLASS,
        "            decided = feasible & rejected\n",
        "            decided = rejected\n",
    ),
    Mutation(
        "a score that skips once is inactive for good",
        RELATIVE_SCORES,
        "score.is_active = stays or self._may_add(score, pod)",
        "pass",
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
