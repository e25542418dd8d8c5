"""Extended resources in the cluster: in whatever order things come, and whatever they raise."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest

from moorage.cluster import (
    Admission,
    Change,
    Cluster,
    ExtendedCache,
    ExtendedResource,
    Handle,
    HandleRegistry,
    Informer,
    WhatIf,
    check,
)
from moorage.cluster.extended.contract import POOL, kind_of_change
from moorage.cluster.extended.resources import extended_figures, extended_lines
from moorage.objects.custom import CustomKind
from moorage.objects.pod import Pod
from tests.builders import node, pod
from tests.extended_fakes import (
    KIND,
    SLOTS,
    ColumnsHandle,
    Slots,
    SlotsHandle,
    cluster,
    custom,
    sharing,
    status,
    used,
    using,
)

STEPS = {
    "node": lambda made: made.put_node(node("a")),
    "status": lambda made: made.extended.custom.put(status("a", 5)),
    "pod": lambda made: made.put_pod(using("p", 2, "a")),
    "other pod": lambda made: made.put_pod(using("q", 1, "a")),
}


@pytest.mark.parametrize("handle", [SlotsHandle, ColumnsHandle])
@pytest.mark.parametrize("order", list(permutations(STEPS)), ids=" ".join)
def test_the_order_does_not_matter(order: tuple[str, ...], handle: type[Handle[Any]]) -> None:
    made = cluster(handle)
    for step in order:
        STEPS[step](made)

    assert used(made, "a") == 3
    assert made.nodes.view(0).extended(SLOTS) is made.extended.get(SLOTS, "a")


def test_a_resource_waits_for_its_node() -> None:
    made = cluster(ColumnsHandle)
    made.extended.custom.put(status("a", 5))
    assert used(made, "a") == 0
    made.put_node(node("b"))
    columns = made.nodes.extended.columns(SLOTS)
    assert columns is not None
    assert not columns.present.any()

    made.put_node(node("a"))
    assert columns.present.tolist()[:2] == [False, True]
    made.put_pod(using("p", 2, "a"))
    made.remove_node("a")
    assert used(made, "a") == 0
    assert not columns.present.any()
    made.put_node(node("a"))
    assert used(made, "a") == 2


def test_a_resource_goes_with_its_object() -> None:
    made = cluster(ColumnsHandle)
    made.put_node(node("a"))
    made.put_pod(using("p", 2, "a"))
    made.extended.custom.put(status("a", 5))
    before = made.changes.generation
    made.extended.custom.remove(status("a", 5))

    assert used(made, "a") is None
    assert made.nodes.extended.resource(SLOTS, 0) is None
    columns = made.nodes.extended.columns(SLOTS)
    assert columns is not None
    assert (columns.at(0), columns["used"][0]) == (None, 0)
    assert made.changes.since(before) == {0: kind_of_change(0)}
    made.remove_pod("default/p")
    made.extended.custom.put(status("a", 5))
    assert used(made, "a") == 0


def test_capacity_changes_and_pods_stay_counted() -> None:
    made = cluster()
    made.put_node(node("a"))
    made.put_pod(using("p", 2, "a"))
    for count in (5, 1, 9):
        made.extended.custom.put(status("a", count))
        assert extended_figures(made.extended) == {SLOTS: {"a": {"capacity": count, "used": 2}}}


def test_an_object_may_move_to_another_node() -> None:
    made = cluster()
    made.put_node(node("a"))
    made.put_node(node("b"))
    made.extended.custom.put(status("x", 5, node="a"))
    made.extended.custom.put(status("x", 5, node="b"))

    assert (used(made, "a"), used(made, "b")) == (None, 0)


@pytest.mark.parametrize("order", list(permutations("xyz")))
def test_of_several_objects_for_a_node_the_first_by_name_counts(order: tuple[str, ...]) -> None:
    made = cluster()
    made.put_node(node("a"))
    for name in order:
        made.extended.custom.put(status(name, ord(name), node="a"))
    assert extended_figures(made.extended)[SLOTS]["a"]["capacity"] == ord("x")
    told = made.extended.reports.take()
    assert len(told) == 2
    assert all("more than one NodeSlots describes node a" in text for text in told)

    made.extended.custom.remove(status("x", 0, node="a"))
    assert extended_figures(made.extended)[SLOTS]["a"]["capacity"] == ord("y")


# Transactions


def test_it_changes_with_everything_else() -> None:
    made = cluster()
    made.put_node(node("a"))
    made.put_node(node("b"))
    for name in "ab":
        made.extended.custom.put(status(name, 5))
    waiting = using("p", 2, cpu=1)

    made.assume(waiting, "a")
    assert used(made, "a") == 2
    made.put_pod(waiting.on("a"))
    assert used(made, "a") == 2
    made.put_pod(waiting.on("b"))
    assert (used(made, "a"), used(made, "b")) == (0, 2)
    made.remove_pod(waiting.uid)
    made.assume(waiting, "a")
    made.forget(waiting.uid)
    assert (used(made, "a"), used(made, "b")) == (0, 0)


@pytest.mark.parametrize(
    ("handle", "annotation", "kinds"),
    [
        pytest.param(SlotsHandle, "slots", 1, id="it may read anything"),
        pytest.param(SlotsHandle, "other", 1, id="whatever the annotation"),
        pytest.param(ColumnsHandle, "slots", 1, id="it reads this annotation"),
        pytest.param(ColumnsHandle, "other", 0, id="it does not read that annotation"),
    ],
)
def test_a_pod_is_annotated_anew(handle: type[Handle[Any]], annotation: str, kinds: int) -> None:
    made = cluster(handle)
    made.put_node(node("a"))
    made.extended.custom.put(status("a", 5))
    made.put_pod(pod("p", node="a", metadata={"annotations": {"slots": "1"}}))
    made.changes.limit_to(Change.NONE)
    before = made.changes.generation
    annotations = {"slots": "1", annotation: "3"}
    made.put_pod(pod("p", node="a", metadata={"annotations": annotations}))

    assert used(made, "a") == int(annotations["slots"])
    assert made.changes.since(before) == ({0: kind_of_change(0)} if kinds else {})


def test_the_kinds_of_change() -> None:
    made = cluster(SlotsHandle, ColumnsHandle)
    made.put_node(node("a"))
    every, some = kind_of_change(0), kind_of_change(1)
    plain = Change.REQUESTED | Change.PODS
    at = made.changes.generation
    made.put_pod(using("p", 1, "a"))
    assert made.changes.since(at) == {0: plain | every | some}
    at = made.changes.generation
    made.put_pod(pod("q", node="a"))
    assert made.changes.since(at) == {0: plain | every}
    at = made.changes.generation
    made.extended.custom.put(status("a", 1))
    assert made.changes.since(at) == {0: every | some}


def test_kinds_of_change_are_shared_once_there_are_too_many_types() -> None:
    kinds = [int(kind_of_change(number)) for number in range(40)]

    assert kinds[0] == 1 << 34
    assert len(set(kinds)) == 28
    assert all(kind & Change.EXTENDED == kind for kind in kinds)


# Raising


@pytest.mark.parametrize("handle", [SlotsHandle, ColumnsHandle])
def test_a_pod_that_cannot_be_added_is_left_out_and_told_once(handle: type[Handle[Any]]) -> None:
    made = cluster(handle)
    made.put_node(node("a"))
    made.extended.custom.put(status("a", 5))
    made.put_pod(using("p", 2, "a"))
    bad = using("bad", 1, "a", fails="add", cpu=1)
    made.put_pod(bad)

    assert used(made, "a") == 2
    assert made.nodes.requested[0, 0] == 1000
    told = "extended resource example.com/slots: pod default/bad: add_pod: RuntimeError: cannot add"
    (text,) = made.extended.reports.take()
    assert re.fullmatch(rf"{told} \(extended_fakes.py:\d+\)", text)
    made.extended.custom.put(status("a", 6))
    made.put_node(node("a", labels={"x": "y"}))
    assert made.extended.reports.take() == []
    made.remove_pod(bad.uid)
    assert used(made, "a") == 2
    made.put_pod(bad)
    assert made.extended.reports.take() == [text]


def test_a_pod_that_cannot_be_removed_is_gone_all_the_same() -> None:
    made = cluster()
    made.put_node(node("a"))
    made.extended.custom.put(status("a", 5))
    made.put_pod(using("p", 2, "a"))
    made.put_pod(using("bad", 1, "a", fails="remove"))
    assert used(made, "a") == 3
    made.remove_pod("default/bad")

    assert used(made, "a") == 2
    (told,) = made.extended.reports.take()
    assert "pod default/bad: remove_pod: RuntimeError: cannot remove (" in told


class Tired(Slots):
    """Counts a pod once, and no second time."""

    seen: frozenset[str] = frozenset()

    def add_pod(self, pod: Pod) -> None:
        if pod.name in Tired.seen:
            raise RuntimeError("not again")
        Tired.seen |= {pod.name}
        super().add_pod(pod)


def test_who_fails_while_all_are_counted_anew_is_left_out_too() -> None:
    Tired.seen = frozenset()
    made = cluster()
    made.put_node(node("a"))
    made.extended.set(SLOTS, "a", Tired(5))
    made.put_pod(using("p", 2, "a"))
    made.put_pod(using("bad", 1, "a", fails="add"))

    assert used(made, "a") == 0
    assert [text.split(": ")[1] for text in made.extended.reports.take()] == [
        "pod default/bad",
        "pod default/p",
    ]
    made.extended.remove(SLOTS, "a")


class Lacking(SlotsHandle):
    columns = ("capacity", "used", "colour")


def test_a_resource_without_the_figures_of_its_columns_is_refused() -> None:
    made = cluster(Lacking)
    made.put_node(node("a"))
    made.extended.custom.put(status("a", 5))

    assert made.extended.reports.take() == [
        "NodeSlots a: figures() of example.com/slots lacks colour"
    ]
    assert used(made, "a") is None


# Malformed objects


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        pytest.param(status("a", 5, node=""), "spec.nodeName: is required", id="no node"),
        pytest.param(status("a", "x"), "lacks capacity", id="what is no figure"),
        pytest.param(
            custom(KIND, "a", spec={"nodeName": "a"}), "KeyError: 'slots'", id="not foreseen"
        ),
    ],
)
def test_a_malformed_object_is_told_once_and_changes_nothing(bad: Any, told: str) -> None:
    made = cluster(ColumnsHandle)
    made.put_node(node("a"))
    made.extended.custom.put(status("a", 5))
    made.extended.custom.put(bad)

    (text,) = made.extended.reports.take()
    assert text.startswith("NodeSlots a: ")
    assert told in text
    assert extended_figures(made.extended) == {SLOTS: {"a": {"capacity": 5, "used": 0}}}
    made.extended.custom.put(bad)
    assert made.extended.reports.take() == []
    made.extended.custom.put(status("a", 6))
    made.extended.custom.put(bad)
    assert len(made.extended.reports.take()) == 1
    made.extended.custom.remove(bad)
    assert used(made, "a") is None


# The cache and the registry


def test_what_get_gave_may_be_changed_and_set_again() -> None:
    """The way of the proposal: get, change, set. Pods are not counted twice."""
    made = cluster(ColumnsHandle)
    cache = made.extended.cache(SLOTS)
    made.put_node(node("a"))
    made.put_pod(using("p", 2, "a"))
    cache.set("a", Slots(5))
    resource = cache.get("a")
    assert isinstance(resource, Slots)
    resource.capacity = 7
    cache.set("a", resource)

    assert extended_figures(made.extended) == {SLOTS: {"a": {"capacity": 7, "used": 2}}}


def test_a_resource_that_is_set_is_not_kept() -> None:
    made = cluster()
    made.put_node(node("a"))
    given = Slots(5)
    made.extended.set(SLOTS, "a", given)
    made.put_pod(using("p", 2, "a"))

    assert given.used == 0


def test_each_type_exists_once() -> None:
    registry = HandleRegistry()
    first = registry.register(SLOTS, SlotsHandle)

    assert registry.register(SLOTS, ColumnsHandle) is first
    assert dict(registry) == {SLOTS: first}
    assert registry.kinds == (SlotsHandle.kind,)
    registry.close()
    assert registry.register(SLOTS, ColumnsHandle) is first
    with pytest.raises(RuntimeError, match="other: registered too late"):
        registry.register("other", SlotsHandle)


def test_handles_must_agree_about_a_kind() -> None:
    class Elsewhere(SlotsHandle):
        kind = CustomKind("example.com", "v1", "NodeSlots", "otherslots")

    with pytest.raises(ValueError, match="two handles differ about it"):
        Cluster(sharing(SlotsHandle, Elsewhere))


def test_a_handle_without_a_custom_resource() -> None:
    class Fixed(Handle[Any]):
        def run(self, cache: ExtendedCache[Any], informer: Informer) -> None:
            super().run(cache, informer)
            cache.set("a", Slots(3))

    made = cluster(Fixed)
    made.put_node(node("a"))
    handle = next(iter(made.extended.tables())).handle

    assert handle.get("a") is handle.get(made.nodes.view(0)) is not None
    assert handle.get("b") is None


def test_a_handle_that_cannot_be_started() -> None:
    class Broken(Handle[Any]):
        def run(self, cache: ExtendedCache[Any], informer: Informer) -> None:
            raise LookupError("no agent")

    told = "extended resource example.com/slots: cannot be started: LookupError: no agent"
    with pytest.raises(RuntimeError, match=told):
        cluster(Broken)


def test_who_listens_late_hears_of_all_objects() -> None:
    made = cluster()
    made.extended.custom.put(status("a", 5))
    heard: list[str] = []
    informer = made.extended.custom.informer((KIND,))
    informer.listen(lambda item: heard.append(item.name), lambda item: heard.remove(item.name))

    assert heard == ["a"]
    made.extended.custom.remove(status("a", 5))
    assert heard == []


def test_admission() -> None:
    assert Admission(2, 2).fits
    assert not Admission(3, 2).fits
    assert Slots(5, 2).admit_pod(using("p", 4)) == (4, 3)


def test_the_lines_of_a_log() -> None:
    made = cluster()
    made.put_node(node("a"))
    made.put_pod(using("p", 2, "a"))
    for name in ("b", "a"):
        made.extended.custom.put(status(name, 5))

    assert list(extended_lines(made.extended)) == [
        "example.com/slots node=a capacity=5 used=2",
        "example.com/slots node=b capacity=5 used=0",
    ]


# What if


@pytest.mark.parametrize("handle", [SlotsHandle, ColumnsHandle])
def test_copies_never_touch_the_live_resource(handle: type[Handle[Any]]) -> None:
    made = cluster(handle)
    made.put_node(node("a"))
    made.put_node(node("b"))
    made.extended.custom.put(status("a", 5))
    running = using("p", 2, "a")
    made.put_pod(running)

    first = WhatIf(made.nodes)
    first.remove_pod(running, 0)
    second = WhatIf(first)
    second.add_pod(using("q", 4), 0)
    first.add_pod(using("r", 1), 0)
    first.add_pod(using("s", 1), 1)

    assert seen(made.nodes) == 2
    assert seen(first) == 1
    assert seen(second) == 4
    assert first.extended.resource(SLOTS, 1) is None


def seen(nodes: Any) -> int:
    resource = nodes.view(0).extended(SLOTS)
    assert isinstance(resource, ExtendedResource)
    columns = nodes.extended.columns(SLOTS)
    if columns.names:
        assert columns.at(0) == list(resource.figures().values())
    return resource.figures()["used"]


def test_raising_in_a_copy_is_not_told() -> None:
    made = cluster(ColumnsHandle)
    made.put_node(node("a"))
    made.extended.custom.put(status("a", 5))
    running = using("p", 2, "a", fails="remove")
    made.put_pod(running)
    what_if = WhatIf(made.nodes)
    what_if.add_pod(using("q", 1, fails="add"), 0)
    assert seen(what_if) == 2
    what_if.remove_pod(running, 0)

    assert (seen(what_if), seen(made.nodes)) == (0, 2)
    assert made.extended.reports.take() == []


class Unique(Slots):
    """Cannot be copied once it has counted a pod."""

    def copy(self) -> Unique:
        if self.used:
            raise RuntimeError("no")
        return Unique(self.capacity)


def test_what_cannot_be_copied_is_not_there_in_a_what_if() -> None:
    made = cluster(ColumnsHandle)
    made.put_node(node("a"))
    made.extended.set(SLOTS, "a", Unique(5))
    made.put_pod(using("p", 2, "a"))
    what_if = WhatIf(made.nodes)
    what_if.add_pod(using("q", 1), 0)

    assert what_if.extended.resource(SLOTS, 0) is None
    columns = what_if.extended.columns(SLOTS)
    assert columns is not None
    assert columns.at(0) is None
    assert seen(made.nodes) == 2


# Handles that answer wrongly


def nonsense(*given: object) -> object:
    return object()


def quit_now(*given: object) -> object:
    raise SystemExit(3)


@pytest.mark.parametrize("wrong", [nonsense, quit_now], ids=["nonsense", "exits"])
@pytest.mark.parametrize("method", ["counts", "counts_alike"])
def test_a_handle_that_answers_wrongly_is_reported_and_its_pods_are_counted(
    method: str, wrong: Callable[..., object]
) -> None:
    handle: type[Handle[Any]] = type("Wrong", (SlotsHandle,), {method: wrong})
    of = cluster(handle)
    of.put_node(node("n"))
    of.extended.custom.put(status("n", 8))
    of.put_pod(using("a", 2, on="n"))
    of.put_pod(using("a", 3, on="n"))

    assert used(of, "n") == 3
    (told,) = of.extended.reports.take()
    assert told.startswith(f"extended resource {SLOTS}: {method}: ")


@pytest.mark.parametrize("wrong", [nonsense, quit_now], ids=["nonsense", "exits"])
@pytest.mark.parametrize("method", ["read", "add_pod", "copy", "figures"])
def test_a_resource_that_answers_wrongly_ends_nothing(
    method: str, wrong: Callable[..., object]
) -> None:
    def answer(*given: object) -> object:
        return wrong() if is_wrong else getattr(Slots, method)(*given)

    is_wrong = False
    kind = Slots if method == "read" else type("Wrong", (Slots,), {method: answer})
    read = wrong if method == "read" else lambda self, item: ("n", kind(8))
    # Not checked at the end: what lies about itself cannot be counted anew.
    of = Cluster(sharing(type("WrongHandle", (ColumnsHandle,), {"read": read})))
    of.extended.run()
    of.put_node(node("n"))
    of.extended.custom.put(status("n", 8))
    is_wrong = True
    of.put_pod(using("a", 2, on="n"))
    what_if = of.nodes.extended.layer()
    what_if.add_pod(using("b", 2), 0)
    of.extended.custom.put(status("n", 9))
    of.remove_pod("default/a")
    is_wrong = False

    assert all("n" in told or SLOTS in told for told in of.extended.reports.take())


# Pools


def test_a_pod_counts_once_in_a_pool_however_often_its_node_is_set() -> None:
    made = cluster(ColumnsHandle)
    made.put_node(node("a"))
    made.extended.set(SLOTS, POOL, Slots(9))
    made.put_pod(using("p", 2, "a"))
    for count in (5, 1, 9):
        made.extended.custom.put(status("a", count))
        assert (used(made, "a"), used(made, POOL)) == (2, 2)
    check(made)

    made.remove_pod("default/p")
    assert (used(made, "a"), used(made, POOL)) == (0, 0)
