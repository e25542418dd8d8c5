"""A target with an API server and a scheduler as processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from moorage.bench.cases import RunFailed
from moorage.bench.measurement import Collector, Ledger, PodEntry, Stopwatch
from moorage.bench.templates import Manifest
from moorage.client import Reflector
from moorage.objects.kinds import KINDS

from .claim_allocation import allocate_claims
from .cluster_view import (
    POD_REPORT,
    VOLUME_REPORT,
    PodNotes,
    PodReport,
    VolumeNotes,
    bind_claim,
    check_nodes,
)
from .control_plane import ControlPlane
from .object_writer import ObjectKey, ObjectWriter, clean
from .processes import SchedulerProcess

# Between two checks whether pods are still awaited. Placements are timed when they are
# reported, not when they are looked at.
_LOOK_SECONDS = 0.02

# A scheduler loads, reads an empty cluster and places one pod; a busy machine takes its time.
_WARM_UP_SECONDS = 120.0

_PROBE = "moorage-bench-probe"


class ServerTarget:
    """Runs one workload; placements are those that a watch of pods tells."""

    def __init__(
        self,
        plane: ControlPlane,
        scheduler: SchedulerProcess,
        progress: Callable[[int], None] = lambda placed: None,
    ) -> None:
        self._plane = plane
        self._scheduler = scheduler
        self._progress = progress
        self._writer = ObjectWriter(plane.api, plane.custom)
        self._failure: BaseException | None = None
        self.stopwatch = Stopwatch(processor=lambda: scheduler.processor_seconds)
        self.collector: Collector | None = None
        self.ledger = Ledger()
        self._writes: set[asyncio.Task[None]] = set()
        self._reflectors = [
            Reflector(
                plane.api,
                KINDS["Pod"],
                PodNotes(self.ledger, self._add_placement, self._finish_deletion),
                decode=POD_REPORT,
            ),
            Reflector(
                plane.api,
                KINDS["PersistentVolume"],
                VolumeNotes(self._bind_claim),
                decode=VOLUME_REPORT,
            ),
        ]
        self._watching = [self._start(each.run()) for each in self._reflectors]

    @property
    def now(self) -> float:
        return self.stopwatch.seconds

    def warm_up(self, scheduler_name: str) -> None:
        """Waits until the scheduler places a pod, which is taken away again."""
        for reflector in self._reflectors:
            self._plane.run(reflector.synced.wait())
        uids: list[str] = []
        for manifest in _probe(scheduler_name):
            # One after the other: a pod is refused until its namespace is there.
            uids += self.create([manifest])
        watch = self.ledger.watch(uids)
        until = self.now + _WARM_UP_SECONDS
        while watch.missing:
            if self.now > until:
                messages = [each.message for each in self.ledger.entries.values() if each.message]
                raise RunFailed(
                    f"{self._scheduler.name} placed no pod in {_WARM_UP_SECONDS:g} s"
                    f"{''.join(f': {each}' for each in messages)}; the end of its log:\n"
                    f"{self._scheduler.log}"
                )
            self.advance(None)
        self.ledger.unwatch(watch)
        self._plane.run(clean(self._plane.api, self._writer))
        self.ledger.placed_count = 0

    # Objects

    def create(self, manifests: Iterable[Manifest]) -> list[str]:
        made = list(manifests)
        uids = [self._note(raw) for raw in made if raw["kind"] == "Pod"]
        self._flush()
        self._plane.run(self._writer.create_all(made))
        return uids

    def _note(self, raw: Manifest) -> str:
        """Expects a pod: it may be placed before the API server's answer is here."""
        key, metadata = self._writer.key(raw), raw["metadata"]
        entry = PodEntry(metadata["uid"], key.namespace, key.name, metadata.get("labels") or {})
        entry.has_finalizers = bool(metadata.get("finalizers"))
        self.ledger.add(entry)
        if self.collector is not None and self.collector.counts(entry):
            self.collector.mark_start()
        return entry.uid

    def render(self, manifests: Iterable[Manifest]) -> list[Manifest]:
        # The scheduler is a process of its own, whose time goes on.
        return list(manifests)

    def replace(self, manifest: Manifest, subresources: Sequence[str] = ()) -> None:
        key = self._writer.key(manifest)
        entry = self.ledger.find(key.namespace, key.name) if key.kind == "Pod" else None
        if entry is not None:
            entry.labels = manifest["metadata"].get("labels") or {}
        self._flush()
        self._plane.run(self._writer.replace(manifest, subresources))

    def delete(self, manifest: Manifest) -> None:
        key = self._writer.key(manifest)
        entry = self.ledger.find(key.namespace, key.name) if key.kind == "Pod" else None
        if entry is not None:
            self.delete_pod(entry.uid)
        else:
            self._write(self._writer.delete(key))

    def delete_pod(self, uid: str) -> None:
        entry = self.ledger.entries.get(uid)
        if entry is None:
            return
        if not entry.has_finalizers:
            self.ledger.remove(uid)
        self._write(self._writer.delete(ObjectKey("Pod", entry.namespace, entry.name)))

    def allocate_claims(self, namespace: str) -> None:
        claims = (key for key in self._writer.made if key.kind == "ResourceClaim")
        if any(namespace in ("", key.namespace) for key in claims):
            self._flush()
            self._plane.run(allocate_claims(self._plane.api, self._writer, namespace))

    # What controllers and kubelets do

    def _finish_deletion(self, pod: PodReport) -> None:
        self._write(
            self._writer.delete(ObjectKey("Pod", pod.metadata.namespace, pod.metadata.name))
        )

    def _bind_claim(self, volume: str, claim: ObjectKey) -> None:
        self._write(bind_claim(self._plane.api, volume, claim))

    # Time

    def advance(self, until: float | None) -> None:
        seconds = _LOOK_SECONDS if until is None else min(_LOOK_SECONDS, until - self.now)
        self._plane.run(asyncio.sleep(max(0.0, seconds)))
        if self._failure is not None:
            raise RunFailed(str(self._failure)) from self._failure
        self._scheduler.check()
        if self.collector is not None:
            self.collector.sample_memory()
        self._progress(self.ledger.placed_count)

    def _add_placement(self, entry: PodEntry) -> None:
        if self.collector is not None:
            self.collector.add_placement(entry, self.stopwatch.seconds)

    def _write(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._start(work)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    def _flush(self) -> None:
        """Awaits writes that go on: what is written next may rely on them."""
        if self._writes:
            self._plane.run(_all_of(list(self._writes)))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._plane.task(work)
        task.add_done_callback(self._note_failure)
        return task

    def _note_failure(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._failure = self._failure or task.exception()

    # The end

    def check(self) -> None:
        self._plane.run(check_nodes(self._plane.api))

    def resident_bytes(self) -> int:
        return self._scheduler.peak_bytes

    def close(self) -> None:
        self._scheduler.stop()
        self._flush()
        for task in self._watching:
            task.cancel()
        self._plane.run(_all_of(self._watching))
        self._plane.run(clean(self._plane.api, self._writer))


async def _all_of(tasks: list[asyncio.Task[None]]) -> None:
    """Awaits tasks; failures were reported elsewhere."""
    await asyncio.gather(*tasks, return_exceptions=True)


def _probe(scheduler_name: str) -> Iterable[Manifest]:
    room = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    ready = [{"type": "Ready", "status": "True"}]
    yield {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": _PROBE},
    }
    yield {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": _PROBE},
        "status": {"capacity": room, "allocatable": room, "conditions": ready},
    }
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": _PROBE, "namespace": _PROBE, "uid": _PROBE},
        "spec": {
            "schedulerName": scheduler_name,
            "containers": [{"name": "pause", "image": "registry.k8s.io/pause:3.10.1"}],
        },
    }
