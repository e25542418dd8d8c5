"""The cluster at the end of a recording, as manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from moorage.engine import Engine
from moorage.engine.events import Applied, Event
from moorage.framework.plugin import Registry
from moorage.objects.kinds import KINDS
from moorage.objects.pod import Pod

from .format import RecordLine, find_object_key
from .reader import Segment, open_recording
from .replayer import Replayer, ReplayListener, read_object
from .whole_replay import make_engine, read_lines

_Key = tuple[str, str]
_Known = tuple[Segment, int, RecordLine]


def read_last_state(paths: Iterable[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the objects that exist at the end, each with its place. Raises InputError."""
    known: dict[_Key, _Known] = {}
    for segment in open_recording(paths):
        if segment.header.objects or not segment.header.segment:
            # A later segment begins with all that is known.
            known.clear()
        for number, line in segment.lines():
            if line.apply is not None:
                item = read_object(segment.where(number), line.apply, line)
                known[line.apply, find_object_key(item)] = segment, number, line
            elif line.remove is not None:
                known.pop((line.remove, line.key or ""), None)
    for segment, number, line in known.values():
        yield segment.where(number), _make_manifest(line)


def _make_manifest(line: RecordLine) -> dict[str, Any]:
    """Makes a manifest, with names that API servers require and recordings do not keep."""
    made: dict[str, Any] = msgspec.json.decode(line.object)
    kind = line.apply or ""
    if line.api_version is not None:
        made["apiVersion"] = line.api_version
    elif kind in KINDS:
        made.setdefault("apiVersion", KINDS[kind].api_version)
    made["kind"] = kind
    if kind == "Pod":
        _name_containers(made.get("spec") or {})
    return made


def _name_containers(spec: dict[str, Any]) -> None:
    for field in ("initContainers", "containers"):
        for at, container in enumerate(spec.get(field) or ()):
            container.setdefault("name", f"{'init' if field == 'initContainers' else 'main'}-{at}")
            container.setdefault("image", "unknown")


class SeenPods(ReplayListener):
    """Keeps every pod in the form in which it first waited, or else in which it was first seen."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}

    def on_event(self, at: float, event: Event) -> None:
        if isinstance(event, Applied) and isinstance(event.object, Pod):
            self.pods.setdefault(event.object.uid, event.object)


def read_pods(
    paths: Iterable[Path], config: Path | None, plugins: Registry
) -> tuple[Engine, list[Pod]]:
    """Replays a recording. Raises InputError or ConfigError if it cannot be used."""
    segments = open_recording(paths)
    first = segments[0]
    engine = make_engine(first, config, plugins)
    seen = SeenPods()
    is_beside = first.header.setup.is_beside
    run = Replayer(engine, placements_only=True, listener=seen, is_beside=is_beside)
    for segment, number, line, is_known in read_lines(segments):
        (run.begin if is_known else run.take)(segment, number, line)
    return engine, list(seen.pods.values())
