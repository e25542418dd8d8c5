"""Groups of pods in streams: gangs that come whole or in part, change and go."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING

from moorage.engine.events import Event
from moorage.objects.node import ZONE
from moorage.objects.pod_group import V1BETA1
from tests.builders import Manifest
from tests.exactness.templates import Template

if TYPE_CHECKING:
    from tests.exactness.streams import World

Events = Iterator[Event]

GROUPS = "PodGroup"
GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True, "Coscheduling": True}
_MOST_GROUPS = 12


def create_gang(world: World) -> Events:
    """A group and its pods, perhaps one pod less than it needs."""
    random = world.random
    of: Template = random.choice(world.templates)
    known = world.all(GROUPS)
    if len(known) >= _MOST_GROUPS:
        yield from world.remove(GROUPS, next(iter(known)))
    name = f"g{world.next_number()}"
    least = random.choice([1, 2, 2, 3, 4])
    if random.random() < 0.95:
        yield from world.apply(GROUPS, _group(world, name, of.namespace, least))
    count = least - 1 if random.random() < 0.15 else least + random.choice([0, 0, 2])
    spec = {**deepcopy(of.spec), "schedulingGroup": {"podGroupName": name}}
    spec.pop("schedulingGates", None)
    for _ in range(count):
        yield from world.create(_member(of, spec))


def change_group(world: World) -> Events:
    """A group needs more members or fewer, or is gone."""
    known = world.all(GROUPS)
    if not known:
        return
    key = world.random.choice(list(known))
    if world.random.random() < 0.3:
        yield from world.remove(GROUPS, key)
    else:
        namespace, _, name = key.partition("/")
        least = world.random.choice([1, 2, 3])
        yield from world.apply(GROUPS, _group(world, name, namespace, least))


def add_member(world: World) -> Events:
    """One more pod of a group that is there."""
    known = world.all(GROUPS)
    if known:
        namespace, _, name = world.random.choice(list(known)).partition("/")
        of = world.random.choice(world.templates)
        spec = {**deepcopy(of.spec), "schedulingGroup": {"podGroupName": name}}
        member = _member(of, spec)
        if member.namespace == namespace:
            yield from world.create(member)


def _member(of: Template, spec: Manifest) -> Template:
    """A template of one priority, as the members of a gang have."""
    return Template(
        of.name, of.namespace, of.labels, spec, of.priorities[:1], annotations=of.annotations
    )


def _group(world: World, name: str, namespace: str, least: int) -> Manifest:
    policy: Manifest = {"gang": {"minCount": least}} if least > 1 else {"basic": {}}
    spec: Manifest = {"schedulingPolicy": policy}
    if world.random.random() < 0.3:
        spec["schedulingConstraints"] = {"topology": [{"key": ZONE}]}
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}
    return {"apiVersion": V1BETA1, "metadata": metadata, "spec": spec, "status": {}}


FOR_GROUPS = (create_gang, create_gang, create_gang, change_group, add_member)
