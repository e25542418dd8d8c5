"""From watches to the engine: objects that appear, change and vanish become events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from mooring.engine.events import Applied, Event, Removed
from mooring.objects.kinds import Object
from mooring.record.recorder import Recorder

from . import logs

_log = logs.named(__name__)


class Feed:
    """Where reflectors deliver to. With a recorder they have to keep the JSON of objects."""

    def __init__(self, tell: Callable[[Event], None], recorder: Recorder | None = None) -> None:
        self._tell = tell
        self._recorder = recorder
        #: How often an object could not be read, by kind.
        self.left_out: Counter[str] = Counter()

    def applied(self, item: Object, raw: bytes | msgspec.Raw) -> None:
        event = Applied(item) if self._recorder is None else self._recorder.make_event(item, raw)
        self._tell(event)

    def removed(self, item: Object) -> None:
        self._tell(Removed(item))

    def unreadable(self, kind: str, key: str, problem: str) -> None:
        self.left_out[kind] += 1
        _log.error("Left out an object that cannot be read", kind=kind, object=key, problem=problem)
