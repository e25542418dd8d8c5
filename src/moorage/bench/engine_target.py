"""The engine alone, without an API server or a network; its actions succeed at once.

Its clock is the stopwatch plus the skipped time. While there are pods to decide, time passes as on
the wall. When there are none, it jumps to the moment at which something happens: the end of a
backoff, or the next operation of the workload. So waiting costs nothing, and is not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from moorage.cluster import check
from moorage.engine import Engine
from moorage.engine.actions import (
    Action,
    BindPod,
    EvictPod,
    PatchPodStatus,
    RecordEvent,
    ReleaseClaim,
    RevokeClaims,
    WriteClaims,
    WriteVolumes,
)
from moorage.engine.events import Applied, Removed
from moorage.objects.kinds import Object
from moorage.objects.pod import Pod
from moorage.world import World
from moorage.world.defaults import Defaults

from .custom_kinds import CLAIM_TEMPLATE
from .device_claims import ClaimFiller
from .measurement import (
    SCHEDULED,
    UNSCHEDULABLE,
    Collector,
    Ledger,
    PodEntry,
    Stopwatch,
    resident_bytes,
)
from .store import Store
from .target import Stalled
from .templates import Manifest

# Between two looks at the clock and at what the workload does meanwhile.
_DECISIONS_AT_ONCE = 64

_FAILED = "FailedScheduling"


class EngineTarget:
    """Runs an engine on objects in memory."""

    def __init__(
        self,
        engine: Engine,
        stopwatch: Stopwatch | None = None,
        progress: Callable[[int], None] = lambda placed: None,
    ) -> None:
        self.engine = engine
        self.stopwatch = stopwatch or Stopwatch()
        self.ledger = Ledger()
        self.collector: Collector | None = None
        self._progress = progress
        self._skipped = 0.0
        self._store = Store(Defaults.of(()).fill)
        self._pods = self._store.pods
        self._world = World(engine, self._pods)
        #: Who was bound when, and who was evicted, and is not noted yet.
        self._bound: list[tuple[str, float]] = []
        self._evicted: list[Pod] = []
        self._performers: dict[type[Action], Callable[[Any, float], object]] = {
            BindPod: self._bind,
            EvictPod: self._evict,
            WriteVolumes: self._world.write_volumes,
            WriteClaims: self._world.write_claims,
            RevokeClaims: self._world.revoke_claims,
            ReleaseClaim: self._world.release_claim,
            PatchPodStatus: self._patch,
        }

    @property
    def now(self) -> float:
        return self.stopwatch.seconds + self._skipped

    # Objects

    def create(self, manifests: Iterable[Manifest]) -> list[str]:
        with self.stopwatch.pause():
            items = [item for raw in manifests for item in self._add(raw)]
            first = next((item for item in items if self._counts(item)), None)
        now, handle = self.now, self.engine.handle
        for item in items:
            if item is first and self.collector is not None:
                self.collector.mark_start()
            handle(Applied(item), now)
        return [item.uid for item in items if isinstance(item, Pod)]

    def _counts(self, item: Object) -> bool:
        """Whether it is a pod that is measured."""
        if self.collector is None or not isinstance(item, Pod):
            return False
        return self.collector.counts(self.ledger.entries[item.uid])

    def _add(self, raw: Manifest) -> list[Object]:
        """Keeps an object; returns what the engine is told: a pod comes after its claims."""
        if raw["kind"] == CLAIM_TEMPLATE:
            self._store.add_claim_template(raw)
            return []
        item = self._store.add(raw)
        if not isinstance(item, Pod):
            return [item]
        entry = PodEntry(item.uid, item.namespace, item.name, item.labels)
        entry.has_finalizers = bool(raw["metadata"].get("finalizers"))
        # The API server itself says of a pod with gates that it is not scheduled.
        entry.is_attempted = bool(item.spec.scheduling_gates)
        self.ledger.add(entry)
        if not item.spec.resource_claims:
            return [item]
        item, claims = self._store.make_claims(item)
        return [*claims, item]

    def allocate_claims(self, namespace: str) -> None:
        with self.stopwatch.pause():
            for claim in ClaimFiller(self.engine).fill(namespace):
                self.engine.handle(Applied(claim), self.now)

    def render(self, manifests: Iterable[Manifest]) -> list[Manifest]:
        with self.stopwatch.pause():
            return list(manifests)

    def replace(self, manifest: Manifest, subresources: Sequence[str] = ()) -> None:
        with self.stopwatch.pause():
            item = self._store.replace(manifest)
            if isinstance(item, Pod):
                self.ledger.entries[item.uid].labels = item.labels
        self.engine.handle(Applied(item), self.now)

    def delete(self, manifest: Manifest) -> None:
        known = self._store.find(manifest)
        if isinstance(known, Pod):
            self.delete_pod(known.uid)
        elif known is not None:
            self._store.remove(manifest)
            self.engine.handle(Removed(known), self.now)

    def delete_pod(self, uid: str) -> None:
        entry = self.ledger.entries.get(uid)
        if entry is None:
            return
        if entry.has_finalizers:
            pod = msgspec.structs.replace(self._pods[uid], terminating=True)
            self._pods[uid] = pod
            self.engine.handle(Applied(pod), self.now)
            return
        self._forget(uid)

    def _forget(self, uid: str) -> None:
        pod = self._pods[uid]
        self._store.remove_pod(pod)
        self.ledger.remove(uid)
        self.engine.handle(Removed(pod), self.now)
        self._world.free_claims(pod, self.now)

    # Deciding

    def advance(self, until: float | None) -> None:
        if self.collector is not None:
            self.collector.sample_memory()
        now = self.now
        if not self._decide(now):
            self._skip(now, until)
        else:
            for _ in range(_DECISIONS_AT_ONCE - 1):
                if not self._decide(now):
                    break
        with self.stopwatch.pause():
            self._book()

    def _decide(self, now: float) -> bool:
        """Makes one decision and does what it asks for; False if no pod is ready."""
        wall = self.stopwatch.wall
        begun = wall()
        actions = self.engine.step(now, 1)
        seconds = wall() - begun
        result = _result(actions)
        if result and self.collector is not None:
            self.collector.add_decision(seconds, result)
        for action in actions:
            perform = self._performers.get(type(action))
            if perform is not None:
                perform(action, now)
        return bool(result)

    def _skip(self, now: float, until: float | None) -> None:
        """Advances to the moment when something is ready."""
        moments = [each for each in (self.engine.next_step(now), until) if each is not None]
        if not moments:
            raise Stalled
        self._skipped += max(0.0, min(moments) - self.now)

    def _bind(self, action: BindPod, now: float) -> None:
        self._world.bind(action, now)
        self._bound.append((action.pod.uid, self.stopwatch.seconds))

    def _book(self) -> None:
        """Notes placed and evicted pods, which is not part of scheduling."""
        for uid, moment in self._bound:
            entry = self.ledger.mark_placed(uid)
            if entry is not None and self.collector is not None:
                self.collector.add_placement(entry, moment)
        self._bound.clear()
        # A pod may be placed and evicted in one go: it counts as placed.
        for victim in self._evicted:
            self._store.remove_pod(victim)
            self.ledger.remove(victim.uid)
        self._evicted.clear()
        self._progress(self.ledger.placed_count)

    def _evict(self, action: EvictPod, now: float) -> None:
        victim = self._world.evict(action, now)
        if victim is not None:
            self._evicted.append(victim)

    def _patch(self, action: PatchPodStatus, now: float) -> None:
        if action.condition is not None:
            self.ledger.mark_attempted(action.pod.uid, action.condition.message)

    def check(self) -> None:
        check(self.engine.cluster)
        self.engine.queue.check()

    def resident_bytes(self) -> int:
        return resident_bytes()

    def close(self) -> None:
        """Does nothing: the target leaves nothing behind."""


def _result(actions: Sequence[Action]) -> str:
    """Returns the outcome of the decision among these actions; nothing if none was made."""
    for action in actions:
        kind = type(action)
        if kind is BindPod or kind is WriteVolumes or kind is WriteClaims:
            return SCHEDULED
        if isinstance(action, RecordEvent) and action.reason == _FAILED:
            return UNSCHEDULABLE
    return ""
