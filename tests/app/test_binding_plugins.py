"""Pre-bind, bind and post-bind plugins, as a profile has them."""

from __future__ import annotations

import re
from asyncio import CancelledError
from typing import Any, ClassVar, cast

import pytest

from moorage.app.binding import NOT_LEADING, Binder, PluginPoints
from moorage.app.observations import Observations
from moorage.client.api import Api
from moorage.engine import Engine
from moorage.engine.actions import BindPod, PodRef
from moorage.engine.events import BindingFailed, Bound
from moorage.framework.plugin import Bind, Plugin, PostBind, PreBind
from moorage.framework.series import Histogram
from moorage.framework.status import Code, Rejected
from moorage.objects.pod import Pod
from moorage.plugins import REGISTRY
from tests.builders import node, pod
from tests.exactness.four_ways import configuration, profile

from .fake_api import FakeApi, refusal

BINDING = "/api/v1/namespaces/default/pods/p/binding"
ACTION = BindPod(PodRef("default", "p", "default/p"), "n1", "default-scheduler")


class Ready(PreBind):
    name = "Ready"
    answer: ClassVar[Any] = None

    async def pre_bind(self, pod: Pod, node_name: str) -> Rejected | None:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class Other(Bind):
    name = "Other"
    answer: ClassVar[Any] = False

    async def bind(self, pod: Pod, node_name: str) -> bool:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class Told(PostBind):
    name = "Told"
    heard: ClassVar[list[str]] = []
    error: ClassVar[BaseException] = RuntimeError("nobody minds")

    async def post_bind(self, pod: Pod, node_name: str) -> None:
        self.heard.append(f"{pod.name} on {node_name}")
        raise self.error


class Stage:
    def __init__(self, **points: list[str]) -> None:
        registry: dict[str, type[Plugin]] = {
            **REGISTRY,
            "Ready": Ready,
            "Other": Other,
            "Told": Told,
        }
        enabled = {
            point: {
                "enabled": [{"name": name} for name in names],
                "disabled": [{"name": "*"}] if point == "bind" else [],
            }
            for point, names in points.items()
        }
        self.observations = Observations()
        using = configuration(profile(plugins=enabled), registry=registry)
        engine = Engine(using, registry, observer=self.observations)
        engine.cluster.put_node(node("n1"))
        engine.cluster.assume(pod("p"), "n1")
        self.api = FakeApi()
        self.leads = True
        self.points = PluginPoints(engine, Binder(cast(Api, self.api), lambda: self.leads))

    async def bind(self) -> Bound | BindingFailed:
        """The outcome; a failure without the line of this file that raised it."""
        outcome = await self.points.bind(ACTION)
        if isinstance(outcome, Bound):
            return outcome
        message = re.sub(r" \(test_binding_plugins.py:\d+\)$", "", outcome.message)
        return BindingFailed(outcome.uid, message)

    def told(self) -> set[tuple[str, ...]]:
        """Points and statuses that were observed."""
        (durations,) = (
            each
            for each in self.observations.series()
            if each.metric.name.endswith("framework_extension_point_duration_seconds")
        )
        assert isinstance(durations, Histogram)
        return {labels[:2] for labels, buckets in durations if buckets.count}


async def test_without_plugins_the_api_server_binds() -> None:
    stage = Stage()

    assert await stage.bind() == Bound("default/p")
    assert len(stage.api.requests) == 1
    assert stage.told() == {("Bind", "Success")}


async def test_a_binding_that_fails_is_observed_as_an_error() -> None:
    stage = Stage()
    stage.api.script("post", BINDING, refusal(403, "Forbidden"))
    await stage.bind()

    assert stage.told() == {("Bind", "Error")}


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Rejected(Code.ERROR, ("not yet",)), 'running PreBind plugin "Ready": not yet'),
        (RuntimeError("broken"), 'running PreBind plugin "Ready": RuntimeError: broken'),
        (SystemExit(3), 'running PreBind plugin "Ready": SystemExit: 3'),
        (CancelledError(), 'running PreBind plugin "Ready": CancelledError: '),
        (5, 'running PreBind plugin "Ready": returned int, expected Rejected or None'),
    ],
)
async def test_a_pre_bind_plugin_can_keep_a_pod_from_being_bound(
    answer: Any, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ready, "answer", answer)
    stage = Stage(preBind=["Ready"])

    assert await stage.bind() == BindingFailed("default/p", problem)
    assert stage.api.requests == []
    assert stage.told() == {("PreBind", "Error")}


@pytest.mark.parametrize(
    ("answer", "outcome", "asked"),
    [
        (True, Bound("default/p"), 0),
        (False, Bound("default/p"), 1),
        (
            RuntimeError("broken"),
            BindingFailed("default/p", 'running Bind plugin "Other": RuntimeError: broken'),
            0,
        ),
        (
            None,
            BindingFailed(
                "default/p", 'running Bind plugin "Other": returned NoneType, expected bool'
            ),
            0,
        ),
        (
            SystemExit(3),
            BindingFailed("default/p", 'running Bind plugin "Other": SystemExit: 3'),
            0,
        ),
    ],
)
async def test_a_bind_plugin_goes_first_and_may_leave_it_to_the_next(
    answer: Any,
    outcome: Bound | BindingFailed,
    asked: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Other, "answer", answer)
    stage = Stage(bind=["Other", "DefaultBinder"])

    assert await stage.bind() == outcome
    assert len(stage.api.requests) == asked


@pytest.mark.parametrize("error", [RuntimeError("nobody minds"), SystemExit(3)])
async def test_post_bind_plugins_hear_of_it_and_cannot_spoil_it(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Told, "error", error)
    Told.heard.clear()
    stage = Stage(postBind=["Told"])

    assert await stage.bind() == Bound("default/p")
    assert Told.heard == ["p on n1"]


async def test_a_pod_that_is_gone_is_not_bound_by_plugins() -> None:
    stage = Stage(preBind=["Ready"])
    stage.points._cluster.remove_pod("default/p")

    assert await stage.bind() == BindingFailed("default/p", "the pod is gone")


@pytest.mark.parametrize(
    "points", [{"preBind": ["Ready"]}, {"bind": ["Other", "DefaultBinder"]}], ids=["pre", "bind"]
)
async def test_plugins_that_write_are_not_called_once_leadership_is_lost(
    points: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    called = RuntimeError("it was called")
    monkeypatch.setattr(Ready, "answer", called)
    monkeypatch.setattr(Other, "answer", called)
    stage = Stage(**points)
    stage.leads = False

    assert await stage.bind() == BindingFailed("default/p", NOT_LEADING)
    assert stage.api.requests == []
