"""A scheduler and its extenders over real connections, with an API server that is not there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
import pytest

from moorage.app.extender_calls import ExtenderCalls, KeptManifests
from moorage.app.performer import Performer
from moorage.app.scheduler import Feed, Scheduler
from moorage.client.api import Api
from moorage.config import Extender
from moorage.framework.series import Counts
from moorage.objects.decode import from_builtins
from moorage.testing.driver import make_engine
from tests.builders import node_manifest, pod_manifest
from tests.extender_server import Behaviour, ExtenderServer, Request, extender_server, http, saying
from tests.patience import until_true

from .fake_api import FakeApi

#: Only a hang takes that long.


class Stage:
    """A scheduler with extenders."""

    def __init__(self, extenders: list[dict[str, Any]], **config: Any) -> None:
        self.engine = make_engine(extenders=extenders, **config)
        self.api = FakeApi()
        self.scheduler = Scheduler(self.engine)
        configuration = self.engine.configuration
        self.calls = ExtenderCalls(configuration.extenders, configuration.extender_concurrency)
        self.feed = Feed(self.scheduler.tell, None, self.calls.manifests)
        self.performer = Performer(
            cast(Api, self.api),
            self.scheduler,
            may_act=lambda: True,
            instance="moorage-test",
            extenders=self.calls,
        )

    def apply(self, *manifests: Mapping[str, Any]) -> None:
        for each in manifests:
            raw = msgspec.json.encode(each)
            self.feed.applied(from_builtins(each["kind"], each), raw)

    def bindings(self) -> dict[str, str]:
        return {
            request.body["metadata"]["name"]: request.body["target"]["name"]
            for request in self.api.asked("post")
            if request.path.endswith("/binding")
        }

    def notes(self) -> list[str]:
        return [each.body["note"] for each in self.api.asked("post") if "note" in each.body]

    def conditions(self) -> list[tuple[str, str]]:
        return [
            (condition["reason"], condition["message"])
            for each in self.api.asked("patch")
            for condition in each.body["status"].get("conditions", ())
        ]

    async def until(self, done: Callable[[], bool]) -> None:
        await until_true(done)


@asynccontextmanager
async def stage(*extenders: dict[str, Any], **config: Any) -> AsyncIterator[Stage]:
    made = Stage(list(extenders), **config)
    async with made.calls:
        loop = asyncio.create_task(made.scheduler.run())
        made.scheduler.lead(made.performer)
        try:
            yield made
        finally:
            loop.cancel()
            await asyncio.gather(loop, return_exceptions=True)
            await made.performer.stop()


@asynccontextmanager
async def extended(
    behave: Behaviour, extender: dict[str, Any]
) -> AsyncIterator[tuple[Stage, ExtenderServer]]:
    """A scheduler with one extender."""
    async with extender_server(behave) as server:
        made = {"urlPrefix": server.url, **extender}
        async with stage(made) as it:
            yield it, server


def nodes(count: int) -> Iterable[dict[str, Any]]:
    return (node_manifest(f"n{at}", gpu=8, cpu=1000, pods=10_000) for at in range(count))


def keep_last(request: Request) -> Any:
    """Keeps the last of the nodes, in the words of a real extender."""
    asked = request.json
    if asked["NodeNames"] is not None:
        return {"nodenames": asked["NodeNames"][-1:]}
    return {"nodes": {"items": asked["Nodes"]["items"][-1:]}, "failedNodes": {}}


@pytest.mark.parametrize("names_only", [True, False])
async def test_a_pod_goes_where_the_extender_lets_it(names_only: bool) -> None:
    async with extender_server(saying(keep_last)) as server:
        asked = {"urlPrefix": server.url, "filterVerb": "f", "nodeCacheCapable": names_only}
        async with stage(asked) as it:
            manifest = pod_manifest("a", metadata={"managedFields": [{"manager": "x"}]})
            it.apply(*nodes(3), manifest)
            await it.until(lambda: "a" in it.bindings())

    (request,) = server.requests
    sent = request.json
    assert sent["Pod"]["metadata"]["name"] == "a"
    assert "managedFields" not in sent["Pod"]["metadata"]
    assert sent["Pod"].keys() == {"metadata", "spec", "status"}
    if names_only:
        assert sent["Nodes"] is None
        last = sent["NodeNames"][-1]
    else:
        assert sent["NodeNames"] is None
        assert sent["Nodes"]["metadata"] == {}
        assert all(each.keys() == {"metadata", "spec", "status"} for each in sent["Nodes"]["items"])
        last = sent["Nodes"]["items"][-1]["metadata"]["name"]
    assert it.bindings() == {"a": last}
    assert dict(cast(Counts, next(iter(it.calls.series)))) == {(server.url, "filter", "success"): 1}


async def test_garbage_fails_the_attempt_and_says_why() -> None:
    async with extender_server(saying(b"{not json")) as server:
        asked = {"urlPrefix": server.url, "filterVerb": "f", "nodeCacheCapable": True}
        async with stage(asked) as it:
            it.apply(*nodes(2), pod_manifest("a"))
            await it.until(lambda: bool(it.conditions()))

    why = "invalid character 'n' looking for beginning of object key string"
    assert it.conditions()[0] == ("SchedulerError", why)
    assert dict(cast(Counts, next(iter(it.calls.series))))[server.url, "filter", "error"] >= 1


def binding(answer: bytes) -> Behaviour:
    async def behave(request: Request, out: asyncio.StreamWriter) -> None:
        out.write(answer)

    return behave


async def test_an_extender_binds() -> None:
    async with extended(saying({"Error": ""}), {"bindVerb": "b"}) as (it, server):
        it.apply(*nodes(1), pod_manifest("a"))
        await it.until(lambda: "Successfully assigned default/a to n0" in it.notes())

    (request,) = server.requests
    assert request.path == "/b"
    assert request.json == {
        "PodName": "a",
        "PodNamespace": "default",
        "PodUID": "default/a",
        "Node": "n0",
    }
    assert it.bindings() == {}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (http(200, b'{"error":"no"}'), "no"),
        (http(500), "failed b with extender at URL {}/b, code 500"),
    ],
    ids=["error", "status"],
)
async def test_an_extender_that_fails_to_bind(answer: bytes, message: str) -> None:
    async with extended(binding(answer), {"bindVerb": "b"}) as (it, server):
        it.apply(*nodes(1), pod_manifest("a"))
        await it.until(lambda: bool(it.conditions()))

    assert it.conditions()[0] == ("SchedulerError", message.format(server.url))
    assert it.bindings() == {}


async def test_the_plugins_bind_where_an_ignorable_extender_fails() -> None:
    async with extended(binding(http(500)), {"bindVerb": "b", "ignorable": True}) as (it, server):
        it.apply(*nodes(1), pod_manifest("a"))
        await it.until(lambda: "a" in it.bindings())

    assert len(server.requests) == 1


async def test_a_binding_whose_answer_was_lost_is_looked_up() -> None:
    async def die(request: Request, out: asyncio.StreamWriter) -> None:
        out.close()

    async with extended(die, {"bindVerb": "b"}) as (it, _):
        bound = {"metadata": {"uid": "default/a"}, "spec": {"nodeName": "n0"}}
        it.api.script("get", "/api/v1/namespaces/default/pods/a", bound)
        it.apply(*nodes(1), pod_manifest("a"))
        await it.until(lambda: "Successfully assigned default/a to n0" in it.notes())


async def test_thousands_of_pods_go_on_while_an_extender_is_slow() -> None:
    answers = asyncio.Event()

    async def wait(request: Request, out: asyncio.StreamWriter) -> None:
        await answers.wait()
        await saying(keep_last)(request, out)

    others = {f"other{at}" for at in range(1500)}
    async with extender_server(wait) as server:
        asked = {
            "urlPrefix": server.url,
            "filterVerb": "f",
            "nodeCacheCapable": True,
            "httpTimeout": "10m",
            "managedResources": [{"name": "example.com/gpu"}],
        }
        async with stage(asked) as it:
            it.apply(*nodes(3), *(pod_manifest(f"gpu{at}", gpu=1) for at in range(1000)))
            it.apply(*(pod_manifest(name) for name in others))
            await it.until(lambda: len(it.bindings()) == len(others))
            # Nobody else was let through, and nothing is kept of those who wait their turn.
            assert set(it.bindings()) == others
            assert len(server.requests) == 1
            assert len(it.engine.queue.in_flight) == 1

            answers.set()
            await it.until(lambda: len(it.bindings()) == len(others) + 24)


async def test_nothing_is_left_when_the_scheduler_stops_in_the_middle() -> None:
    async def never(request: Request, out: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with extender_server(never) as server:
        before = asyncio.all_tasks()
        asked = {"urlPrefix": server.url, "filterVerb": "f", "bindVerb": "b"}
        async with stage(asked, extenderConcurrency=8) as it:
            it.apply(*nodes(2), *(pod_manifest(f"p{at}") for at in range(20)))
            await it.until(lambda: len(server.requests) == 8)

        left = {task for task in asyncio.all_tasks() - before if "serve" not in str(task)}
        assert not left


def test_no_more_text_is_kept_than_extenders_are_sent() -> None:
    waiting, placed = pod_manifest("a"), pod_manifest("b", node="n0")
    (there,) = nodes(1)

    def count(**fields: Any) -> int:
        kept = KeptManifests([Extender(**fields)])
        for each in (waiting, placed, there):
            kept.keep(from_builtins(each["kind"], each), msgspec.json.encode(each))
        found = len(kept)
        for each in (waiting, placed, there):
            kept.drop(from_builtins(each["kind"], each))
        assert len(kept) == 0
        return found

    assert count(filter_verb="f", node_cache_capable=True) == 1
    assert count(filter_verb="f") == 2
    assert count(preempt_verb="p") == 2
    assert count(filter_verb="f", preempt_verb="p") == 3


def test_a_placed_pod_is_forgotten() -> None:
    kept = KeptManifests([Extender(filter_verb="f", node_cache_capable=True)])
    for manifest in (pod_manifest("a"), pod_manifest("a", node="n0")):
        kept.keep(from_builtins("Pod", manifest), msgspec.json.encode(manifest))

    assert len(kept) == 0
