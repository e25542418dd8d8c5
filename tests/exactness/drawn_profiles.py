"""Profiles at random: versions, plugins left out, added, other weights and arguments.

A seed makes the profile of a stream, and the shape of that stream, which is what happens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from moorage.config import Configuration
from moorage.config.kubernetes_versions import VERSIONS
from moorage.framework.plugin import Score
from moorage_policies.disk_io.disk_io_resource import KIND, READ, WRITE
from tests.builders import Manifest
from tests.exactness.everything import EVERYTHING
from tests.exactness.four_ways import configuration, profile
from tests.exactness.group_streams import GATES
from tests.exactness.honest_plugins import HONEST
from tests.exactness.streams import Shape
from tests.exactness.templates import GPU

#: Plugins of the default profile that a profile can do without.
DEFAULT = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "CoexistPolicy",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
#: Plugins that sign no pods, or not all: with one of them, next to nothing is reused.
_SILENT = ("Registrar", "Tired")
OPTIONAL = (
    "GPUAware",
    "GPUFragmentation",
    "DiskIO",
    "QuietDisk",
    "CountedResources",
    "CountedPools",
    "ExclusiveNodeLimits",
    *(plugin.name for plugin in HONEST if plugin.name not in _SILENT),
)
_DISKS = {"apiVersion": KIND.api_version, "kind": KIND.kind, "plural": KIND.plural}
_FIRST_DISK = {"name": "disk-of-n0"}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A configuration, a shape of streams, how many classes are kept, and all of it in words."""

    configuration: Configuration
    shape: Shape
    most_classes: int | None
    text: str


def draw(seed: int) -> Drawn:
    """Returns the profile and the shape of a seed."""
    random = Random(f"profile {seed}")
    version = Random(f"followed {seed}").choice(VERSIONS)
    left_out = random.sample(DEFAULT, random.choice([0, 1, 1, 2, 4, 8]))
    if random.random() < 0.25:
        # It reads devices for everyone else, so that nobody else need declare them.
        left_out = list(dict.fromkeys((*left_out, "DynamicResources")))
    added = random.sample(OPTIONAL, random.choice([0, 1, 2, 4]))
    if random.random() < 0.05:
        added.append(random.choice(_SILENT))
    scored = [name for name in DEFAULT if _scores(name) and name not in left_out]
    weighed = random.sample(scored, random.choice([0, 0, 1, min(3, len(scored))]))
    weights = {name: random.choice([1, 2, 5, 20]) for name in (*weighed, *added) if _scores(name)}
    enabled = (*DEFAULT, *added)
    args = {name: _ARGS[name](random) for name in _ARGS if name in enabled and name not in left_out}
    shape = _draw_shape(random, added)
    if "DRADeviceTaintRules" in version.switched_on:
        shape = replace(shape, taint_rules=shape.devices)
    percentage = random.choice([None] * 9 + [50])
    raw = _configure(left_out, added, weights, args, percentage)
    made = configuration(raw, EVERYTHING, version, **(GATES if shape.gangs else {}))
    most_classes = random.choice([None, None, None, None, 1, 2])
    words = [
        f"as {version.name}",
        *(f"without {name}" for name in left_out),
        *(f"with {name}" for name in added if name not in weights),
        *(f"with {name} {weight}" for name, weight in weights.items()),
        *(f"{name} {said}" for name, each in args.items() if (said := _describe(each))),
        *(name for name in _KINDS if getattr(shape, name)),
        f"{shape.nodes[0]} to {shape.nodes[1]} nodes",
        *([] if percentage is None else [f"{percentage} % of the nodes"]),
        *([] if most_classes is None else [f"at most {most_classes} classes"]),
    ]
    return Drawn(made, shape, most_classes, ", ".join(words))


def _scores(name: str) -> bool:
    return issubclass(EVERYTHING[name], Score)


#: What may happen in a stream.
_KINDS = ("devices", "taint_rules", "gangs", "disks", "coexisting", "stateful", "outsiders")


def _draw_shape(random: Random, added: list[str]) -> Shape:
    nodes = random.choice([(3, 12), (3, 12), (4, 24), (30, 60)])
    chances = {"devices": 0.6, "gangs": 0.25, "coexisting": 0.3, "stateful": 0.3}
    happens: dict[str, Any] = {kind: random.random() < chance for kind, chance in chances.items()}
    disks = any(name in added for name in ("DiskIO", "QuietDisk", "CountedResources"))
    happens["disks"] = disks or "CountedPools" in added
    happens["outsiders"] = not {each.name for each in HONEST}.isdisjoint(added)
    return replace(Shape(**happens), nodes=nodes, turns=30 if nodes[1] < 30 else 15)


def _configure(
    left_out: list[str],
    added: list[str],
    weights: dict[str, int],
    args: dict[str, Manifest],
    percentage: int | None,
) -> Manifest:
    plain = [name for name in added if name not in weights]
    enabled = [
        *({"name": name} for name in plain),
        *({"name": name, "weight": weight} for name, weight in weights.items()),
    ]
    disabled = [{"name": name} for name in left_out]
    raw = profile(
        plugins={"multiPoint": {"disabled": disabled, "enabled": enabled}},
        pluginConfig=[{"name": name, "args": each} for name, each in args.items() if each],
    )
    if percentage is not None:
        raw["percentageOfNodesToScore"] = percentage
    return raw


# Arguments


def _fit(random: Random) -> Manifest:
    kind = random.choice(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
    resources = [{"name": "cpu", "weight": random.choice([1, 3])}]
    if random.random() < 0.7:
        resources.append({"name": GPU, "weight": 5})
    strategy: Manifest = {"type": kind, "resources": resources}
    if kind == "RequestedToCapacityRatio":
        shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
        strategy["requestedToCapacityRatio"] = {"shape": shape}
    return random.choice([{}, {"scoringStrategy": strategy}, {"scoringStrategy": strategy}])


def _spread(random: Random) -> Manifest:
    constraint = {
        "maxSkew": random.choice([1, 2]),
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": random.choice(["DoNotSchedule", "ScheduleAnyway"]),
    }
    given = {"defaultingType": "List", "defaultConstraints": [constraint]}
    return random.choice([{}, {}, given])


def _gpu_aware(random: Random) -> Manifest:
    made: Manifest = {"resources": [GPU], "mode": random.choice(["Filter", "Filter", "Score"])}
    if random.random() < 0.5:
        made["deviceClasses"] = ["gpu"]
    if made["mode"] == "Filter" and random.random() < 0.4:
        made["reservePerFreeGPU"] = {"cpu": "1"}
        made["learnReserve"] = random.random() < 0.5
    return made


def _counted(random: Random) -> Manifest:
    reads = {**_DISKS, "amount": "spec.capacity.read"}
    resource = {"name": "reads", "capacity": {"object": reads}, "podAnnotation": READ}
    return {"resources": [{**resource, "filter": random.random() < 0.7}]}


def _pools(random: Random) -> Manifest:
    writes = {**_DISKS, "amount": "spec.capacity.write", **_FIRST_DISK}
    return {"pools": [{"name": "writes", "capacity": {"object": writes}, "podAnnotation": WRITE}]}


_ARGS: dict[str, Any] = {
    "NodeResourcesFit": _fit,
    "PodTopologySpread": _spread,
    "InterPodAffinity": lambda random: random.choice(
        [{}, {"hardPodAffinityWeight": 50}, {"ignorePreferredTermsOfExistingPods": True}]
    ),
    "DynamicResources": lambda random: random.choice([{}, {"preemptDevices": True}]),
    "CoexistPolicy": lambda random: random.choice([{}, {"preferSmallestNode": True}]),
    "NodeResourcesBalancedAllocation": lambda random: random.choice(
        [{}, {"resources": [{"name": "cpu", "weight": 1}, {"name": GPU, "weight": 1}]}]
    ),
    "GPUAware": _gpu_aware,
    "GPUFragmentation": lambda random: {"resources": [GPU]},
    "CountedResources": _counted,
    "CountedPools": _pools,
    "ExclusiveNodeLimits": lambda random: {"maxNodesPerNamespace": random.choice([0, 1, 3])},
}


def _describe(given: Manifest) -> str:
    """Arguments in a few words: the texts and numbers in them."""
    found: list[str] = []

    def look(value: Any) -> None:
        if isinstance(value, dict):
            for key, each in value.items():
                if key not in ("capacity", "shape"):
                    look(each)
        elif isinstance(value, list):
            for each in value:
                look(each)
        else:
            found.append(str(value))

    look(given)
    return " ".join(found)
