"""Lists all objects of a kind as they are now, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import msgspec

from moorage.documents.json_text import decode_at_any_depth
from moorage.objects.custom import CustomKind
from moorage.objects.decode import (
    UNREADABLE,
    ListMeta,
    Reader,
    key_of,
    read_identity,
    reader,
    split_page,
)
from moorage.objects.kinds import KINDS, KnownKind
from moorage.objects.meta import ObjectKind

from .api import Params, Requests
from .api_errors import ApiError, OutcomeUnknown, TooLarge

PAGE_SIZE = 500

#: Called for each object that cannot be read: kind, key (empty if unknown) and what is wrong.
OnUnreadable = Callable[[str, str, str], None]


async def read_list(
    api: Requests,
    path: str,
    params: Params,
    begin: Callable[[], None],
    take: Callable[[bytes], ListMeta],
) -> ListMeta:
    """Reads all pages of a list with `take`; calls `begin` first, and before each fresh start.

    A page that is too large is requested again with fewer objects. Raises ClientError.
    """
    size = PAGE_SIZE
    asked: dict[str, str | int] = {**params, "limit": size}
    begin()
    while True:
        try:
            page = _take(take, await api.get(path, asked), path)
        except TooLarge:
            asked["limit"] = size = max(1, size // 4)
            continue
        except ApiError as error:
            if not (error.is_gone and "limit" in asked and "continue" in asked):
                raise
            # The list took too long to go on with; this time all of it comes at once.
            asked = dict(params)
            begin()
            continue
        if not page.go_on:
            return page
        asked["continue"] = page.go_on
        if "limit" in asked:
            asked["limit"] = size = min(PAGE_SIZE, 2 * size)


def _take(take: Callable[[bytes], ListMeta], text: bytes, path: str) -> ListMeta:
    try:
        return take(text)
    except UNREADABLE as error:
        raise OutcomeUnknown(f"GET {path}: not a list: {error}") from error


async def list_kind(
    api: Requests, kind: str | CustomKind, on_unreadable: OnUnreadable
) -> list[Any]:
    """Returns all objects of a kind that can be read. Raises ClientError.

    A custom kind that the server does not have or refuses has no objects.
    """
    if not isinstance(kind, CustomKind) and KINDS[kind].other_versions:
        return await _list_forms(api, KINDS[kind], on_unreadable)
    known = kind if isinstance(kind, CustomKind) else KINDS[kind]
    decode = reader(kind)
    items: list[Any] = []

    def take(text: bytes) -> ListMeta:
        meta, read = _read_page(text, decode, lambda *why: on_unreadable(known.kind, *why))
        items.extend(read)
        return meta

    try:
        await read_list(api, *known.listing, items.clear, take)
    except ApiError as error:
        if not (isinstance(kind, CustomKind) and (error.is_forbidden or error.is_not_found)):
            raise
        if error.is_forbidden:
            on_unreadable(known.kind, "", str(error))
        return []
    return items


async def _list_forms(api: Requests, kind: KnownKind, on_unreadable: OnUnreadable) -> list[Any]:
    """Returns the objects of a kind in each API version that the server has."""
    found: list[Any] = []
    for form in kind.forms:
        items: list[Any] = []

        def take(text: bytes, form: KnownKind = form, items: list[Any] = items) -> ListMeta:
            meta, read = _read_page(text, reader(form), lambda *why: on_unreadable(kind.kind, *why))
            items.extend(read)
            return meta

        try:
            await read_list(api, form.path(), {}, items.clear, take)
        except ApiError as error:
            if not (error.is_forbidden or error.is_not_found):
                raise
        found += items
    return found


async def list_kinds(
    api: Requests, kinds: Iterable[str | CustomKind], on_unreadable: OnUnreadable
) -> list[Any]:
    """Returns all objects of some kinds, kind by kind."""
    return [item for kind in kinds for item in await list_kind(api, kind, on_unreadable)]


def _read_page(
    text: bytes, decode: Reader, report: Callable[[str, str], None]
) -> tuple[ListMeta, list[Any]]:
    try:
        page = decode.page.decode(text)
        return page.metadata, [decode.build(wire) for wire in page.items or ()]
    except UNREADABLE:
        pass  # One item of it, most likely: taken one by one, the others can be read.
    meta, raws = split_page(text)
    items = []
    for raw in raws:
        key = ""
        try:
            key = key_of(read_identity(raw))
            items.append(decode.build(decode.read_one(raw)))
        except UNREADABLE as error:
            report(key, str(error))
    return meta, items


#: Called for each kind that cannot be listed: the kind, and why.
OnRefused = Callable[[str, str], None]

_DEFINITIONS = ObjectKind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions"
)


async def list_manifests(
    api: Requests, kinds: Iterable[ObjectKind], on_refused: OnRefused
) -> AsyncIterator[dict[str, Any]]:
    """Yields the objects of some kinds and of all custom kinds, after the definitions of these.

    A kind that the server does not have has no objects. Raises ClientError.
    """
    custom: list[ObjectKind] = []
    async for definition in _list_kind(api, _DEFINITIONS, on_refused):
        custom += _served_kinds(definition)
        yield definition
    for kind in (*kinds, *custom):
        if kind != _DEFINITIONS:
            async for item in _list_kind(api, kind, on_refused):
                yield item


def _served_kinds(definition: dict[str, Any]) -> list[ObjectKind]:
    """Returns the version in which a custom resource is stored."""
    spec = definition["spec"]
    names = spec["names"]
    return [
        ObjectKind(spec["group"], version["name"], names["kind"], names["plural"])
        for version in spec["versions"]
        if version.get("storage") and version.get("served")
    ]


async def _list_kind(
    api: Requests, kind: ObjectKind, on_refused: OnRefused
) -> AsyncIterator[dict[str, Any]]:
    items: list[dict[str, Any]] = []

    def take(text: bytes) -> ListMeta:
        meta, raws = split_page(text)
        for raw in raws:
            item = decode_at_any_depth(msgspec.json.decode, raw)
            # Items of a list leave these out.
            items.append({**item, "apiVersion": kind.api_version, "kind": kind.kind})
        return meta

    try:
        await read_list(api, kind.path(), {}, items.clear, take)
    except ApiError as error:
        if error.is_forbidden:
            on_refused(kind.kind, str(error))
        elif not error.is_not_found:
            raise
        return
    for item in items:
        yield item
