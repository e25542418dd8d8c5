"""Remembers what a sink was told about one kind, so that it gets differences only."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import msgspec

from moorage.documents.json_text import decode_at_any_depth
from moorage.objects.decode import (
    UNREADABLE,
    Identity,
    ListMeta,
    Reader,
    WatchLine,
    key_of,
    read_identity,
    split_page,
)

from .api_errors import read_refusal

Raw = bytes | msgspec.Raw


class Sink(Protocol):
    """Receives the objects of a kind, one after the other. Its methods must return quickly."""

    def applied(self, item: Any, raw: Raw) -> None:
        """Takes a new or changed object; `raw` is its JSON as received, or empty if not wanted."""

    def removed(self, item: Any) -> None:
        """Takes a deleted object in the form that was told last."""

    def unreadable(self, kind: str, key: str, problem: str) -> None:
        """Takes a malformed object, once for each version. Its last good form stays."""


class _Held(NamedTuple):
    version: str
    uid: str
    item: Any


_LINE = msgspec.json.Decoder(WatchLine[msgspec.Raw])

_CHANGED = ("ADDED", "MODIFIED")


class Mirror:
    """The objects of one kind as the sink was told last.

    Lines and pages are decoded in one go. Only those that cannot be read that way, or whose JSON is
    wanted, are taken apart first. So an object that cannot be read hides no other.
    """

    def __init__(self, kind: str, reader: Reader, sink: Sink, *, keep_raw: bool = False) -> None:
        self._kind = kind
        self._reader = reader
        self._sink = sink
        self._keep_raw = keep_raw
        self._held: dict[str, _Held] = {}
        self._malformed: dict[str, str] = {}
        self._listed: set[str] = set()

    def begin_list(self) -> None:
        self._listed = set()

    def take_page(self, text: bytes) -> ListMeta:
        """Takes a page of a list. Raises one of UNREADABLE if it is not a list."""
        if not self._keep_raw:
            try:
                page = self._reader.page.decode(text)
            except UNREADABLE:
                pass  # One item of it, most likely: taken one by one, the others can be read.
            else:
                for wire in page.items or ():
                    self._listed.add(key_of(wire.metadata))
                    self._apply(wire, b"")
                return page.metadata
        return self._take_raw_page(text)

    def end_list(self) -> None:
        """Removes objects that were in none of the pages since `begin_list`."""
        for key in [key for key in self._held if key not in self._listed]:
            self._sink.removed(self._held.pop(key).item)
        for key in [key for key in self._malformed if key not in self._listed]:
            del self._malformed[key]
        self._listed = set()

    def take_line(self, line: bytes) -> str:
        """Takes a line of a watch; returns the resource version that it reaches.

        Raises ApiError if the line has one, and one of UNREADABLE if its object cannot be
        identified.
        """
        if not self._keep_raw:
            try:
                event = self._reader.line.decode(line)
            except UNREADABLE:
                pass  # It may tell of an error or of an object that is malformed.
            else:
                if event.type != "ERROR":
                    self._happened(event.type, event.object, b"")
                    version: str = event.object.metadata.resource_version
                    return version
        return self._take_raw_line(line)

    def _take_raw_page(self, text: bytes) -> ListMeta:
        page, raws = split_page(text)
        for raw in raws:
            try:
                meta = read_identity(raw)
            except UNREADABLE as error:
                self._sink.unreadable(self._kind, "", str(error))
                continue
            self._listed.add(key_of(meta))
            self._read("ADDED", raw, meta)
        return page

    def _take_raw_line(self, line: bytes) -> str:
        event = decode_at_any_depth(_LINE.decode, line)
        if event.type == "ERROR":
            raise read_refusal(0, event.object)
        meta = read_identity(event.object)
        # A bookmark is an object with a version and little else.
        if event.type != "BOOKMARK":
            self._read(event.type, event.object, meta)
        return meta.resource_version

    def _read(self, change: str, raw: Raw, meta: Identity) -> None:
        try:
            wire = self._reader.read_one(raw)
        except UNREADABLE as error:
            if change == "DELETED":
                self._remove(meta)
            else:
                self._tell_unreadable(meta, error)
        else:
            self._happened(change, wire, raw)

    def _happened(self, change: str, wire: Any, raw: Raw) -> None:
        if change in _CHANGED:
            self._apply(wire, raw)
        elif change == "DELETED":
            self._remove(wire.metadata)

    def _apply(self, wire: Any, raw: Raw) -> None:
        meta = wire.metadata
        key, version = key_of(meta), meta.resource_version
        held = self._held.get(key)
        if held is not None and held.version == version:
            return
        try:
            item = self._reader.build(wire)
        except UNREADABLE as error:
            self._tell_unreadable(meta, error)
            return
        if held is not None and held.uid != meta.uid:
            # Deleted and made anew while we looked away: two objects, not two forms of one.
            self._sink.removed(held.item)
        self._held[key] = _Held(version, meta.uid, item)
        self._sink.applied(item, raw)

    def _remove(self, meta: Any) -> None:
        key = key_of(meta)
        self._malformed.pop(key, None)
        held = self._held.pop(key, None)
        if held is not None:
            # In the last form that the sink got, so that a recording is complete.
            self._sink.removed(held.item)

    def _tell_unreadable(self, meta: Any, error: Exception) -> None:
        key, version = key_of(meta), meta.resource_version
        if self._malformed.get(key) != version:
            self._malformed[key] = version
            self._sink.unreadable(self._kind, key, str(error))
