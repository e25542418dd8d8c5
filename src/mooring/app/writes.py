"""Writing what is neither a binding nor an event: pod statuses, evictions, volumes and claims."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

import msgspec

from mooring.client.api import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Requests
from mooring.client.api_errors import ApiError, OutcomeUnknown, Unreachable
from mooring.documents.json_text import decode_at_any_depth
from mooring.engine.actions import EvictPod, PatchPodStatus, WriteVolumes
from mooring.engine.events import BindingFailed, Evicted, EvictionFailed
from mooring.framework.plugin import VolumeWrite
from mooring.objects.meta import Wire

from . import bodies

_FAILURES = (ApiError, Unreachable, OutcomeUnknown)

# A status that cannot be written now is written once more after this pause.
_PAUSE = 1.0


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
    """Performs the writes that the engine asks for."""

    def __init__(self, api: Requests, today: Callable[[], datetime]) -> None:
        self._api = api
        self._today = today

    async def patch_status(self, action: PatchPodStatus) -> None:
        """Raises when it cannot be written; a pod that is gone or another needs none."""
        try:
            await self._patch_status(action)
        except (Unreachable, OutcomeUnknown):
            # Writing it twice does no harm.
            await asyncio.sleep(_PAUSE)
            await self._patch_status(action)

    async def _patch_status(self, action: PatchPodStatus) -> None:
        path = bodies.pod_path(action.pod, "status")
        body = bodies.encode_status_patch(action, self._today())
        try:
            await self._api.patch(path, body, STRATEGIC_MERGE_PATCH)
        except ApiError as error:
            if not (error.is_not_found or error.is_conflict):
                raise

    async def evict(self, action: EvictPod) -> Evicted | EvictionFailed:
        """Marks a victim and deletes it. One that is gone already was evicted."""
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
        """Binds volumes and marks claims; that it came true is seen from the objects."""
        try:
            for volume in action.volumes:
                await self._bind_volume(volume)
            for claim in action.claims:
                path = bodies.CLAIM.path(claim.namespace, claim.name)
                await self._api.patch(path, bodies.encode_claim_patch(claim), MERGE_PATCH)
        except _Taken as error:
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
            raise _Taken(f"volume {write.name!r} is bound to claim {owner} already")
        body = bodies.encode_volume_patch(write, seen.metadata.resource_version)
        await self._api.patch(path, body, MERGE_PATCH)


class _Taken(Exception):
    """A volume that somebody else has bound meanwhile."""
