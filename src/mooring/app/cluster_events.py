"""Events of the cluster (events.k8s.io/v1). What repeats is counted in a series, not repeated."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from mooring.client.api import MERGE_PATCH, Requests
from mooring.client.api_errors import ApiError, OutcomeUnknown, Unreachable
from mooring.engine.actions import PodRef, RecordEvent

from . import bodies

_encode = msgspec.json.Encoder().encode

# An event that has not been repeated for so long starts anew when it is.
_SERIES_ENDS = 6 * 60.0
# A series is written when it begins, and then this often at most.
_SERIES_WRITTEN = 30.0
# How many events are remembered, so that a repetition is seen as one.
_MOST_REMEMBERED = 20_000

# Names have a limit of 253 characters; what follows the pod's name needs 17.
_LONGEST_NAME = 236

_WARNING = "Warning"

_Key = tuple[PodRef, str, str, str, str, PodRef | None]


@dataclass(slots=True)
class _Known:
    """An event that was written."""

    path: str
    last_seen: float
    written: float
    count: int = 1


class ClusterEvents:
    """Writes events, once each; repetitions add to a series, as client-go's recorder does.

    The note of a repeated event stays that of the first: the API does not let it change.
    """

    def __init__(
        self,
        api: Requests,
        instance: str,
        *,
        clock: Callable[[], float],
        today: Callable[[], datetime],
    ) -> None:
        self._api = api
        self._instance = instance
        self._clock = clock
        self._today = today
        self._known: OrderedDict[_Key, _Known] = OrderedDict()

    async def record(self, action: RecordEvent) -> None:
        """Raises when the event cannot be written."""
        now = self._clock()
        key = action.pod, action.reason, action.action, action.type, action.profile, action.related
        known = self._known.get(key)
        if known is not None and now - known.last_seen < _SERIES_ENDS:
            await self._repeat(known, now)
        else:
            await self._create(key, action, now)

    async def _create(self, key: _Key, action: RecordEvent, now: float) -> None:
        name = f"{action.pod.name[:_LONGEST_NAME]}.{secrets.token_hex(8)}"
        folder = bodies.EVENTS.path(action.pod.namespace)
        # A pod is scheduled or preempted once: only what goes wrong goes wrong again.
        if action.type == _WARNING:
            self._remember(key, _Known(f"{folder}/{name}", last_seen=now, written=now))
        try:
            await self._api.post(folder, self._body(name, action))
        except (ApiError, Unreachable, OutcomeUnknown):
            self._known.pop(key, None)
            raise

    def _remember(self, key: _Key, known: _Known) -> None:
        self._known[key] = known
        self._known.move_to_end(key)
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)

    async def _repeat(self, known: _Known, now: float) -> None:
        known.count += 1
        known.last_seen = now
        if known.count > 2 and now - known.written < _SERIES_WRITTEN:
            return
        known.written = now
        series = {"count": known.count, "lastObservedTime": bodies.format_micro_time(self._today())}
        await self._api.patch(known.path, _encode({"series": series}), MERGE_PATCH)

    def _body(self, name: str, action: RecordEvent) -> bytes:
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": action.pod.namespace},
            "eventTime": bodies.format_micro_time(self._today()),
            "reportingController": action.profile,
            "reportingInstance": self._instance,
            "action": action.action,
            "reason": action.reason,
            "regarding": _reference(action.pod),
            "note": action.note,
            "type": action.type,
        }
        if action.related is not None:
            body["related"] = _reference(action.related)
        return _encode(body)


def _reference(pod: PodRef) -> dict[str, str]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
    }
