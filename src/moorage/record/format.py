"""The format of a recording: a header line, then one line per call of the engine.

Objects are written as the API writes them, everything else in the engine's own form. None of it is
code: reading a recording executes nothing.

Of an object only the fields that scheduling reads are kept: it is decoded as when it comes from the
API, and encoded again. So fields that no decision can see (environment variables, commands, names
of secrets) cannot reach a file, without a list of fields to maintain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from moorage.config.kubernetes_versions import DEFAULT_VERSION
from moorage.documents.json_text import decode_at_any_depth, empty_below
from moorage.engine.classes.classes import ClassSettings
from moorage.engine.events import (
    BindingFailed,
    Bound,
    ClaimsRevoked,
    ClaimsWritten,
    Event,
    Evicted,
    EvictionFailed,
    ExtenderAnswered,
    PermitRefused,
    Permitted,
    PodEnded,
    ReleaseFailed,
    Unbound,
)
from moorage.objects.decode import reader
from moorage.objects.kinds import READ_KINDS, Object
from moorage.objects.meta import Wire
from moorage.objects.quantity import Quantity, format_quantity
from moorage.world.shadow_report import JudgedPlacement

#: Changes whenever an older reader would misunderstand a newer recording.
FORMAT = 1

#: Why a segment ends: in order, or because there is a next one.
STOPPED, CONTINUES = "the scheduler has stopped", "it goes on in the next segment"

#: How many decisions a step may make. A recording that says more is not one of ours, and might keep
#: its reader busy for ever.
Budget = Annotated[int, msgspec.Meta(ge=0, le=4096)]

#: Holds the whole object once more, as it was applied.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

#: The outcomes of actions, by the word that stands for them.
OUTCOMES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Bound,
        BindingFailed,
        ClaimsWritten,
        ClaimsRevoked,
        ReleaseFailed,
        PodEnded,
        Unbound,
        Permitted,
        PermitRefused,
        Evicted,
        EvictionFailed,
        ExtenderAnswered,
    )
}


class Setup(Wire, frozen=True):
    """What decisions depend on besides events. With it the engine can be built again."""

    #: The text of the KubeSchedulerConfiguration; None when there was no file.
    config: str | None = None
    feature_gates: Mapping[str, bool] = {}
    #: The version of kube-scheduler that decisions followed.
    emulation_version: str = DEFAULT_VERSION.name
    #: None is what the feature gates say.
    reuse: ClassSettings | None = None
    #: Whether another scheduler decided, and Moorage watched.
    is_beside: bool = False


class Header(Wire, frozen=True):
    """The first line of a segment."""

    #: That this is a recording, and which format it has.
    moorage_recording: int
    #: Of Moorage.
    version: str
    #: The same for all segments that one scheduler wrote.
    run: str = ""
    #: Counts the segments of a run from 0, which is the only one that begins with an engine that
    #: knows nothing.
    segment: int = 0
    #: When the segment was begun, for people.
    started: str = ""
    #: The engine's time then.
    at: float = 0.0
    #: How many of the lines that follow tell what was known already.
    objects: int = 0
    #: The nodes of pods that were on their way there, by uid.
    assumed: Mapping[str, str] = {}
    setup: Setup = Setup()


class RecordLine(Wire, frozen=True, forbid_unknown_fields=True):
    """Any other line.

    Exactly one of `apply`, `remove`, `told`, `step`, `judged` and `end` is there.
    """

    #: The engine's time; what is known at the head of a segment has none of its own.
    at: float | None = None
    #: An object of this kind exists in this form now.
    apply: str | None = None
    #: An object of this kind is gone.
    remove: str | None = None
    #: Of kinds that are not Kubernetes' own, the apiVersion.
    api_version: str | None = None
    object: msgspec.Raw = msgspec.Raw()
    key: str | None = None
    #: The outcome of an action, and what belongs to it.
    told: str | None = None
    about: dict[str, Any] | None = None
    #: A step with that budget, the actions it returned, or what it failed with.
    step: Budget | None = None
    actions: tuple[msgspec.Raw, ...] = ()
    error: str | None = None
    #: The pod that came last was placed by another scheduler; what Moorage would have done.
    judged: JudgedPlacement | None = None
    #: The segment ends here, and why.
    end: str | None = None


_encode = msgspec.json.Encoder().encode


def encode_header(header: Header) -> bytes:
    return _encode(header) + b"\n"


def encode_time(at: float) -> bytes:
    """Encodes the beginning of a line."""
    return b'{"at":%b,' % _encode(at)


def encode_outcome(event: Event, at: float) -> bytes:
    """Encodes the outcome of an action as a line."""
    return b'%b"told":"%b","about":%b}\n' % (
        encode_time(at),
        type(event).__name__.encode(),
        _encode(event),
    )


def encode_step(at: float, budget: int, actions: bytes, error: str | None = None) -> bytes:
    """Encodes a step as a line; `actions` are encoded already."""
    failed = b"" if error is None else b',"error":' + _encode(error)
    return b'%b"step":%d,"actions":%b%b}\n' % (encode_time(at), budget, actions, failed)


def encode_judged(judged: JudgedPlacement, at: float) -> bytes:
    """Encodes what Moorage would have done as a line."""
    return b'%b"judged":%b}\n' % (encode_time(at), _encode(judged))


def encode_end(at: float, why: str) -> bytes:
    """Encodes the end of a segment as a line."""
    return b'%b"end":%b}\n' % (encode_time(at), _encode(why))


def encode_object(kind: str, api_version: str, text: bytes) -> bytes:
    """Encodes an applied object as a line, without the time that comes first."""
    version = b',"apiVersion":' + _encode(api_version) if api_version else b""
    return b'"apply":%b%b,"object":%b}\n' % (_encode(kind), version, text)


def encode_removal(at: float, kind: str, api_version: str, key: str) -> bytes:
    """Encodes a removed object as a line."""
    version = b',"apiVersion":' + _encode(api_version) if api_version else b""
    return b'%b"remove":%b%b,"key":%b}\n' % (encode_time(at), _encode(kind), version, _encode(key))


def find_object_key(item: Object) -> str:
    """Returns the name by which an object is removed: with its namespace if it has a key."""
    key: str = getattr(item, "key", None) or item.name
    return key


def strip_object(kind: str, raw: bytes | msgspec.Raw, api_version: str = "") -> bytes:
    """Returns the JSON of an object, reduced to the fields that scheduling reads.

    A version is given for kinds that have several, because the items of a list leave it out.
    """
    return _strip_known(kind, raw, api_version) if kind in READ_KINDS else _strip_custom(raw)


def _strip_known(kind: str, raw: bytes | msgspec.Raw, api_version: str) -> bytes:
    wire = reader(kind).read_one(raw)
    if api_version:
        wire = msgspec.structs.replace(wire, api_version=api_version)
    notes = wire.metadata.annotations
    if notes and LAST_APPLIED in notes:
        # It was made for this call, so nobody else sees the change.
        del notes[LAST_APPLIED]
    return _encode_object(wire)


def _strip_custom(raw: bytes | msgspec.Raw) -> bytes:
    """Keeps a custom resource whole, because it is not known what a plugin reads of it."""
    raw_object: dict[str, Any] = decode_at_any_depth(msgspec.json.decode, raw)
    # As the plugins get it, and so that it can be encoded again.
    empty_below(raw_object)
    meta = raw_object.get("metadata")
    if isinstance(meta, dict):
        meta.pop("managedFields", None)
        notes = meta.get("annotations")
        if isinstance(notes, dict):
            notes.pop(LAST_APPLIED, None)
    return _encode_object(raw_object)


def _write_quantity(value: Any) -> str:
    """Writes a quantity in the shortest exact notation."""
    if not isinstance(value, Quantity):
        raise NotImplementedError(type(value))
    return format_quantity(value)


_encode_object = msgspec.json.Encoder(enc_hook=_write_quantity).encode
