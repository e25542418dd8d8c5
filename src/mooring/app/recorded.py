"""What a recording consists of: a line that says what it is, then one line per call of the engine.

Objects are written as the API writes them, everything else in the words of the engine. Nothing of
it is code: reading a recording runs nothing that is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from mooring.engine.events import (
    BindingFailed,
    Bound,
    Event,
    Evicted,
    EvictionFailed,
    PermitRefused,
    Permitted,
    PodEnded,
    Unbound,
)
from mooring.engine.reuse import ReuseSettings
from mooring.objects.meta import Wire

#: Changes whenever an older reader would misunderstand a newer recording.
FORMAT = 1

#: Why a segment ends: in order, or because there is a next one.
STOPPED, GOES_ON = "the scheduler has stopped", "it goes on in the next segment"

#: How many decisions a step may make. A recording that says more is not one of ours, and might keep
#: its reader busy for ever.
Budget = Annotated[int, msgspec.Meta(ge=0, le=4096)]

#: The outcomes of actions, by the word that stands for them.
OUTCOMES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Bound,
        BindingFailed,
        PodEnded,
        Unbound,
        Permitted,
        PermitRefused,
        Evicted,
        EvictionFailed,
    )
}


class Setup(Wire, frozen=True):
    """What decisions depend on besides events: with it the engine can be built again."""

    #: The text of the KubeSchedulerConfiguration; None when there was no file.
    config: str | None = None
    feature_gates: Mapping[str, bool] = {}
    #: None is what the feature gates say.
    reuse: ReuseSettings | None = None


class Header(Wire, frozen=True):
    """The first line of a segment."""

    #: That this is a recording, and which format it has.
    mooring_recording: int
    #: Of Mooring.
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


class Line(Wire, frozen=True, forbid_unknown_fields=True):
    """Any other line. Exactly one of `apply`, `remove`, `told`, `step` and `end` is there."""

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
    about: dict[str, str] | None = None
    #: A step with that budget, the actions it returned, or what it failed with.
    step: Budget | None = None
    actions: tuple[msgspec.Raw, ...] = ()
    error: str | None = None
    #: The segment ends here, and why.
    end: str | None = None


_encode = msgspec.json.Encoder().encode


def header_line(header: Header) -> bytes:
    return _encode(header) + b"\n"


def moment(at: float) -> bytes:
    """How a line begins."""
    return b'{"at":%b,' % _encode(at)


def outcome_line(event: Event, at: float) -> bytes:
    """The outcome of an action as a line."""
    return b'%b"told":"%b","about":%b}\n' % (
        moment(at),
        type(event).__name__.encode(),
        _encode(event),
    )


def step_line(at: float, budget: int, actions: bytes, error: str | None = None) -> bytes:
    """A step as a line; `actions` are encoded already."""
    failed = b"" if error is None else b',"error":' + _encode(error)
    return b'%b"step":%d,"actions":%b%b}\n' % (moment(at), budget, actions, failed)


def end_line(at: float, why: str) -> bytes:
    """The end of a segment as a line."""
    return b'%b"end":%b}\n' % (moment(at), _encode(why))


def apply_text(kind: str, api_version: str, text: bytes) -> bytes:
    """An applied object as a line, from after its time on."""
    version = b',"apiVersion":' + _encode(api_version) if api_version else b""
    return b'"apply":%b%b,"object":%b}\n' % (_encode(kind), version, text)


def remove_line(at: float, kind: str, api_version: str, key: str) -> bytes:
    """A removed object as a line."""
    version = b',"apiVersion":' + _encode(api_version) if api_version else b""
    return b'%b"remove":%b%b,"key":%b}\n' % (moment(at), _encode(kind), version, _encode(key))
