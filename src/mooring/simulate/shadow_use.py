"""What if Mooring had placed the pods of another scheduler: how the cluster would be used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from mooring.engine import Engine
from mooring.objects.coexist import is_ordinary
from mooring.objects.kinds import Object
from mooring.objects.pod import Pod
from mooring.world.cluster_use import ClusterUse, measure_use

from .simulation import simulate

replace = msgspec.structs.replace


def place_anew(name: str, engine: Engine, objects: Iterable[Object]) -> ClusterUse:
    """Places all pods of a cluster anew in a new engine, and measures how it is used then.

    Pods of daemonsets, static pods, and pods of schedulers that the engine does not serve stay
    where they are.
    """
    lifted = [_lift(item, engine) for item in objects]
    transcript = simulate(engine, lifted)
    settled = _settle(lifted, engine.cluster.pods)
    return measure_use(name, engine.cluster, settled, len(transcript.pending))


def _lift(item: Object, engine: Engine) -> Object:
    """Returns the object as it was before it was placed."""
    if not isinstance(item, Pod) or item.is_finished or not is_ordinary(item):
        return item
    if item.spec.scheduler_name not in engine.profiles:
        return item
    return replace(item, node_name="")


def _settle(items: Iterable[Object], placed: Mapping[str, Pod]) -> Iterator[Pod]:
    """Returns the pods that have a node in the end, as they were written."""
    for item in items:
        if isinstance(item, Pod) and item.uid in placed:
            yield replace(item, node_name=placed[item.uid].node_name)
