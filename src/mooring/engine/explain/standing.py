"""Where a scheduler at work has a pod: in which queue, since what, on the way to where."""

from __future__ import annotations

from mooring.engine.engine import Engine
from mooring.objects.pod import Pod
from mooring.queue import QueuedPod
from mooring.queue.queued_pod import BACKING_OFF

from .data import PermitWait, QueueView


def queue_view(engine: Engine, pod: Pod, now: float) -> QueueView | None:
    """What the queue knows of a pod, by the engine's clock; None if it does not wait."""
    queued = engine.queue.get(pod.uid)
    if queued is not None:
        return _view(engine, queued, now)
    placement = engine.placement(pod.uid)
    if placement is None:
        return None
    return QueueView(
        place=placement.queued.place.value,
        attempts=placement.queued.attempts,
        assumed_on=placement.node_name,
        permits=tuple(
            PermitWait(plugin, _left(until, now))
            for plugin, (until, _) in placement.permits.items()
        ),
    )


def _view(engine: Engine, queued: QueuedPod, now: float) -> QueueView:
    # It is left alone until the second of its expiry is over.
    backs_off = queued.place in BACKING_OFF
    refusal = queued.refusal
    return QueueView(
        place=queued.place.value,
        attempts=queued.attempts,
        message=queued.message if refusal is None else refusal.message,
        rejected_by=tuple(sorted(queued.blamed)) if refusal is None else (queued.gated_by,),
        backoff_seconds=_left(queued.expiry + 1, now) if backs_off else 0.0,
        nominated_node=engine.cluster.nodes.nominations.node_of(queued.pod),
    )


def _left(until: float, now: float) -> float:
    return round(max(until - now, 0.0), 3)
