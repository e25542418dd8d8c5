"""Deciding for like pods with the answers found for the first of them. Never differently."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Cluster
from mooring.framework.attempt import Failed
from mooring.framework.nominated import refused_by_nominated
from mooring.framework.profile import Profile
from mooring.objects.pod import Pod

from .cycle import Found, Window, decide, first_best
from .pod_class import PodClass, Unserved
from .signatures import Signer


@dataclass(frozen=True, slots=True)
class ReuseSettings:
    """What may be reused, and how many classes are kept."""

    classes: bool = True
    batches: bool = True
    most_classes: int = 512

    @property
    def any(self) -> bool:
        return self.classes or self.batches


class Reuse:
    """The classes of one profile, the least recently used forgotten first."""

    def __init__(self, profile: Profile, cluster: Cluster, settings: ReuseSettings) -> None:
        self._profile = profile
        self._cluster = cluster
        self._settings = settings
        self.signer = Signer(profile)
        self._classes: dict[int, PodClass] = {}
        #: How decisions were made, by kind: for metrics and summaries.
        self.counts: Counter[str] = Counter()
        self.is_off = not settings.any or bool(self.signer.silent) or not profile.score
        self._failures: dict[int, tuple[int, Failed]] = {}

    def __len__(self) -> int:
        return len(self._classes)

    def decide(self, pod: Pod, window: Window) -> Found | Failed:
        """The decision for a pod: the same as `cycle.decide` makes, mostly with less work."""
        reason = self._unserved(pod, window)
        if reason:
            self.counts[reason] += 1
            return decide(self._profile, pod, self._cluster.nodes, window)
        signature = self.signer.sign(pod, self._cluster.nodes)
        if signature is None:
            self.counts["unsignable"] += 1
            return decide(self._profile, pod, self._cluster.nodes, window)
        failed = self._known_failure(signature)
        if failed is not None:
            self.counts["failure reused"] += 1
            return failed
        outcome = self._by_class(signature, pod, window)
        if isinstance(outcome, Failed):
            self._failures[signature] = self._cluster.changes.generation, outcome
        return outcome

    def _unserved(self, pod: Pod, window: Window) -> str:
        """Why a pod is decided alone; empty if it is not."""
        if self.is_off:
            return "off"
        if window.percentage and window.percentage < 100:
            return "sampling"
        if self._cluster.nodes.nominations.node_of(pod):
            return "nominated"
        return ""

    def _known_failure(self, signature: int) -> Failed | None:
        known = self._failures.get(signature)
        if known is None:
            return None
        generation, failed = known
        if generation == self._cluster.changes.generation:
            return failed
        del self._failures[signature]
        return None

    def _by_class(self, signature: int, pod: Pod, window: Window) -> Found | Failed:
        nodes = self._cluster.nodes
        try:
            kept = self._class(signature, pod)
            row = self._choose(kept, pod, window)
        except Exception as error:  # noqa: BLE001 - whatever it is, deciding alone will tell it
            self._classes.pop(signature, None)
            self.counts["narrowed" if isinstance(error, Unserved) else "broken"] += 1
            return decide(self._profile, pod, nodes, window)
        if row is None:
            # The reasons are worth a full look: there is only one such look per class and state.
            return decide(self._profile, pod, nodes, window)
        kept.last_row = row
        return Found(row, kept.pre_filtered, None)

    def _class(self, signature: int, pod: Pod) -> PodClass:
        kept = self._classes.pop(signature, None)
        if kept is None:
            self.counts["class made"] += 1
            self._make_room()
            kept = PodClass(self._profile, pod, self._cluster)
        elif self._settings.classes or self._explains(kept):
            kept.refresh()
        else:
            self.counts["batch flushed"] += 1
            kept.rebuild()
        self._classes[signature] = kept
        return kept

    def _explains(self, kept: PodClass) -> bool:
        """Whether all that changed is where the class itself placed its last pod."""
        changed = self._cluster.changes.since(kept.generation)
        return changed is not None and changed.keys() <= {kept.last_row}

    def _make_room(self) -> None:
        if len(self._classes) >= self._settings.most_classes:
            del self._classes[next(iter(self._classes))]
        if len(self._failures) >= self._settings.most_classes:
            del self._failures[next(iter(self._failures))]

    def _choose(self, kept: PodClass, pod: Pod, window: Window) -> int | None:
        nodes = self._cluster.nodes
        if not nodes.nominations and kept.is_ranked and self._settings.batches:
            self.counts["ranked"] += 1
            return kept.best_ranked(window.start)
        self.counts["columns"] += 1
        feasible = np.flatnonzero(kept.feasible())
        if nodes.nominations:
            feasible = self._without_crowded(kept, pod, feasible)
        if len(feasible) <= 1:
            return int(feasible[0]) if len(feasible) else None
        return first_best(kept.scored(pod, feasible), nodes, window.start)

    def _without_crowded(
        self, kept: PodClass, pod: Pod, feasible: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """The feasible rows that also have room beside the pods nominated to them."""
        crowded = refused_by_nominated(
            self._profile, pod, kept.plain_filtering(), self._cluster.nodes, feasible
        )
        return feasible[~np.isin(feasible, crowded)] if len(crowded) else feasible
