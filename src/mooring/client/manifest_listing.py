"""All objects of an API server as manifests, of any kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import msgspec

from mooring.documents.json_text import decode_at_any_depth
from mooring.objects.decode import ListMeta, split_page
from mooring.objects.meta import ObjectKind

from .api import Requests
from .api_errors import ApiError
from .listing import read_list

#: Called for each kind that cannot be listed: the kind, and why.
OnRefused = Callable[[str, str], None]

_DEFINITIONS = ObjectKind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions"
)


async def list_manifests(
    api: Requests, kinds: Iterable[ObjectKind], on_refused: OnRefused
) -> AsyncIterator[dict[str, Any]]:
    """The objects of some kinds and of all custom ones, with the definitions of these first.

    A kind that the server does not have has none. Raises ClientError.
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
    """The version of a custom resource in which it is stored."""
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
