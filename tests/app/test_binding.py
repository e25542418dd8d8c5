"""Binding: whatever becomes of the request, the engine is told the truth."""

from __future__ import annotations

from typing import Any, cast

import pytest

from moorage.app import binding, bodies
from moorage.app.binding import Binder
from moorage.client.api import Api
from moorage.client.api_errors import OutcomeUnknown, Unreachable
from moorage.engine.actions import BindPod, PodRef
from moorage.engine.events import BindingFailed, Bound

from .fake_api import FakeApi, Request, refusal

ACTION = BindPod(PodRef("team", "web", "u1"), "n1", "default-scheduler")
POD = "/api/v1/namespaces/team/pods/web"
BINDING = f"{POD}/binding"


def seen(node: str = "", uid: str = "u1") -> dict[str, Any]:
    return {"metadata": {"uid": uid}, "spec": {"nodeName": node} if node else {}}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "_FIRST_PAUSE", 0.0)


async def bind(api: FakeApi, *, leads: bool = True) -> Bound | BindingFailed:
    return await Binder(cast(Api, api), lambda: leads).bind(ACTION)


async def test_a_binding_names_the_pod_by_its_uid() -> None:
    api = FakeApi()

    assert await bind(api) == Bound("u1")
    assert api.requests == [
        Request(
            "post",
            BINDING,
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": "web", "namespace": "team", "uid": "u1"},
                "target": {"kind": "Node", "name": "n1"},
            },
        )
    ]


Case = tuple[list[Exception], list[Any], str | None, int]

CASES: dict[str, Case] = {
    "nothing was sent": ([Unreachable("refused")], [], "binding rejected: refused", 1),
    "forbidden": ([refusal(403, "Forbidden", "not you")], [], "binding rejected: not you", 1),
    "gone": ([refusal(404, "NotFound", "no pod")], [], "binding rejected: no pod", 1),
    "lost, but bound": ([OutcomeUnknown("cut")], [seen("n1")], None, 1),
    "lost, bound elsewhere": (
        [OutcomeUnknown("cut")],
        [seen("n2")],
        "binding rejected: the pod is on node 'n2' already",
        1,
    ),
    "lost, and another pod has the name": (
        [OutcomeUnknown("cut")],
        [seen("n1", uid="u2")],
        "binding rejected: cut",
        1,
    ),
    "lost, the pod is gone": (
        [OutcomeUnknown("cut")],
        [refusal(404, "NotFound")],
        "binding rejected: cut",
        1,
    ),
    "lost, not bound, bound the second time": ([OutcomeUnknown("cut")], [seen()], None, 2),
    "lost for ever": (
        [OutcomeUnknown("cut")] * 9,
        [seen()] * 9,
        "binding rejected: cut",
        3,
    ),
    "server error, but bound": ([refusal(500, "InternalError")], [seen("n1")], None, 1),
    "conflict with our own binding": ([refusal(409, "Conflict")], [seen("n1")], None, 1),
    "conflict with another's": (
        [refusal(409, "Conflict")],
        [seen("n2")],
        "binding rejected: the pod is on node 'n2' already",
        1,
    ),
    "the server cannot tell at first": (
        [OutcomeUnknown("cut")],
        [Unreachable("down"), refusal(503), OutcomeUnknown("cut"), seen("n1")],
        None,
        1,
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_what_the_engine_is_told(name: str) -> None:
    answers, reads, problem, posts = CASES[name]
    api = FakeApi()
    api.script("post", BINDING, *answers)
    api.script("get", POD, *reads)

    expected = Bound("u1") if problem is None else BindingFailed("u1", problem)
    assert await bind(api) == expected
    assert len(api.asked("post")) == posts


async def test_who_does_not_lead_sends_nothing() -> None:
    api = FakeApi()

    outcome = await bind(api, leads=False)

    assert outcome == BindingFailed("u1", "this scheduler does not lead any more")
    assert api.requests == []


def test_a_pod_nested_without_end_can_be_looked_at() -> None:
    deep = b'{"f:a":' * 9_000 + b"{}" + b"}" * 9_000
    text = b'{"metadata":{"managedFields":[%b],"uid":"u1"},"spec":{"nodeName":"n1"}}' % deep

    seen = bodies.read_pod_state(text)

    assert (seen.metadata.uid, seen.spec.node_name) == ("u1", "n1")
