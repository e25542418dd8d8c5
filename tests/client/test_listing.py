"""Listing once: all pages, from the beginning where the server has forgotten the first ones."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from mooring.client import Api, ApiError
from mooring.client.listing import Unreadable, listed_kind, listed_kinds
from mooring.objects.custom import CustomKind
from tests.builders import node_manifest

KIND = CustomKind("example.com", "v1", "Thing", "things")


class Pages:
    """Serves one item a page."""

    def __init__(self, *names: str, forgets_at: int | None = None) -> None:
        self._names = names
        self._forgets_at = forgets_at
        self.asked: list[int] = []

    async def get(self, path: str, params: dict[str, Any]) -> bytes:
        at = int(params.get("continue", 0))
        self.asked.append(at)
        if at == self._forgets_at:
            self._forgets_at = None
            raise ApiError(410, "Expired", "too old")
        meta = {"continue": str(at + 1)} if at + 1 < len(self._names) else {}
        return msgspec.json.encode({"metadata": meta, "items": [node_manifest(self._names[at])]})


class Answering:
    """Gives one answer to all."""

    def __init__(self, answer: bytes | ApiError) -> None:
        self._answer = answer

    async def get(self, path: str, params: dict[str, Any]) -> bytes:
        if isinstance(self._answer, ApiError):
            raise self._answer
        return self._answer


async def test_all_pages_are_listed() -> None:
    pages = Pages("a", "b", "c")

    assert [each.name for each in await listed_kind(cast(Api, pages), "Node")] == ["a", "b", "c"]
    assert pages.asked == [0, 1, 2]


async def test_pages_that_are_forgotten_are_listed_anew() -> None:
    pages = Pages("a", "b", forgets_at=1)

    assert [each.name for each in await listed_kind(cast(Api, pages), "Node")] == ["a", "b"]
    assert pages.asked == [0, 1, 0, 1]


async def test_a_custom_kind_that_is_not_served_has_no_objects() -> None:
    absent = Answering(ApiError(404, "NotFound", "not found"))

    assert await listed_kinds(cast(Api, absent), [KIND]) == []
    with pytest.raises(ApiError):
        await listed_kind(cast(Api, absent), "Node")


async def test_what_cannot_be_read_is_told() -> None:
    broken = Answering(b'{"metadata": {}, "items": [{"metadata": 3}]}')

    with pytest.raises(Unreadable, match=r"^/api/v1/nodes: Expected `object`"):
        await listed_kind(cast(Api, broken), "Node")
