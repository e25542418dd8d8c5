"""Pod templates at random: few of them per stream, so that many pods are alike."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from moorage.objects.coexist import ANNOTATION, DAEMONSET_AND_STATIC_PODS as EXCLUSIVE
from moorage.objects.daemons import MIRROR
from moorage.objects.node import HOSTNAME, ZONE
from moorage_policies.disk_io.disk_io_resource import BLOCK_SIZE, READ, WRITE
from moorage_policies.disk_io.quiet_disk import QUIET
from tests.builders import Manifest
from tests.strategies import PREFERRED, REQUIRED

NAMESPACES = ("default", "shop")
NODE_NAMES = tuple(f"n{at}" for at in range(8))
#: An image has one size everywhere: what a size of its own on one node means depends on history.
IMAGES = {"app": 900, "db:v1": 2_000, "tools:v2": 4_000, "rare:v1": 8_000}
GPU = "example.com/gpu"
TAINTS = (
    {"key": "gpu", "effect": "NoSchedule"},
    {"key": "spot", "value": "3", "effect": "PreferNoSchedule"},
    {"key": "old", "effect": "PreferNoSchedule"},
    {"key": "gone", "effect": "NoExecute"},
)
SELECTORS: tuple[Manifest, ...] = (
    {"matchLabels": {"app": "web"}},
    {"matchLabels": {"app": "db"}},
    {"matchLabels": {"app": "web", "tier": "x"}},
    {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
    {"matchExpressions": [{"key": "index", "operator": "In", "values": ["0", "1", "2"]}]},
    {},
)


@dataclass(frozen=True, slots=True)
class Template:
    """What the pods of one controller have in common, and in what they differ."""

    name: str
    namespace: str
    labels: dict[str, str]
    spec: Manifest
    priorities: tuple[int, ...]
    owner: str = ""
    #: A label that tells every pod from the others, read by nobody or by some selector.
    is_indexed: bool = False
    #: Kinds of claims: "own" and "own late" for one per pod, "shared" for one for all.
    claim: str = ""
    annotations: dict[str, str] = field(default_factory=dict)
    owner_kind: str = "ReplicaSet"
    #: The class of the devices that a claim of each pod asks for.
    devices: str = ""


def template(
    random: Random, name: str, schedulers: tuple[str, ...], *, calm: bool = False
) -> Template:
    """A template with a few of the features that pods can have; a calm one concerns no others."""
    spec: Manifest = {"containers": [_container(random)]}
    if random.random() < 0.3:
        spec["containers"].append({**_container(random), "name": "side"})
    features = CALM if calm else CALM + WILD
    for feature in random.sample(features, random.choice([0, 1, 1, 2, 3])):
        _merge(spec, feature(random))
    if random.random() < 0.1:
        spec["schedulingGates"] = [{"name": "wait"}]
    if random.random() < 0.15:
        spec["preemptionPolicy"] = "Never"
    scheduler = random.choice(schedulers)
    if scheduler != "default-scheduler":
        spec["schedulerName"] = scheduler
    return Template(
        name,
        random.choice(NAMESPACES),
        some_labels(random),
        spec,
        random.choice([(0,), (0,), (0, 5), (0, 5, 10), (3,)]),
        random.choice(["", "", "set", "other"]),
        random.random() < 0.4,
        "" if calm else random.choice(["", "", "", "", "", "own", "own", "own late", "shared"]),
    )


def variation(random: Random, of: Template, name: str, *, calm: bool) -> Template:
    """Nearly the same template: the two differ in one thing, as one and its next version do."""
    spec = deepcopy(of.spec)
    match random.randrange(6):
        case 0:
            other = random.choice([each for each in NAMESPACES if each != of.namespace])
            return replace(of, name=name, namespace=other)
        case 1:
            return replace(of, name=name, labels=some_labels(random))
        case 2:
            spec["containers"][0]["image"] = random.choice(list(IMAGES))
        case 3:
            spec["containers"][0]["resources"] = _container(random)["resources"]
        case 4:
            spec["tolerations"] = random.choice([[], _tolerations(random)["tolerations"]])
        case 5:
            _merge(spec, random.choice(CALM if calm else CALM + WILD)(random))
    return replace(of, name=name, spec=spec)


def repelling(random: Random, name: str) -> Template:
    """Pods that others must keep away from, or go near to if they can."""
    term = {
        "topologyKey": random.choice([ZONE, HOSTNAME, HOSTNAME]),
        "labelSelector": random.choice(SELECTORS[:3]),
    }
    away = {"podAntiAffinity": {REQUIRED: [term]}}
    near = {"podAffinity": {PREFERRED: [{"weight": 50, "podAffinityTerm": term}]}}
    spec = {"containers": [_container(random)], "affinity": random.choice([away, away, near])}
    return Template(name, random.choice(NAMESPACES), {"app": "shy"}, spec, (0,))


def coexisting(random: Random, of: Template) -> Template:
    """The template, whose pods may tolerate no others, or be those that all tolerate."""
    spec, annotations = deepcopy(of.spec), some_policy(random)
    if random.random() < 0.3:
        spec["coexistPolicy"] = random.choice([*[EXCLUSIVE] * 6, "Any", "Neither"])
    # Evicting is half of what they are for.
    spec.pop("preemptionPolicy", None)
    priorities = random.choice([(0, 5), (0, 5, 10), (3,)])
    made = replace(of, spec=spec, annotations=annotations, priorities=priorities)
    if random.random() < 0.2:
        return replace(made, owner="agent", owner_kind="DaemonSet")
    return made


def stateful(random: Random, of: Template) -> Template:
    """The template of a stateful set, whose pods have a volume each."""
    spec = deepcopy(of.spec)
    if random.random() < 0.3:
        disk = {"gcePersistentDisk": {"pdName": random.choice(["one", "two", "three"])}}
        spec["volumes"] = [{"name": "v", **disk}]
    claim = random.choice(["own", "own", "own late", "shared", ""])
    owner = random.choice(["set", "other"])
    return replace(of, spec=spec, claim=claim, owner=owner, owner_kind="StatefulSet")


def some_policy(random: Random) -> dict[str, str]:
    """Annotations that say how a pod coexists with others, or not."""
    said = random.choice([{}, {}, {}, {ANNOTATION: EXCLUSIVE}, {ANNOTATION: "Any"}])
    return {**said, **({MIRROR: "x"} if random.random() < 0.1 else {})}


def some_labels(random: Random) -> dict[str, str]:
    labels = {"app": random.choice(["web", "db"])}
    if random.random() < 0.4:
        labels["tier"] = random.choice(["x", "y"])
    return labels


def some_disk_use(random: Random) -> dict[str, str]:
    """What a pod says of the disks that it needs; some say nothing, or nothing that can be read."""
    held: dict[str, str] = {}
    for name, chance in ((READ, 0.6), (WRITE, 0.3)):
        if random.random() < chance:
            held[name] = random.choice(["10Mi", "40Mi", "40Mi", "150Mi"])
    if random.random() < 0.2:
        held[BLOCK_SIZE] = random.choice(["4Ki", "64Ki", "1Mi"])
    if random.random() < 0.05:
        held[READ] = "much"
    if random.random() < 0.3:
        held[QUIET] = "true"
    return held


def some_taints(random: Random) -> list[dict[str, str]]:
    return random.sample(TAINTS, random.choice([0, 0, 0, 1, 2]))


def _container(random: Random) -> Manifest:
    requests: dict[str, str] = {}
    if random.random() < 0.8:
        requests["cpu"] = random.choice(["0", "100m", "250m", "500m", "1"])
    if random.random() < 0.7:
        requests["memory"] = random.choice(["0", "64Mi", "200Mi", "1Gi"])
    # As the API server has it: a device that is requested is limited to as many.
    limits: dict[str, str] = {}
    if random.random() < 0.06:
        requests[GPU] = limits[GPU] = "1"
    image = random.choice(["none", *IMAGES])
    resources = {"requests": requests, "limits": limits}
    return {"name": "main", "image": image, "resources": resources}


def _merge(spec: Manifest, more: Manifest) -> None:
    for key, value in more.items():
        if key == "affinity":
            spec.setdefault(key, {}).update(value)
        elif key == "containers":
            spec[key][0].update(value)
        else:
            spec[key] = spec[key] + value if key == "tolerations" and key in spec else value


# Features


def _ports(random: Random) -> Manifest:
    ports = [
        {
            "hostPort": random.choice([80, 443]),
            "hostIP": random.choice(["", "", "10.0.0.1"]),
            "protocol": random.choice(["TCP", "TCP", "UDP"]),
        }
        for _ in range(random.choice([1, 1, 2]))
    ]
    return {"containers": {"ports": ports}}


def _selector(random: Random) -> Manifest:
    return {"nodeSelector": random.choice([{"disk": "ssd"}, {ZONE: "a"}, {"disk": "hdd"}])}


def _node_term(random: Random) -> Manifest:
    expression: Manifest = random.choice(
        [
            {"key": ZONE, "operator": "In", "values": ["a", "b"]},
            {"key": "disk", "operator": "NotIn", "values": ["hdd"]},
            {"key": "disk", "operator": "Exists"},
            {"key": "rank", "operator": "Gt", "values": ["3"]},
            {"key": "rank", "operator": "DoesNotExist"},
        ]
    )
    return {"matchExpressions": [expression]}


def _node_affinity(random: Random) -> Manifest:
    rules: Manifest = {}
    if random.random() < 0.5:
        terms = [_node_term(random) for _ in range(random.choice([1, 2]))]
        rules[REQUIRED] = {"nodeSelectorTerms": terms}
    if random.random() < 0.7:
        rules[PREFERRED] = [
            {"weight": random.choice([1, 10, 50]), "preference": _node_term(random)}
            for _ in range(random.choice([1, 2]))
        ]
    return {"affinity": {"nodeAffinity": rules}}


def _odd_node_affinity(random: Random) -> Manifest:
    """Nodes by name, which narrows the search; or a preference that cannot be read."""
    if random.random() < 0.3:
        broken = {"matchExpressions": [{"key": "rank", "operator": "Gt", "values": ["x", "y"]}]}
        rules: Manifest = {PREFERRED: [{"weight": 5, "preference": broken}]}
    else:
        field = {
            "key": "metadata.name",
            "operator": random.choice(["In", "NotIn"]),
            "values": [random.choice(NODE_NAMES)],
        }
        rules = {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    return {"affinity": {"nodeAffinity": rules}}


def _tolerations(random: Random) -> Manifest:
    every: list[Manifest] = [
        {"operator": "Exists"},
        {"key": "gpu", "operator": "Exists"},
        {"key": "spot", "value": "3"},
        {"key": "old", "operator": "Exists", "effect": "PreferNoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    ]
    return {"tolerations": random.sample(every, random.choice([1, 2]))}


def spread(random: Random) -> Manifest:
    def constraint() -> Manifest:
        when = random.choice(["DoNotSchedule", "ScheduleAnyway"])
        made: Manifest = {
            "maxSkew": random.choice([1, 1, 2]),
            "topologyKey": random.choice([ZONE, ZONE, HOSTNAME, "disk"]),
            "whenUnsatisfiable": when,
            "labelSelector": random.choice(SELECTORS),
        }
        if random.random() < 0.2 and when == "DoNotSchedule":
            made["minDomains"] = random.choice([2, 3, 4])
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if random.random() < 0.3:
                made[policy] = random.choice(["Honor", "Ignore"])
        if random.random() < 0.2:
            made["matchLabelKeys"] = [random.choice(["tier", "index"])]
        return made

    return {"topologySpreadConstraints": [constraint() for _ in range(random.choice([1, 1, 2]))]}


def _pod_term(random: Random) -> Manifest:
    term: Manifest = {
        "topologyKey": random.choice([ZONE, HOSTNAME, "disk"]),
        "labelSelector": random.choice(SELECTORS),
    }
    if random.random() < 0.2:
        term["namespaces"] = ["shop"]
    if random.random() < 0.2:
        term["namespaceSelector"] = random.choice([{}, {"matchLabels": {"team": "a"}}])
    return term


def towards_pods(random: Random) -> Manifest:
    affinity: Manifest = {}
    for kind in random.sample(["podAffinity", "podAntiAffinity"], random.choice([1, 1, 2])):
        rules: Manifest = {}
        if random.random() < 0.5:
            rules[REQUIRED] = [_pod_term(random)]
        if random.random() < 0.6:
            weight = random.choice([1, 10, 100])
            rules[PREFERRED] = [{"weight": weight, "podAffinityTerm": _pod_term(random)}]
        affinity[kind] = rules
    return {"affinity": affinity}


def _volumes(random: Random) -> Manifest:
    sources: list[Manifest] = [
        {"gcePersistentDisk": {"pdName": "one"}},
        {"awsElasticBlockStore": {"volumeID": "two"}},
        {"configMap": {"name": "settings"}},
        {"image": {"reference": "db:v1"}},
    ]
    return {"volumes": [{"name": "v", **random.choice(sources)}]}


def _features(random: Random) -> Manifest:
    if random.random() < 0.5:
        return {"hostNetwork": True, "hostUsers": False}
    return {"containers": {"restartPolicyRules": [{"action": "RestartAllContainers"}]}}


def _overhead(random: Random) -> Manifest:
    init = {"name": "init", "restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}}
    return random.choice([{"overhead": {"cpu": "50m"}}, {"initContainers": [init]}])


def _devices(random: Random) -> Manifest:
    return {"resourceClaims": [{"name": "device"}]} if random.random() < 0.3 else {}


CALM: list[Callable[[Random], dict[str, Any]]] = [
    _ports,
    _selector,
    _node_affinity,
    _node_affinity,
    _tolerations,
    _tolerations,
    _features,
    _overhead,
]
WILD: list[Callable[[Random], dict[str, Any]]] = [
    _odd_node_affinity,
    spread,
    spread,
    spread,
    towards_pods,
    towards_pods,
    towards_pods,
    _volumes,
    _devices,
]
