"""Writes everything but bindings: pod statuses, evictions, volumes, claims and events."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from moorage.client.api import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Requests
from moorage.client.api_errors import ApiError, OutcomeUnknown, Unreachable
from moorage.documents.json_text import decode_at_any_depth
from moorage.engine.actions import (
    EvictPod,
    PatchPodGroupStatus,
    PatchPodStatus,
    PodRef,
    RecordEvent,
    WriteVolumes,
)
from moorage.engine.events import BindingFailed, Evicted, EvictionFailed
from moorage.framework.plugin import VolumeWrite
from moorage.objects.meta import Wire

from . import bodies

_FAILURES = (ApiError, Unreachable, OutcomeUnknown)

# A status that cannot be written now is written once more after this pause.
_PAUSE = 1.0

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


class _ClaimRef(Wire, frozen=True):
    uid: str = ""
    namespace: str = ""
    name: str = ""


class _VolumeSpec(Wire, frozen=True):
    claim_ref: _ClaimRef | None = None


class _Volume(Wire, frozen=True):
    metadata: bodies.StateMetadata = bodies.StateMetadata()
    spec: _VolumeSpec = _VolumeSpec()


_VOLUME = msgspec.json.Decoder(_Volume)


class Writer:
    """Performs the writes of the engine's actions."""

    def __init__(self, api: Requests, today: Callable[[], datetime]) -> None:
        self._api = api
        self._today = today

    async def patch_status(self, action: PatchPodStatus | PatchPodGroupStatus) -> None:
        """Writes a status; raises if that fails. A pod that is gone or replaced is skipped."""
        try:
            await self._patch_status(action)
        except (Unreachable, OutcomeUnknown):
            # Writing it twice does no harm.
            await asyncio.sleep(_PAUSE)
            await self._patch_status(action)

    async def _patch_status(self, action: PatchPodStatus | PatchPodGroupStatus) -> None:
        if isinstance(action, PatchPodGroupStatus):
            path = bodies.group_path(action.group, "status")
            body = bodies.encode_group_status_patch(action, self._today())
        else:
            path = bodies.pod_path(action.pod, "status")
            body = bodies.encode_status_patch(action, self._today())
        try:
            await self._api.patch(path, body, STRATEGIC_MERGE_PATCH)
        except ApiError as error:
            if not (error.is_not_found or error.is_conflict):
                raise

    async def evict(self, action: EvictPod) -> Evicted | EvictionFailed:
        """Marks a victim and deletes it. A victim that is gone counts as evicted."""
        victim, preemptor = action.pod, action.preemptor
        path = bodies.pod_path(victim)
        try:
            mark = bodies.encode_disruption(victim, action.message, self._today())
            await self._api.patch(f"{path}/status", mark, STRATEGIC_MERGE_PATCH)
            await self._api.delete(path, bodies.encode_deletion(victim.uid))
        except ApiError as error:
            # A conflict is about the uid: another pod has the name now.
            if not (error.is_not_found or error.is_conflict):
                return EvictionFailed(victim.uid, preemptor.uid, error.message)
        except (Unreachable, OutcomeUnknown) as error:
            return EvictionFailed(victim.uid, preemptor.uid, str(error))
        return Evicted(victim.uid, preemptor.uid)

    async def write_volumes(self, action: WriteVolumes) -> BindingFailed | None:
        """Binds volumes and marks claims. Their objects show later that it came true."""
        try:
            for volume in action.volumes:
                await self._bind_volume(volume)
            for claim in action.claims:
                path = bodies.CLAIM.path(claim.namespace, claim.name)
                await self._api.patch(path, bodies.encode_claim_patch(claim), MERGE_PATCH)
        except _VolumeTaken as error:
            return BindingFailed(action.pod.uid, str(error))
        except _FAILURES as error:
            return BindingFailed(action.pod.uid, f"binding volumes: {error}")
        return None

    async def _bind_volume(self, write: VolumeWrite) -> None:
        path = bodies.VOLUME.path(name=write.name)
        seen = decode_at_any_depth(_VOLUME.decode, await self._api.get(path))
        held = seen.spec.claim_ref
        if held is not None and held.uid == write.claim_uid:
            return
        wanted = write.claim_namespace, write.claim_name
        if held is not None and (held.uid or (held.namespace, held.name) != wanted):
            owner = f"{held.namespace}/{held.name}"
            raise _VolumeTaken(f"volume {write.name!r} is bound to claim {owner} already")
        body = bodies.encode_volume_patch(write, seen.metadata.resource_version)
        await self._api.patch(path, body, MERGE_PATCH)


class _VolumeTaken(Exception):
    """Another client has bound the volume meanwhile."""


@dataclass(slots=True)
class _Known:
    """An event that was written."""

    path: str
    last_seen: float
    written: float
    count: int = 1


class ClusterEvents:
    """Writes each event once; repetitions add to a series, as client-go's recorder does.

    The note of a repeated event stays that of the first, because the API does not let it change.
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
        """Writes an event; raises if that fails."""
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
        "apiVersion": pod.api_version,
        "kind": pod.kind,
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
    }
