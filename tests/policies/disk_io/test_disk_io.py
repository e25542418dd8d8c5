"""DiskIO and QuietDisk: what they reject, prefer, refuse and wait for."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster import Cluster, HandleRegistry
from moorage.config import ConfigError, load_mapping
from moorage.documents.errors import DecodeError
from moorage.engine import Engine
from moorage.framework.profile import known_plugins
from moorage.framework.status import Rejected
from moorage.framework.wakeups import Action, Resource
from moorage.objects.custom import CustomObject
from moorage.objects.pod import Pod
from moorage_policies.disk_io.disk_io import DiskIO, DiskIOArgs
from moorage_policies.disk_io.disk_io_resource import (
    BLOCK_SIZES,
    DISK_IO,
    KIND,
    BlockSize,
    DiskIOHandle,
    DiskIOResource,
    estimate,
)
from moorage_policies.disk_io.quiet_disk import QUIET, QuietDisk
from tests import builders
from tests.builders import node, pod
from tests.extended_fakes import custom
from tests.plugins.asking import rejections, scores, wakes
from tests.registered import REGISTRY

ANNOTATION = "diskio.moorage.dev/"


def asking(name: str = "pod", **given: Any) -> Pod:
    """A pod; read, write and block_size are its annotations."""
    held = {
        ANNOTATION + key.replace("_", "-"): str(given.pop(key))
        for key in ("read", "write", "block_size", "quiet")
        if key in given
    }
    return pod(name, metadata={"annotations": held}, **given)


def disk(name: str, read: Any = 100, write: Any = 100, **fields: Any) -> CustomObject:
    spec = {"nodeName": name, "capacity": {"read": read, "write": write}}
    return custom(KIND, name, **{"spec": spec, **fields})


def cluster(*items: Any) -> tuple[DiskIO, Cluster]:
    handles = HandleRegistry()
    plugin = DiskIO(DiskIOArgs(), handles)
    made = Cluster(handles)
    made.extended.run()
    builders.made.append(made)
    for item in items:
        if isinstance(item, Pod):
            made.put_pod(item)
        elif isinstance(item, CustomObject):
            made.extended.custom.put(item)
        else:
            made.put_node(item)
    return plugin, made


READ, WRITE = "Insufficient disk read bandwidth", "Insufficient disk write bandwidth"


@pytest.mark.parametrize(
    ("asks", "rejected"),
    [
        pytest.param(asking(), None, id="a pod that says nothing"),
        pytest.param(asking(read=0), None, id="a pod that asks for nothing"),
        pytest.param(asking(quiet="true"), None, id="another annotation"),
        pytest.param(
            asking(read=10),
            {"unknown": ("node(s) without disk IO status",)},
            id="a node of which nothing is told",
        ),
        pytest.param(
            asking(read=41),
            {"unknown": ("node(s) without disk IO status",), "busy": (READ,)},
            id="what pods use is counted",
        ),
        pytest.param(
            asking(read=101, write=101),
            {
                "unknown": ("node(s) without disk IO status",),
                "busy": (READ, WRITE),
                "idle": (READ, WRITE),
            },
            id="both directions",
        ),
        pytest.param(
            asking(write=30, block_size="4Ki"),
            {
                "unknown": ("node(s) without disk IO status",),
                "busy": (WRITE,),
                "idle": (WRITE,),
            },
            id="small blocks cost more",
        ),
    ],
)
def test_filter(asks: Pod, rejected: dict[str, tuple[str, ...]] | None) -> None:
    plugin, made = cluster(node("idle"), node("busy"), node("unknown"), disk("idle"), disk("busy"))
    made.put_pod(asking("runs", read="60", node="busy"))

    assert rejections(plugin, asks, made) == rejected


def test_evicting_helps_where_there_would_be_room() -> None:
    plugin, made = cluster(node("busy"), disk("busy"), asking("runs", read=60, node="busy"))
    for amount, final in ((50, False), (101, True)):
        prepared = plugin.pre_filter(asking(read=amount), made.nodes)
        assert prepared is not None
        assert not isinstance(prepared, Rejected)
        verdict = plugin.filter(prepared, made.nodes, made.nodes.everything)
        assert verdict.unresolvable.tolist() == [final]


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        (asking(read="much"), 'annotation diskio.moorage.dev/read: must be a quantity, got "much"'),
        (asking(write="-1"), 'annotation diskio.moorage.dev/write: must not be negative, got "-1"'),
        (asking(read=1, block_size=""), "annotation diskio.moorage.dev/block-size: must be a quan"),
    ],
)
def test_a_pod_that_cannot_be_read(asks: Pod, told: str) -> None:
    plugin, made = cluster(node("a"), disk("a"))
    answer = plugin.pre_filter(asks, made.nodes)

    assert isinstance(answer, Rejected)
    assert answer.message.startswith(told)
    made.put_pod(asks.on("a"))
    (report,) = made.extended.reports.take()
    assert report.startswith(
        f"extended resource {DISK_IO}: pod default/pod: add_pod: DecodeError: "
    )


def test_nobody_registered_the_resource() -> None:
    made = builders.cluster(node("a"))

    assert rejections(DiskIO(), asking(read=1), made) == {"a": ("node(s) without disk IO status",)}
    assert scores(DiskIO(), asking(read=1), made) == {"a": 0}
    assert scores(QuietDisk(), asking(quiet="true"), made) is None


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("LeastAllocated", {"idle": 80, "busy": 20, "large": 90}),
        ("MostAllocated", {"idle": 20, "busy": 80, "large": 10}),
    ],
)
def test_score(strategy: Any, expected: dict[str, int]) -> None:
    _, made = cluster(node("idle"), node("busy"), node("large"))
    plugin = DiskIO(DiskIOArgs(scoring_strategy=strategy))
    for item in (disk("idle"), disk("busy"), disk("large", 200, 200)):
        made.extended.custom.put(item)
    made.put_pod(asking("runs", read=60, node="busy"))

    assert scores(plugin, asking(read=20), made) == expected
    assert scores(plugin, asking(), made) is None


def test_both_directions_count_alike() -> None:
    plugin, made = cluster(node("a"), disk("a", 100, 200))

    assert scores(plugin, asking(read=50, write=20), made) == {"a": (50 + 90) // 2}


def test_quiet_disks() -> None:
    _, made = cluster(
        node("idle"), node("busy"), node("unknown"), disk("idle"), disk("busy"),
        asking("runs", read=60, write=70, node="busy"),
    )  # fmt: skip

    found = scores(QuietDisk(), asking(quiet="true"), made)
    assert found == {"idle": 100, "busy": 30, "unknown": 0}
    assert scores(QuietDisk(), asking(quiet="yes"), made) is None


# Objects


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, (100, 100), id="as specified"),
        pytest.param({"allocatable": {"read": "90"}}, (90, 100), id="one direction measured"),
        pytest.param({"allocatable": {"read": 1.5, "write": "2k"}}, (2, 2000), id="both measured"),
        pytest.param({"allocatable": None}, (100, 100), id="nothing measured"),
        pytest.param({"allocatable": {"read": "9e30"}}, (2**50, 100), id="beyond all range"),
    ],
)
def test_what_is_measured_goes_first(status: Any, expected: tuple[int, int]) -> None:
    name, resource = DiskIOHandle().read(disk("a", status=status))

    assert name == "a"
    assert (resource.read_capacity, resource.write_capacity) == expected


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"spec": {}}, "spec.nodeName: is required"),
        ({"spec": {"nodeName": 3}}, "spec.nodeName: must be a string, got 3"),
        ({"spec": []}, "spec: must be a mapping"),
        ({"spec": {"nodeName": "a"}}, "spec.capacity.read: is required"),
        ({"spec": {"nodeName": "a", "capacity": 7}}, "spec.capacity: must be a mapping"),
        (
            {"spec": {"nodeName": "a", "capacity": {"read": "x"}}},
            'spec.capacity.read: must be a quantity, got "x"',
        ),
        (
            {"spec": {"nodeName": "a", "capacity": {"read": 1, "write": True}}},
            "spec.capacity.write: must be a quantity, got true",
        ),
        (
            {"spec": {"nodeName": "a"}, "status": {"allocatable": {"read": "-5"}}},
            'status.allocatable.read: must not be negative, got "-5"',
        ),
    ],
)
def test_a_malformed_object(fields: Any, told: str) -> None:
    plugin, made = cluster(node("a"), disk("a", 70))
    made.extended.custom.put(custom(KIND, "a", **fields))

    assert made.extended.reports.take() == [f"NodeDiskIOStatus a: {told}"]
    assert rejections(plugin, asking(read=70), made) == {}
    with pytest.raises(DecodeError):
        DiskIOHandle().read(custom(KIND, "a", **fields))


def test_admission_is_by_the_direction_with_less_to_spare() -> None:
    resource = DiskIOResource(BLOCK_SIZES, 100, 100)
    resource.add_pod(asking(read=10, write=60))

    assert resource.admit_pod(asking(read=50)) == (50, 90)
    assert resource.admit_pod(asking(read=50, write=50)) == (50, 40)
    copied = resource.copy()
    copied.remove_pod(asking(write=60))
    assert (copied.write_used, resource.write_used) == (0, 60)


@pytest.mark.parametrize(
    ("block", "expected"),
    [("1", 40), ("4Ki", 40), ("4097", 15), ("64Ki", 15), ("65537", 10), ("1Mi", 10)],
)
def test_estimates(block: str, expected: int) -> None:
    assert estimate(asking(read=10, block_size=block), BLOCK_SIZES).read == expected


# Waking

FULL = asking("waits", read=50)


@pytest.mark.parametrize(
    ("action", "old", "new", "expected"),
    [
        pytest.param(Action.ADD, None, disk("a"), True, id="a status that is enough"),
        pytest.param(Action.ADD, None, disk("a", 49), False, id="one that is not"),
        pytest.param(Action.UPDATE, disk("a", 60), disk("a", 70), True, id="capacity rises"),
        pytest.param(
            Action.UPDATE, disk("a", 70), disk("a", 60), True, id="it may be another node"
        ),
        pytest.param(Action.UPDATE, disk("a"), disk("a"), False, id="nothing changes"),
        pytest.param(
            Action.UPDATE,
            disk("a", status={"allocatable": {"read": 90}}),
            disk("a", status={"allocatable": {"read": 80}}),
            False,
            id="less is measured",
        ),
        pytest.param(Action.UPDATE, disk("a"), disk("a", "x"), False, id="malformed"),
        pytest.param(Action.DELETE, disk("a"), None, True, id="gone: another may count now"),
    ],
)
def test_after_a_status(action: Action, old: Any, new: Any, expected: bool) -> None:
    assert wakes(DiskIO(), KIND.resource, action, pod=FULL, old=old, new=new) is expected


@pytest.mark.parametrize(
    ("action", "old", "new", "expected"),
    [
        pytest.param(Action.DELETE, asking("p", read=9, node="a"), None, True, id="a user is gone"),
        pytest.param(Action.DELETE, pod("p", node="a"), None, False, id="another is gone"),
        pytest.param(
            Action.UPDATE,
            asking("p", read=9, node="a"),
            asking("p", read=8, node="a"),
            True,
            id="a user is annotated anew",
        ),
        pytest.param(
            Action.UPDATE, asking("p", node="a"), asking("p", node="a"), False, id="nothing changes"
        ),
        pytest.param(
            Action.UPDATE, FULL, asking("waits", read=5), True, id="the pod itself asks for less"
        ),
    ],
)
def test_after_a_pod(action: Action, old: Any, new: Any, expected: bool) -> None:
    assert wakes(DiskIO(), Resource.POD, action, pod=FULL, old=old, new=new) is expected


def test_after_a_node_of_which_something_is_told() -> None:
    plugin, _ = cluster(disk("a"))

    for name, expected in (("a", True), ("b", False)):
        assert wakes(plugin, Resource.NODE, Action.ADD, pod=FULL, new=node(name)) is expected


# Configuration


def engine(*profiles: dict[str, Any]) -> Engine:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": list(profiles),
    }
    return Engine(load_mapping(raw, known=known_plugins(REGISTRY)), REGISTRY)


def profile(name: str, *plugins: str, **args: Any) -> dict[str, Any]:
    return {
        "schedulerName": name,
        "plugins": {"multiPoint": {"enabled": [{"name": each} for each in plugins]}},
        "pluginConfig": [{"name": "DiskIO", "args": args}] if args else [],
    }


SIZES = [{"upToBytes": 512, "percent": 900}]


def test_the_resource_is_shared_by_all_profiles() -> None:
    made = engine(
        profile("one", "DiskIO", blockSizes=SIZES), profile("two", "DiskIO", blockSizes=SIZES)
    )
    (handle,) = dict(made.handles).values()

    assert isinstance(handle, DiskIOHandle)
    assert handle.block_sizes == (BlockSize(up_to_bytes=512, percent=900),)
    assert made.handles.kinds == (KIND,)


def test_profiles_must_agree_about_what_is_counted_once() -> None:
    with pytest.raises(ConfigError, match="blockSizes: must be the same in all profiles"):
        engine(profile("one", "DiskIO"), profile("two", "DiskIO", blockSizes=SIZES))


def test_a_reader_without_an_owner_is_told() -> None:
    (report,) = engine(profile("one", "QuietDisk")).step(0.0)

    told = f"no plugin registers extended resource {DISK_IO}, read by QuietDisk"
    assert getattr(report, "message", "") == told
    assert engine(profile("one", "QuietDisk", "DiskIO")).step(0.0) == []


def test_off_by_default() -> None:
    assert dict(engine({"schedulerName": "one"}).handles) == {}


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (
            {"blockSizes": [{"upToBytes": 0, "percent": 1}]},
            "blockSizes[0].upToBytes: must be greater",
        ),
        ({"blockSizes": [*SIZES, *SIZES]}, "blockSizes[1].upToBytes: must be greater than 512"),
        ({"blockSizes": [{"upToBytes": 1, "percent": 0}]}, "blockSizes[0].percent: must be 1 or"),
        ({"scoringStrategy": "Most"}, "scoringStrategy"),
    ],
)
def test_arguments_that_are_refused(args: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        engine(profile("one", "DiskIO", **args))
    assert told in str(refused.value)


def test_the_annotation_of_quiet_pods() -> None:
    assert QUIET == ANNOTATION + "quiet"
