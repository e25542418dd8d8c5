"""What a recording keeps of an object: that which scheduling reads, and nothing else.

An object of a kind that scheduling knows is decoded as it is when it arrives from the API, and
written again. So what no decision can see (environment variables, commands, secrets' names) cannot
reach a file: it is lost on the way, without a list of fields that might be forgotten.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mooring.documents.json_text import decode_at_any_depth, empty_below
from mooring.objects.decode import reader
from mooring.objects.kinds import READ_KINDS
from mooring.objects.quantity import NANOS_PER_MILLI, NANOS_PER_UNIT, Quantity

#: Holds the whole object once more, as it was applied.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def stripped(kind: str, raw: bytes | msgspec.Raw) -> bytes:
    """The JSON of an object with what scheduling reads of it."""
    return _known(kind, raw) if kind in READ_KINDS else _unknown(raw)


def _known(kind: str, raw: bytes | msgspec.Raw) -> bytes:
    wire = reader(kind).read_one(raw)
    notes = wire.metadata.annotations
    if notes and LAST_APPLIED in notes:
        # It was made for this call, so nobody else sees the change.
        del notes[LAST_APPLIED]
    return _ENCODE(wire)


def _unknown(raw: bytes | msgspec.Raw) -> bytes:
    """What only some plugin reads is kept, because nobody knows which part of it."""
    written: dict[str, Any] = decode_at_any_depth(msgspec.json.decode, raw)
    # As the plugins get it, and so that it can be encoded again.
    empty_below(written)
    meta = written.get("metadata")
    if isinstance(meta, dict):
        meta.pop("managedFields", None)
        notes = meta.get("annotations")
        if isinstance(notes, dict):
            notes.pop(LAST_APPLIED, None)
    return _ENCODE(written)


def _write(value: Any) -> str:
    """A quantity in the shortest notation that is exact."""
    if not isinstance(value, Quantity):
        raise NotImplementedError(type(value))
    for size, suffix in ((NANOS_PER_UNIT, ""), (NANOS_PER_MILLI, "m")):
        whole, rest = divmod(int(value), size)
        if not rest:
            return f"{whole}{suffix}"
    return f"{int(value)}n"


_ENCODE = msgspec.json.Encoder(enc_hook=_write).encode
