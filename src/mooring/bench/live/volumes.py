"""The volume controller's part: a claim whose volume was chosen is bound to it.

As scheduler_perf does it: schedulers write their choice into the volume, and wait for the claim.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from mooring.client import MERGE_PATCH, Api, ApiError
from mooring.objects.decode import Reader
from mooring.objects.meta import ObjectMeta, Wire

from .writing import Key

_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"


class _Reference(Wire, frozen=True):
    namespace: str = ""
    name: str = ""


class _Spec(Wire, frozen=True):
    claim_ref: _Reference | None = None


class SeenVolume(Wire, frozen=True):
    """A volume and the claim that it is meant for."""

    metadata: ObjectMeta
    spec: _Spec = _Spec()


SEEN_VOLUME = Reader(SeenVolume, lambda seen: seen)


class _ClaimSpec(Wire, frozen=True):
    volume_name: str = ""


class _Claim(Wire, frozen=True):
    spec: _ClaimSpec = _ClaimSpec()


_CLAIM = msgspec.json.Decoder(_Claim)


class VolumeNotes:
    """Tells which volumes were given to a claim."""

    def __init__(self, given: Callable[[str, Key], None]) -> None:
        self._given = given

    def applied(self, item: SeenVolume, raw: Any) -> None:
        claim = item.spec.claim_ref
        if claim is not None:
            key = Key("PersistentVolumeClaim", claim.namespace, claim.name)
            self._given(item.metadata.name, key)

    def removed(self, item: SeenVolume) -> None:
        """A claim that loses its volume is nobody's concern here."""

    def unreadable(self, kind: str, key: str, problem: str) -> None:
        raise AssertionError(f"{kind} {key}: cannot be read: {problem}")


async def bind_claim(api: Api, volume: str, claim: Key) -> None:
    """Binds a claim to a volume unless it is bound already, or gone."""
    try:
        if _CLAIM.decode(await api.get(claim.path)).spec.volume_name:
            return
        body = {
            "metadata": {"annotations": {_BIND_COMPLETED: "yes"}},
            "spec": {"volumeName": volume},
        }
        await api.patch(claim.path, msgspec.json.encode(body), MERGE_PATCH)
        bound = msgspec.json.encode({"status": {"phase": "Bound"}})
        await api.patch(f"{claim.path}/status", bound, MERGE_PATCH)
    except ApiError as error:
        if not error.is_not_found:
            raise
