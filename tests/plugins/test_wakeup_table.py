"""Which event wakes a pod that a plugin rejected, and which does not: kube-scheduler's rules.

A row per plugin and event that wakes, and one that does not unless every such event does. What each
plugin listens to is compared as a whole, so that no registration is left out here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.framework.wakeups import Action, Resource
from moorage.objects.node import ZONE
from moorage.objects.pod import Pod
from moorage.plugins import BUILTIN
from tests.builders import node, pod
from tests.device_builders import claim, device_class, holding, resource_slice, result, taint_rule
from tests.laws.answers import build
from tests.plugins.asking import wakes
from tests.storage_builders import (
    attachment,
    claiming,
    csi_driver,
    csi_node,
    mounting,
    pv,
    pvc,
    storage_capacity,
    storage_class,
)

PLUGINS = {kind.name: kind for kind in BUILTIN}

#: What kube-scheduler's plugins register. It adds taints of nodes wherever nodes that come count
#: and taints do not, which the queue does for all of them.
REGISTERED: dict[str, dict[Resource, Action]] = {
    "SchedulingGates": {Resource.POD: Action.UPDATE_POD_GATES_ELIMINATED},
    "NodeUnschedulable": {
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_TAINT,
        Resource.POD: Action.UPDATE_POD_TOLERATION,
    },
    "NodeName": {Resource.NODE: Action.ADD},
    "TaintToleration": {
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_TAINT,
        Resource.POD: Action.UPDATE_POD_TOLERATION,
    },
    "NodeAffinity": {Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL},
    "NodePorts": {Resource.POD: Action.DELETE, Resource.NODE: Action.ADD},
    "NodeResourcesFit": {
        Resource.POD: Action.DELETE | Action.UPDATE_POD_SCALE_DOWN,
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_ALLOCATABLE,
        Resource.DEVICE_CLASS: Action.ADD | Action.UPDATE,
    },
    "VolumeRestrictions": {
        Resource.POD: Action.DELETE,
        Resource.NODE: Action.ADD,
        Resource.PERSISTENT_VOLUME_CLAIM: Action.ADD,
    },
    "NodeVolumeLimits": {
        Resource.CSI_NODE: Action.ADD | Action.UPDATE,
        Resource.POD: Action.DELETE,
        Resource.PERSISTENT_VOLUME_CLAIM: Action.ADD,
        Resource.VOLUME_ATTACHMENT: Action.DELETE,
    },
    "VolumeBinding": {
        Resource.STORAGE_CLASS: Action.ADD | Action.UPDATE,
        Resource.PERSISTENT_VOLUME_CLAIM: Action.ADD | Action.UPDATE,
        Resource.PERSISTENT_VOLUME: Action.ADD | Action.UPDATE,
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL,
        Resource.CSI_NODE: Action.ADD | Action.UPDATE,
        Resource.CSI_DRIVER: Action.UPDATE,
        Resource.CSI_STORAGE_CAPACITY: Action.ADD | Action.UPDATE,
    },
    "VolumeZone": {
        Resource.STORAGE_CLASS: Action.ADD,
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL,
        Resource.PERSISTENT_VOLUME_CLAIM: Action.ADD | Action.UPDATE,
        Resource.PERSISTENT_VOLUME: Action.ADD | Action.UPDATE,
    },
    "PodTopologySpread": {
        Resource.POD: Action.ADD
        | Action.UPDATE_POD_LABEL
        | Action.UPDATE_POD_TOLERATION
        | Action.DELETE,
        Resource.NODE: Action.ADD
        | Action.DELETE
        | Action.UPDATE_NODE_LABEL
        | Action.UPDATE_NODE_TAINT,
    },
    "InterPodAffinity": {
        Resource.POD: Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE,
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL,
    },
    "DynamicResources": {
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE,
        Resource.DEVICE_CLASS: Action.ADD | Action.UPDATE,
        Resource.RESOURCE_SLICE: Action.ADD | Action.UPDATE,
        # That a claim is gone counts from kube-scheduler 1.37 on.
        Resource.RESOURCE_CLAIM: Action.ADD | Action.UPDATE | Action.DELETE,
        # A rule that comes only takes devices away.
        Resource.DEVICE_TAINT_RULE: Action.UPDATE | Action.DELETE,
        Resource.UNSCHEDULED_POD: Action.UPDATE_POD_GENERATED_CLAIM,
    },
    "NodeDeclaredFeatures": {
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE,
        Resource.POD: Action.UPDATE,
    },
    "DefaultPreemption": {Resource.POD: Action.DELETE},
}


@pytest.mark.parametrize("name", REGISTERED)
def test_plugins_listen_to_what_those_of_kube_scheduler_listen_to(name: str) -> None:
    found: dict[Resource | str, Action] = {}
    for wakeup in build(PLUGINS[name]).wakeups():
        resource = wakeup.event.resource
        found[resource] = found.get(resource, Action(0)) | wakeup.event.action
    assert found == REGISTERED[name]


@dataclass(frozen=True)
class Case:
    """An event, and whether it wakes the pod."""

    plugin: str
    about: str
    resource: Resource
    action: Action
    pod: Pod
    old: Any
    new: Any
    wakes: bool


CASES: list[Case] = []


def case(
    plugin: str,
    about: str,
    resource: Resource,
    action: Action,
    *given: Any,
    wakes: bool,
) -> None:
    """Adds a row: the waiting pod, the object before and after."""
    waiting, old, new = given
    CASES.append(Case(plugin, about, resource, action, waiting, old, new, wakes))


NODE, POD = Resource.NODE, Resource.POD
ADD, DELETE, UPDATE = Action.ADD, Action.DELETE, Action.UPDATE
TAINT, LABEL = Action.UPDATE_NODE_TAINT, Action.UPDATE_NODE_LABEL

PLAIN = pod("w")


def cordoned(**given: Any) -> Any:
    return node("n", spec={"unschedulable": True}, **given)


def tainted(value: str = "v") -> Any:
    return node("n", spec={"taints": [{"key": "k", "value": value, "effect": "NoSchedule"}]})


def tolerating(key: str, **given: Any) -> Pod:
    return pod("w", spec={"tolerations": [{"key": key, "operator": "Exists", **given}]})


GATED = pod("w", spec={"schedulingGates": [{"name": "g"}]})
GATES = Action.UPDATE_POD_GATES_ELIMINATED
case("SchedulingGates", "its gates are gone", POD, GATES, GATED, GATED, PLAIN, wakes=True)
case("SchedulingGates", "of another", POD, GATES, GATED, GATED, pod("x"), wakes=False)

CORDON = "node.kubernetes.io/unschedulable"
TOLERATION = Action.UPDATE_POD_TOLERATION
case("NodeUnschedulable", "a node comes", NODE, ADD, PLAIN, None, node("n"), wakes=True)
case("NodeUnschedulable", "a cordoned one", NODE, ADD, PLAIN, None, cordoned(), wakes=False)
case("NodeUnschedulable", "uncordoned", NODE, TAINT, PLAIN, cordoned(), node("n"), wakes=True)
case("NodeUnschedulable", "only taints", NODE, TAINT, PLAIN, node("n"), tainted(), wakes=False)
TOLERANT = tolerating(CORDON)
case("NodeUnschedulable", "it tolerates", POD, TOLERATION, PLAIN, PLAIN, TOLERANT, wakes=True)
OTHERWISE = tolerating("other")
case("NodeUnschedulable", "something else", POD, TOLERATION, PLAIN, PLAIN, OTHERWISE, wakes=False)

case("NodeName", "a node comes", NODE, ADD, PLAIN, None, node("n"), wakes=True)

case("TaintToleration", "without taints", NODE, ADD, PLAIN, None, node("n"), wakes=True)
case("TaintToleration", "with one", NODE, ADD, PLAIN, None, tainted(), wakes=False)
case("TaintToleration", "the taint goes", NODE, TAINT, PLAIN, tainted(), node("n"), wakes=True)
case("TaintToleration", "it stays", NODE, TAINT, PLAIN, tainted(), tainted("x"), wakes=False)
case("TaintToleration", "no obstacle", NODE, TAINT, PLAIN, node("n"), node("n"), wakes=False)
case("TaintToleration", "it tolerates", POD, TOLERATION, PLAIN, PLAIN, OTHERWISE, wakes=True)
case("TaintToleration", "another does", POD, TOLERATION, PLAIN, PLAIN, pod("x"), wakes=False)

PICKY = pod("w", spec={"nodeSelector": {"disk": "ssd"}})
SSD, HDD = node("n", labels={"disk": "ssd"}), node("n", labels={"disk": "hdd"})
case("NodeAffinity", "one that matches", NODE, ADD, PICKY, None, SSD, wakes=True)
case("NodeAffinity", "one that does not", NODE, ADD, PICKY, None, HDD, wakes=False)
case("NodeAffinity", "it matches now", NODE, LABEL, PICKY, HDD, SSD, wakes=True)
case("NodeAffinity", "it did before", NODE, LABEL, PICKY, SSD, SSD, wakes=False)
WITHOUT_DISK = {"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [WITHOUT_DISK]}}
SHUNS = pod("w", spec={"affinity": {"nodeAffinity": REQUIRED}})
UNLABELLED = replace(node("n"), labels={})
case("NodeAffinity", "one without labels", NODE, ADD, SHUNS, None, UNLABELLED, wakes=True)


def listening(name: str, port: int, **given: Any) -> Pod:
    containers = [{"name": "main", "ports": [{"hostPort": port}]}]
    return pod(name, spec={"containers": containers}, **given)


WAITS = listening("w", 80)
case("NodePorts", "its port", POD, DELETE, WAITS, listening("x", 80, node="n"), None, wakes=True)
case("NodePorts", "another", POD, DELETE, WAITS, listening("x", 81, node="n"), None, wakes=False)
case("NodePorts", "of no node", POD, DELETE, WAITS, listening("x", 80), None, wakes=False)
case("NodePorts", "a node comes", NODE, ADD, WAITS, None, node("n"), wakes=True)

BIG = pod("w", cpu=2)
DOWN, ALLOCATABLE = Action.UPDATE_POD_SCALE_DOWN, Action.UPDATE_NODE_ALLOCATABLE
USER, SMALLER = pod("x", node="n", cpu=2), pod("x", node="n", cpu=1)
LIGHTER = pod("x", node="n", cpu=2, memory="1Gi")
case("NodeResourcesFit", "a pod goes", POD, DELETE, BIG, USER, None, wakes=True)
case("NodeResourcesFit", "of no node", POD, DELETE, BIG, pod("x", cpu=2), None, wakes=False)
case("NodeResourcesFit", "one shrinks", POD, DOWN, BIG, USER, SMALLER, wakes=True)
MEMORY = pod("w", memory="1Gi")
case("NodeResourcesFit", "in what is not asked for", POD, DOWN, MEMORY, USER, SMALLER, wakes=False)
case("NodeResourcesFit", "it shrinks itself", POD, DOWN, BIG, BIG, pod("w", cpu=1), wakes=True)
case("NodeResourcesFit", "large enough", NODE, ADD, BIG, None, node("n", cpu=2), wakes=True)
case("NodeResourcesFit", "too small", NODE, ADD, BIG, None, node("n", cpu=1), wakes=False)
SMALL, LARGE = node("n", cpu=2, memory="4Gi"), node("n", cpu=4, memory="4Gi")
case("NodeResourcesFit", "a node grows", NODE, ALLOCATABLE, BIG, SMALL, LARGE, wakes=True)
case("NodeResourcesFit", "it shrinks", NODE, ALLOCATABLE, BIG, LARGE, SMALL, wakes=False)
ROOMY = node("n", cpu=2, memory="8Gi")
case("NodeResourcesFit", "it grows otherwise", NODE, ALLOCATABLE, BIG, SMALL, ROOMY, wakes=False)

CLASSES = Resource.DEVICE_CLASS
GPU = pod("w", **{"example.com/gpu": 1})
NAMED, UNNAMED = device_class("c", extendedResourceName="example.com/gpu"), device_class("c")
BY_CLASS = pod("w", **{"deviceclass.resource.kubernetes.io/c": 1})
case("NodeResourcesFit", "a class serves it", CLASSES, ADD, GPU, None, NAMED, wakes=True)
case("NodeResourcesFit", "none does", CLASSES, ADD, GPU, None, UNNAMED, wakes=False)
case("NodeResourcesFit", "it serves it now", CLASSES, UPDATE, GPU, UNNAMED, NAMED, wakes=True)
case("NodeResourcesFit", "it did before", CLASSES, UPDATE, GPU, NAMED, NAMED, wakes=False)
case("NodeResourcesFit", "by its own name", CLASSES, ADD, BY_CLASS, None, UNNAMED, wakes=True)

PVC, PV = Resource.PERSISTENT_VOLUME_CLAIM, Resource.PERSISTENT_VOLUME
CLAIMS = claiming("c", name="w")
case("VolumeRestrictions", "its claim", POD, DELETE, CLAIMS, claiming("c"), None, wakes=True)
case("VolumeRestrictions", "another", POD, DELETE, CLAIMS, claiming("d"), None, wakes=False)
DISK = {"gcePersistentDisk": {"pdName": "d"}}
DISKS = mounting(DISK, name="w")
case("VolumeRestrictions", "its disk", POD, DELETE, DISKS, mounting(DISK), None, wakes=True)
FAR = mounting(DISK, metadata={"namespace": "far"})
case("VolumeRestrictions", "elsewhere", POD, DELETE, DISKS, FAR, None, wakes=False)
case("VolumeRestrictions", "a node comes", NODE, ADD, CLAIMS, None, node("n"), wakes=True)
case("VolumeRestrictions", "a claim comes", PVC, ADD, CLAIMS, None, pvc("c"), wakes=True)
case("VolumeRestrictions", "another claim", PVC, ADD, CLAIMS, None, pvc("d"), wakes=False)

CSI, ATTACHMENT = Resource.CSI_NODE, Resource.VOLUME_ATTACHMENT
case("NodeVolumeLimits", "drivers come", CSI, ADD, CLAIMS, None, csi_node("n", csi=1), wakes=True)
ONE, TWO = csi_node("n", csi=1), csi_node("n", csi=2)
case("NodeVolumeLimits", "more volumes", CSI, UPDATE, CLAIMS, ONE, TWO, wakes=True)
case("NodeVolumeLimits", "fewer volumes", CSI, UPDATE, CLAIMS, TWO, ONE, wakes=False)
GONE = claiming("d", node="n")
case("NodeVolumeLimits", "a pod with a claim", POD, DELETE, CLAIMS, GONE, None, wakes=True)
case("NodeVolumeLimits", "without", POD, DELETE, CLAIMS, pod("x", node="n"), None, wakes=False)
case("NodeVolumeLimits", "of no node", POD, DELETE, CLAIMS, claiming("d"), None, wakes=False)
case("NodeVolumeLimits", "a claim comes", PVC, ADD, CLAIMS, None, pvc("c"), wakes=True)
case("NodeVolumeLimits", "another claim", PVC, ADD, CLAIMS, None, pvc("d"), wakes=False)
DETACHED = attachment(node="n", volume="pv")
case("NodeVolumeLimits", "detached", ATTACHMENT, DELETE, CLAIMS, DETACHED, None, wakes=True)
case("NodeVolumeLimits", "no claims", ATTACHMENT, DELETE, PLAIN, DETACHED, None, wakes=False)

CLASS, CAPACITY = Resource.STORAGE_CLASS, Resource.CSI_STORAGE_CAPACITY
LATE = storage_class()
TOPOLOGY = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
LIMITED = storage_class(allowedTopologies=TOPOLOGY)
LESS, MORE = storage_capacity(capacity="1Gi"), storage_capacity(capacity="2Gi")
BINDS = "VolumeBinding"
case(BINDS, "a class comes", CLASS, ADD, CLAIMS, None, LATE, wakes=True)
case(BINDS, "its topologies change", CLASS, UPDATE, CLAIMS, LIMITED, LATE, wakes=True)
case(BINDS, "they stay", CLASS, UPDATE, CLAIMS, LATE, LATE, wakes=False)
case(BINDS, "its claim changes", PVC, UPDATE, CLAIMS, pvc("c"), pvc("c", volume="v"), wakes=True)
case(BINDS, "another changes", PVC, UPDATE, CLAIMS, pvc("d"), pvc("d", volume="v"), wakes=False)
case(BINDS, "a volume comes", PV, ADD, CLAIMS, None, pv(), wakes=True)
case(BINDS, "a volume changes", PV, UPDATE, CLAIMS, pv(), pv(size="2Gi"), wakes=True)
case(BINDS, "a node comes", NODE, ADD, CLAIMS, None, node("n"), wakes=True)
case(BINDS, "labels change", NODE, LABEL, CLAIMS, HDD, SSD, wakes=True)
case(BINDS, "drivers come", CSI, ADD, CLAIMS, None, ONE, wakes=True)
MIGRATED = csi_node("n", csi=1, migrated="kubernetes.io/gce-pd")
case(BINDS, "more are migrated", CSI, UPDATE, CLAIMS, ONE, MIGRATED, wakes=True)
case(BINDS, "limits change", CSI, UPDATE, CLAIMS, ONE, TWO, wakes=False)
INLINE = mounting({"csi": {"driver": "csi.example.com"}}, name="w")
DRIVER, COUNTS, MOOT = Resource.CSI_DRIVER, csi_driver(), csi_driver(tells_capacity=False)
case(BINDS, "capacity is moot", DRIVER, UPDATE, INLINE, COUNTS, MOOT, wakes=True)
case(BINDS, "it counts now", DRIVER, UPDATE, INLINE, MOOT, COUNTS, wakes=False)
case(BINDS, "there is storage", CAPACITY, ADD, CLAIMS, None, LESS, wakes=True)
case(BINDS, "more of it", CAPACITY, UPDATE, CLAIMS, LESS, MORE, wakes=True)
case(BINDS, "less of it", CAPACITY, UPDATE, CLAIMS, MORE, LESS, wakes=False)

IN_A, IN_B = pv(labels={ZONE: "a"}), pv(labels={ZONE: "b"})
AT_ONCE = storage_class(mode="Immediate")
case("VolumeZone", "a late class", CLASS, ADD, CLAIMS, None, LATE, wakes=True)
case("VolumeZone", "one that binds at once", CLASS, ADD, CLAIMS, None, AT_ONCE, wakes=False)
case("VolumeZone", "a node comes", NODE, ADD, CLAIMS, None, node("n"), wakes=True)
case("VolumeZone", "its claim", PVC, UPDATE, CLAIMS, pvc("c"), pvc("c", volume="v"), wakes=True)
case("VolumeZone", "another", PVC, UPDATE, CLAIMS, pvc("d"), pvc("d", volume="v"), wakes=False)
case("VolumeZone", "a volume comes", PV, ADD, CLAIMS, None, pv(), wakes=True)
case("VolumeZone", "it moves", PV, UPDATE, CLAIMS, IN_A, IN_B, wakes=True)
case("VolumeZone", "it grows", PV, UPDATE, CLAIMS, pv(), pv(size="2Gi"), wakes=False)


def labelled(app: str, name: str = "x", **given: Any) -> Pod:
    return pod(name, labels={"app": app}, **given)


def spread(tolerated: str = "", **given: Any) -> Pod:
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **given}
    selector = {"labelSelector": {"matchLabels": {"app": "web"}}}
    spec: dict[str, Any] = {"topologySpreadConstraints": [{**rule, **selector}]}
    if tolerated:
        spec["tolerations"] = [{"key": tolerated, "operator": "Exists"}]
    return labelled("web", "w", spec=spec)


SPREAD = spread()
WEB, DB = labelled("web", node="n"), labelled("db", node="n")
AWAY = labelled("web", node="n", metadata={"namespace": "far"})
RELABEL = Action.UPDATE_POD_LABEL
ZONED, BARE = node("n", labels={ZONE: "a"}), node("n")
SPREADS = "PodTopologySpread"
case(SPREADS, "one that counts", POD, ADD, SPREAD, None, WEB, wakes=True)
case(SPREADS, "one that does not", POD, ADD, SPREAD, None, DB, wakes=False)
case(SPREADS, "elsewhere", POD, ADD, SPREAD, None, AWAY, wakes=False)
case(SPREADS, "of no node", POD, ADD, SPREAD, None, labelled("web"), wakes=False)
case(SPREADS, "it counts no more", POD, RELABEL, SPREAD, WEB, DB, wakes=True)
case(SPREADS, "it counts still", POD, RELABEL, SPREAD, WEB, WEB, wakes=False)
case(SPREADS, "one goes", POD, DELETE, SPREAD, WEB, None, wakes=True)
case(SPREADS, "another goes", POD, DELETE, SPREAD, DB, None, wakes=False)
HONOURS = spread(nodeTaintsPolicy="Honor")
TOLERATES = spread("k", nodeTaintsPolicy="Honor")
case(SPREADS, "it tolerates", POD, TOLERATION, HONOURS, HONOURS, TOLERATES, wakes=True)
case(SPREADS, "taints are moot", POD, TOLERATION, SPREAD, SPREAD, spread("k"), wakes=False)
case(SPREADS, "a node of a zone", NODE, ADD, SPREAD, None, ZONED, wakes=True)
case(SPREADS, "one of none", NODE, ADD, SPREAD, None, BARE, wakes=False)
case(SPREADS, "a zone is left", NODE, DELETE, SPREAD, ZONED, None, wakes=True)
case(SPREADS, "no zone is left", NODE, DELETE, SPREAD, BARE, None, wakes=False)
case(SPREADS, "a zone is named", NODE, LABEL, SPREAD, BARE, ZONED, wakes=True)
case(SPREADS, "something else is", NODE, LABEL, SPREAD, HDD, SSD, wakes=False)


def near(app: str, kind: str = "podAffinity", name: str = "w", **given: Any) -> Pod:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}
    rules = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return labelled("web", name, spec={"affinity": rules}, **given)


def near_all() -> Pod:
    term = {"topologyKey": ZONE, "labelSelector": {}}
    rules = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod("w", spec={"affinity": rules})


NEAR, APART = near("db"), near("db", "podAntiAffinity")
REPELS = near("web", "podAntiAffinity", "x", node="n")
OTHER_ZONE = node("n", labels={ZONE: "b"})
AFFINE = "InterPodAffinity"
case(AFFINE, "one that it wants", POD, ADD, NEAR, None, DB, wakes=True)
case(AFFINE, "one that it does not", POD, ADD, NEAR, None, WEB, wakes=False)
case(AFFINE, "one without labels", POD, ADD, near_all(), None, pod("x", node="n"), wakes=True)
case(AFFINE, "of no node", POD, ADD, NEAR, None, labelled("db"), wakes=False)
case(AFFINE, "one that it avoids", POD, ADD, APART, None, DB, wakes=False)
case(AFFINE, "it is wanted now", POD, RELABEL, NEAR, WEB, DB, wakes=True)
case(AFFINE, "it is avoided no more", POD, RELABEL, APART, DB, WEB, wakes=True)
case(AFFINE, "it is avoided now", POD, RELABEL, APART, WEB, DB, wakes=False)
case(AFFINE, "its own labels", POD, RELABEL, APART, APART, APART, wakes=True)
case(AFFINE, "one that it avoids goes", POD, DELETE, APART, DB, None, wakes=True)
case(AFFINE, "one that it does not avoid", POD, DELETE, APART, WEB, None, wakes=False)
case(AFFINE, "one that avoids it goes", POD, DELETE, APART, REPELS, None, wakes=True)
case(AFFINE, "a zone comes", NODE, ADD, NEAR, None, ZONED, wakes=True)
case(AFFINE, "a node without one", NODE, ADD, NEAR, None, BARE, wakes=False)
case(AFFINE, "any node", NODE, ADD, APART, None, BARE, wakes=True)
case(AFFINE, "another zone", NODE, LABEL, NEAR, ZONED, OTHER_ZONE, wakes=True)
# kube-scheduler does not try it, although the terms of others may be about such a label.
case(AFFINE, "something else", NODE, LABEL, NEAR, HDD, SSD, wakes=True)
case(AFFINE, "no label", NODE, LABEL, NEAR, SSD, SSD, wakes=False)
case(AFFINE, "it leaves its zone", NODE, LABEL, APART, ZONED, BARE, wakes=True)

RESOURCE_CLAIM = Resource.RESOURCE_CLAIM
SLICES = Resource.RESOURCE_SLICE
HELD, FREE = holding("c", result("n", "gpu-0")), claim("c")
DRA = "DynamicResources"
case(DRA, "a node comes", NODE, ADD, PLAIN, None, node("n"), wakes=True)
case(DRA, "labels change", NODE, LABEL, PLAIN, HDD, SSD, wakes=True)
case(DRA, "it offers more", NODE, ALLOCATABLE, PLAIN, SMALL, LARGE, wakes=True)
case(DRA, "a class comes", CLASSES, ADD, PLAIN, None, UNNAMED, wakes=True)
case(DRA, "devices come", SLICES, ADD, PLAIN, None, resource_slice("n"), wakes=True)
RULES = Resource.DEVICE_TAINT_RULE
case(DRA, "a taint goes", RULES, DELETE, PLAIN, taint_rule("r"), None, wakes=True)
case(DRA, "a taint comes", RULES, ADD, PLAIN, None, taint_rule("r"), wakes=False)
case(DRA, "devices are free", RESOURCE_CLAIM, UPDATE, PLAIN, HELD, FREE, wakes=True)
case(DRA, "they are taken", RESOURCE_CLAIM, UPDATE, PLAIN, FREE, HELD, wakes=False)
case(DRA, "a claim with some goes", RESOURCE_CLAIM, DELETE, PLAIN, HELD, None, wakes=True)
case(DRA, "one without", RESOURCE_CLAIM, DELETE, PLAIN, FREE, None, wakes=False)

FEATURES = "NodeDeclaredFeatures"
DECLARED = Action.UPDATE_NODE_DECLARED_FEATURE
ABLE = node("n", status={"declaredFeatures": ["A"]})
case(FEATURES, "a node comes", NODE, ADD, PLAIN, None, BARE, wakes=True)
case(FEATURES, "it can more", NODE, DECLARED, PLAIN, BARE, ABLE, wakes=True)
case(FEATURES, "it can the same", NODE, DECLARED, PLAIN, ABLE, ABLE, wakes=False)
case(FEATURES, "another pod changes", POD, UPDATE, PLAIN, pod("x"), pod("x", cpu=1), wakes=False)

case("DefaultPreemption", "whatever happens", POD, DELETE, BIG, USER, None, wakes=False)


@pytest.mark.parametrize("row", CASES, ids=lambda row: f"{row.plugin}: {row.about}")
def test_whom_events_wake(row: Case) -> None:
    plugin = build(PLUGINS[row.plugin])
    told = wakes(plugin, row.resource, row.action, pod=row.pod, old=row.old, new=row.new)
    assert told is row.wakes


def test_every_event_of_the_table_is_tried() -> None:
    tried = {(row.plugin, row.resource) for row in CASES}
    named = {(name, resource) for name, heard in REGISTERED.items() for resource in heard}
    # That the claims of a pod were made is tried with an engine, which knows them.
    assert named - tried == {(DRA, Resource.UNSCHEDULED_POD)}
