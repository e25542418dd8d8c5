"""Records what a scheduler sees and decides, so that it can be replayed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from moorage import __version__
from moorage.engine import Engine
from moorage.engine.actions import Action, encode
from moorage.engine.events import Applied, Event, Removed
from moorage.objects.kinds import READ_KINDS, Object
from moorage.objects.pod_group import PodGroup
from moorage.world.shadow_report import JudgedPlacement

from .format import (
    CONTINUES,
    FORMAT,
    STOPPED,
    Header,
    Setup,
    encode_end,
    encode_header,
    encode_judged,
    encode_object,
    encode_outcome,
    encode_removal,
    encode_step,
    encode_time,
    find_object_key,
    strip_object,
)
from .segments import RecordSettings, SegmentWriter

_LOG = logging.getLogger(__name__)

_Key = tuple[str, str, str]


class RecordedObject(Applied, frozen=True):
    """An object, and its line in a recording without the time that comes first."""

    line: bytes


class Recorder:
    """Records every call of an engine. If writing fails, scheduling goes on without a recording."""

    def __init__(self, path: Path, setup: Setup, settings: RecordSettings | None = None) -> None:
        """Raises OSError if the file cannot be written."""
        self._setup = setup
        self._segments = SegmentWriter(path, settings or RecordSettings())
        self._run = uuid4().hex
        self._segment = 0
        #: Every object that the engine knows, in the order in which it came to know them.
        self._known: dict[_Key, RecordedObject] = {}
        #: When the engine heard of each custom object last: its age may decide.
        self._heard: dict[_Key, float] = {}
        self._now = 0.0
        self._is_on = True
        #: Why nothing is recorded any more; empty if all is well.
        self.problem = ""
        self._segments.put(encode_header(self._make_header(0.0, {})))

    def make_event(self, item: Object, raw: bytes | msgspec.Raw) -> Applied:
        """Makes the event that an object exists in this form, with all that its line needs."""
        if not (self._is_on and raw):
            return Applied(item)
        kind, version, _ = _key(item)
        form = item.api_version if isinstance(item, PodGroup) else ""
        return RecordedObject(item, encode_object(kind, version, strip_object(kind, raw, form)))

    def write_event(self, event: Event, now: float) -> None:
        """Records an event before the engine handles it."""
        if not self._is_on:
            return
        self._now = now
        match event:
            case RecordedObject(item, line):
                key = _key(item)
                self._known[key] = event
                if key[1]:
                    self._heard[key] = now
                self._segments.put(encode_time(now) + line)
            case Applied():
                self._stop("an object came without its JSON")
            case Removed(item):
                self._write_removal(item, now)
            case _:
                self._put(lambda: encode_outcome(event, now))

    def step(self, engine: Engine, now: float, budget: int) -> list[Action]:
        """Makes a step and records its outcome, also an exception."""
        if not self._is_on:
            return engine.step(now, budget)
        self._now = now
        try:
            actions = engine.step(now, budget)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
            self._put(lambda: encode_step(now, budget, b"[]", failure))
            raise
        self._put(lambda: encode_step(now, budget, encode(actions)))
        return actions

    def write_judged(self, judged: JudgedPlacement, now: float) -> None:
        """Records what Moorage would have done with the pod that came last."""
        if self._is_on:
            self._put(lambda: encode_judged(judged, now))

    def rotate(self, engine: Engine, now: float) -> None:
        """Begins a new segment if this one is full; stops recording if writing has failed."""
        if not self._is_on:
            return
        if self._segments.problem:
            self._stop(self._segments.problem)
        elif self._segments.is_full:
            self._segments.put(encode_end(now, CONTINUES))
            self._segment += 1
            header = self._make_header(now, _find_assumed(engine))
            known = [(each, self._heard.get(key)) for key, each in self._known.items()]
            self._segments.begin(_encode_head(header, known))

    def flush(self) -> None:
        """Returns when everything so far is in the file."""
        self._segments.flush()

    def close(self) -> None:
        """Ends the recording; returns when all of it is written."""
        if self._is_on:
            self._segments.put(encode_end(self._now, STOPPED))
        self._is_on = False
        self._segments.close()
        if self._segments.problem and not self.problem:
            self.problem = self._segments.problem
            _LOG.error("The recording is incomplete: %s", self.problem)

    def _put(self, make: Callable[[], bytes]) -> None:
        """Writes a line that contains texts of plugins or of the API, which may be anything."""
        try:
            self._segments.put(make())
        except Exception as error:  # noqa: BLE001 - whatever it is, scheduling goes on
            self._stop(f"{type(error).__name__}: {error}")

    def _write_removal(self, item: Object, now: float) -> None:
        key = _key(item)
        last = self._known.pop(key, None)
        self._heard.pop(key, None)
        if last is None:
            self._stop("an object is gone that was never seen")
        else:
            self._segments.put(encode_removal(now, *key))

    def _make_header(self, now: float, assumed: Mapping[str, str]) -> Header:
        return Header(
            moorage_recording=FORMAT,
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
        self._heard.clear()
        self._segments.put(encode_end(self._now, why))
        _LOG.error("Nothing is recorded any more: %s", why)


def _encode_head(
    header: Header, known: list[tuple[RecordedObject, float | None]]
) -> Iterator[bytes]:
    """Yields the first lines of a later segment: what is known, and since when if that matters."""
    yield encode_header(header)
    yield from ((b"{" if at is None else encode_time(at)) + each.line for each, at in known)


def _find_assumed(engine: Engine) -> dict[str, str]:
    cluster = engine.cluster
    return {uid: pod.node_name for uid, pod in cluster.pods.items() if cluster.is_assumed(uid)}


def _key(item: Any) -> _Key:
    """Returns kind, apiVersion (only for custom kinds) and name."""
    kind = type(item).__name__
    name = find_object_key(item)
    if kind in READ_KINDS:
        return kind, "", name
    return item.kind, item.api_version, name
