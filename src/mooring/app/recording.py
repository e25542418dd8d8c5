"""Recording what a scheduler sees and decides, so that it can be replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from mooring import __version__
from mooring.engine import Engine
from mooring.engine.actions import Action, encode
from mooring.engine.events import Applied, Event, Removed
from mooring.objects.kinds import READ_KINDS, Object

from . import logs
from .recorded import (
    FORMAT,
    GOES_ON,
    STOPPED,
    Header,
    Setup,
    apply_text,
    end_line,
    header_line,
    moment,
    outcome_line,
    remove_line,
    step_line,
)
from .segments import RecordSettings, Segments
from .stripping import stripped

_log = logs.named(__name__)

_Key = tuple[str, str, str]


class Seen(Applied, frozen=True):
    """An object together with the line that tells of it, from after its time on."""

    line: bytes


class Recorder:
    """Writes down every call of an engine. If that fails, scheduling goes on without."""

    def __init__(self, path: Path, setup: Setup, settings: RecordSettings | None = None) -> None:
        """Raises OSError if the file cannot be written."""
        self._setup = setup
        self._segments = Segments(path, settings or RecordSettings())
        self._run = uuid4().hex
        self._segment = 0
        #: Every object that the engine knows, in the order in which it came to know them.
        self._known: dict[_Key, Seen] = {}
        self._now = 0.0
        self._is_on = True
        #: Why nothing is recorded any more; empty if all is well.
        self.problem = ""
        self._segments.put(header_line(self._header(0.0, {})))

    def seen(self, item: Object, raw: bytes | msgspec.Raw) -> Applied:
        """The event that an object was seen, from which it can be recorded."""
        if not (self._is_on and raw):
            return Applied(item)
        kind, version, _ = _key(item)
        return Seen(item, apply_text(kind, version, stripped(kind, raw)))

    def taken_in(self, event: Event, now: float) -> None:
        """Writes down an event that the engine is about to be told."""
        if not self._is_on:
            return
        self._now = now
        match event:
            case Seen(item, line):
                self._known[_key(item)] = event
                self._segments.put(moment(now) + line)
            case Applied():
                self._stop("an object came without its JSON")
            case Removed(item):
                self._removed(item, now)
            case _:
                self._put(lambda: outcome_line(event, now))

    def step(self, engine: Engine, now: float, budget: int) -> list[Action]:
        """Makes a step and writes down what came of it, be it an exception."""
        if not self._is_on:
            return engine.step(now, budget)
        self._now = now
        try:
            actions = engine.step(now, budget)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            self._put(lambda: step_line(now, budget, b"[]", told))
            raise
        self._put(lambda: step_line(now, budget, encode(actions)))
        return actions

    def look_after(self, engine: Engine, now: float) -> None:
        """Begins a new segment when it is time to, and ends when nothing can be written."""
        if not self._is_on:
            return
        if self._segments.problem:
            self._stop(self._segments.problem)
        elif self._segments.is_full:
            self._segments.put(end_line(now, GOES_ON))
            self._segment += 1
            header = self._header(now, _assumed(engine))
            self._segments.begin(_head(header, list(self._known.values())))

    def flush(self) -> None:
        """Returns when all so far is in the file."""
        self._segments.flush()

    def close(self) -> None:
        """Ends the recording; returns when all of it is written."""
        if self._is_on:
            self._segments.put(end_line(self._now, STOPPED))
        self._is_on = False
        self._segments.close()
        if self._segments.problem and not self.problem:
            self.problem = self._segments.problem
            _log.error("The recording is incomplete", problem=self.problem)

    def _put(self, make: Callable[[], bytes]) -> None:
        """Writes a line with texts of plugins and of the API in it, which may be anything."""
        try:
            self._segments.put(make())
        except Exception as error:  # noqa: BLE001 - whatever it is, scheduling goes on
            self._stop(f"{type(error).__name__}: {error}")

    def _removed(self, item: Object, now: float) -> None:
        key = _key(item)
        last = self._known.pop(key, None)
        if last is None:
            self._stop("an object is gone that was never seen")
        else:
            self._segments.put(remove_line(now, *key))

    def _header(self, now: float, assumed: Mapping[str, str]) -> Header:
        return Header(
            mooring_recording=FORMAT,
            version=__version__,
            run=self._run,
            segment=self._segment,
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            at=now,
            objects=len(self._known),
            assumed=assumed,
            setup=self._setup,
        )

    def _stop(self, why: str) -> None:
        self._is_on = False
        self.problem = why
        self._known.clear()
        self._segments.put(end_line(self._now, why))
        _log.error("Nothing is recorded any more", problem=why)


def _head(header: Header, known: list[Seen]) -> Iterator[bytes]:
    """How a later segment begins: with what is known."""
    yield header_line(header)
    yield from (b"{" + each.line for each in known)


def _assumed(engine: Engine) -> dict[str, str]:
    cluster = engine.cluster
    return {uid: pod.node_name for uid, pod in cluster.pods.items() if cluster.is_assumed(uid)}


def _key(item: Any) -> _Key:
    """Kind, apiVersion (of a kind that is not Kubernetes' own) and name."""
    kind = type(item).__name__
    name: str = getattr(item, "key", None) or item.name
    if kind in READ_KINDS:
        return kind, "", name
    return item.kind, item.api_version, name
