"""The exactness law for extended resources: in columns, in plain Python, and both at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pytest
from hypothesis import given

from moorage.cluster import (
    Admission,
    Change,
    ExtendedResource,
    HandleRegistry,
    Nodes,
    NodeView,
    ObjectPerNode,
    Scope,
)
from moorage.engine.classes.statistics import DecisionPath
from moorage.framework.plugin import (
    NodeFilter,
    NodeScore,
    Plugin,
    Reduction,
    Registry,
    Rescore,
    Sign,
)
from moorage.objects.custom import CustomObject
from moorage.objects.pod import Pod
from moorage_policies.disk_io.disk_io import DiskIO
from moorage_policies.disk_io.disk_io_resource import (
    BLOCK_SIZES,
    KIND,
    capacity as told_capacity,
    estimate,
    node_name,
)
from moorage_policies.disk_io.quiet_disk import QuietDisk
from tests.builders import Manifest, node, pod
from tests.exactness.four_ways import Differs, configuration, profile, run
from tests.exactness.streams import Shape
from tests.exactness.test_four_ways import SEEDS, trying
from tests.exactness.test_signatures import compare_templates
from tests.exactness.test_traps import Told
from tests.extended_fakes import custom
from tests.registered import REGISTRY

DISKS = Shape(disks=True)


# The same disks in plain Python, by somebody who knows nothing of columns


@dataclass
class Ledger(ExtendedResource):
    """Reads only; what cannot be read raises."""

    capacity: int
    used: int = 0

    def add_pod(self, pod: Pod) -> None:
        self.used += estimate(pod, BLOCK_SIZES).read

    def remove_pod(self, pod: Pod) -> None:
        self.used -= estimate(pod, BLOCK_SIZES).read

    def admit_pod(self, pod: Pod) -> Admission:
        return Admission(estimate(pod, BLOCK_SIZES).read, self.capacity - self.used)


class LedgerHandle(ObjectPerNode[Any]):
    kind = KIND

    def read(self, item: CustomObject) -> tuple[str, Ledger]:
        return node_name(item), Ledger(told_capacity(item).read)


class UnsignedDisk(NodeFilter):
    """Says nothing of itself: nothing is reused."""

    name: ClassVar[str] = "UnsignedDisk"

    def __init__(self, handles: HandleRegistry) -> None:
        self.handle = handles.register("example.com/ledger", LedgerHandle)

    @classmethod
    def create_sharing(cls, args: Any, gates: Mapping[str, bool], handles: HandleRegistry) -> Self:
        return cls(handles)

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        ledger = self.handle.get(node)
        return None if ledger is None or ledger.admit_pod(pod).fits else "the disk is busy"


class PlainDisk(UnsignedDisk, NodeScore, Sign):
    """Signed, and no more."""

    name = "PlainDisk"

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return tuple(sorted(pod.annotations.items()))

    def score_node(self, pod: Pod, node: NodeView) -> int:
        ledger = self.handle.get(node)
        return 0 if ledger is None else max(0, min(100, ledger.admit_pod(pod).available >> 20))


class DeclaredDisk(PlainDisk):
    """The same, with what it reads and how far that reaches."""

    name = "DeclaredDisk"
    reads = Change.EXTENDED
    scope = Scope.ROW
    reduces = Reduction.NOTHING


PLUGINS: tuple[type[Plugin], ...] = (PlainDisk, DeclaredDisk, UnsignedDisk)
WITH_DISKS: Registry = {**REGISTRY, **{each.name: each for each in PLUGINS}}


def enabling(*names: str) -> Manifest:
    enabled = [{"name": name, "weight": 5} for name in names]
    return profile(plugins={"multiPoint": {"enabled": enabled}})


BUILT_IN = configuration(enabling("DiskIO", "QuietDisk"))


@given(SEEDS)
@trying(0.16)
def test_every_way_decides_the_same(seed: int) -> None:
    run(seed, BUILT_IN, DISKS)


PROFILES = {
    "packing": profile(
        plugins=enabling("DiskIO")["profiles"][0]["plugins"],
        pluginConfig=[{"name": "DiskIO", "args": {"scoringStrategy": "MostAllocated"}}],
    ),
    "quiet only": enabling("QuietDisk"),
    "plain": enabling("PlainDisk"),
    "declared": enabling("DeclaredDisk"),
    "not signed": enabling("UnsignedDisk"),
    "all": enabling("DiskIO", "QuietDisk", "DeclaredDisk"),
}


@pytest.mark.parametrize("raw", PROFILES.values(), ids=PROFILES)
@given(seed=SEEDS)
@trying(0.06)
def test_with_other_plugins(raw: Manifest, seed: int) -> None:
    run(seed, configuration(raw, WITH_DISKS), DISKS, registry=WITH_DISKS)


def test_pods_that_use_disks_join_classes_and_batches() -> None:
    ways = sum(
        (run(seed, BUILT_IN, DISKS, recounts=False) for seed in range(16)), Counter[DecisionPath]()
    )

    for common in (
        DecisionPath.BATCH,
        DecisionPath.COLUMNS,
        DecisionPath.FIRST,
        DecisionPath.FAILURE,
    ):
        assert ways[common] > 20, common


def test_what_is_declared_is_ranked_too() -> None:
    using = configuration(enabling("DeclaredDisk"), WITH_DISKS)
    ways = sum(
        (run(seed, using, DISKS, registry=WITH_DISKS, recounts=False) for seed in (4, 7, 9)),
        Counter[DecisionPath](),
    )

    assert ways[DecisionPath.BATCH] > 10


@given(SEEDS)
@trying(0.3)
def test_what_is_signed_alike_is_decided_alike(seed: int) -> None:
    compare_templates(seed, BUILT_IN, DISKS)


def test_many_are_signed_alike() -> None:
    assert sum(compare_templates(seed, BUILT_IN, DISKS) for seed in range(5)) > 50


# Traps


def disk(name: str, read: str = "100", write: str = "100") -> CustomObject:
    return custom(KIND, name, spec={"nodeName": name, "capacity": {"read": read, "write": write}})


def reading(name: str, amount: str, **given: Any) -> Pod:
    held = {"annotations": {"diskio.moorage.dev/read": amount}}
    return pod(name, metadata=held, **given)


def told(*objects: Any) -> Told:
    return Told(*objects, using=BUILT_IN)


def test_capacity_that_rises_between_like_pods() -> None:
    ways = told(node("a"), node("b"), disk("a", "40"), disk("b", "0"))

    assert ways.places(reading("p0", "30")) == {"p0": "a"}
    ways.apply(disk("b", "90"))
    assert ways.places(reading("p1", "30"), reading("p2", "30")) == {"p1": "b", "p2": "b"}
    ways.apply(disk("a", "10"), disk("b", "10"))
    assert ways.places(reading("p3", "30")) == {"p3": None}
    ways.apply(disk("a", "60"))
    assert ways.places(reading("p4", "30")) == {"p4": "a"}


def test_a_status_that_goes_between_like_pods() -> None:
    ways = told(node("a"), node("b"), disk("a"), disk("b", "50"))

    assert ways.places(reading("p0", "10")) == {"p0": "a"}
    ways.remove(disk("a"))
    assert ways.places(reading("p1", "10")) == {"p1": "b"}


def test_pods_that_differ_in_their_annotations_only() -> None:
    ways = told(node("a"), node("b"), disk("a", "20"), disk("b", "90"))

    found = ways.places(*(reading(f"p{at}", str(20 + 60 * (at % 2))) for at in range(4)))
    assert found == {"p0": "b", "p1": None, "p2": "b", "p3": None}


def test_a_running_pod_that_is_annotated_anew() -> None:
    ways = told(node("a"), disk("a"))
    ways.apply(reading("runs", "90", node="a"))

    assert ways.places(reading("p0", "40")) == {"p0": None}
    ways.apply(reading("runs", "50", node="a"))
    assert ways.places(reading("p1", "40")) == {"p1": "a"}


# Mutations

Mutation = Callable[[pytest.MonkeyPatch], None]


def watches_nothing(plugin: type[Any]) -> Mutation:
    return lambda patch: patch.setattr(plugin, "watch", lambda *_: Change.NONE)


def signs_nothing(plugin: type[Any]) -> Mutation:
    return lambda patch: patch.setattr(plugin, "sign", lambda *_: None)


def rechecks_kindly(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DiskIO, "recheck", lambda *_: Rescore.UPDATED)


def rescores_by_one_more(patch: pytest.MonkeyPatch) -> None:
    rescore = DiskIO.rescore

    def off_by_one(self: Any, prepared: Any, nodes: Nodes, row: Any, scores: Any) -> Rescore:
        answer = rescore(self, prepared, nodes, row, scores)
        scores[row.number] = (scores[row.number] + 1) % 101
        return answer

    patch.setattr(DiskIO, "rescore", off_by_one)


MUTATIONS: dict[str, Mutation] = {
    "capacity is not watched": watches_nothing(DiskIO),
    "how busy disks are is not watched": watches_nothing(QuietDisk),
    "annotations are not signed": signs_nothing(DiskIO),
    "who cares is not signed": signs_nothing(QuietDisk),
    "rechecking finds room": rechecks_kindly,
    "rescoring is off by one": rescores_by_one_more,
}


@pytest.mark.parametrize("mutate", MUTATIONS.values(), ids=MUTATIONS)
def test_it_is_seen(mutate: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)

    with pytest.raises(Differs):
        run_many()


def run_many() -> None:
    # Some in which pods that care follow like ones that do not come first.
    for seed in (134, 135, 137, 139, *range(40)):
        run(seed, BUILT_IN, DISKS, recounts=False, limits_plugins=False)
