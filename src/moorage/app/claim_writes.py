"""Writes the devices that claims are given."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec

from moorage.client.api import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Requests
from moorage.client.api_errors import ApiError, OutcomeUnknown, Unreachable
from moorage.documents.conversion import to_struct
from moorage.engine.actions import PodRef, WriteClaims
from moorage.framework.device_writes import ClaimCreation, ClaimGrant, DeviceClaimRef
from moorage.objects.resource_claim import EXTENDED_CLAIM, FINALIZER, ClaimSpec, share_claim_spec

from . import bodies
from .bodies import DEVICE_CLAIM, ReadClaim, ReadMeta, ReadStatus, read_claim

_API_VERSION = f"{DEVICE_CLAIM.group}/{DEVICE_CLAIM.version}"

# A claim that others write at the same time is read and tried again so often.
_MOST_TRIES, _PAUSE = 5, 0.01

# As much of a pod's name goes into the name of its claim as API servers would take.
_MOST_OF_NAME = 58

_FAILURES = (ApiError, Unreachable, OutcomeUnknown)

_encode = msgspec.json.Encoder().encode


class ClaimWriteError(Exception):
    """Claims cannot be written. Users read the text."""


class _Turns:
    """The writes to one claim.

    They wait for each other, because pods that share a claim would conflict.
    """

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0
        #: What the last of them has written.
        self.latest: ReadClaim | None = None


class ClaimWriter:
    """Writes claims one after the other, each with the version that was read.

    So no change of others is lost. A write whose answer was lost can be repeated: it finds the
    claim as it left it, or it gets a conflict.
    """

    def __init__(self, api: Requests, today: Callable[[], datetime]) -> None:
        self._api = api
        self._today = today
        #: The claims that were made for extended resources, by the uid of the pod.
        self._made: dict[str, DeviceClaimRef] = {}
        #: By the uid of the claim.
        self._turns: dict[str, _Turns] = {}
        #: How many requests to make one ended how.
        self.creations: Counter[str] = Counter()

    async def write(self, action: WriteClaims) -> None:
        """Grants all claims of a pod. Raises ClaimWriteError."""
        for grant in action.writes.grants:
            known = ReadClaim(
                ReadMeta(
                    grant.claim.uid,
                    grant.claim.name,
                    grant.claim.resource_version,
                    grant.finalizers,
                ),
                status=ReadStatus(None, grant.reserved_for),
            )
            # Without a version nobody would notice what others wrote.
            seen = known if grant.claim.resource_version else None
            await self._grant(grant, action.pod, seen)
        if action.writes.creation is not None:
            await self._create(action.writes.creation, action.pod)

    async def _grant(self, grant: ClaimGrant, pod: PodRef, known: ReadClaim | None) -> None:
        """Writes a claim after the writes before it, and builds on what the last one wrote."""
        uid = grant.claim.uid
        turns = self._turns.setdefault(uid, _Turns())
        turns.waiting += 1
        try:
            async with turns.lock:
                if turns.latest is not None:
                    known, turns.latest = turns.latest, None
                    if _is_done(known, grant, pod):
                        return
                    _check(known, grant)
                written = await self._grant_in_turn(grant, pod, known)
                if written is not None and written.metadata.uid == uid:
                    turns.latest = written
        finally:
            turns.waiting -= 1
            if not turns.waiting:
                del self._turns[uid]

    async def _grant_in_turn(
        self, grant: ClaimGrant, pod: PodRef, known: ReadClaim | None
    ) -> ReadClaim | None:
        """Tries until the claim is written or others changed it for good; returns the claim."""
        for attempt in range(_MOST_TRIES):
            if attempt:
                await asyncio.sleep(_PAUSE)
            last = attempt == _MOST_TRIES - 1
            if known is None:
                known = await self._get(grant.claim, last)
                if known is None:
                    continue
                if _is_done(known, grant, pod):
                    return known
                _check(known, grant)
            written = await self._try(grant, pod, known, last)
            if written is not None:
                return written
            known = None
        return None

    async def _try(
        self, grant: ClaimGrant, pod: PodRef, known: ReadClaim, last: bool
    ) -> ReadClaim | None:
        """Returns the claim as it was written; None if another try may succeed."""
        try:
            return await self._write_once(grant, pod, known)
        except (Unreachable, OutcomeUnknown) as error:
            if last:
                raise ClaimWriteError(f"{_what(grant)}: {error}") from error
            return None
        except ApiError as error:
            if last or not error.is_conflict:
                raise ClaimWriteError(f"{_what(grant)}: {error.message}") from error
            return None

    async def _get(self, claim: DeviceClaimRef, last: bool) -> ReadClaim | None:
        path = DEVICE_CLAIM.path(claim.namespace, claim.name)
        try:
            return read_claim(await self._api.get(path))
        except ApiError as error:
            if error.is_not_found:
                raise ClaimWriteError(f"claim {claim.key} got deleted in the meantime") from error
            raise ClaimWriteError(
                f"get updated claim {claim.key} after conflict: {error.message}"
            ) from error
        except (Unreachable, OutcomeUnknown) as error:
            if last:
                text = f"get updated claim {claim.key} after conflict: {error}"
                raise ClaimWriteError(text) from error
            return None

    async def _write_once(self, grant: ClaimGrant, pod: PodRef, known: ReadClaim) -> ReadClaim:
        path = DEVICE_CLAIM.path(grant.claim.namespace, grant.claim.name)
        meta: dict[str, Any] = {
            "uid": grant.claim.uid,
            "resourceVersion": known.metadata.resource_version,
        }
        finalizers = known.metadata.finalizers or ()
        # Another pod that shares the claim may have written the same devices.
        allocation = grant.allocation if known.status.allocation is None else None
        if allocation is not None and FINALIZER not in finalizers:
            body = {"metadata": {**meta, "finalizers": [*finalizers, FINALIZER]}}
            answer = await self._api.patch(path, _encode(body), MERGE_PATCH)
            seen = read_claim(answer)
            meta["resourceVersion"] = seen.metadata.resource_version
        status = self._status(allocation, known, _find_user(grant, pod))
        body = {"metadata": meta, "status": status}
        answer = await self._api.patch(f"{path}/status", _encode(body), MERGE_PATCH)
        return read_claim(answer)

    def _status(
        self, allocation: dict[str, Any] | None, known: ReadClaim, user: dict[str, Any]
    ) -> dict[str, Any]:
        users = [*(known.status.reserved_for or ()), user]
        if allocation is None:
            return {"reservedFor": users}
        # Only together with a new allocation: the API server refuses to add it later.
        at = self._today().strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"allocation": {**allocation, "allocationTimestamp": at}, "reservedFor": users}

    # The claim for extended resources

    async def _create(self, creation: ClaimCreation, pod: PodRef) -> None:
        try:
            ref = await self._make(creation, pod)
        except _FAILURES as error:
            text = error.message if isinstance(error, ApiError) else str(error)
            what = f"create claim for extended resources {pod.namespace}/"
            raise ClaimWriteError(f"{what}: {text}") from error
        await self._grant(ClaimGrant(ref, creation.allocation), pod, None)
        status = {"resourceClaimName": ref.name, "requestMappings": list(creation.mappings)}
        body = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": status}}
        try:
            path = bodies.pod_path(pod, "status")
            await self._api.patch(path, _encode(body), STRATEGIC_MERGE_PATCH)
        except _FAILURES as error:
            text = error.message if isinstance(error, ApiError) else str(error)
            name = f"{pod.namespace}/{pod.name}"
            what = f"update pod {name} ExtendedResourceClaimStatus"
            raise ClaimWriteError(f"{what}: {text}") from error

    async def _make(self, creation: ClaimCreation, pod: PodRef) -> DeviceClaimRef:
        """Makes the claim, or finds the one made by a try whose answer was lost.

        Its name follows from the pod, so that there is never more than one.
        """
        name = f"{_stem(pod)}{sha256(pod.uid.encode()).hexdigest()[:10]}"
        for attempt in range(_MOST_TRIES):
            try:
                return await self._post(creation, pod, name)
            except ApiError as error:
                if not error.is_already_exists:
                    raise
                ref = await self._find_made(creation, pod, name)
                if ref is not None:
                    return ref
                # Somebody else has the name.
                name = ""
            except (Unreachable, OutcomeUnknown):
                if attempt == _MOST_TRIES - 1:
                    raise
                await asyncio.sleep(_PAUSE)
        return await self._post(creation, pod, "")

    async def _find_made(
        self, creation: ClaimCreation, pod: PodRef, name: str
    ) -> DeviceClaimRef | None:
        """Returns the claim of that name if it belongs to the pod.

        Raises ClaimWriteError if it cannot be used.
        """
        found = await self._get(DeviceClaimRef(pod.namespace, name, ""), last=True)
        if found is None or not found.is_made_for(pod.uid):
            return None
        ref = self._note(found, pod)
        if not _is_as_made(found, creation):
            # It is deleted when this attempt is undone, and the next one makes its own.
            raise ClaimWriteError(f"claim {ref.key} was left behind by an earlier attempt")
        return ref

    def _note(self, made: ReadClaim, pod: PodRef) -> DeviceClaimRef:
        meta = made.metadata
        ref = self._made[pod.uid] = DeviceClaimRef(pod.namespace, meta.name, meta.uid)
        return ref

    async def _post(self, creation: ClaimCreation, pod: PodRef, name: str) -> DeviceClaimRef:
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod.name,
            "uid": pod.uid,
            "controller": True,
        }
        body = {
            "apiVersion": _API_VERSION,
            "kind": DEVICE_CLAIM.kind,
            "metadata": {
                **({"name": name} if name else {}),
                "generateName": _stem(pod),
                "namespace": pod.namespace,
                "annotations": {EXTENDED_CLAIM: "true"},
                "ownerReferences": [owner],
            },
            "spec": {"devices": creation.devices},
        }
        try:
            answer = await self._api.post(DEVICE_CLAIM.path(pod.namespace), _encode(body))
        except _FAILURES:
            self.creations["failure"] += 1
            raise
        self.creations["success"] += 1
        return self._note(read_claim(answer), pod)

    def forget(self, pod_uid: str) -> DeviceClaimRef | None:
        """Forgets and returns the claim that was made for a pod."""
        return self._made.pop(pod_uid, None)


def _find_user(grant: ClaimGrant, pod: PodRef) -> dict[str, Any]:
    """Returns whom a claim is to be reserved for, as the API writes it."""
    return grant.user or {"resource": "pods", "name": pod.name, "uid": pod.uid}


def _is_done(known: ReadClaim, grant: ClaimGrant, pod: PodRef) -> bool:
    """Whether an earlier try succeeded although its answer was lost."""
    has_devices = known.status.allocation is not None
    user = _find_user(grant, pod)["uid"]
    if known.metadata.uid != grant.claim.uid or not (has_devices and known.is_for(user)):
        return False
    return grant.allocation is None or _has_devices(known, grant.allocation)


def _has_devices(known: ReadClaim, allocation: dict[str, Any]) -> bool:
    """Whether a claim has the devices of an allocation."""
    written = known.status.allocation
    return written is not None and _devices(written) == _devices(allocation)


def _devices(allocation: dict[str, Any]) -> list[tuple[Any, ...]]:
    results = (allocation.get("devices") or {}).get("results") or ()
    names = ("request", "driver", "pool", "device", "shareID")
    return [tuple(each.get(name) for name in names) for each in results]


def _stem(pod: PodRef) -> str:
    """Returns the beginning of the name of a pod's claim for extended resources."""
    return f"{pod.name}-extended-resources-"[:_MOST_OF_NAME]


def _is_as_made(made: ReadClaim, creation: ClaimCreation) -> bool:
    """Whether a claim is exactly as requested, and no other client has begun to fill it."""
    wanted = to_struct(ClaimSpec, {"devices": creation.devices})
    return (
        made.status.allocation is None
        and made.metadata.deletion_timestamp is None
        and share_claim_spec(made.spec) is share_claim_spec(wanted)
    )


def _check(known: ReadClaim, grant: ClaimGrant) -> None:
    meta, key = known.metadata, grant.claim.key
    if meta.uid != grant.claim.uid or meta.deletion_timestamp is not None:
        raise ClaimWriteError(f"claim {key} got deleted in the meantime")
    is_allocated = known.status.allocation is not None
    if is_allocated and grant.allocation is not None and not _has_devices(known, grant.allocation):
        raise ClaimWriteError(f"claim {key} got allocated elsewhere in the meantime")
    if grant.allocation is None and not is_allocated:
        raise ClaimWriteError(f"claim {key} got deallocated elsewhere in the meantime")


def _what(grant: ClaimGrant) -> str:
    if grant.allocation is None:
        return f"add reservation to claim {grant.claim.key}"
    return f"add allocation and reservation to claim {grant.claim.key}"
