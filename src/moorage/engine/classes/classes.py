"""Decides like pods with the answers that are kept for them.

The decision is always the one that `cycle.decide` would make.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Cluster
from moorage.engine import diagnosis
from moorage.engine.actions import Report
from moorage.engine.cycle import Found, Window, conclude, decide
from moorage.framework.attempt import Failed
from moorage.framework.plugin import Plugin
from moorage.framework.plugin_fence import make_error
from moorage.framework.points import fits_on, pre_filter
from moorage.framework.profile import Profile
from moorage.framework.status import BrokenRowsError, PluginError
from moorage.objects.pod import Pod

from .answer_cache import MOST_BYTES, AnswerCache, Key
from .answers import Answers, Unserved
from .pod_class import PodClass
from .siblings import Siblings
from .signature import Asks, Signer, Unsigned
from .statistics import DecisionPath, Flush, Statistics

T = TypeVar("T")

# Looked up once, because these are used for every pod.
_BATCH, _COLUMNS = DecisionPath.BATCH, DecisionPath.COLUMNS


@dataclass(frozen=True, slots=True)
class ClassSettings:
    """What is reused, how much of it is kept, and which share of decisions is verified."""

    classes: bool = True
    batches: bool = True
    #: None for as many as there is room for.
    most_classes: int | None = None
    verify_share: float = 0.0
    #: The answers of all profiles take at most so many bytes.
    most_bytes: int = MOST_BYTES


class Classes:
    """The classes of one profile. The least recently used class is dropped first."""

    def __init__(
        self,
        profile: Profile,
        cluster: Cluster,
        settings: ClassSettings,
        report: Callable[[Report], None],
        cache: AnswerCache | None = None,
    ) -> None:
        self._profile = profile
        self._cluster = cluster
        self._settings = settings
        self._report = report
        self._observer = profile.observer
        self._clock = profile.observer.clock
        self._ranked = profile.observer.batch_durations(profile.name)
        self._signer = Signer(profile)
        self.statistics = Statistics()
        #: Receives each decision before it is carried out, for a study of them.
        self.on_decided: Callable[[Pod, int | None, Found | Failed], None] | None = None
        self._cache = AnswerCache(settings.most_bytes) if cache is None else cache
        #: The plugins that raised where answers are reused.
        self._broke: set[str] = set()
        self._answers = Answers(profile, cluster, self.statistics, self._report_wrong)
        self._siblings = Siblings(self._signer, self.statistics)
        scores: list[Plugin] = [plugin for plugin, _ in profile.score]
        # A pre-score without a score changes nothing but by failing, which each pod may cause.
        self._asks_alone = any(each not in scores for each in profile.pre_score)
        self.is_on = settings.classes or settings.batches
        if self.is_on and self._signer.silent:
            names = ", ".join(each.name for each in self._signer.silent)
            self._report(Report(profile.name, f"no signatures of pods come from: {names}"))

    def __len__(self) -> int:
        """Returns how many classes are kept."""
        return len(self._cache.keys_of(self._profile.name))

    @property
    def bytes(self) -> int:
        """Returns how many bytes the classes of the profile take."""
        return self._cache.bytes_of(self._profile.name)

    def forget(self) -> None:
        """Forgets all answers, because the state that they were found from is gone."""
        self._cache.forget(self._profile.name)
        self._answers.forget()
        self._signer.forget()

    def decide(self, pod: Pod, window: Window) -> Found | Failed:
        """Returns the decision for a pod: that of `cycle.decide`, mostly with less work."""
        asks = self._ask(pod)
        signature = None if asks is None or asks.alone else asks.number
        self._count(signature, pod)
        path, outcome = self._ask_class(asks, pod, window)
        if outcome is None:
            outcome = decide(self._profile, pod, self._cluster.nodes, window)
        elif self._settings.verify_share and (
            path.is_reuse or path is DecisionPath.NOMINATED or isinstance(outcome, Failed)
        ):
            outcome = self._verify(pod, window, outcome)
        self.statistics.paths[path] += 1
        if self.on_decided is not None:
            self.on_decided(pod, signature, outcome)
        if signature is not None and isinstance(outcome, Found):
            self.statistics.placed(signature)
        if path is _BATCH:
            self._ranked.append(self._clock() - self._observer.began)
        else:
            found = isinstance(outcome, Found)
            self._observer.decision_made(self._profile.name, path.is_reuse, found)
        return outcome

    def _ask_class(
        self, asks: Asks | None, pod: Pod, window: Window
    ) -> tuple[DecisionPath, Found | Failed | None]:
        """Returns how the pod is decided, and the decision if answers are reused for it."""
        alone = self._why_alone(asks, pod, window)
        if asks is None or alone is not None:
            return alone or DecisionPath.UNSIGNED, None
        try:
            if pod.spec.named_nodes is not None:
                # No class is made for pods that name their nodes.
                found = self._on_named(pod) if window.rows is None else None
                return DecisionPath.NARROWED, found
            return self._by_class(asks, pod, window)
        except (Unserved, BrokenRowsError):
            return DecisionPath.NARROWED, None
        except Exception as error:  # noqa: BLE001 - deciding alone can do without a class
            self.statistics.flushes[Flush.BROKEN] += 1
            self._report_break(error)
            return DecisionPath.BROKEN, None

    def _why_alone(self, asks: Asks | None, pod: Pod, window: Window) -> DecisionPath | None:
        """Returns how a pod is decided for which no class is used; None if one may be used."""
        if not self.is_on:
            return DecisionPath.OFF
        if asks is None:
            return DecisionPath.UNSIGNED
        if window.is_sample or not self._profile.score:
            return DecisionPath.SAMPLING
        if self._asks_alone:
            return DecisionPath.OFF
        nominations = self._cluster.nodes.nominations
        shared = self._cluster.nodes.storage.nominated.are_shared_by
        # What is asked about a pod does not say whether a nominated pod has one of its volumes.
        if nominations.are_there and pod.spec.volumes and shared(pod):
            return DecisionPath.NOMINATED
        return None

    def find_feasible(
        self, pod: Pod, window: Window, *, again: bool = False
    ) -> tuple[PodClass, NDArray[np.intp]] | None:
        """Returns the class of a pod, up to date, and the rows where it fits; None without a class.

        It is for decisions that do not depend on plugins alone, such as those with extenders. With
        `again`, the pod is not counted in the statistics, because it has been counted before.
        """
        return self._read(pod, window, lambda kept: (kept, kept.list_feasible(pod)), again=again)

    def find_class(self, pod: Pod, window: Window) -> PodClass | None:
        """Returns the class of a pod, up to date; None if it has none."""
        return self._read(pod, window, lambda kept: kept, again=True)

    def _read(
        self, pod: Pod, window: Window, read: Callable[[PodClass], T], *, again: bool
    ) -> T | None:
        """Returns what a function returns for the class of a pod, up to date; None without one."""
        asks = self._ask(pod)
        if asks is None or asks.alone or self._why_alone(asks, pod, window) is not None:
            return None
        if pod.spec.named_nodes is not None or self._cluster.nodes.nominations.node_of(pod):
            return None
        key = Key(self._profile.name, asks.shared)
        known: PodClass | None = self._cache.find(key)
        try:
            kept = self._bring_up_to_date(key, known, pod, asks)
            kept.rank(window.start)
            answer = read(kept)
        except BaseException as error:
            self._cache.discard(key)
            if not isinstance(error, Exception):
                raise
            if not isinstance(error, Unserved | BrokenRowsError):
                self._report_break(error)
            return None
        if not again:
            path = DecisionPath.FIRST if known is None else DecisionPath.COLUMNS
            self.statistics.paths[path] += 1
        return answer

    def sweep(self) -> None:
        """Drops the classes that had no pod since the last sweep, with their failures."""
        self._cache.sweep(self._profile.name)
        self._signer.sweep()

    def find_alike(self, pod: Pod) -> Hashable | None:
        """Returns what a failed pod shares with pods that fail whenever it does, or None."""
        return self._signer.find_alike(pod, self._cluster.nodes)

    def _ask(self, pod: Pod) -> Asks | None:
        """Returns what plugins are asked about a pod; None for a pod that is decided alone."""
        asks = self._signer.ask(pod, self._cluster.nodes)
        if not isinstance(asks, Unsigned):
            for plugin, why in asks.alone.items():
                self.statistics.unsigned[plugin.name, why] += 1
            return asks
        if asks.error is not None:
            self._report_break(asks.error)
        if asks.why is not None:
            self.statistics.unsigned[asks.plugin, asks.why] += 1
        return None

    def _count(self, signature: int | None, pod: Pod) -> None:
        """Counts a pod that is about to be decided, by its likeness to others."""
        if signature is None:
            return
        self.statistics.saw(signature)
        if pod.owner is not None:
            self._siblings.saw(pod, pod.owner, signature, self._cluster.nodes)

    def _report_break(self, error: BaseException) -> None:
        """Reports, once, that a plugin raised where answers are reused: each pod may cause it."""
        plugin = error.plugin if isinstance(error, PluginError) else ""
        if plugin not in self._broke:
            self._broke.add(plugin)
            why = make_error("such pods are decided one by one", error)
            self._report(Report(self._profile.name, str(why)))

    def _report_wrong(self, plugin: str) -> None:
        told = f"plugin {plugin} reads more than it declares: it is asked about all nodes again"
        self._report(Report(self._profile.name, told))

    def _on_named(self, pod: Pod) -> Found | None:
        """Returns the decision for a pod that names one node and fits there.

        Only this row is checked. None if the pod does not fit: `cycle.decide` finds the reasons.
        """
        nodes, names = self._cluster.nodes, pod.spec.named_nodes
        if nodes.nominations.are_there or names is None or len(names) != 1:
            return None
        row = nodes.row(next(iter(names)))
        if row is None:
            return None
        prepared = pre_filter(self._profile, pod, nodes)
        if prepared.rejected is not None or prepared.node_names != names:
            return None
        if not fits_on(self._profile, pod, prepared, nodes, row):
            return None
        return Found(row, prepared, None)

    def _on_nominated(self, kept: PodClass, pod: Pod) -> Found | None:
        """Returns the decision for a pod that fits on the node that it is nominated to; else None.

        This node is tried before all others.
        """
        nodes = self._cluster.nodes
        name = nodes.nominations.node_of(pod)
        row = nodes.row(name) if name else None
        if row is None or self._is_crowded(pod, name) or not kept.fits(row):
            return None
        return Found(row, kept.prepare_for(pod), None, nominated_path=True)

    def _is_crowded(self, pod: Pod, node_name: str) -> bool:
        """Returns whether pods of equal or higher priority are nominated to a pod's node, too."""
        others = self._cluster.nodes.nominations.on(node_name)
        return len(others) > 1 and any(
            other.priority >= pod.priority for uid, other in others.items() if uid != pod.uid
        )

    # Classes

    def _by_class(
        self, asks: Asks, pod: Pod, window: Window
    ) -> tuple[DecisionPath, Found | Failed | None]:
        key = Key(self._profile.name, asks.shared)
        known: PodClass | None = self._cache.find(key)
        is_nominated = self._cluster.nodes.nominations.node_of(pod) != ""
        if is_nominated and (known is None or window.rows is not None):
            return DecisionPath.NOMINATED, None
        try:
            kept = self._bring_up_to_date(key, known, pod, asks)
            if is_nominated:
                return DecisionPath.NOMINATED, self._on_nominated(kept, pod)
            if window.rows is None and kept.has_failed(pod):
                failed = kept.fail(pod)
                if failed is not None:
                    return DecisionPath.FAILURE, failed
            is_ranked, row = kept.choose(pod, window)
            path = _BATCH if is_ranked and self._settings.batches else _COLUMNS
            if row is None:
                return DecisionPath.FIRST, self._fail(kept, pod, window)
        except BaseException:
            # Answers of which only a part is up to date cannot be used.
            self._cache.discard(key)
            raise
        kept.last_row = row
        return (DecisionPath.FIRST if known is None else path), Found(row, kept.pre_filtered, None)

    def _fail(self, kept: PodClass, pod: Pod, window: Window) -> Found | Failed:
        """Returns the decision for a pod whose class has no feasible row, with the reasons."""
        failed = kept.fail(pod) if window.rows is None else None
        if failed is not None:
            return failed
        prepared = kept.prepare_for(pod)
        return conclude(self._profile, pod, prepared, self._cluster.nodes, window)

    def _bring_up_to_date(self, key: Key, known: PodClass | None, pod: Pod, asks: Asks) -> PodClass:
        """Returns the class brought up to date, or a new one if there is none."""
        if known is not None and (
            self._settings.classes or known.views.changed_only(known.last_row)
        ):
            known.refresh(pod, asks)
            if not self._settings.batches:
                known.ranking.is_summed = False
            return known
        if known is not None:
            self.statistics.flushes[Flush.INTERRUPTED] += 1
            self._cache.discard(key)
        if self._settings.most_classes is not None:
            self._cache.keep_most(self._profile.name, self._settings.most_classes - 1)
        began = self._clock()
        made = PodClass(self._answers, pod, asks)
        self._observer.answers_stored(self._profile.name, began)
        self._cache.put(key, made, made.size, self.statistics)
        return made

    # Verifying

    def _verify(self, pod: Pod, window: Window, outcome: Found | Failed) -> Found | Failed:
        """Decides a share of pods again without reuse; returns the decision that counts.

        If the two differ, reuse is switched off, and the decision without reuse counts.
        """
        if crc32(pod.uid.encode()) >= self._settings.verify_share * 2**32:
            return outcome
        plain = decide(self._profile, pod, self._cluster.nodes, window)
        self.statistics.verified += 1
        reused_told, plain_told = self._describe(outcome), self._describe(plain)
        if reused_told == plain_told:
            return outcome
        self.statistics.differences += 1
        self._switch_off(
            f"pod {pod.key} was decided differently: {reused_told} with reuse, {plain_told} without"
        )
        return plain

    def _describe(self, outcome: Found | Failed) -> str:
        if isinstance(outcome, Found):
            return self._cluster.nodes.name(outcome.row)
        return diagnosis.message(outcome)

    def _switch_off(self, why: str) -> None:
        self.is_on = False
        self._cache.forget(self._profile.name)
        self._report(Report(self._profile.name, f"reuse is switched off: {why}"))
