"""`reads`, `watch` and `scope` say all that a plugin's answers depend on."""

from __future__ import annotations

from functools import partial
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from moorage.cluster import Change, Cluster, Scope
from moorage.framework.coexist_ledgers import EXCLUSIVE_PODS, HOLDERS, ORDINARY_PODS
from moorage.framework.plugin import Plugin
from moorage.objects.node import HOSTNAME, Node
from moorage.objects.pod import Pod
from moorage.objects.storage import StorageObject
from moorage.plugins.topology_spread.pod_topology_spread import PodTopologySpread
from moorage.plugins.volumes.volume_binding import VolumeBinding
from moorage.testing import check_reads, collect_answers
from moorage_policies.disk_io.disk_io_resource import DISK_IO
from tests.builders import cluster, node, pod
from tests.laws.answers import EITHER, build, variants
from tests.storage_builders import claiming, pv, pvc, storage_class
from tests.strategies import (
    NAMES,
    about_devices,
    about_disks,
    about_volumes,
    clusters,
    csi_nodes,
    devices,
    disk_annotations,
    disks,
    metadata,
    namespaces,
    nodes,
    pod_labels,
    pods,
    services,
    storage,
)

_COEXISTING = EXCLUSIVE_PODS.change | ORDINARY_PODS.change | HOLDERS.change

#: What can be done to a cluster, and the kind of change that tells of it.
ASPECTS = {
    "labels": Change.LABELS,
    "taints": Change.TAINTS,
    "unschedulable": Change.UNSCHEDULABLE,
    "allocatable": Change.ALLOCATABLE,
    "images": Change.IMAGES,
    "declared_features": Change.FEATURES,
    "add pod": Change.PODS | _COEXISTING,
    "remove pod": Change.PODS | _COEXISTING,
    "relabel pod": Change.PODS,
    "annotate pod": _COEXISTING,
    "nominate": Change.NOMINATED,
    "namespace": Change.NAMESPACES,
    "service": Change.SERVICES,
    "add node": Change.MEMBERSHIP,
    "remove node": Change.MEMBERSHIP,
}
STORAGE_ASPECTS = {
    "storage": Change.VOLUMES | Change.STORAGE,
    "storage gone": Change.VOLUMES | Change.STORAGE,
    "limits": Change.ATTACH_LIMITS,
}
DEVICE_ASPECTS = {
    "device": Change.CLASSES | Change.SLICES | Change.CLAIMS,
    "device gone": Change.CLASSES | Change.SLICES | Change.CLAIMS,
}
DISK_ASPECTS = {
    "disk": Change.EXTENDED,
    "disk gone": Change.EXTENDED,
    "ask for disks": Change.EXTENDED,
}


def telling(kind: type[Plugin], watched: int) -> list[str]:
    """The changes that can show a dependency which is not declared."""
    volumes = STORAGE_ASPECTS if about_volumes(kind.name) else {}
    disks = DISK_ASPECTS if about_disks(kind.name) else {}
    devices = DEVICE_ASPECTS if about_devices(kind.name) else {}
    aspects = {**ASPECTS, **volumes, **disks, **devices}
    read = [aspect for aspect, change in aspects.items() if change & watched]
    if kind.scope is Scope.ROW:
        # What is read of one row must not be read of another.
        return [*aspects, *read, *read]
    return [aspect for aspect in aspects if aspect not in read]


def change(made: Cluster, data: st.DataObject, what: str, focus: str) -> None:
    """Does one thing to the cluster."""
    match what:
        case "add pod":
            on = data.draw(st.sampled_from(NAMES[:4]))
            made.put_pod(data.draw(pods("guest", on, terminating=True, focus=focus)))
        case "remove pod" | "relabel pod" | "annotate pod" | "ask for disks":
            _change_pod(made, data, what)
        case "nominate":
            made.nominate(data.draw(pods("nominated", focus=focus)), "n0")
        case "device" | "device gone":
            _change_devices(made, data, what)
        case "namespace" | "service" | "storage" | "storage gone" | "limits" | "disk" | "disk gone":
            _change_surroundings(made, data, what)
        case "add node" | "remove node":
            _change_membership(made, data, what)
        case _:
            _change_node(made, data, what)


def _change_membership(made: Cluster, data: st.DataObject, what: str) -> None:
    if what == "add node":
        made.put_node(data.draw(nodes("new")))
    else:
        made.remove_node(data.draw(st.sampled_from(NAMES[:4])))


def _change_devices(made: Cluster, data: st.DataObject, what: str) -> None:
    if what == "device":
        made.put_device(data.draw(devices))
    else:
        made.remove_device(data.draw(devices))


def _change_node(made: Cluster, data: st.DataObject, field: str) -> None:
    row = int(data.draw(st.sampled_from([*made.nodes.rows.tolist(), -1])))
    if row >= 0:
        changes: dict[str, Any] = {field: getattr(data.draw(nodes("other")), field)}
        made.put_node(msgspec.structs.replace(made.nodes.node(row), **changes))


def _change_surroundings(made: Cluster, data: st.DataObject, what: str) -> None:
    match what:
        case "namespace":
            made.put_workload(data.draw(namespaces))
        case "service":
            made.put_workload(data.draw(services))
        case "storage":
            made.put_storage(data.draw(storage))
        case "storage gone":
            made.remove_storage(data.draw(storage))
        case "limits":
            made.put_storage(data.draw(csi_nodes))
        case "disk":
            made.extended.set(DISK_IO, data.draw(st.sampled_from(NAMES[:4])), data.draw(disks))
        case "disk gone":
            made.extended.remove(DISK_IO, data.draw(st.sampled_from(NAMES[:4])))


def _change_pod(made: Cluster, data: st.DataObject, what: str) -> None:
    if made.pods:
        known = made.pods[data.draw(st.sampled_from(sorted(made.pods)))]
        if what == "remove pod":
            made.remove_pod(known.uid)
        elif what == "relabel pod":
            made.put_pod(msgspec.structs.replace(known, labels=data.draw(pod_labels)))
        elif what == "ask for disks":
            held = data.draw(disk_annotations)
            made.put_pod(msgspec.structs.replace(known, annotations=held))
        else:
            said = data.draw(metadata).get("annotations", {})
            made.put_pod(msgspec.structs.replace(known, annotations=said))


@pytest.mark.parametrize("kind", EITHER, ids=lambda kind: kind.name)
@given(data=st.data())
@settings(max_examples=20)
def test_what_is_not_read_changes_no_answer(kind: type[Plugin], data: st.DataObject) -> None:
    plugin = data.draw(st.sampled_from(variants(kind)))
    made = data.draw(clusters(least=2, focus=kind.name))
    asks = data.draw(pods(focus=kind.name))
    for _ in range(6):
        what = data.draw(st.sampled_from(telling(kind, plugin.watch(asks, made.nodes))))
        check_reads(plugin, asks, made, partial(change, data=data, what=what, focus=kind.name))


def spreading(policy: str) -> Pod:
    constraint = {
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "nodeTaintsPolicy": policy,
    }
    return pod("p", labels={"app": "web"}, spec={"topologySpreadConstraints": [constraint]})


TAINTED = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
BOUND = (storage_class(), pv("one", hosts=("a",), claim="claim@uid-claim"), pvc(volume="one"))


@pytest.mark.parametrize(
    ("kind", "storage", "asks", "changed"),
    [
        pytest.param(
            PodTopologySpread,
            (),
            spreading("Honor"),
            node("b", spec=TAINTED),
            id="the taints of one node decide what is skewed on another",
        ),
        pytest.param(
            VolumeBinding,
            BOUND,
            claiming("claim"),
            node("a", labels={HOSTNAME: "renamed"}),
            id="a volume is found by the labels of a node",
        ),
    ],
)
def test_rare_dependencies_are_read(
    kind: type[Plugin], storage: tuple[StorageObject, ...], asks: Pod, changed: Node
) -> None:
    """What random clusters hit too seldom."""
    made = cluster(node("a"), node("b"), pod("q", node="a", labels={"app": "web"}))
    for item in storage:
        made.put_storage(item)
    before = collect_answers(build(kind), asks, made.nodes)
    generation = made.changes.generation

    made.put_node(changed)

    assert collect_answers(build(kind), asks, made.nodes) != before
    noted = made.changes.since(generation)
    assert noted is not None
    assert any(kinds & kind.reads for kinds in noted.values())


@pytest.mark.parametrize("kind", EITHER, ids=lambda kind: kind.name)
def test_every_plugin_says_what_it_reads(kind: type[Plugin]) -> None:
    """The default is everything everywhere, which is right and useless."""
    assert "reads" in vars(kind)
    assert kind.reads != Change.ALL
    assert "scope" in vars(kind)
