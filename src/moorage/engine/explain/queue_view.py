"""What the queue knows of a pod that waits."""

from __future__ import annotations

from moorage.engine.engine import Engine
from moorage.objects.pod import Pod
from moorage.queue import Entity
from moorage.queue.entity import BACKING_OFF

from .explanation import PermitWait, QueueView


def view_queue(engine: Engine, pod: Pod, now: float) -> QueueView | None:
    """Returns what the queue knows of a pod, by the engine's clock; None if it does not wait."""
    queued = engine.queue.get(pod.uid)
    if queued is not None:
        return _view_queued(engine, queued, now)
    placement = engine.placement(pod.uid)
    if placement is None:
        return None
    return QueueView(
        place=placement.queued.place,
        attempts=placement.queued.attempts,
        assumed_on=placement.node_name,
        permits=tuple(
            PermitWait(plugin, _seconds_until(until, now))
            for plugin, (until, _) in placement.permits.items()
        ),
    )


def _view_queued(engine: Engine, queued: Entity, now: float) -> QueueView:
    # It is left alone until the second of its expiry is over.
    backs_off = queued.place in BACKING_OFF
    refusal = queued.refusal
    return QueueView(
        place=queued.place,
        attempts=queued.attempts,
        message=queued.message if refusal is None else refusal.message,
        rejected_by=tuple(sorted(queued.waking_plugins)) if refusal is None else (queued.gated_by,),
        backoff_seconds=_seconds_until(queued.expiry + 1, now) if backs_off else 0.0,
        nominated_node=engine.cluster.nodes.nominations.node_of(queued.pod),
    )


def _seconds_until(until: float, now: float) -> float:
    return round(max(until - now, 0.0), 3)
