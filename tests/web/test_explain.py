"""The explanations that a running scheduler gives on request."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.cluster import check
from moorage.engine.explain import Explanation, QueueView, explain, view_queue
from moorage.framework.plugin import Permit, Wait
from moorage.framework.status import Rejected
from moorage.objects.pod import Pod
from moorage.testing.driver import bindings
from moorage.web import StatusPage
from moorage.web.details import explain_group
from tests.builders import node, pod
from tests.engine.driver import Driver, driver, engine as engine_with
from tests.engine.gangs import drive_gangs, gang, members
from tests.patience import open_session
from tests.web.serving import serving


async def asked(driven: Driver, path: str, root: str = "explain", **query: str) -> tuple[int, Any]:
    page = StatusPage(driven.engine, clock=lambda: driven.now)
    async with (
        serving(driven.engine, page=page) as address,
        open_session() as session,
        session.get(f"{address}api/{root}/{path}", params=query) as answer,
    ):
        return answer.status, msgspec.json.decode(await answer.read())


async def test_it_is_what_explain_says_and_what_the_queue_knows() -> None:
    driven = driver(node("n", cpu=4), pod("big", cpu=9))
    driven.settle()
    status, told = await asked(driven, "default/big")

    own = explain(driven.engine.decider, driven.pods["default/big"])
    told_again = msgspec.convert(told, Explanation)
    assert status == 200
    without_queue = msgspec.structs.replace(told_again, queue=None)
    assert msgspec.to_builtins(without_queue) == msgspec.to_builtins(own)
    assert told_again.queue == QueueView(
        place="unschedulable", attempts=1, message=own.message, rejected_by=("NodeResourcesFit",)
    )


async def test_about_a_node() -> None:
    driven = driver(node("n", cpu=4), pod("small", cpu=1))
    driven.settle()
    _, told = await asked(driven, "default/small", node="n")

    assert told["node"]["feasible"]
    assert (told["runningOn"], told["queue"]) == ("n", None)


@pytest.mark.parametrize(
    ("path", "node", "message"),
    [
        ("default/none", "", "pod default/none: this scheduler knows no such pod"),
        ("other/small", "", "pod other/small: this scheduler knows no such pod"),
        ("default/small", "x", "node x: there is no such node"),
    ],
)
async def test_what_there_is_not_is_named(path: str, node: str, message: str) -> None:
    driven = driver(pod("small", cpu=1))
    status, told = await asked(driven, path, node=node)

    assert (status, told["reason"], told["message"]) == (404, "NotFound", message)


def test_a_pod_that_backs_off_says_for_how_long() -> None:
    driven = driver(node("n", cpu=4), pod("big", cpu=9))
    driven.settle()
    # More room, though not enough of it: the pod is worth another try, after its backoff.
    driven.apply(node("n", cpu=12, gpu=1))
    driven.apply(node("m", cpu=12))
    view = view_queue(driven.engine, driven.pods["default/big"], driven.now + 0.25)

    assert view is not None
    assert view.place == "backoff"
    assert view.backoff_seconds == 1.75


def test_a_nominated_pod_says_where() -> None:
    low, high = pod("low", cpu=4, node="n"), pod("high", cpu=4, spec={"priority": 9})
    driven = driver(node("n", cpu=4), low, high)
    driven.step()
    view = view_queue(driven.engine, driven.pods["default/high"], driven.now)

    assert view is not None
    assert view.nominated_node == "n"


class Slow(Permit):
    name = "Slow"

    def permit(self, pod: Pod, node_name: str) -> Rejected | Wait | None:
        return Wait(30.0)


def test_a_pod_that_waits_for_a_permit_says_whose_and_for_how_long() -> None:
    driven = Driver(engine_with(Slow))
    driven.apply(node("n", cpu=4), pod("held", cpu=1))
    driven.step()
    held = driven.pods["default/held"]
    view = view_queue(driven.engine, held, driven.now + 10)

    assert view is not None
    assert (view.place, view.assumed_on, view.attempts) == ("in flight", "n", 1)
    assert [(each.plugin, each.seconds) for each in view.permits] == [("Slow", 20.0)]


async def test_when_too_many_ask_they_are_told_to_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("moorage.web.engine_reads.MOST_WAITING", 0)
    driven = driver(node("n", cpu=4), pod("small", cpu=1))
    async with (
        serving(driven.engine) as address,
        open_session() as session,
    ):
        for path in ("api/explain/default/small", "api/pods/default/small"):
            async with session.get(address + path) as answer:
                assert (answer.status, answer.headers["Retry-After"]) == (429, "1")


async def test_a_gang_is_explained_and_nothing_is_changed() -> None:
    racks = [node(f"n{number}", cpu=4, labels={"rack": f"r{number % 2}"}) for number in range(4)]
    driven = drive_gangs(*racks, gang("g", 12, topology_key="rack"), *members("g", 12, cpu=1))
    driven.settle()
    before = driven.engine.cluster.changes.generation, driven.engine.decider.start
    status, told = await asked(driven, "default/g", root="podgroups")

    assert status == 200
    assert (told["state"], told["waiting"], told["minCount"]) == ("pending", 12, 12)
    assert "best is r0 with room for 8, 4 short. It fits over 2 of them" in told["arithmetic"]
    assert [each["room"] for each in told["room"]["domains"]] == [8, 8]
    assert not driven.engine.cluster.pods
    assert driven.engine.decider.start == before[1]
    check(driven.engine.cluster)


async def test_an_explained_gang_leaves_no_turn_behind() -> None:
    """Ties go on where they were: what is only told has no say in later decisions."""
    found = []
    for is_asked in (False, True):
        driven = drive_gangs(node("n0", cpu=50), node("n1", cpu=50), gang("g", 20))
        driven.apply(*members("g", 20))
        for _ in range(3 * is_asked):
            explain_group(driven.engine, "default", "g")
        found.append(sorted(bindings(driven.step()).items()))

    assert found[0] == found[1]


async def test_a_gang_that_is_not_there_is_named() -> None:
    status, told = await asked(drive_gangs(), "default/none", root="podgroups")

    assert status == 404
    assert told["message"] == "podgroup default/none: this scheduler knows no such group"
