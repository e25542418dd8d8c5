"""Keeps the JSON of pods and nodes as the API server wrote it, for extenders."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mooring.config import Extender
from mooring.engine.extenders.questions import trim_manifest
from mooring.objects.kinds import Object
from mooring.objects.node import Node
from mooring.objects.pod import Pod


class KeptManifests:
    """The texts that extenders may be sent: waiting pods, and if needed nodes and placed pods."""

    def __init__(self, extenders: Sequence[Extender]) -> None:
        whole = [each for each in extenders if not each.node_cache_capable]
        self._wants_nodes = any(each.filter_verb or each.prioritize_verb for each in whole)
        self._wants_placed = any(each.preempt_verb for each in whole)
        self._pods = _Texts(managed_fields=False)
        self._nodes = _Texts(managed_fields=True)

    def __len__(self) -> int:
        return len(self._pods) + len(self._nodes)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of which manifests are kept."""
        return ("Pod", "Node") if self._wants_nodes else ("Pod",)

    def keep(self, item: Object, raw: bytes | msgspec.Raw) -> None:
        """Stores the present text of an object."""
        if isinstance(item, Pod):
            if item.is_finished or (item.node_name and not self._wants_placed):
                self._pods.drop(item.uid)
            else:
                self._pods.keep(item.uid, raw)
        elif isinstance(item, Node) and self._wants_nodes:
            self._nodes.keep(item.name, raw)

    def drop(self, item: Object) -> None:
        """Forgets a deleted object."""
        if isinstance(item, Pod):
            self._pods.drop(item.uid)
        elif isinstance(item, Node):
            self._nodes.drop(item.name)

    def pod(self, uid: str) -> bytes:
        return self._pods.read(uid)

    def node(self, name: str) -> bytes:
        return self._nodes.read(name)


class _Texts:
    """Texts by key. Each is trimmed when it is first read."""

    def __init__(self, *, managed_fields: bool) -> None:
        self._managed_fields = managed_fields
        self._raw: dict[str, bytes] = {}
        self._ready: dict[str, bytes] = {}

    def __len__(self) -> int:
        return len(self._raw) + len(self._ready)

    def keep(self, key: str, raw: bytes | msgspec.Raw) -> None:
        self._ready.pop(key, None)
        # A copy: the original is part of a page of a list.
        self._raw[key] = bytes(raw)

    def drop(self, key: str) -> None:
        self._raw.pop(key, None)
        self._ready.pop(key, None)

    def read(self, key: str) -> bytes:
        text = self._ready.get(key)
        if text is None:
            text = trim_manifest(self._raw.pop(key), managed_fields=self._managed_fields)
            self._ready[key] = text
        return text
