"""From what the API writes to typed values: the edge at which all input is checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from .custom import CustomKind, CustomObject, Whole, custom_object
from .meta import Wire, decode_hook
from .node import Node, _WireNode
from .pod import Pod, _WirePod
from .storage import STORAGE_KINDS, StorageObject
from .workload import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
    _WireBudget,
    _WireLabelSelecting,
    _WireMapSelecting,
    _WireNamespace,
)

Object = (
    Pod
    | Node
    | Namespace
    | Service
    | ReplicationController
    | ReplicaSet
    | StatefulSet
    | PodDisruptionBudget
    | StorageObject
    | CustomObject
)


class DecodeError(ValueError):
    """An object that cannot be read; the text names the field."""


_KINDS: Mapping[str, tuple[type[Any], Callable[[Any], Object]]] = {
    "Pod": (_WirePod, Pod.of),
    "Node": (_WireNode, Node.of),
    "Namespace": (_WireNamespace, Namespace.of),
    "Service": (_WireMapSelecting, Service.of_map),
    "ReplicationController": (_WireMapSelecting, ReplicationController.of_map),
    "ReplicaSet": (_WireLabelSelecting, ReplicaSet.of_selector),
    "StatefulSet": (_WireLabelSelecting, StatefulSet.of_selector),
    "PodDisruptionBudget": (_WireBudget, PodDisruptionBudget.of_budget),
    **STORAGE_KINDS,
}

#: The kinds that scheduling reads; plugins may ask for custom ones.
KINDS = frozenset(_KINDS)

_W = TypeVar("_W")


class ListMeta(Wire, frozen=True):
    """Which state of the cluster a list shows, and where to go on if this is not all of it."""

    resource_version: str = ""
    go_on: str = msgspec.field(name="continue", default="")


class Page(Wire, Generic[_W], frozen=True):
    """A part of a list, as the API writes it."""

    metadata: ListMeta
    items: list[_W] | None = None


class WatchLine(Wire, Generic[_W], frozen=True):
    """One line of a watch, as the API writes it."""

    type: str
    object: _W


class Reader:
    """Reads one kind, as single objects and as the lists and watches that carry them.

    `wire` is what the API writes, a struct that has `metadata`; `build` makes the object of it.
    """

    def __init__(
        self,
        wire: type[Any],
        build: Callable[[Any], Any],
        hook: Callable[[type, Any], Any] = decode_hook,
    ) -> None:
        self.build = build
        self.one = msgspec.json.Decoder(wire, dec_hook=hook)
        # Types made while running are beyond what a type checker can follow.
        page: Any = Page[wire]  # type: ignore[valid-type]
        line: Any = WatchLine[wire]  # type: ignore[valid-type]
        self.page: msgspec.json.Decoder[Page[Any]] = msgspec.json.Decoder(page, dec_hook=hook)
        self.line: msgspec.json.Decoder[WatchLine[Any]] = msgspec.json.Decoder(line, dec_hook=hook)


@cache
def reader(kind: str | CustomKind) -> Reader:
    """The reader of a kind that scheduling reads, or that a plugin asked for."""
    if isinstance(kind, CustomKind):
        return Reader(Whole, lambda whole: custom_object(kind, whole.fields), Whole.hook)
    return Reader(*_KINDS[kind])


def from_json(kind: str | CustomKind, text: bytes | str) -> Object:
    """Reads an object of a kind from JSON."""
    if isinstance(kind, CustomKind):
        return _reading(lambda: custom_object(kind, msgspec.json.decode(text, type=dict)))
    known = reader(kind)
    return _reading(lambda: known.build(known.one.decode(text)))


def from_builtins(kind: str | CustomKind, raw: Mapping[str, Any]) -> Object:
    """Reads an object of a kind from the mappings and lists that YAML gives."""
    if isinstance(kind, CustomKind):
        return _reading(lambda: custom_object(kind, raw))
    wire, build = _KINDS[kind]
    return _reading(lambda: build(msgspec.convert(raw, wire, dec_hook=decode_hook)))


def _reading(read: Callable[[], Object]) -> Object:
    try:
        return read()
    except (msgspec.MsgspecError, ValueError) as error:
        raise DecodeError(str(error)) from error
