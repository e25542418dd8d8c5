"""Listing once: all objects of a kind as they are now, page by page. Nothing is watched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from mooring.objects.custom import CustomKind
from mooring.objects.decode import Reader, reader

from .errors import ApiError, ClientError
from .requests import Requests
from .resources import RESOURCES, Resource

_PAGE = 500


class Unreadable(ClientError):
    """An answer that is no list of what was asked for."""


async def listed(api: Requests, resource: Resource, decode: Reader) -> list[Any]:
    """All objects of a resource. Raises ClientError."""
    items: list[Any] = []
    params: dict[str, str | int] = {"limit": _PAGE}
    while True:
        try:
            page = decode.page.decode(await api.get(resource.path(), params))
            items += [decode.build(wire) for wire in page.items or ()]
        except (msgspec.MsgspecError, ValueError) as error:
            raise Unreadable(f"{resource.path()}: {error}") from error
        except ApiError as error:
            if not error.is_gone or "continue" not in params:
                raise
            # The pages are of a moment that the server has forgotten by now.
            items, params = [], {"limit": _PAGE}
            continue
        if not page.metadata.go_on:
            return items
        params["continue"] = page.metadata.go_on


async def listed_kind(api: Requests, kind: str | CustomKind) -> list[Any]:
    """All objects of a kind; none of a custom kind that the server does not know."""
    if isinstance(kind, CustomKind):
        resource = Resource(kind.group, kind.version, kind.plural, kind.kind, kind.namespaced)
        try:
            return await listed(api, resource, reader(kind))
        except ApiError as error:
            if error.is_not_found:
                return []
            raise
    return await listed(api, RESOURCES[kind], reader(kind))


async def listed_kinds(api: Requests, kinds: Iterable[str | CustomKind]) -> list[Any]:
    """All objects of some kinds, one kind after the other."""
    return [item for kind in kinds for item in await listed_kind(api, kind)]
