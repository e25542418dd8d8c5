"""Reads the answers of extenders as leniently as Go does.

The names of fields may be in upper or lower case. Text after the first document is not read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, NoReturn

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

_NO_PRIORITY = "json: cannot unmarshal the answer into Go value of type v1.HostPriority"


class AskedNames(NamedTuple):
    """The names that an extender was asked about, and their encoded form."""

    names: tuple[str, ...]
    encoded: bytes


_DEEP = "the answer is nested too deeply"


class ReplyError(MoorageError):
    """An answer that cannot be used."""


def describe_status(verb: str, url: str, status: int) -> str:
    """Describes an answer whose status is not 200; the verb is as configured."""
    return f"failed {verb} with extender at URL {url}, code {status}"


def read_reply(verb: str, body: bytes, asked: AskedNames | None = None) -> ExtenderAnswer:
    """Reads the answer to filter, prioritize or preempt. Raises ReplyError.

    With the names as they were sent, not all of them need to be read again.
    """
    if verb == FILTER and asked is not None and asked.encoded in body:
        answer = _read_all_kept(body, asked)
        if answer is not None:
            return answer
    document = _cut_document(body)
    try:
        return _READERS[verb](document)
    except RecursionError:
        raise ReplyError(_DEEP) from None


def read_binding_error(body: bytes) -> str:
    """Returns why an extender did not bind a pod; empty if it did. Raises ReplyError."""
    fields = _Fields(_cut_document(body), "ExtenderBindingResult")
    error: str = fields.read("error", str, "Error of type string") or ""
    return error


def _read_all_kept(body: bytes, asked: AskedNames) -> FilterAnswer | None:
    """Reads the answer of an extender that keeps every node; returns None if it says more."""
    try:
        kept = _ALL_KEPT.decode(body.replace(asked.encoded, b"null", 1))
    except (msgspec.DecodeError, RecursionError):
        return None
    if kept.nodes is not None or kept.failed or kept.unresolvable or kept.error:
        return None
    return FilterAnswer(asked.names)


def _read_filter(document: bytes) -> FilterAnswer:
    fields = _Fields(document, "ExtenderFilterResult")
    nodes = fields.read("nodes", _NodeList, "Nodes of type v1.NodeList")
    names = fields.read("nodenames", list[str], "NodeNames of type []string")
    reasons = dict[str, str]
    return FilterAnswer(
        None if names is None else tuple(names),
        None if nodes is None else tuple(each.metadata.name for each in nodes.items or ()),
        fields.read("failednodes", reasons, "FailedNodes of type v1.FailedNodesMap") or {},
        fields.read(
            "failedandunresolvablenodes",
            reasons,
            "FailedAndUnresolvableNodes of type v1.FailedNodesMap",
        )
        or {},
        fields.read("error", str, "Error of type string") or "",
    )


def _read_priorities(document: bytes) -> PrioritizeAnswer:
    try:
        listed = _PRIORITIES.decode(document)
    except msgspec.ValidationError:
        raise ReplyError(_NO_PRIORITY) from None
    # Most extenders write all entries alike: then one of the two spellings is enough.
    for host, score in (("host", "score"), ("lower_host", "lower_score")):
        hosts = tuple(map(attrgetter(host), listed or ()))
        if "" not in hosts and not any(map(attrgetter(_OTHER[score]), listed or ())):
            return PrioritizeAnswer(hosts, tuple(map(attrgetter(score), listed or ())))
    return _read_priorities_in_any_case(document)


def _read_priorities_in_any_case(document: bytes) -> PrioritizeAnswer:
    entries = [_fold(each) for each in msgspec.json.decode(document)]
    try:
        listed = msgspec.convert(entries, list[_HostPriority])
    except msgspec.ValidationError:
        raise ReplyError(_NO_PRIORITY) from None
    hosts = tuple(each.lower_host for each in listed)
    return PrioritizeAnswer(hosts, tuple(each.lower_score for each in listed))


def _read_preemption(document: bytes) -> PreemptAnswer:
    fields = _Fields(document, "ExtenderPreemptionResult")
    where = "NodeNameToMetaVictims of type map[string]*v1.MetaVictims"
    by_node = fields.read("nodenametometavictims", dict[str, Any], where) or {}
    return PreemptAnswer({name: _read_victims(there) for name, there in by_node.items()})


def _read_victims(raw: Any) -> NodeVictims:
    there = _fold(raw)
    pods, violations = there.get("pods") or [], there.get("numpdbviolations") or 0
    if not isinstance(pods, list) or not isinstance(violations, int):
        raise ReplyError("json: cannot unmarshal into Go value of type v1.MetaVictims")
    return NodeVictims(tuple(str(_fold(pod).get("uid") or "") for pod in pods), violations)


_READERS: Mapping[str, Callable[[bytes], ExtenderAnswer]] = {
    FILTER: _read_filter,
    PRIORITIZE: _read_priorities,
    PREEMPT: _read_preemption,
}


class _NodeMeta(msgspec.Struct, frozen=True):
    name: str = ""


class _NodeItem(msgspec.Struct, frozen=True):
    metadata: _NodeMeta = _NodeMeta()


class _NodeList(msgspec.Struct, frozen=True):
    """A NodeList, of which only the names are read."""

    items: list[_NodeItem] | None = None


_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _AllKept(msgspec.Struct, forbid_unknown_fields=True):
    """An answer without the names."""

    names: None = msgspec.field(name="NodeNames")
    nodes: None = msgspec.field(name="Nodes", default=None)
    failed: dict[str, str] | None = msgspec.field(name="FailedNodes", default=None)
    unresolvable: dict[str, str] | None = msgspec.field(
        name="FailedAndUnresolvableNodes", default=None
    )
    error: str = msgspec.field(name="Error", default="")


class _HostPriority(msgspec.Struct, gc=False):
    """The two spellings that are in use."""

    host: str = msgspec.field(name="Host", default="")
    score: _Int64 = msgspec.field(name="Score", default=0)
    lower_host: str = msgspec.field(name="host", default="")
    lower_score: _Int64 = msgspec.field(name="score", default=0)


#: The other spelling of a score.
_OTHER = {"score": "lower_score", "lower_score": "score"}

_ALL_KEPT = msgspec.json.Decoder(_AllKept)
_PRIORITIES = msgspec.json.Decoder(list[_HostPriority] | None)
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)


class _Fields:
    """The fields of an object, in upper or lower case; the last of equal names counts."""

    def __init__(self, document: bytes, go_type: str) -> None:
        self._type = go_type
        try:
            raw = _OBJECT.decode(document)
        except msgspec.ValidationError:
            _refuse_type(f"Go value of type v1.{go_type}")
        self._raw = {name.lower(): value for name, value in (raw or {}).items()}

    def read(self, name: str, wanted: Any, described: str) -> Any:
        """Returns the value of a field; None if it is missing or null."""
        raw = self._raw.get(name)
        if raw is None:
            return None
        try:
            return msgspec.json.decode(raw, type=wanted | None)
        except msgspec.ValidationError:
            _refuse_type(f"Go struct field {self._type}.{described}")


def _refuse_type(wanted: str) -> NoReturn:
    raise ReplyError(f"json: cannot unmarshal the answer into {wanted}") from None


def _fold(raw: Any) -> dict[str, Any]:
    return {name.lower(): value for name, value in raw.items()} if isinstance(raw, dict) else {}


_CHECK = msgspec.json.Decoder(msgspec.Raw)


def _cut_document(body: bytes) -> bytes:
    """Returns the first document of a body.

    Raises ReplyError if there is none.
    """
    try:
        return bytes(_CHECK.decode(body))
    except msgspec.DecodeError:
        pass
    except RecursionError:
        raise ReplyError(_DEEP) from None
    text = body.decode(errors="replace").lstrip(" \t\r\n")
    try:
        _, end = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode(text)
    except json.JSONDecodeError as error:
        raise ReplyError(_describe_syntax(text, error.pos)) from None
    except RecursionError:
        raise ReplyError(_DEEP) from None
    return text[:end].encode()


def _describe_syntax(text: str, at: int) -> str:
    """Returns Go's message for the mistakes that extenders make: no answer, half of one, a page."""
    if at >= len(text):
        return "unexpected EOF" if text else "EOF"
    where = "object key string" if text[:at].rstrip().endswith("{") else "value"
    return f"invalid character {text[at]!r} looking for beginning of {where}"


def _refuse_constant(name: str) -> NoReturn:
    # Python reads NaN and Infinity, which are no JSON.
    raise ReplyError(f"invalid character '{name[0]}' looking for beginning of value")
