"""Turns what the API writes into typed values. All input is checked here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Generic, TypeVar

import msgspec

from moorage.documents.conversion import decode_hook, to_struct
from moorage.documents.errors import DecodeError
from moorage.documents.json_text import cut, decode_at_any_depth, split_list

from .custom import CustomKind, Whole, custom_object
from .kinds import KINDS, KnownKind, Object
from .meta import ObjectKind, Wire

#: What reading raises: bad JSON, a bad value, or nesting without end.
UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)


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


class Identity(Wire, frozen=True):
    """The metadata that identifies an object, readable when the rest is not."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


def key_of(meta: Any) -> str:
    """Returns the name in some metadata, with the namespace if there is one."""
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class _Identified(Wire, frozen=True):
    metadata: Identity = Identity()


_IDENTIFIED = msgspec.json.Decoder(_Identified)
_RAW_PAGE = msgspec.json.Decoder(Page[msgspec.Raw])


def read_identity(raw: bytes | msgspec.Raw) -> Identity:
    """Returns the identity of the object in a text. Raises one of UNREADABLE."""
    return decode_at_any_depth(_IDENTIFIED.decode, raw).metadata


def split_page(text: bytes) -> tuple[ListMeta, Sequence[bytes | msgspec.Raw]]:
    """Returns the items of a list as single texts. Raises one of UNREADABLE if it is not a list."""
    try:
        page = decode_at_any_depth(_RAW_PAGE.decode, text)
    except UNREADABLE:
        envelope, items = split_list(cut(text))
        return _RAW_PAGE.decode(envelope).metadata, items
    return page.metadata, page.items or ()


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
        self._build = build
        self.one = msgspec.json.Decoder(wire, dec_hook=hook)
        # Types made while running are beyond what a type checker can follow.
        page: Any = Page[wire]  # type: ignore[valid-type]
        line: Any = WatchLine[wire]  # type: ignore[valid-type]
        self.page: msgspec.json.Decoder[Page[Any]] = msgspec.json.Decoder(page, dec_hook=hook)
        self.line: msgspec.json.Decoder[WatchLine[Any]] = msgspec.json.Decoder(line, dec_hook=hook)

    def read_one(self, raw: bytes | msgspec.Raw) -> Any:
        """Returns the struct of one object, however deep it is nested. Raises one of UNREADABLE."""
        return decode_at_any_depth(self.one.decode, raw)

    def build(self, wire: Any) -> Any:
        """Makes the object. Raises one of UNREADABLE, whatever goes wrong."""
        try:
            return self._build(wire)
        except UNREADABLE:
            raise
        except Exception as error:
            # Values come from everybody who may write objects: none of them may end the process.
            raise DecodeError(f"{type(error).__name__}: {error}") from error


@cache
def reader(kind: str | ObjectKind) -> Reader:
    """Returns the reader of a kind that scheduling reads, or that a plugin asked for."""
    if isinstance(kind, CustomKind):
        return Reader(Whole, lambda whole: custom_object(kind, whole.fields), Whole.hook)
    item = _item(kind if isinstance(kind, str) else kind.kind)
    if isinstance(kind, KnownKind) and kind.other_versions:
        # The items of a list leave out their version.
        return Reader(item.wire, partial(item.of, api_version=kind.api_version))
    return Reader(item.wire, item.of)


def from_json(kind: str | CustomKind, text: bytes | str) -> Object:
    """Reads an object of a kind from JSON. Raises DecodeError."""
    known = reader(kind)
    raw = text.encode() if isinstance(text, str) else text
    return _check_reading(lambda: known.build(known.read_one(raw)))


def from_builtins(kind: str | CustomKind, raw: Mapping[str, Any]) -> Object:
    """Reads an object of a kind from the mappings and lists that YAML gives. Raises DecodeError."""
    if isinstance(kind, CustomKind):
        return _check_reading(lambda: custom_object(kind, raw))
    item = _item(kind)
    return _check_reading(lambda: item.of(to_struct(item.wire, raw)))


def _item(kind: str) -> Any:
    item = KINDS[kind].item
    if item is None:
        raise KeyError(kind)
    return item


def _check_reading(read: Callable[[], Object]) -> Object:
    try:
        return read()
    except DecodeError:
        raise
    except UNREADABLE as error:
        raise DecodeError(str(error)) from error
