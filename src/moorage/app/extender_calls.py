"""Asks extenders the questions of the engine, and counts the calls.

Extenders get the JSON of pods and nodes as the API server wrote it, so it is kept here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from time import monotonic
from typing import Self, TypeVar

import msgspec

from moorage.config import Extender
from moorage.engine.actions import AskExtender, BindPod
from moorage.engine.events import Event, ExtenderAnswered
from moorage.engine.extender_answers import ExtenderAnswer
from moorage.engine.extenders.questions import (
    BIND,
    Manifests,
    encode_binding,
    encode_question,
    trim_manifest,
)
from moorage.engine.extenders.replies import ReplyError, read_binding_error, read_reply
from moorage.framework.series import Counts, Histogram, Series
from moorage.objects.kinds import Object
from moorage.objects.node import Node
from moorage.objects.pod import Pod

from . import logs, metric_table as table
from .extender_client import CallFailed, ExtenderClient


class KeptManifests:
    """The texts that extenders may be sent: waiting pods, and if needed nodes and placed pods."""

    def __init__(self, extenders: Sequence[Extender]) -> None:
        whole = [each for each in extenders if not each.node_cache_capable]
        self._wants_nodes = any(each.filter_verb or each.prioritize_verb for each in whole)
        self._wants_placed = any(each.preempt_verb for each in whole)
        self._pods = _Texts(managed_fields=False)
        self._nodes = _Texts(managed_fields=True)

    def __len__(self) -> int:
        return len(self._pods) + len(self._nodes)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of which manifests are kept."""
        return ("Pod", "Node") if self._wants_nodes else ("Pod",)

    def keep(self, item: Object, raw: bytes | msgspec.Raw) -> None:
        """Stores the present text of an object."""
        if isinstance(item, Pod):
            if item.is_finished or (item.node_name and not self._wants_placed):
                self._pods.drop(item.uid)
            else:
                self._pods.keep(item.uid, raw)
        elif isinstance(item, Node) and self._wants_nodes:
            self._nodes.keep(item.name, raw)

    def drop(self, item: Object) -> None:
        """Forgets a deleted object."""
        if isinstance(item, Pod):
            self._pods.drop(item.uid)
        elif isinstance(item, Node):
            self._nodes.drop(item.name)

    def pod(self, uid: str) -> bytes:
        return self._pods.read(uid)

    def node(self, name: str) -> bytes:
        return self._nodes.read(name)


class _Texts:
    """Texts by key. Each is trimmed when it is first read."""

    def __init__(self, *, managed_fields: bool) -> None:
        self._managed_fields = managed_fields
        self._raw: dict[str, bytes] = {}
        self._ready: dict[str, bytes] = {}

    def __len__(self) -> int:
        return len(self._raw) + len(self._ready)

    def keep(self, key: str, raw: bytes | msgspec.Raw) -> None:
        self._ready.pop(key, None)
        # A copy: the original is part of a page of a list.
        self._raw[key] = bytes(raw)

    def drop(self, key: str) -> None:
        self._raw.pop(key, None)
        self._ready.pop(key, None)

    def read(self, key: str) -> bytes:
        text = self._ready.get(key)
        if text is None:
            text = trim_manifest(self._raw.pop(key), managed_fields=self._managed_fields)
            self._ready[key] = text
        return text


_log = logs.make_log(__name__)

# So many pods may be bound by an extender at a time.
_BINDINGS = 64

_T = TypeVar("_T")

_SUCCESS, _ERROR = "success", "error"


class ExtenderCalls:
    """Calls all extenders of a configuration. Open it before use."""

    def __init__(self, extenders: Sequence[Extender], concurrency: int) -> None:
        """Raises ExtenderUnusable if certificates cannot be read."""
        self._extenders = extenders
        connections = concurrency + _BINDINGS
        self._clients = [ExtenderClient(each, connections) for each in extenders]
        self.manifests = KeptManifests(extenders)
        #: Where the texts that are sent come from.
        self.source: Manifests = self.manifests
        self._stack = AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()
        self._bindings = asyncio.Semaphore(_BINDINGS)
        self._counts = Counts(table.EXTENDER_CALLS)
        self._durations = Histogram(table.EXTENDER_DURATION)

    async def __aenter__(self) -> Self:
        for extender, client in zip(self._extenders, self._clients, strict=True):
            _log.info("Creating extender", extender=extender.url_prefix)
            await self._stack.enter_async_context(client)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        await self._stack.aclose()

    def __bool__(self) -> bool:
        return bool(self._extenders)

    @property
    def series(self) -> Iterable[Series]:
        """The figures of calls for the metrics."""
        return self._counts, self._durations

    def ask(self, action: AskExtender, tell: Callable[[Event], None]) -> None:
        """Asks a question; the answer is reported when it is known."""
        task = asyncio.get_running_loop().create_task(self._ask(action, tell))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Stops waiting for answers."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, action: AskExtender, tell: Callable[[Event], None]) -> None:
        tell(await self.answer(action))

    async def answer(self, action: AskExtender) -> ExtenderAnswered:
        """Returns the answer of an extender, or why there is none."""
        about = action.pod.uid, action.attempt, action.number
        try:
            return ExtenderAnswered(*about, await self._find_answer(action))
        except (CallFailed, ReplyError) as error:
            return ExtenderAnswered(*about, failure=str(error))
        except Exception as error:  # noqa: BLE001 - whatever breaks, the pod must not be lost
            return ExtenderAnswered(*about, failure=f"{type(error).__name__}: {error}")

    async def _find_answer(self, action: AskExtender) -> ExtenderAnswer:
        names_only = self._extenders[action.extender].node_cache_capable
        try:
            body = encode_question(action, self.source, names_only=names_only)
        except KeyError:
            raise CallFailed("the pod, or one of its victims, is gone") from None
        return await self._call(
            action.extender, action.verb, body, partial(read_reply, action.verb)
        )

    async def bind(self, action: BindPod) -> str:
        """Asks the extender to bind a pod; returns why it did not.

        Raises CallFailed or ReplyError.
        """
        place = next(at for at, each in enumerate(self._extenders) if each.bind_verb)
        async with self._bindings:
            return await self._call(place, BIND, encode_binding(action), read_binding_error)

    @property
    def may_fail_to_bind(self) -> bool:
        """Whether the plugins bind a pod if the extender that binds fails."""
        return any(each.ignorable and each.bind_verb for each in self._extenders)

    async def _call(self, place: int, verb: str, body: bytes, read: Callable[[bytes], _T]) -> _T:
        extender = self._extenders[place]
        began, result = monotonic(), _ERROR
        try:
            answer = read(await self._clients[place].post(extender.verb(verb), body))
            result = _SUCCESS
        except (CallFailed, ReplyError) as error:
            _log.warning(
                "An extender failed", extender=extender.url_prefix, verb=verb, error=str(error)
            )
            raise
        finally:
            self._counts.add((extender.url_prefix, verb, result))
            self._durations.observe((extender.url_prefix, verb), monotonic() - began)
        return answer
