"""Takes back what was written to claims of devices, and finds out which devices they have then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from moorage.client.api import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Requests
from moorage.client.api_errors import ApiError, ClientError
from moorage.engine.actions import ReleaseClaim, RevokeClaims
from moorage.framework.device_writes import DeviceClaimRef
from moorage.objects.resource_claim import FINALIZER

from . import bodies, logs
from .bodies import DEVICE_CLAIM, ReadClaim, read_claim

_log = logs.make_log(__name__)

# An API server that cannot be asked is asked again so much later, twice as late each time.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Revocation:
    """What is known about the claims of a pod after their writes were taken back."""

    #: Those that have devices, in the version in which they were read.
    held: list[DeviceClaimRef] = field(default_factory=list)
    #: Those of which it is not known.
    unknown: list[DeviceClaimRef] = field(default_factory=list)
    #: The claim for extended resources, while it is to be deleted.
    doomed: DeviceClaimRef | None = None

    @property
    def is_done(self) -> bool:
        return not self.unknown and self.doomed is None


class ClaimRevoker:
    """Takes pods out of claims, and devices out of claims.

    The answer to a write may be lost while the write is still under way. So a claim without devices
    also loses its finalizer, which every write of devices expects there. That changes the version
    of the claim, and the late write fails.
    """

    def __init__(self, api: Requests) -> None:
        self._api = api

    async def release(self, action: ReleaseClaim) -> None:
        """Frees the devices of a claim, or deletes the claim."""
        claim = action.release.claim
        if action.release.deletes:
            await self._delete(claim)
            return
        meta = {"uid": claim.uid, "resourceVersion": claim.resource_version}
        body = {
            "metadata": {key: value for key, value in meta.items() if value},
            "status": {"allocation": None, "reservedFor": None, "devices": None},
        }
        path = DEVICE_CLAIM.path(claim.namespace, claim.name, "status")
        await _leave_missing(self._api.patch(path, _encode(body), MERGE_PATCH))

    async def revoke(self, action: RevokeClaims, made: DeviceClaimRef | None) -> Revocation:
        """Takes the pod out of its claims. The controller of claims does what fails here.

        `made` is the claim that was made for its extended resources, if there is one.
        """
        revocation = Revocation()
        for claim in action.claims:
            if not await self._try(self._take_out(claim, action.pod.uid, revocation)):
                revocation.unknown.append(claim)
        if action.deletes_special and made is not None:
            revocation.doomed = made
            await self._try(self._end(revocation))
        return revocation

    async def finish(self, revocation: Revocation) -> None:
        """Returns when it is known which devices all claims have, however long that takes."""
        pause = _FIRST_PAUSE
        while not revocation.is_done:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            unknown, revocation.unknown = revocation.unknown, []
            for claim in unknown:
                if not await self._try(self._look_at(claim, revocation)):
                    revocation.unknown.append(claim)
            await self._try(self._end(revocation))

    async def _try(self, work: Awaitable[None]) -> bool:
        """Does something; returns whether it succeeded."""
        try:
            await work
        except ClientError as error:
            if not (isinstance(error, ApiError) and error.is_conflict):
                _log.warning("Could not find out what a claim has", error=str(error))
            return False
        return True

    async def _take_out(self, claim: DeviceClaimRef, pod_uid: str, found: Revocation) -> None:
        user = {"$patch": "delete", "uid": pod_uid}
        body = {"metadata": {"uid": claim.uid}, "status": {"reservedFor": [user]}}
        path = DEVICE_CLAIM.path(claim.namespace, claim.name, "status")
        answer = await _leave_missing(self._api.patch(path, _encode(body), STRATEGIC_MERGE_PATCH))
        if answer is not None:
            await self._note_devices(claim, read_claim(answer), found)

    async def _look_at(self, claim: DeviceClaimRef, found: Revocation) -> None:
        answer = await _leave_missing(self._api.get(DEVICE_CLAIM.path(claim.namespace, claim.name)))
        if answer is not None:
            await self._note_devices(claim, read_claim(answer), found)

    async def _note_devices(
        self, claim: DeviceClaimRef, read: ReadClaim, found: Revocation
    ) -> None:
        """Notes a claim that has devices; makes sure that one without devices gets none later."""
        if read.metadata.uid != claim.uid:
            return
        version = read.metadata.resource_version
        finalizers = read.metadata.finalizers or ()
        if read.status.allocation is not None:
            found.held.append(msgspec.structs.replace(claim, resource_version=version))
        elif FINALIZER in finalizers:
            left = [each for each in finalizers if each != FINALIZER]
            meta = {"uid": claim.uid, "resourceVersion": version, "finalizers": left}
            path = DEVICE_CLAIM.path(claim.namespace, claim.name)
            body = _encode({"metadata": meta})
            await _leave_missing(self._api.patch(path, body, MERGE_PATCH))

    async def _end(self, revocation: Revocation) -> None:
        if revocation.doomed is not None:
            await self._delete(revocation.doomed)
            revocation.doomed = None

    async def _delete(self, claim: DeviceClaimRef) -> None:
        path = DEVICE_CLAIM.path(claim.namespace, claim.name)
        body = {"metadata": {"uid": claim.uid, "finalizers": None}}
        await _leave_missing(self._api.patch(path, _encode(body), MERGE_PATCH))
        await _leave_missing(self._api.delete(path, bodies.encode_deletion(claim.uid)))


async def _leave_missing(call: Awaitable[Any]) -> Any:
    """Returns the answer; None if there is no such object."""
    try:
        return await call
    except ApiError as error:
        if not error.is_not_found:
            raise
        return None
