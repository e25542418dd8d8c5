"""Objects that an API server accepts and that are made to hurt: one spoiled part at a time."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from moorage.objects.coexist import ANNOTATION
from moorage.objects.node import HOSTNAME, ZONE
from moorage_policies.disk_io.disk_io_resource import BLOCK_SIZE, READ, WRITE
from tests.builders import Manifest
from tests.strategies import PREFERRED, REQUIRED

Spoiler = Callable[[Random, Manifest], None]

#: Amounts beyond what 64 bits hold, at their edge, or too small to count.
AMOUNTS = (
    "8Ei",
    "7Ei",
    "16Ei",
    "9E",
    "1e30",
    "9223372036854775807",
    "9223372036854775808",
    "9223372036854775807m",
    "9223372036854775",
    "4611686018427387904",
    "1n",
    "0.000000001",
    "0",
    "1",
)
_NAMES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi", "a.b/c", "x/y")
_LARGE = (2**31 - 1, 2**31 - 2, 2**30)
_TIMES = ("0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z")
_NUMBERS = ("9223372036854775807", "-9223372036854775808", "99999999999999999999", "-0", "0x1")
_KEYS = (ZONE, HOSTNAME, "nobody.has/this", "disk")


def spoil(random: Random, kind: str, manifest: Manifest) -> None:
    """Makes one part of an object hostile; kinds that cannot be are left as they are."""
    spoilers = SPOILERS.get(kind)
    if spoilers:
        random.choice(spoilers)(random, manifest)


# Pods


def _requests(random: Random, pod: Manifest) -> None:
    asked = {random.choice(_NAMES): random.choice(AMOUNTS) for _ in range(3)}
    container = random.choice(pod["spec"]["containers"])
    container["resources"] = {"requests": asked, "limits": dict(asked)}


def _many_containers(random: Random, pod: Manifest) -> None:
    requests = {"cpu": random.choice(AMOUNTS), "memory": random.choice(AMOUNTS)}
    extra = [{"name": f"c{at}", "resources": {"requests": requests}} for at in range(9)]
    if random.random() < 0.5:
        pod["spec"]["containers"] = [*pod["spec"]["containers"], *extra]
    else:
        always = {"restartPolicy": "Always"} if random.random() < 0.5 else {}
        pod["spec"]["initContainers"] = [{**each, **always} for each in extra]


def _overhead(random: Random, pod: Manifest) -> None:
    pod["spec"]["overhead"] = {name: random.choice(AMOUNTS) for name in ("cpu", "memory")}


def _pod_level_requests(random: Random, pod: Manifest) -> None:
    asked = {name: random.choice(AMOUNTS) for name in ("cpu", "memory")}
    pod["spec"]["resources"] = {"requests": asked}


def _granted(random: Random, pod: Manifest) -> None:
    granted = {"cpu": random.choice(AMOUNTS), "memory": random.choice(AMOUNTS)}
    pod.setdefault("status", {})["containerStatuses"] = [
        {"name": "main", "resources": {"requests": granted}, "allocatedResources": granted}
    ]


def _many_resources(random: Random, pod: Manifest) -> None:
    asked = {f"example.com/r{at}": "1" for at in range(random.choice([20, 200]))}
    pod["spec"]["containers"][0]["resources"] = {"requests": asked, "limits": asked}


def _many_labels(random: Random, pod: Manifest) -> None:
    start = random.randrange(1_000)
    more = {f"label-{start + at}": "v" * 63 for at in range(100)}
    pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), **more}


def _pod_term(random: Random) -> Manifest:
    expressions: list[Manifest] = [
        {"key": f"label-{random.randrange(1_000)}", "operator": random.choice(["Exists", "In"])},
        {"key": "app", "operator": random.choice(["NotIn", "DoesNotExist"])},
    ]
    for each in expressions:
        if each["operator"] in ("In", "NotIn"):
            each["values"] = [f"v{at}" for at in range(random.choice([1, 50]))]
    term: Manifest = {
        "topologyKey": random.choice(_KEYS),
        "labelSelector": random.choice([{}, {"matchExpressions": expressions}]),
    }
    if random.random() < 0.7:
        term["namespaceSelector"] = {}
    if random.random() < 0.2:
        term["matchLabelKeys"] = [f"label-{random.randrange(1_000)}", "app"]
    return term


def _many_pod_terms(random: Random, pod: Manifest) -> None:
    terms = [_pod_term(random) for _ in range(random.choice([1, 10, 40]))]
    kind = random.choice(["podAffinity", "podAntiAffinity"])
    if random.random() < 0.5:
        rules: Manifest = {REQUIRED: terms}
    else:
        rules = {PREFERRED: [{"weight": 100, "podAffinityTerm": term} for term in terms]}
    pod["spec"].setdefault("affinity", {})[kind] = rules


def _many_node_terms(random: Random, pod: Manifest) -> None:
    def expression() -> Manifest:
        key = random.choice([*_KEYS, f"key-{random.randrange(10_000)}", "rank"])
        operator = random.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
        values = {"In": ["a", "b"], "NotIn": ["c"], "Gt": None, "Lt": None}.get(operator, [])
        if values is None:
            values = [random.choice(_NUMBERS[:3])]
        return {"key": key, "operator": operator, "values": values}

    terms = [
        {"matchExpressions": [expression() for _ in range(random.choice([1, 30]))]}
        for _ in range(random.choice([1, 5]))
    ]
    if random.random() < 0.6:
        rules: Manifest = {REQUIRED: {"nodeSelectorTerms": terms}}
    else:
        rules = {PREFERRED: [{"weight": 100, "preference": term} for term in terms]}
    pod["spec"].setdefault("affinity", {})["nodeAffinity"] = rules


def _named_nodes(random: Random, pod: Manifest) -> None:
    names = [f"n{random.randrange(12)}" for _ in range(1)]
    field = {"key": "metadata.name", "operator": "In", "values": names}
    terms = [{"matchFields": [field]} for _ in range(random.choice([1, 50]))]
    rules = {REQUIRED: {"nodeSelectorTerms": terms}}
    pod["spec"].setdefault("affinity", {})["nodeAffinity"] = rules


def _node_selector(random: Random, pod: Manifest) -> None:
    pod["spec"]["nodeSelector"] = {f"key-{random.randrange(10_000)}": "x" for _ in range(50)}


def _spread(random: Random, pod: Manifest) -> None:
    constraints = []
    for at in range(random.choice([1, 4, 20])):
        hard = random.random() < 0.5
        constraint: Manifest = {
            "maxSkew": random.choice([1, *_LARGE]),
            "topologyKey": random.choice([*_KEYS, f"unique-{at}"]),
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            "labelSelector": random.choice([None, {}, {"matchLabels": {"app": "web"}}]),
        }
        if hard and random.random() < 0.5:
            constraint["minDomains"] = random.choice(_LARGE)
        if random.random() < 0.3:
            constraint["matchLabelKeys"] = ["tier", f"label-{random.randrange(1_000)}"]
        constraints.append(constraint)
    pod["spec"]["topologySpreadConstraints"] = constraints


def _tolerations(random: Random, pod: Manifest) -> None:
    pod["spec"]["tolerations"] = [
        {
            "key": f"taint-{at}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": random.choice([-(2**63), 2**63 - 1]),
        }
        for at in range(random.choice([1, 100]))
    ]


def _ports(random: Random, pod: Manifest) -> None:
    ports = [
        {
            "containerPort": 1,
            "hostPort": 65_535 - at,
            "hostIP": random.choice(["", "::", "0.0.0.0", "127.0.0.1"]),
            "protocol": random.choice(["TCP", "UDP", "SCTP"]),
        }
        for at in range(random.choice([1, 60]))
    ]
    pod["spec"]["containers"][0]["ports"] = ports


def _volumes(random: Random, pod: Manifest) -> None:
    sources: list[Manifest] = [
        {"emptyDir": {}},
        {"persistentVolumeClaim": {"claimName": "nowhere"}},
        {"persistentVolumeClaim": {"claimName": "shared"}},
        {"ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "late"}}}},
        {"gcePersistentDisk": {"pdName": "one", "readOnly": True}},
        {"iscsi": {"targetPortal": "1.2.3.4:5", "iqn": "iqn", "lun": 2**31 - 1}},
        {"rbd": {"monitors": ["m"] * 50, "image": "i", "pool": "p"}},
        {"csi": {"driver": "inline.example.com"}},
    ]
    count = random.choice([1, 3, 60])
    pod["spec"]["volumes"] = [{"name": f"v{at}", **random.choice(sources)} for at in range(count)]


def _importance(random: Random, pod: Manifest) -> None:
    pod["spec"]["priority"] = random.choice([-(2**31), 2**31 - 1, 2_000_001_000, 0])
    pod["spec"]["preemptionPolicy"] = random.choice(["Never", "PreemptLowerPriority"])


def _nomination(random: Random, pod: Manifest) -> None:
    names = ["", "nowhere", "n" * 253, "n0", "n1"]
    pod.setdefault("status", {})["nominatedNodeName"] = random.choice(names)


def _gates(random: Random, pod: Manifest) -> None:
    pod["spec"]["schedulingGates"] = [{"name": f"g{at}"} for at in range(random.choice([0, 1, 50]))]


def _annotations(random: Random, pod: Manifest) -> None:
    pod["metadata"]["annotations"] = {
        ANNOTATION: random.choice(["", "Any", "DaemonSetAndStaticPods", "\u0000", "x" * 1_000]),
        READ: random.choice([*AMOUNTS, "-1", "NaN"]),
        WRITE: random.choice([*AMOUNTS, "much"]),
        BLOCK_SIZE: random.choice([*AMOUNTS, "-4Ki"]),
    }


def _owners(random: Random, pod: Manifest) -> None:
    kinds = ("ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Node", "x" * 60)
    pod["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "v1",
            "kind": random.choice(kinds),
            "name": f"owner-{at}",
            "uid": "u",
            "controller": at == 0,
        }
        for at in range(random.choice([1, 50]))
    ]


def _times(random: Random, pod: Manifest) -> None:
    pod["metadata"]["creationTimestamp"] = random.choice(_TIMES)
    pod.setdefault("status", {})["startTime"] = random.choice(_TIMES)
    if random.random() < 0.2:
        pod["metadata"]["deletionTimestamp"] = random.choice(_TIMES)


def _text(random: Random, pod: Manifest) -> None:
    odd = random.choice(["\u202e", "é" * 40, "\U0001f600", "a\u0000b", "<script>"])
    pod["metadata"].setdefault("annotations", {})["note"] = odd
    pod["spec"]["containers"][0]["image"] = random.choice([odd, "", ":", "a" * 500, "a@sha256:x"])


# Nodes


def _allocatable(random: Random, node: Manifest) -> None:
    has = node["status"].setdefault("allocatable", {})
    for _ in range(3):
        name = random.choice([*_NAMES, "pods"])
        has[name] = random.choice(AMOUNTS)
    if random.random() < 0.1:
        node["status"]["allocatable"] = {}


def _taints(random: Random, node: Manifest) -> None:
    effects = ("NoSchedule", "NoExecute", "PreferNoSchedule")
    node["spec"]["taints"] = [
        {"key": f"taint-{at}", "value": "v" * 63, "effect": random.choice(effects)}
        for at in range(random.choice([1, 100]))
    ]


def _node_labels(random: Random, node: Manifest) -> None:
    start = random.randrange(10_000)
    labels = {f"key-{start + at}": random.choice(_NUMBERS) for at in range(100)}
    labels["rank"] = random.choice(_NUMBERS)
    node["metadata"]["labels"] = {**node["metadata"].get("labels", {}), **labels}


def _images(random: Random, node: Manifest) -> None:
    sizes = [0, -1, 2**63 - 1, 2**62]
    node["status"]["images"] = [
        {"names": [f"app:{at}", "app:latest", ""], "sizeBytes": random.choice(sizes)}
        for at in range(random.choice([1, 50]))
    ]


def _features(random: Random, node: Manifest) -> None:
    node["status"]["declaredFeatures"] = [f"F{random.randrange(100)}" for _ in range(50)]


# What surrounds them


def _capacity(random: Random, volume: Manifest) -> None:
    volume["spec"]["capacity"] = {"storage": random.choice(AMOUNTS)}


def _claim_size(random: Random, claim: Manifest) -> None:
    claim["spec"]["resources"] = {"requests": {"storage": random.choice(AMOUNTS)}}


def _volume_nodes(random: Random, volume: Manifest) -> None:
    expressions = [
        {"key": f"key-{at}", "operator": "Gt", "values": [random.choice(_NUMBERS[:3])]}
        for at in range(random.choice([1, 30]))
    ]
    terms = [{"matchExpressions": expressions} for _ in range(random.choice([1, 20]))]
    volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}


def _drivers(random: Random, csi_node: Manifest) -> None:
    csi_node["spec"]["drivers"] = [
        {
            "name": f"driver-{at}",
            "nodeID": "n",
            "topologyKeys": ["a", "b"],
            "allocatable": {"count": random.choice([0, *_LARGE])},
        }
        for at in range(random.choice([0, 1, 20]))
    ]


def _disk(random: Random, disk: Manifest) -> None:
    disk["spec"] = {
        "nodeName": random.choice(["n0", "n1", "", "n" * 253]),
        "capacity": {name: random.choice([*AMOUNTS, "-1", 7, None]) for name in ("read", "write")},
    }
    disk["status"] = random.choice([{}, {"allocatable": {"read": random.choice(AMOUNTS)}}])


def _disruptions(random: Random, budget: Manifest) -> None:
    budget["status"] = {
        "disruptionsAllowed": random.choice([-1, 0, *_LARGE]),
        "disruptedPods": {f"p{at}": _TIMES[0] for at in range(50)},
    }


def _selector(random: Random, item: Manifest) -> None:
    start = random.randrange(1_000)
    selector: Any = {f"label-{start + at}": "v" for at in range(random.choice([1, 60]))}
    simple = isinstance(item["spec"].get("selector"), dict)
    if simple and "matchLabels" in item["spec"]["selector"]:
        selector = {"matchLabels": selector}
    item["spec"]["selector"] = selector


def _namespace_labels(random: Random, namespace: Manifest) -> None:
    labels = {f"label-{at}": "v" for at in range(100)}
    namespace["metadata"]["labels"] = {"team": random.choice("ab"), **labels}


#: By kind, what can be spoiled of an object.
SPOILERS: dict[str, tuple[Spoiler, ...]] = {
    "Pod": (
        _requests,
        _requests,
        _many_containers,
        _overhead,
        _pod_level_requests,
        _granted,
        _many_resources,
        _many_labels,
        _many_pod_terms,
        _many_pod_terms,
        _many_node_terms,
        _named_nodes,
        _node_selector,
        _spread,
        _tolerations,
        _ports,
        _volumes,
        _importance,
        _nomination,
        _gates,
        _annotations,
        _owners,
        _times,
        _text,
    ),
    "Node": (_allocatable, _allocatable, _allocatable, _taints, _node_labels, _images, _features),
    "PersistentVolume": (_capacity, _volume_nodes),
    "PersistentVolumeClaim": (_claim_size,),
    "CSINode": (_drivers,),
    "NodeDiskIOStatus": (_disk,),
    "PodDisruptionBudget": (_disruptions,),
    "Service": (_selector,),
    "ReplicaSet": (_selector,),
    "Namespace": (_namespace_labels,),
}
