"""What a scheduler at work says of a pod when it is asked."""

from __future__ import annotations

from typing import Any

import aiohttp
import msgspec
import pytest

from mooring.engine.explain import Explanation, QueueView, explain, view_queue
from mooring.framework.plugin import Permit, Wait
from mooring.framework.status import Rejected
from mooring.objects.pod import Pod
from mooring.web import StatusPage
from tests.builders import node, pod
from tests.engine.driver import Driver, driver
from tests.engine.driver import engine as engine_with
from tests.web.serving import serving


async def asked(driven: Driver, path: str, **query: str) -> tuple[int, Any]:
    page = StatusPage(driven.engine, clock=lambda: driven.now)
    async with (
        serving(driven.engine, page=page) as address,
        aiohttp.ClientSession() as session,
        session.get(f"{address}api/explain/{path}", params=query) as answer,
    ):
        return answer.status, msgspec.json.decode(await answer.read())


async def test_it_is_what_explain_says_and_what_the_queue_knows() -> None:
    driven = driver(node("n", cpu=4), pod("big", cpu=9))
    driven.settle()
    status, told = await asked(driven, "default/big")

    own = explain(driven.engine, driven.pods["default/big"])
    told_again = msgspec.convert(told, Explanation)
    assert status == 200
    assert msgspec.structs.replace(told_again, queue=None) == own
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
    monkeypatch.setattr("mooring.web.turns.MOST_WAITING", 0)
    driven = driver(node("n", cpu=4), pod("small", cpu=1))
    async with serving(driven.engine) as address, aiohttp.ClientSession() as session:
        for path in ("api/explain/default/small", "api/pods/default/small"):
            async with session.get(address + path) as answer:
                assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
