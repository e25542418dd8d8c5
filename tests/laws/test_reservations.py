"""A law: a reservation that is refused or taken back leaves no trace."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from moorage.cluster import Cluster, check
from moorage.objects.pod import Pod
from moorage.objects.storage import StorageObject
from moorage.plugins.volumes.volume_binding import VolumeBinding
from moorage.plugins.volumes.volume_claims import Claims
from tests.builders import cluster, node
from tests.storage_builders import (
    claiming,
    csi_driver,
    pv,
    pvc,
    storage_capacity,
    storage_class,
)

PLUGIN = VolumeBinding()
HOSTS = ("a", "b", "c")
SIZES = st.sampled_from(["1Gi", "2Gi", "3Gi"])
CLASSES = st.sampled_from(["local", "late"])
CLAIMS = tuple(f"claim-{at}" for at in range(4))


@st.composite
def storages(draw: st.DrawFn) -> list[StorageObject]:
    """Classes, claims in all stages, and volumes that are free, kept or bound."""
    volumes = [
        pv(
            f"v{at}",
            size=draw(SIZES),
            class_name=draw(CLASSES),
            hosts=draw(st.sampled_from([(), *((host,) for host in HOSTS)])),
            claim=draw(st.sampled_from(["", "", "", *CLAIMS, "claim-0@uid-claim-0"])),
        )
        for at in range(draw(st.integers(0, 6)))
    ]
    claims = [
        pvc(
            name,
            size=draw(SIZES),
            class_name=draw(CLASSES),
            selected_node=draw(st.sampled_from(["", "", "a"])),
            volume=draw(st.sampled_from(["", "", "v0"])),
        )
        for name in CLAIMS
    ]
    classes = [storage_class("local", provisioner="kubernetes.io/no-provisioner"), storage_class()]
    capacity = storage_capacity(hosts=("a", "b"), capacity=draw(SIZES))
    tells = csi_driver(tells_capacity=draw(st.booleans()))
    return [*classes, tells, capacity, *volumes, *claims]


PODS = st.lists(
    st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=3, unique=True), min_size=1, max_size=4
).map(lambda each: [claiming(*claims, name=f"p{at}") for at, claims in enumerate(each)])


def state(nodes: Cluster) -> dict[str, Any]:
    """All that storage shows and keeps."""
    storage = nodes.nodes.storage
    return {
        "objects": list(storage),
        "volumes": {f"v{at}": storage.volume(f"v{at}") for at in range(6)},
        "claims": {name: storage.claim(f"default/{name}") for name in CLAIMS},
        "free": [
            [volume.name for volume in storage.free_volumes(pvc("any", class_name=name))]
            for name in ("local", "late")
        ],
        "kept": {name: list(storage.volumes_for(pvc(name))) for name in CLAIMS},
        "reservations": dict(storage._reservations),
        "owners": {
            name: set(owners)
            for objects in (storage._volumes, storage._claims)
            for name, owners in objects.owners.items()
        },
    }


def reserved(nodes: Cluster, pod: Pod, row: int) -> bool:
    return PLUGIN.reserve(pod, nodes.nodes, row) is None


@given(storages(), PODS, st.data())
def test_a_reservation_can_be_taken_back_whoever_came_after(
    items: list[StorageObject], pods: list[Pod], data: st.DataObject
) -> None:
    nodes = cluster(*(node(host) for host in HOSTS), *items)
    states = [state(nodes)]
    took = []
    for pod in pods:
        before = state(nodes)
        if reserved(nodes, pod, data.draw(st.integers(0, 2))):
            took.append(pod)
            states.append(state(nodes))
        else:
            assert state(nodes) == before
        check(nodes)

    for pod in reversed(took):
        assert state(nodes) == states.pop()
        PLUGIN.unreserve(pod, nodes.nodes, "")
        check(nodes)
    assert state(nodes) == states.pop()


@given(storages(), PODS, st.data())
def test_when_all_are_taken_back_in_any_order_nothing_is_left(
    items: list[StorageObject], pods: list[Pod], data: st.DataObject
) -> None:
    nodes = cluster(*(node(host) for host in HOSTS), *items)
    before = state(nodes)
    for pod in pods:
        reserved(nodes, pod, data.draw(st.integers(0, 2)))

    for pod in data.draw(st.permutations(pods)):
        PLUGIN.unreserve(pod, nodes.nodes, "")
        check(nodes)

    assert state(nodes) == before


@given(storages(), PODS)
def test_a_node_that_passes_the_filter_can_be_reserved(
    items: list[StorageObject], pods: list[Pod]
) -> None:
    nodes = cluster(*(node(host) for host in HOSTS), *items)
    for pod in pods:
        prepared = PLUGIN.pre_filter(pod, nodes.nodes)
        if not isinstance(prepared, Claims):
            continue
        verdict = PLUGIN.filter(prepared, nodes.nodes, nodes.nodes.everything)
        for row in range(len(HOSTS)):
            if verdict.ok[row]:
                assert reserved(nodes, pod, row)
                PLUGIN.unreserve(pod, nodes.nodes, "")
