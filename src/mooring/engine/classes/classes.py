"""Deciding for like pods with the answers found for the first of them. Never differently."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Cluster
from mooring.engine import diagnosis
from mooring.engine.actions import Report
from mooring.engine.cycle import Found, Window, decide
from mooring.framework.attempt import Failed
from mooring.framework.calls import PASSING, broken
from mooring.framework.nominated import find_refused_by_nominated
from mooring.framework.observe import SCORE, PointTimer
from mooring.framework.points import fits_on, pre_filter
from mooring.framework.profile import Profile
from mooring.framework.status import PluginError
from mooring.objects.pod import Pod

from .batch import Turns
from .parts import Unserved
from .pod_class import PodClass
from .signature import Signer
from .statistics import DecisionPath, Flush, Statistics

# The answers of all classes may take so many bytes, at so many per row of each.
_MOST_BYTES = 128 * 2**20
_BYTES_PER_ROW = 128
_FEWEST_CLASSES = 64

# Looked up once: it is compared with for every pod.
_BATCH = DecisionPath.BATCH


@dataclass(frozen=True, slots=True)
class ClassSettings:
    """What may be reused, how many classes are kept, and which share of decisions is verified."""

    classes: bool = True
    batches: bool = True
    most_classes: int = 512
    verify_share: float = 0.0


class Classes:
    """The classes of one profile, the least recently used forgotten first."""

    def __init__(
        self,
        profile: Profile,
        cluster: Cluster,
        settings: ClassSettings,
        report: Callable[[Report], None],
    ) -> None:
        self._profile = profile
        self._cluster = cluster
        self._settings = settings
        self._report = report
        self._observer = profile.observer
        self._clock = profile.observer.clock
        self._ranked = profile.observer.batch_durations(profile.name)
        self._signer = Signer(profile)
        self._classes: dict[int, PodClass] = {}
        #: By class and priority: nominated pods stand in the way of lesser pods only.
        self._failures: dict[tuple[int, int], tuple[int, Failed]] = {}
        #: The plugins that broke where answers are reused.
        self._broke: set[str] = set()
        self._break: BaseException | None = None
        #: The signatures of pods that were decided since the last sweep.
        self._asked: set[int] = set()
        self._visit: tuple[NDArray[np.intp], Turns] | None = None
        self.statistics = Statistics()
        self.is_on = settings.classes or settings.batches
        if self.is_on and self._signer.silent:
            self._switch_off(f"plugin {self._signer.silent[0]} does not sign pods")

    def __len__(self) -> int:
        return len(self._classes)

    def forget(self) -> None:
        """Forgets all answers: what they were found from is no longer there."""
        self._classes.clear()
        self._failures.clear()
        self._visit = None

    def decide(self, pod: Pod, window: Window) -> Found | Failed:
        """The decision for a pod: the same as `cycle.decide` makes, mostly with less work."""
        signature = self._sign(pod)
        self.statistics.saw(signature)
        path, outcome = self._served(signature, pod, window)
        if outcome is None or signature is None:
            outcome = self._decide_alone(pod, window)
            if signature is not None:
                self.statistics.look_back(signature, outcome)
        elif self._settings.verify_share and path.is_reuse:
            outcome = self._verified(pod, window, outcome)
        self.statistics.paths[path] += 1
        if signature is not None:
            self._asked.add(signature)
            self._remember(signature, pod, outcome)
        if path is _BATCH:
            self._ranked.append(self._clock() - self._observer.began)
        else:
            found = isinstance(outcome, Found)
            self._observer.decision_made(self._profile.name, path.is_reuse, found)
        return outcome

    def _served(
        self, signature: int | None, pod: Pod, window: Window
    ) -> tuple[DecisionPath, Found | Failed | None]:
        """How the pod is decided, and the decision if it comes from its class."""
        alone = self._why_alone(signature, pod, window)
        if alone is not None or signature is None:
            return alone or DecisionPath.UNSIGNED, None
        failed = self._known_failure((signature, pod.priority))
        if failed is not None:
            return DecisionPath.FAILURE, failed
        return self._by_answers(signature, pod, window)

    def _why_alone(self, signature: int | None, pod: Pod, window: Window) -> DecisionPath | None:
        """How a pod is decided that no class serves; None if one may."""
        if not self.is_on:
            return DecisionPath.OFF
        if signature is None:
            return DecisionPath.UNSIGNED
        if (window.percentage and window.percentage < 100) or not self._profile.score:
            return DecisionPath.SAMPLING
        nominations = self._cluster.nodes.nominations
        # A volume that a nominated pod shares is told from others by no signature.
        if nominations and (pod.spec.volumes or nominations.node_of(pod)):
            return DecisionPath.NOMINATED
        return None

    def find_feasible(
        self, pod: Pod, window: Window, *, again: bool = False
    ) -> tuple[PodClass, NDArray[np.intp]] | None:
        """The class of a pod, up to date, and the rows that take it; None where it has none.

        For decisions in which others have a say besides plugins, which may ask once more.
        """
        signature = self._sign(pod)
        if signature is None or self._why_alone(signature, pod, window) is not None:
            return None
        if pod.spec.named_nodes is not None:
            return None
        known = self._classes.pop(signature, None)
        try:
            kept = self._made(pod) if known is None else self._refreshed(known, pod)
            rows = np.flatnonzero(kept.feasible())
            if self._cluster.nodes.nominations:
                rows = self._without_crowded(kept, pod, rows)
        except Unserved:
            return None
        except PASSING:
            raise
        except BaseException as error:  # noqa: BLE001 - deciding alone can do without a class
            self._break = error
            return None
        self._classes[signature] = kept
        self._asked.add(signature)
        if not again:
            path = DecisionPath.FIRST if known is None else DecisionPath.COLUMNS
            self.statistics.paths[path] += 1
        return kept, rows

    def _by_answers(
        self, signature: int, pod: Pod, window: Window
    ) -> tuple[DecisionPath, Found | Failed | None]:
        """The decision by what plugins have answered, or answer quickly."""
        try:
            if pod.spec.named_nodes is not None:
                # A class is of no use to pods for certain nodes.
                return DecisionPath.NARROWED, self._on_named(pod)
            return self._by_class(signature, pod, window)
        except Unserved:
            self._classes.pop(signature, None)
            return DecisionPath.NARROWED, None
        except PASSING:
            raise
        except BaseException as error:  # noqa: BLE001 - deciding alone can do without a class
            self._classes.pop(signature, None)
            self._break = error
            return DecisionPath.BROKEN, None

    def sweep(self) -> None:
        """Drops the classes that had no pod since the last sweep, and what is known of them."""
        asked, self._asked = self._asked, set()
        for signature in [each for each in self._classes if each not in asked]:
            del self._classes[signature]
        for key in [each for each in self._failures if each[0] not in asked]:
            del self._failures[key]
        self._signer.sweep()

    def _sign(self, pod: Pod) -> int | None:
        try:
            return self._signer.sign(pod, self._cluster.nodes)
        except PASSING:
            raise
        except BaseException as error:  # noqa: BLE001 - a pod that is not signed is decided alone
            self._break = error
            return None

    def _decide_alone(self, pod: Pod, window: Window) -> Found | Failed:
        """The plain decision. What broke reuse is told unless that breaks as well."""
        error, self._break = self._break, None
        outcome = decide(self._profile, pod, self._cluster.nodes, window)
        if error is not None:
            self._tell_break(error)
        return outcome

    def _tell_break(self, error: BaseException) -> None:
        """Reports a plugin that breaks where answers are reused: once, since each pod may do it."""
        plugin = error.plugin if isinstance(error, PluginError) else ""
        if plugin not in self._broke:
            self._broke.add(plugin)
            why = broken("pods are decided one by one", error)
            self._report(Report(self._profile.name, str(why)))

    def _remember(self, signature: int, pod: Pod, outcome: Found | Failed) -> None:
        if isinstance(outcome, Found):
            self.statistics.placed(signature, outcome.row)
        elif self.is_on and not self._cluster.nodes.nominations.node_of(pod):
            failure = self._cluster.changes.generation, outcome
            self._failures[signature, pod.priority] = failure

    def _known_failure(self, key: tuple[int, int]) -> Failed | None:
        """The failure of a like pod, if nothing at all has changed since."""
        known = self._failures.get(key)
        if known is None:
            return None
        generation, failed = known
        if generation == self._cluster.changes.generation:
            return failed
        del self._failures[key]
        return None

    def _on_named(self, pod: Pod) -> Found | None:
        """The one node that a pod names, if it fits there: one row is asked about in plain numbers.

        A pod that does not fit is worth a full look, because of the reasons.
        """
        nodes, names = self._cluster.nodes, pod.spec.named_nodes
        if nodes.nominations or names is None or len(names) != 1:
            return None
        row = nodes.row(next(iter(names)))
        if row is None:
            return None
        prepared = pre_filter(self._profile, pod, nodes)
        if prepared.rejected is not None or prepared.node_names != names:
            return None
        fits = fits_on(self._profile, pod, prepared, nodes, row)
        return Found(row, prepared, None) if fits else None

    # Classes

    def _by_class(
        self, signature: int, pod: Pod, window: Window
    ) -> tuple[DecisionPath, Found | Failed | None]:
        known = self._classes.pop(signature, None)
        kept = self._made(pod) if known is None else self._refreshed(known, pod)
        self._classes[signature] = kept
        path, row = self._choose(kept, pod, window)
        if row is None:
            # The reasons are worth a full look: there is one per class and state of the cluster.
            return DecisionPath.FIRST, None
        kept.last_row = row
        return (DecisionPath.FIRST if known is None else path), Found(row, kept.pre_filtered, None)

    def _made(self, pod: Pod) -> PodClass:
        if len(self._classes) >= self._most_classes():
            del self._classes[next(iter(self._classes))]
            self.statistics.flushes[Flush.FULL] += 1
        if len(self._failures) >= self._settings.most_classes:
            del self._failures[next(iter(self._failures))]
        began = self._clock()
        made = PodClass(self._profile, pod, self._cluster, self.statistics)
        self._observer.answers_stored(self._profile.name, began)
        return made

    def _most_classes(self) -> int:
        rows = len(self._cluster.nodes.alive)
        room = max(_FEWEST_CLASSES, _MOST_BYTES // (_BYTES_PER_ROW * rows))
        return min(self._settings.most_classes, room)

    def _refreshed(self, kept: PodClass, pod: Pod) -> PodClass:
        if self._settings.classes or self._is_explained(kept):
            kept.refresh(pod)
        else:
            self.statistics.flushes[Flush.INTERRUPTED] += 1
            kept.rebuild(pod)
        row = kept.last_row
        if row is not None and row < len(kept.bits):
            self.statistics.looked_back(takes_another=not kept.bits.item(row))
        return kept

    def _is_explained(self, kept: PodClass) -> bool:
        """Whether all that changed is where the class itself placed its last pod."""
        changed = self._cluster.changes.since(kept.generation)
        return changed is not None and changed.keys() <= {kept.last_row}

    def _choose(self, kept: PodClass, pod: Pod, window: Window) -> tuple[DecisionPath, int | None]:
        nodes = self._cluster.nodes
        if not nodes.nominations and kept.is_ranked and self._settings.batches:
            return DecisionPath.BATCH, kept.scores.best(self._turns(window.start))
        feasible = np.flatnonzero(kept.feasible())
        if nodes.nominations:
            feasible = self._without_crowded(kept, pod, feasible)
        if len(feasible) <= 1:
            return DecisionPath.COLUMNS, int(feasible[0]) if len(feasible) else None
        with PointTimer(self._observer, SCORE, self._profile.name):
            best = kept.scored(pod, feasible).best()
        # As `first_best` does, with turns that are known already.
        turns = self._turns(window.start).of_row
        return DecisionPath.COLUMNS, int(best[turns[best].argmin()] if len(best) > 1 else best[0])

    def _turns(self, start: int) -> Turns:
        """The visit order from some start: one for all classes, until a node comes or goes."""
        nodes = self._cluster.nodes
        order = nodes.order
        known = self._visit
        if known is None or known[0] is not order or known[1].start != start:
            turns = Turns.of(order, nodes.count(nodes.everything), start)
            known = self._visit = order, turns
        return known[1]

    def _without_crowded(
        self, kept: PodClass, pod: Pod, feasible: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """The feasible rows that also have room beside the pods nominated to them."""
        crowded = find_refused_by_nominated(
            self._profile, pod, kept.newest_prepared(), self._cluster.nodes, feasible
        )
        return feasible[~np.isin(feasible, crowded)] if len(crowded) else feasible

    # Trust

    def _verified(self, pod: Pod, window: Window, outcome: Found | Failed) -> Found | Failed:
        """Makes some decisions twice. A difference ends reuse, and the plain decision counts."""
        if crc32(pod.uid.encode()) >= self._settings.verify_share * 2**32:
            return outcome
        plain = decide(self._profile, pod, self._cluster.nodes, window)
        self.statistics.verified += 1
        reused_told, plain_told = self._told(outcome), self._told(plain)
        if reused_told == plain_told:
            return outcome
        self.statistics.differences += 1
        self._switch_off(
            f"pod {pod.key} was decided differently: {reused_told} with reuse, {plain_told} without"
        )
        return plain

    def _told(self, outcome: Found | Failed) -> str:
        if isinstance(outcome, Found):
            return self._cluster.nodes.name(outcome.row)
        return diagnosis.message(outcome)

    def _switch_off(self, why: str) -> None:
        self.is_on = False
        self._classes.clear()
        self._failures.clear()
        self._report(Report(self._profile.name, f"reuse is switched off: {why}"))
