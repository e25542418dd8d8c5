"""A demo on which nothing is real: pods appear as a test says, when a chapter acts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from moorage.app.observations import Observations
from moorage.client.api import Params
from moorage.config import default
from moorage.demo.demo_client import DemoClient, DemoPod, PodView
from moorage.demo.demo_context import DemoContext
from moorage.engine import Engine
from moorage.engine.explain import Explanation
from moorage.framework.profile import known_plugins
from moorage.plugins import REGISTRY

Json = dict[str, Any]


def pod(
    name: str,
    node: str = "",
    *,
    app: str = "",
    refusal: str = "",
    failure: tuple[str, str] = ("", ""),
    owner: str = "",
) -> DemoPod:
    """A pod as a watch tells of it."""
    conditions = [{"type": "PodScheduled", "status": "False", "message": refusal}]
    owners = [{"kind": owner, "name": "its-owner", "controller": True}]
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-of-{name}",
                "labels": {"app": app or name},
                "ownerReferences": owners if owner else [],
            },
            "spec": {"nodeName": node},
            "status": {
                "phase": "Failed" if failure[0] else "",
                "reason": failure[0],
                "message": failure[1],
                "conditions": conditions if refusal else [],
            },
        },
        DemoPod,
    )


class Heard:
    """A teller that remembers."""

    def __init__(self) -> None:
        self.chapters: list[str] = []
        self.commands: list[str] = []
        self.checks: list[str] = []
        self.quotes: list[str] = []

    def show_chapter(self, number: int, total: int, title: str, about: str) -> None:
        self.chapters.append(title)

    def show_command(self, command: str) -> None:
        self.commands.append(command)

    def show_check(self, expected: str) -> None:
        self.checks.append(expected)

    def show_quote(self, text: str) -> None:
        self.quotes.append(text)

    def show_table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        assert all(len(row) == len(headers) for row in rows)

    def show_explanation(self, explanation: Explanation) -> None:
        self.quotes.append(explanation.headline)

    @contextmanager
    def show_waiting(self, what: str, so_far: Callable[[], object]) -> Iterator[None]:
        yield


class Pretence:
    """An API server that knows what is asked of it in the demo, by path."""

    def __init__(self, answers: Mapping[str, Sequence[Json]]) -> None:
        self._answers = answers

    async def get(self, path: str, params: Params | None = None) -> bytes:
        name = path.rpartition("/")[2]
        return msgspec.json.encode({"items": self._answers.get(name, [])})

    async def post(self, path: str, body: bytes, params: Params | None = None) -> bytes:
        return b"{}"

    async def put(self, path: str, body: bytes) -> bytes:
        return b"{}"

    async def patch(self, path: str, body: bytes, content_type: str) -> bytes:
        return b"{}"

    async def delete(self, path: str, body: bytes | None = None) -> bytes:
        return b"{}"

    async def watch(self, path: str, params: Params) -> AsyncGenerator[bytes, None]:
        yield b""


#: What happens when a chapter acts: by the file that it applies, or `create`, `patch` or `delete`
#: and a name, the pods that appear or change, and the names of those that go.
Script = Mapping[str, Sequence[DemoPod | str]]


class Actor(DemoClient):
    """A client whose actions have the consequences that a script says, at once."""

    def __init__(self, script: Script, answers: Mapping[str, Sequence[Json]]) -> None:
        super().__init__(Pretence(answers))
        self.pods = PodView(self.api)
        self._script = script

    async def apply(self, file: str) -> None:
        self._happen(file)

    async def create(self, item: Json) -> None:
        self._happen("create")

    async def delete(self, kind: str, name: str) -> None:
        for each in list(self.pods.of(name)):
            self.pods.removed(each)
        self._happen(f"delete {name}")

    async def report_disk(self, node: str, status: Json) -> None:
        self._happen("patch")

    def _happen(self, act: str) -> None:
        for each in self._script.get(act, ()):
            if isinstance(each, DemoPod):
                self.pods.applied(each, b"")
            else:
                self.pods.removed(pod(each))


def demo(script: Script, answers: Mapping[str, Sequence[Json]]) -> DemoContext:
    """A demo on which what has not happened by now never will."""
    observations = Observations()
    engine = Engine(default(known_plugins(REGISTRY)), REGISTRY, observer=observations)
    actor = Actor(script, answers)
    return DemoContext(
        client=actor,
        pods=actor.pods,
        display=Heard(),
        engine=engine,
        observations=observations,
        patience=0.0,
    )


def node(name: str, zone: str) -> Json:
    return {"metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}}}
