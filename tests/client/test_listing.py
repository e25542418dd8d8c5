"""Listing once: all pages, from the beginning where the server has forgotten the first ones."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from moorage.client import Api, ApiError
from moorage.client.api_errors import OutcomeUnknown, TooLarge
from moorage.client.listing import list_kind, list_kinds
from moorage.objects.custom import CustomKind
from tests.builders import node_manifest

KIND = CustomKind("example.com", "v1", "Thing", "things")


def refuse(kind: str, key: str, problem: str) -> None:
    raise AssertionError(f"{kind} {key}: {problem}")


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

    assert [each.name for each in await list_kind(cast(Api, pages), "Node", refuse)] == [
        "a",
        "b",
        "c",
    ]
    assert pages.asked == [0, 1, 2]


async def test_pages_that_are_forgotten_are_listed_anew() -> None:
    pages = Pages("a", "b", forgets_at=1)

    assert [each.name for each in await list_kind(cast(Api, pages), "Node", refuse)] == ["a", "b"]
    assert pages.asked == [0, 1, 0, 1]


async def test_a_custom_kind_that_is_not_served_has_no_objects() -> None:
    absent = Answering(ApiError(404, "NotFound", "not found"))

    assert await list_kinds(cast(Api, absent), [KIND], refuse) == []
    with pytest.raises(ApiError):
        await list_kind(cast(Api, absent), "Node", refuse)


async def test_a_custom_kind_that_is_forbidden_is_told() -> None:
    forbidden = Answering(ApiError(403, "Forbidden", "you may not"))
    told: list[str] = []

    assert await list_kind(cast(Api, forbidden), KIND, lambda *why: told.extend(why)) == []
    assert told == ["Thing", "", "you may not (403 Forbidden)"]


async def test_an_object_that_cannot_be_read_hides_no_other() -> None:
    items = [
        b'{"metadata": {"name": "a"}}',
        b'{"metadata": {"name": "b"}, "spec": 3}',
        b'{"metadata": 3}',
        b'{"metadata": {"name": "c", "managedFields": [%b]}}'
        % (b'{"f:a":' * 5000 + b"{}" + b"}" * 5000),
        b'{"metadata": {"name": "d"}, "spec": {"unschedulable": NaN}}',
        b'{"metadata": {"name": "e"}}',
    ]
    answer = Answering(b'{"metadata": {}, "items": [%b]}' % b",".join(items))
    left_out: list[str] = []

    found = await list_kind(cast(Api, answer), "Node", lambda *why: left_out.append(why[1]))

    assert [each.name for each in found] == ["a", "c", "e"]
    assert left_out == ["b", "", ""]


async def test_what_is_no_list_is_told() -> None:
    with pytest.raises(OutcomeUnknown, match=r"^GET /api/v1/nodes: not a list: "):
        await list_kind(cast(Api, Answering(b"<html>")), "Node", refuse)


class Heavy:
    """Serves nodes, one of which is so large that it fits no page but its own."""

    def __init__(self, count: int, heavy: int) -> None:
        self._count, self._heavy = count, heavy
        self.limits: list[int] = []

    async def get(self, path: str, params: dict[str, Any]) -> bytes:
        begin, limit = int(params.get("continue", 0)), int(params["limit"])
        self.limits.append(limit)
        end = min(self._count, begin + limit)
        if begin <= self._heavy < end and limit > 1:
            raise TooLarge("a large page")
        meta = {"continue": str(end)} if end < self._count else {}
        items = [node_manifest(f"n{at}") for at in range(begin, end)]
        return msgspec.json.encode({"metadata": meta, "items": items})


async def test_pages_shrink_while_they_are_too_large_and_grow_again() -> None:
    api = Heavy(1000, heavy=520)

    found = await list_kind(cast(Api, api), "Node", refuse)

    assert [each.name for each in found] == [f"n{at}" for at in range(1000)]
    assert api.limits[:3] == [500, 500, 125]
    assert 1 in api.limits
    assert api.limits[-1] > 100
