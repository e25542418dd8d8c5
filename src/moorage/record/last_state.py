"""The cluster at the end of a recording, as manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from moorage.objects.kinds import KINDS

from .format import RecordLine, find_object_key
from .reader import Segment, open_recording
from .replayer import read_object

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
