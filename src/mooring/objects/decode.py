"""From what the API writes to typed values: the edge at which all input is checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from .meta import decode_hook
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

#: The kinds that scheduling reads.
KINDS = frozenset(_KINDS)

_DECODERS = {
    kind: msgspec.json.Decoder(wire, dec_hook=decode_hook) for kind, (wire, _) in _KINDS.items()
}


def from_json(kind: str, text: bytes | str) -> Object:
    """Reads an object of a kind from JSON."""
    return _reading(lambda: _KINDS[kind][1](_DECODERS[kind].decode(text)))


def from_builtins(kind: str, raw: Mapping[str, Any]) -> Object:
    """Reads an object of a kind from the mappings and lists that YAML gives."""
    wire, build = _KINDS[kind]
    return _reading(lambda: build(msgspec.convert(raw, wire, dec_hook=decode_hook)))


def _reading(read: Callable[[], Object]) -> Object:
    try:
        return read()
    except (msgspec.MsgspecError, ValueError) as error:
        raise DecodeError(str(error)) from error
