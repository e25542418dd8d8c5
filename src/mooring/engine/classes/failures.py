"""Failures that are known for like pods, until something changes that they depend on."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.cluster import Cluster
from mooring.cluster.changes import Change, unite
from mooring.framework.attempt import Failed, Filtered
from mooring.framework.calls import PASSING, ask_watch
from mooring.framework.profile import Profile
from mooring.objects.pod import Pod

from .answer_cache import AnswerCache, Key
from .statistics import Statistics

# Every failure depends on how many nodes there are, and on pods that are nominated to them.
_ALWAYS = int(Change.MEMBERSHIP | Change.NOMINATED)

# What a failure takes besides its arrays: what plugins prepared, reasons, the message.
_BYTES = 8_192


@dataclass(slots=True)
class KnownFailure:
    """A failure, the state of the cluster that it is good for, and what may change it."""

    failed: Failed
    generation: int
    watch: int


class Failures:
    """The failures of one profile, by signature and priority.

    The priority counts because nominated pods stand in the way of lesser pods only.
    """

    def __init__(
        self, profile: Profile, cluster: Cluster, cache: AnswerCache, statistics: Statistics
    ) -> None:
        self._profile = profile
        self._cluster = cluster
        self._cache = cache
        self._statistics = statistics
        self._plugins = tuple(
            dict.fromkeys((*profile.pre_filter, *profile.filter, *profile.post_filter))
        )

    def find(self, signature: int, priority: int) -> Failed | None:
        """The failure of a like pod, if nothing has changed since that it depends on."""
        if not self._cache.failures:
            # Most pods that are placed are not like one that failed.
            return None
        key = Key(self._profile.name, signature, priority)
        known: KnownFailure | None = self._cache.find(key)
        if known is None:
            return None
        if not self._is_current(known):
            self._cache.discard(key)
            return None
        return known.failed

    def put(self, signature: int, pod: Pod, failed: Failed) -> None:
        """Keeps the failure of a pod for those that are like it."""
        key = Key(self._profile.name, signature, pod.priority)
        generation = self._cluster.changes.generation
        self._keep(key, KnownFailure(failed, generation, self._watch(pod)))

    def _keep(self, key: Key, known: KnownFailure) -> None:
        size = _BYTES + _measure(known.failed.filtered) + _measure(known.failed.tried_first)
        self._cache.put(key, known, size, self._statistics)

    def _is_current(self, known: KnownFailure) -> bool:
        log = self._cluster.changes
        if known.generation == log.generation:
            return True
        changed = log.unite_since(known.generation)
        if changed is None or changed & known.watch:
            return False
        known.generation = log.generation
        return True

    def _watch(self, pod: Pod) -> int:
        """The changes that can alter what filters and post-filters say of a pod."""
        nodes = self._cluster.nodes
        try:
            return _ALWAYS | unite(ask_watch(each, pod, nodes) for each in self._plugins)
        except PASSING:
            raise
        except BaseException:  # noqa: BLE001 - then anything may
            return int(Change.ALL)


def _measure(filtered: Filtered | None) -> int:
    """The bytes of the arrays of an outcome."""
    if filtered is None:
        return 0
    layers = sum(each.verdict.failed.nbytes + each.decided.nbytes for each in filtered.layers)
    own = filtered.rows.nbytes + filtered.feasible.nbytes + layers
    return own + sum(map(_measure, filtered.amended))
