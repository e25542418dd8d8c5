"""Reads the answers of extenders as leniently as Go does.

The names of fields may be in upper or lower case. Text after the first document is not read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, TypeVar

import msgspec

from moorage.documents.errors import MoorageError
from moorage.engine.extender_answers import (
    ExtenderAnswer,
    FilterAnswer,
    NodeVictims,
    PreemptAnswer,
    PrioritizeAnswer,
)

from .questions import FILTER, PREEMPT, PRIORITIZE

T = TypeVar("T")

_Fields = dict[str, msgspec.Raw]


class ReplyError(MoorageError):
    """An answer that cannot be used."""


def describe_status(verb: str, url: str, status: int) -> str:
    """Describes an answer whose status is not 200; the verb is as configured."""
    return f"failed {verb} with extender at URL {url}, code {status}"


def read_reply(verb: str, body: bytes) -> ExtenderAnswer:
    """Reads the answer to filter, prioritize or preempt. Raises ReplyError."""
    return _read(body, _READERS[verb], verb)


def read_binding_error(body: bytes) -> str:
    """Returns why an extender did not bind a pod; empty if it did. Raises ReplyError."""
    return _read(body, lambda document: _read_object(document, _BindingResult).error, "bind")


def _read(body: bytes, read: Callable[[bytes], T], verb: str) -> T:
    try:
        return read(_cut_document(body))
    except msgspec.DecodeError as error:
        raise ReplyError(f"json: cannot unmarshal the answer to {verb}: {error}") from None
    except RecursionError:
        raise ReplyError("the answer is nested too deeply") from None


def _cut_document(body: bytes) -> bytes:
    """Returns the first document of a body. Raises ReplyError if there is none."""
    try:
        return bytes(msgspec.json.decode(body, type=msgspec.Raw))
    except msgspec.DecodeError:
        text = body.decode(errors="replace").lstrip(" \t\r\n")
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        raise ReplyError(_describe_syntax(text, error.pos)) from None
    return text[:end].encode()


def _describe_syntax(text: str, at: int) -> str:
    """Returns Go's message for the mistakes that extenders make: no answer, half of one, a page."""
    if at >= len(text):
        return "unexpected EOF" if text else "EOF"
    where = "object key string" if text[:at].rstrip().endswith("{") else "value"
    return f"invalid character {text[at]!r} looking for beginning of {where}"


# The fields of answers, in lower case. What is null counts as absent.


class _NodeMeta(msgspec.Struct, frozen=True):
    name: str = ""


class _NodeItem(msgspec.Struct, frozen=True):
    metadata: _NodeMeta = _NodeMeta()


class _NodeList(msgspec.Struct):
    """A NodeList, of which only the names are read."""

    items: tuple[_NodeItem, ...] | None = None


class _FilterResult(msgspec.Struct):
    nodes: _NodeList | None = None
    nodenames: tuple[str, ...] | None = None
    failednodes: dict[str, str] = {}
    failedandunresolvablenodes: dict[str, str] = {}
    error: str = ""


class _HostPriority(msgspec.Struct):
    host: str = ""
    score: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] = 0


class _PreemptionResult(msgspec.Struct):
    nodenametometavictims: dict[str, _Fields | None] = {}


class _Victims(msgspec.Struct):
    pods: tuple[_Fields, ...] = ()
    numpdbviolations: int = 0


class _Victim(msgspec.Struct):
    uid: str = ""


class _BindingResult(msgspec.Struct):
    error: str = ""


def _fold(fields: _Fields | None) -> _Fields:
    """Returns fields by names in lower case, without nulls; the last of equal names counts."""
    lower = {name.lower(): value for name, value in (fields or {}).items()}
    return {name: value for name, value in lower.items() if bytes(value) != b"null"}


def _read_fields(fields: _Fields | None, kind: type[T]) -> T:
    return msgspec.json.decode(msgspec.json.encode(_fold(fields)), type=kind)


def _read_object(document: bytes, kind: type[T]) -> T:
    return _read_fields(msgspec.json.decode(document, type=_Fields | None), kind)


def _read_filter(document: bytes) -> FilterAnswer:
    found = _read_object(document, _FilterResult)
    nodes = None
    if found.nodes is not None:
        nodes = tuple(each.metadata.name for each in found.nodes.items or ())
    failed, unresolvable = found.failednodes, found.failedandunresolvablenodes
    return FilterAnswer(found.nodenames, nodes, failed, unresolvable, found.error)


def _read_priorities(document: bytes) -> PrioritizeAnswer:
    listed = msgspec.json.decode(document, type=list[_Fields | None] | None) or ()
    folded = msgspec.json.encode([_fold(each) for each in listed])
    found = msgspec.json.decode(folded, type=list[_HostPriority])
    return PrioritizeAnswer(tuple(each.host for each in found), tuple(each.score for each in found))


def _read_preemption(document: bytes) -> PreemptAnswer:
    found = _read_object(document, _PreemptionResult).nodenametometavictims
    return PreemptAnswer({name: _read_victims(there) for name, there in found.items()})


def _read_victims(fields: _Fields | None) -> NodeVictims:
    found = _read_fields(fields, _Victims)
    uids = tuple(_read_fields(each, _Victim).uid for each in found.pods)
    return NodeVictims(uids, found.numpdbviolations)


_READERS: Mapping[str, Callable[[bytes], ExtenderAnswer]] = {
    FILTER: _read_filter,
    PRIORITIZE: _read_priorities,
    PREEMPT: _read_preemption,
}
