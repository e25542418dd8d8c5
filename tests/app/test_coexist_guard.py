"""The guard: what is on a node, and what is on its way there."""

from __future__ import annotations

from typing import Any

from moorage.app.coexist_admission import CoexistGuard
from moorage.objects.coexist import ANNOTATION, DAEMONSET_AND_STATIC_PODS
from moorage.objects.pod import Pod
from tests.builders import pod
from tests.coexisting import namespace, placed

EXCLUSIVE: dict[str, Any] = {"metadata": {"annotations": {ANNOTATION: DAEMONSET_AND_STATIC_PODS}}}


def guard(*pods: Pod, now: list[float] | None = None) -> CoexistGuard:
    clock = now or [0.0]
    made = CoexistGuard(clock=lambda: clock[0])
    for each in pods:
        made.applied(each, b"")
    return made


def test_an_exclusive_pod_is_kept_off_a_node_with_others_and_others_off_its_node() -> None:
    it = guard(pod("web", node="n1"), placed(pod("mpi", **EXCLUSIVE), "n2"))

    assert it.review(pod("mpi2", **EXCLUSIVE), "n1") is not None
    assert it.review(pod("web2"), "n2") is not None
    assert it.review(pod("web2"), "n1") is None
    assert it.review(pod("mpi2", **EXCLUSIVE), "n3") is None


def test_a_reservation_closes_the_node_to_others() -> None:
    it = guard()
    it.reserve(pod("mpi", **EXCLUSIVE), "n1")

    refused = it.review(pod("web"), "n1")
    assert refused is not None
    assert refused.message.endswith("default/mpi")
    # The same binding again, as when the answer to the first was lost, passes.
    assert it.review(pod("mpi", **EXCLUSIVE), "n1") is None


def test_a_review_alone_closes_nothing() -> None:
    it = guard()
    it.review(pod("mpi", **EXCLUSIVE), "n1")

    assert it.review(pod("web"), "n1") is None


def test_a_pod_has_one_reservation() -> None:
    it = guard()
    for node in ("n1", "n2", "n3"):
        it.reserve(pod("mpi", **EXCLUSIVE), node)

    assert [it.review(pod("web"), node) is None for node in ("n1", "n2", "n3")] == [
        True,
        True,
        False,
    ]


def test_a_binding_that_was_not_made_gives_its_place_back() -> None:
    now = [0.0]
    it = guard(now=now)
    it.reserve(pod("mpi", **EXCLUSIVE), "n1")
    now[0] = 31.0

    assert it.review(pod("web"), "n1") is None


def test_what_the_watch_tells_takes_the_place_of_a_reservation() -> None:
    it = guard()
    it.reserve(pod("mpi", **EXCLUSIVE), "n1")
    it.applied(placed(pod("mpi", **EXCLUSIVE), "n2"), b"")

    assert it.review(pod("web"), "n1") is None
    assert it.review(pod("web2"), "n2") is not None


def test_a_pod_that_ends_or_goes_gives_its_reservation_up() -> None:
    it = guard()
    it.reserve(pod("mpi", **EXCLUSIVE), "n1")
    it.reserve(pod("mpi2", **EXCLUSIVE), "n2")
    it.applied(pod("mpi", status={"phase": "Failed"}, **EXCLUSIVE), b"")
    it.removed(pod("mpi2", **EXCLUSIVE))

    assert it.review(pod("web"), "n1") is None
    assert it.review(pod("web"), "n2") is None


def test_pods_that_ended_or_are_gone_do_not_count() -> None:
    it = guard(placed(pod("mpi", **EXCLUSIVE), "n1"), placed(pod("mpi2", **EXCLUSIVE), "n2"))
    it.applied(pod("mpi", node="n1", status={"phase": "Succeeded"}, **EXCLUSIVE), b"")
    it.removed(placed(pod("mpi2", **EXCLUSIVE), "n2"))

    assert it.review(pod("web"), "n1") is None
    assert it.review(pod("web2"), "n2") is None
    assert it.find("default", "mpi2") is None


def test_with_the_gate_off_everything_passes() -> None:
    it = CoexistGuard(enabled=False)
    it.applied(placed(pod("mpi", **EXCLUSIVE), "n1"), b"")

    assert it.review(pod("web"), "n1") is None


def test_an_exclusive_pod_that_was_bound_around_the_scheduler_takes_no_node_away() -> None:
    it = guard(pod("mpi", node="n1", **EXCLUSIVE))

    assert it.review(pod("web"), "n1") is None
    it.applied(namespace(trusted=True), b"")
    assert it.review(pod("web"), "n1") is not None
    it.applied(namespace(trusted=False), b"")
    assert it.review(pod("web"), "n1") is None
    it.applied(namespace(trusted=True), b"")
    it.removed(namespace(trusted=True))
    assert it.review(pod("web"), "n1") is None
