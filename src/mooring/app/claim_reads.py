"""Claims to devices as they are read between two writes."""

from __future__ import annotations

from typing import Any

import msgspec

from mooring.documents.json_text import decode_at_any_depth
from mooring.objects.kinds import KINDS
from mooring.objects.resource_claim import ClaimSpec

CLAIM_KIND = KINDS["ResourceClaim"]


class ReadMeta(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    name: str = ""
    resource_version: str = ""
    finalizers: tuple[str, ...] | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[dict[str, Any], ...] | None = None


class ReadStatus(msgspec.Struct, frozen=True, rename="camel"):
    allocation: dict[str, Any] | None = None
    reserved_for: tuple[dict[str, Any], ...] | None = None


class ReadClaim(msgspec.Struct, frozen=True):
    """What is read of a claim before it is written."""

    metadata: ReadMeta = ReadMeta()
    spec: ClaimSpec = ClaimSpec()
    status: ReadStatus = ReadStatus()

    def is_made_for(self, uid: str) -> bool:
        return any(owner.get("uid") == uid for owner in self.metadata.owner_references or ())

    def is_for(self, uid: str) -> bool:
        return any(user.get("uid") == uid for user in self.status.reserved_for or ())


_decode = msgspec.json.Decoder(ReadClaim).decode


def read_claim(answer: bytes) -> ReadClaim:
    """The claim that an API server has answered with."""
    claim: ReadClaim = decode_at_any_depth(_decode, answer)
    return claim
