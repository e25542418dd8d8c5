"""Random nodes, pods and clusters that use everything decisions read; and what a cluster says."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, settings
from numpy.typing import NDArray

from moorage.cluster import Cluster, HandleRegistry, Nodes
from moorage.cluster.extended.resources import extended_figures
from moorage.objects.coexist import DAEMONSET_AND_STATIC_PODS as EXCLUSIVE
from moorage.objects.device import DeviceClass, DeviceTaintRule, ResourceSlice
from moorage.objects.node import ZONE, Node
from moorage.objects.pod import Pod
from moorage.objects.resource_claim import DeviceObject, ResourceClaim
from moorage.objects.selector import equality
from moorage.objects.storage import StorageObject
from moorage.objects.workload import Namespace, ReplicaSet, SelectingObject, Service
from moorage_policies.disk_io.disk_io_resource import (
    BLOCK_SIZE,
    BLOCK_SIZES,
    DISK_IO,
    READ,
    WRITE,
    DiskIOHandle,
    DiskIOResource,
)
from moorage_policies.disk_io.quiet_disk import QUIET
from tests.builders import node, pod
from tests.coexisting import ANNOTATED, DAEMON, MIRRORED, TOGETHER
from tests.device_builders import (
    claim,
    device_class,
    holding,
    request,
    resource_slice,
    result,
)
from tests.storage_builders import csi_node, pv, pvc, storage_class

#: For tests whose examples share what a fixture made, a folder or a command, on purpose.
FIXTURES_MAY_BE_SHARED = [
    *settings().suppress_health_check,
    HealthCheck.function_scoped_fixture,
]

NAMES = tuple(f"n{at}" for at in range(6))
NAMESPACES = ("default", "shop")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

NOT_IN = {"key": "metadata.name", "operator": "NotIn"}
MIB = 2**20

Written = dict[str, Any]

# A strategy is made once: to make and check it takes longer than to draw from it.
_names = st.sampled_from(NAMES)
_seldom = st.sampled_from([False, False, True])
_booleans = st.booleans()
_namespace_names = st.sampled_from(NAMESPACES)
_up_to_three = st.integers(0, 3)


def _one_of(**fields: Sequence[Any]) -> st.SearchStrategy[Written]:
    """All combinations of the fields' values, chosen in one draw; None leaves a field out."""
    combinations = [
        {key: value for key, value in zip(fields, values, strict=True) if value is not None}
        for values in product(*fields.values())
    ]
    return st.sampled_from(combinations)


@cache
def _some(of: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[list[Any]]:
    return st.lists(of, min_size=1, max_size=most)


# Nodes

node_labels = _one_of(
    **{ZONE: ["a", None, "b", "c"], "disk": [None, "ssd", "hdd"], "rank": [None, "1", "7", "x"]}
)
taint = _one_of(
    key=["gpu", "spot"],
    value=["", "3"],
    effect=["NoSchedule", "PreferNoSchedule", "NoExecute"],
)
taints: st.SearchStrategy[list[Written]] = st.just([]) | _some(taint)
images = st.sampled_from(
    [
        [],
        [{"names": ["app:latest"], "sizeBytes": 300 * MIB}],
        [{"names": ["app:latest"], "sizeBytes": 900 * MIB}],
        [{"names": ["db:v1", "db:v2"], "sizeBytes": 40 * MIB}],
        [{"names": ["app:latest", "db:v1"], "sizeBytes": 2**63 - 1}],
        [
            {"names": ["db:v1"], "sizeBytes": 2000 * MIB},
            {"names": ["app:latest"], "sizeBytes": 25 * MIB},
        ],
    ]
)
features = st.sampled_from(
    [
        [],
        ["RestartAllContainersOnContainerExits"],
        ["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"],
    ]
)
capacities = _one_of(
    cpu=["4", "1", "2500m", "0", "9223372036854775"],
    memory=["8Gi", "512Mi", "3Gi", "8Ei"],
    pods=[110, 2, 0],
    gpu=[None, 1, 2, 0],
    ephemeral=[None, "1Gi"],
)


@cache
@st.composite
def nodes(draw: st.DrawFn, name: str = "") -> Node:
    """A node; one of a few names unless told."""
    return node(
        name or draw(_names),
        labels=draw(node_labels),
        spec={"unschedulable": draw(_seldom), "taints": draw(taints)},
        status={"images": draw(images), "declaredFeatures": draw(features)},
        **draw(capacities),
    )


# Pods

pod_labels = _one_of(app=["web", "db", None], tier=[None, "x", "y"])
SELECTORS = [
    {"matchLabels": {"app": "web"}},
    {"matchLabels": {"app": "db", "tier": "x"}},
    {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
    {},
    None,
]
TOPOLOGY_KEYS = [ZONE, "kubernetes.io/hostname", "disk"]
affinity_terms = _one_of(
    topologyKey=TOPOLOGY_KEYS,
    labelSelector=SELECTORS,
    namespaces=[None, ["shop"]],
    namespaceSelector=[None, {}, {"matchLabels": {"team": "a"}}],
)
weighted_terms = st.builds(
    lambda weight, term: {"weight": weight, "podAffinityTerm": term},
    st.integers(1, 100),
    affinity_terms,
)
node_expressions = st.sampled_from(
    [
        {"key": ZONE, "operator": "In", "values": ["a", "b"]},
        {"key": "disk", "operator": "NotIn", "values": ["hdd"]},
        {"key": "disk", "operator": "Exists"},
        {"key": "rank", "operator": "DoesNotExist"},
        {"key": "rank", "operator": "Gt", "values": ["3"]},
    ]
)
not_a_name = st.sampled_from([[], *([{**NOT_IN, "values": [name]}] for name in NAMES)])
node_terms = st.builds(
    lambda expressions, fields: {"matchExpressions": expressions, "matchFields": fields},
    _some(node_expressions),
    not_a_name,
)
weighted_node_terms = st.builds(
    lambda weight, term: {"weight": weight, "preference": term}, st.integers(1, 100), node_terms
)
spreads = _one_of(
    maxSkew=[1, 2],
    topologyKey=TOPOLOGY_KEYS,
    whenUnsatisfiable=["DoNotSchedule", "ScheduleAnyway"],
    labelSelector=SELECTORS[:4],
    minDomains=[None, 3],
    nodeAffinityPolicy=[None, "Ignore"],
    nodeTaintsPolicy=[None, "Honor"],
    matchLabelKeys=[None, ["tier"]],
)
tolerations = st.sampled_from(
    [
        {"operator": "Exists"},
        {"key": "gpu", "operator": "Exists"},
        {"key": "spot", "value": "3"},
        {"key": "gpu", "operator": "Gt", "value": "1", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    ]
)
ports = _one_of(
    hostPort=[80, 443], hostIP=[None, "0.0.0.0", "10.0.0.1"], protocol=[None, "TCP", "UDP"]
)
requests = _one_of(
    **{
        "cpu": [None, "0", "100m", "1", "3"],
        "memory": [None, "0", "64Mi", "2Gi"],
        "example.com/gpu": [None, "1", "2"],
    }
)
containers = st.builds(
    lambda image, asked: {"name": "main", "image": image, "resources": {"requests": asked}},
    st.sampled_from(["app", "db:v1", "none"]),
    requests,
)
SIDECAR = {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
RESTARTING = {"name": "x", "restartPolicyRules": [{"action": "RestartAllContainers"}]}


def _affinity(rule: str, when: str, written: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return written.map(lambda terms: {"affinity": {rule: {when: terms}}})


def _field(name: str, written: st.SearchStrategy[Any]) -> st.SearchStrategy[Written]:
    return written.map(lambda value: {name: value})


_volumes = st.sampled_from(
    [
        [{"name": "v", "persistentVolumeClaim": {"claimName": "bound"}}],
        [{"name": "v", "persistentVolumeClaim": {"claimName": "late"}}],
        [{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}],
        [
            {"name": "v", "persistentVolumeClaim": {"claimName": "bound"}},
            {"name": "w", "persistentVolumeClaim": {"claimName": "late"}},
        ],
        [{"name": "v", "gcePersistentDisk": {"pdName": "one"}}],
        [{"name": "v", "gcePersistentDisk": {"pdName": "one", "readOnly": True}}],
        [{"name": "v", "awsElasticBlockStore": {"volumeID": "two"}}],
        [],
    ]
).map(lambda listed: {"volumes": listed})
_pod_affinity = st.one_of(
    _affinity("podAffinity", REQUIRED, _some(affinity_terms)),
    _affinity("podAntiAffinity", REQUIRED, _some(affinity_terms)),
    _affinity("podAffinity", PREFERRED, _some(weighted_terms)),
    _affinity("podAntiAffinity", PREFERRED, _some(weighted_terms)),
)
_tolerations = _field("tolerations", _some(tolerations))

_asked = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
asks_devices: st.SearchStrategy[Written] = st.sampled_from(
    [
        {"resourceClaims": [{"name": "d", "resourceClaimName": "device"}]},
        {"containers": [{"name": "main", "image": "app", "resources": _asked}]},
        {"containers": [{"name": "main", "image": "app"}]},
    ]
)

#: What a plugin is about: pods that are to try it have at least one of these.
FOCUS: dict[str, st.SearchStrategy[Written]] = {
    "CoexistPolicy": _field("coexistPolicy", st.sampled_from([*[EXCLUSIVE] * 3, "Any", "Neither"])),
    "InterPodAffinity": _pod_affinity,
    "NodeAffinity": st.one_of(
        _affinity(
            "nodeAffinity",
            REQUIRED,
            _some(node_terms).map(lambda terms: {"nodeSelectorTerms": terms}),
        ),
        _affinity("nodeAffinity", PREFERRED, _some(weighted_node_terms)),
        _field("nodeSelector", st.sampled_from([{"disk": "ssd"}, {ZONE: "a"}])),
    ),
    "NodeDeclaredFeatures": st.sampled_from(
        [{"initContainers": [RESTARTING]}, {"hostNetwork": True, "hostUsers": False}]
    ),
    "NodePorts": _field(
        "containers", _some(ports).map(lambda listed: [{"name": "main", "ports": listed}])
    ),
    "NodeUnschedulable": _tolerations,
    "NodeVolumeLimits": _volumes,
    # Without constraints of its own, a pod has those of its service or controller.
    "PodTopologySpread": st.one_of(
        _field("topologySpreadConstraints", _some(spreads)),
        _field("topologySpreadConstraints", _some(spreads)),
        st.just({"topologySpreadConstraints": []}),
    ),
    "TaintToleration": _tolerations,
    "VolumeBinding": _volumes,
    "VolumeRestrictions": _volumes,
    "VolumeZone": _volumes,
    "DynamicResources": asks_devices,
    "NodeResourcesFit": asks_devices,
    "GPUAware": asks_devices,
}


#: What a pod may have besides its containers. A pod has few of them, so that each shows.
extras: st.SearchStrategy[Written] = st.one_of(
    *FOCUS.values(),
    st.sampled_from(
        [
            {"overhead": {"cpu": "50m"}},
            {"initContainers": [SIDECAR]},
            {"volumes": [{"name": "d", "image": {"reference": "app"}}]},
        ]
    ),
)
_few_extras, _more_extras = (st.lists(extras, max_size=most) for most in (1, 3))


@cache
@st.composite
def pod_specs(draw: st.DrawFn, focus: str = "") -> Written:
    spec: Written = {"containers": draw(_some(containers)), "priority": draw(_up_to_three)}
    affinity: Written = {}
    added = draw(_few_extras if focus else _more_extras)
    if focus in FOCUS:
        added += draw(_some(FOCUS[focus]))
    for extra in added:
        for rule, written in extra.get("affinity", {}).items():
            affinity[rule] = {**affinity.get(rule, {}), **written}
        spec.update(extra)
    return {**spec, "affinity": affinity} if affinity else spec


# Disks

#: Shared by all clusters here, none of which is told of objects.
DISKS = HandleRegistry()
DISKS.register(DISK_IO, DiskIOHandle)

disk_annotations = _one_of(
    **{
        READ: [None, "100", "40", "0", "9e30", "much"],
        WRITE: [None, "50", "200"],
        BLOCK_SIZE: [None, "4Ki", "1Mi"],
        QUIET: [None, "true", "false"],
    }
)
disks: st.SearchStrategy[DiskIOResource] = st.builds(
    DiskIOResource,
    st.just(BLOCK_SIZES),
    st.sampled_from([0, 100, 400, 1000]),
    st.sampled_from([0, 100, 400, 1000]),
)


def about_disks(focus: str) -> bool:
    return "Disk" in focus


@cache
def known_disks(focus: str) -> st.SearchStrategy[dict[str, DiskIOResource]]:
    """What is told of the disks of some nodes, which need not be there."""
    return st.dictionaries(st.sampled_from(NAMES[:4]), disks, max_size=4 * about_disks(focus))


OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "controller": True}
owned: Written = {"ownerReferences": [OWNER]}
metadata = st.sampled_from(
    [{}, {}, {}, owned, owned, owned, DAEMON, MIRRORED, ANNOTATED, TOGETHER, TOGETHER]
)
DYING = {"deletionTimestamp": "2024-01-01T00:00:00Z"}


@cache
@st.composite
def pods(
    draw: st.DrawFn,
    name: str = "pod",
    on: str = "",
    *,
    terminating: bool = False,
    focus: str = "",
) -> Pod:
    """A pod, perhaps on a node, perhaps with what a plugin is about."""
    leaving = DYING if terminating and draw(_booleans) else {}
    annotations = {"annotations": draw(disk_annotations)} if about_disks(focus) else {}
    return pod(
        name,
        namespace=draw(_namespace_names),
        labels=draw(pod_labels),
        node=on,
        spec=draw(pod_specs(focus)),
        metadata={**draw(metadata), **leaving, **annotations},
    )


@cache
def _places(names: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), max_size=5)


@cache
@st.composite
def placed_pods(draw: st.DrawFn, names: tuple[str, ...], focus: str = "") -> list[Pod]:
    """Pods on some of the nodes."""
    places = draw(_places(names))
    return [draw(pods(f"p{at}", on, terminating=True, focus=focus)) for at, on in enumerate(places)]


namespaces = st.sampled_from(
    [
        Namespace(name="shop", labels={"team": "a"}),
        Namespace(name="shop", labels={}),
        Namespace(name="default", labels={"team": "a"}),
    ]
)
services: st.SearchStrategy[SelectingObject] = st.sampled_from(
    [
        Service(namespace="default", name="web", selector=equality({"app": "web"})),
        Service(namespace="shop", name="db", selector=equality({"app": "db"})),
        ReplicaSet(namespace="default", name="set", selector=equality({"tier": "x"})),
    ]
)
workloads: st.SearchStrategy[Namespace | SelectingObject] = st.one_of(namespaces, services)
_workloads = st.lists(workloads, max_size=3)
storage: st.SearchStrategy[StorageObject] = st.sampled_from(
    [
        storage_class("late"),
        storage_class("late", mode="Immediate"),
        pv("one", claim="bound@uid-bound", labels={ZONE: "a"}),
        pv("one", claim="bound@uid-bound", hosts=("n0", "n1")),
        pv("two", hosts=("n1",)),
        pv("two"),
        pvc("bound", volume="one"),
        pvc("bound"),
        pvc("late"),
        pvc("late", selected_node="n1"),
    ]
)
csi_nodes: st.SearchStrategy[StorageObject] = st.sampled_from(
    [csi_node("n0", csi=1), csi_node("n0", csi=0), csi_node("n1", csi=2, ebs=1), csi_node("n1")]
)
_more_storage = st.lists(storage | csi_nodes, max_size=3)
#: Enough for pods with claims to be decided about; later objects replace earlier ones.
STORAGE = (
    storage_class("late"),
    pv("one", claim="bound@uid-bound", labels={ZONE: "a"}),
    pvc("bound", volume="one"),
    pvc("late"),
    csi_node("n0", csi=1),
)


GPU = "example.com/gpu"
devices: st.SearchStrategy[DeviceObject] = st.sampled_from(
    [
        device_class(extendedResourceName=GPU),
        device_class(),
        device_class("other", extendedResourceName=GPU),
        resource_slice("n0", 2),
        resource_slice("n0", 0),
        resource_slice("n1", 1),
        resource_slice("shared", 2, allNodes=True),
        claim("device"),
        claim("device", request(class_name="other")),
        holding("device", result("n0", "gpu-0")),
        holding("taken", result("n0", "gpu-1")),
        holding("taken", result("shared", "gpu-0")),
    ]
)
_more_devices = st.lists(devices, max_size=4)


def about_devices(focus: str) -> bool:
    return focus in ("DynamicResources", "GPUAware", "NodeResourcesFit")


def about_volumes(focus: str) -> bool:
    return "Volume" in focus


@cache
@st.composite
def _furnishings(draw: st.DrawFn, focus: str) -> list[StorageObject | DeviceObject]:
    """The volumes, or the devices, that a plugin is about."""
    if about_volumes(focus):
        return [*STORAGE, *draw(_more_storage)]
    return [*draw(_more_devices)] if about_devices(focus) else []


def _put(made: Cluster, thing: StorageObject | DeviceObject) -> None:
    if isinstance(thing, ResourceClaim | DeviceClass | ResourceSlice | DeviceTaintRule):
        made.put_device(thing)
    else:
        made.put_storage(thing)


@cache
@st.composite
def clusters(draw: st.DrawFn, least: int = 1, focus: str = "") -> Cluster:
    """A cluster with pods on its nodes, now and then with a row that has no node."""
    count = draw(st.integers(least, 4))
    made = Cluster(DISKS if about_disks(focus) else None)
    for name in NAMES[:count]:
        made.put_node(draw(nodes(name)))
    for item in draw(_workloads):
        made.put_workload(item)
    for thing in draw(_furnishings(focus)):
        _put(made, thing)
    for each in draw(placed_pods(NAMES[:count], focus)):
        made.put_pod(each)
    for name, disk in draw(known_disks(focus)).items():
        made.extended.set(DISK_IO, name, disk)
    if count > least and draw(_up_to_three) == 3:
        made.remove_node(draw(st.sampled_from(NAMES[:count])))
    return made


# What a cluster says


_PLAIN_COLUMNS = (
    "alive",
    "unschedulable",
    "taint_sets",
    "feature_sets",
    "resource_sets",
    "nonzero_requested",
)


def columns_of(of: Nodes) -> dict[Any, Any]:
    """Everything that the columns and counts hold, byte for byte where it is an array."""
    state = of._state
    said: dict[Any, Any] = {name: getattr(of, name).tobytes() for name in _PLAIN_COLUMNS}
    for name, at in of.resources.items():
        said["allocatable", name] = _nonzero(of.allocatable[at])
        said["requested", name] = _nonzero(of.requested[at])
    for ledger in state.columns.ledgers:
        said["ledger", ledger] = of.ledger(ledger).by_key()
    for column in state.labels.columns:
        said["label", column.key] = column.codes.tobytes()
    for tally in state.tallies:
        said["tally", tally.match] = tally.by_row.tobytes()
        for key, domains in tally.domains.items():
            said["domains", tally.match, key] = _nonzero(domains.counts()), domains.total
    for standing_key, standing in state.standing:
        counts = _nonzero(standing.domains.counts())
        said["standing", standing_key] = standing.pods, counts, standing.domains.total
    for image_name, image in state.images:
        said["image", image_name] = image.size_bytes, frozenset(image.rows)
    said["extended"] = extended_figures(state.extended)
    said["nominations"] = {name: frozenset(held) for name, held in state.nominations}
    # A column of zeros is as good as none: it appears with the first pod that asks for it.
    return {key: value for key, value in said.items() if value}


def _nonzero(column: NDArray[Any]) -> tuple[tuple[int, int], ...]:
    return tuple((int(at), int(column[at])) for at in np.flatnonzero(column))
