"""A recording as a trace: the same pods come at the same times and run for as long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from moorage.documents.errors import InputError
from moorage.engine.events import Applied, Removed
from moorage.objects.kinds import Object
from moorage.objects.pod import Pod
from moorage.record.format import RecordLine, find_object_key
from moorage.record.reader import Segment, open_recording
from moorage.record.replayer import read_object

from .arrivals import Arrival, ArrivalTrace


def read_recorded_trace(paths: Iterable[Path]) -> ArrivalTrace:
    """Reads which objects came and went, whatever was decided. Raises InputError."""
    segments = open_recording(paths)
    seen = _SeenSoFar()
    for at, segment in enumerate(segments):
        for number, line in segment.lines():
            # Who has read the segment before knows its head already.
            if at == 0 or number > segment.header.objects + 1:
                seen.take(segment, number, line)
    return seen.finish(segments[0].path.stem)


@dataclass(slots=True)
class _SeenPod:
    pod: Pod
    at: float
    placed: float | None = None
    ended: float | None = None


@dataclass(slots=True)
class _SeenSoFar:
    """What has been read so far."""

    began: float | None = None
    #: The pods that came without a node, by uid, in the order in which they came.
    pods: dict[str, _SeenPod] = field(default_factory=dict)
    changes: list[tuple[float, Applied | Removed]] = field(default_factory=list)
    _known: dict[tuple[str, str], Object] = field(default_factory=dict)

    def take(self, segment: Segment, number: int, line: RecordLine) -> None:
        time = segment.header.at if line.at is None else line.at
        if self.began is None:
            self.began = time
        at = max(0.0, time - self.began)
        if line.apply is not None:
            self._apply(read_object(segment.where(number), line.apply, line), at)
        elif line.remove is not None:
            known = self._known.pop((line.remove, line.key or ""), None)
            if known is None:
                where = segment.where(number)
                raise InputError(where, f"key: there is no {line.remove} {line.key!r} to remove")
            self._remove(known, at)

    def finish(self, name: str) -> ArrivalTrace:
        arrivals = []
        for seen in self.pods.values():
            ran = None
            if seen.placed is not None and seen.ended is not None:
                ran = seen.ended - seen.placed
            elif seen.ended is not None:
                # Nobody waited for it any more, wherever it may be.
                self.changes.append((seen.ended, Removed(seen.pod)))
            arrivals.append(Arrival(seen.at, seen.pod, ran))
        arrivals.sort(key=lambda each: each.at)
        self.changes.sort(key=lambda change: change[0])
        return ArrivalTrace(name, tuple(arrivals), (), tuple(self.changes))

    def _apply(self, item: Object, at: float) -> None:
        key = type(item).__name__, find_object_key(item)
        before = self._known.get(key)
        self._known[key] = item
        if isinstance(item, Pod):
            self._apply_pod(item, at, is_new=before is None)
        elif before is None or _without_version(before) != _without_version(item):
            self.changes.append((at, Applied(item)))

    def _apply_pod(self, pod: Pod, at: float, *, is_new: bool) -> None:
        seen = self.pods.get(pod.uid)
        if seen is None:
            if pod.node_name and not pod.is_finished:
                # It ran already: it counts where it is, and is removed when it was.
                self.changes.append((at, Applied(pod)))
            elif not pod.node_name and is_new:
                self.pods[pod.uid] = _SeenPod(pod, at)
            return
        if pod.node_name and seen.placed is None:
            seen.placed = at
        if pod.is_finished and seen.ended is None:
            seen.ended = at

    def _remove(self, item: Object, at: float) -> None:
        seen = self.pods.get(item.uid) if isinstance(item, Pod) else None
        if seen is None:
            self.changes.append((at, Removed(item)))
        elif seen.ended is None:
            seen.ended = at


def _without_version(item: Object) -> Object:
    if "resource_version" in type(item).__struct_fields__:
        return msgspec.structs.replace(item, resource_version="")
    return item
