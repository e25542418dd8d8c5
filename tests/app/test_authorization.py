"""Who gets in. In doubt, nobody."""

from __future__ import annotations

import asyncio
import json

import pytest

from moorage.app.authorization import (
    ACCESS_REVIEWS,
    TOKEN_REVIEWS,
    AuthorizationSettings,
    Authorizer,
    Caller,
    Denied,
    ReviewApi,
)
from tests.app.reviews import Reviews


class Fake:
    """Answers from a table, and counts."""

    def __init__(self, **answers: object) -> None:
        self.tokens = answers
        self.asked: list[tuple[str, bytes]] = []
        self.allowed = True

    async def post(self, path: str, body: bytes) -> bytes:
        self.asked.append((path, body))
        await asyncio.sleep(0)
        if path == ACCESS_REVIEWS:
            return json.dumps({"status": {"allowed": self.allowed}}).encode()
        answer = self.tokens.get(json.loads(body)["spec"]["token"], {"authenticated": False})
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else json.dumps({"status": answer}).encode()

    def count(self, path: str) -> int:
        return sum(asked == path for asked, _ in self.asked)


GOOD = {"authenticated": True, "user": {"username": "prometheus"}}


async def outcome(authorizer: Authorizer, token: str | None, path: str = "/metrics") -> int:
    try:
        await authorizer.check(path, "get", Caller(token and f"Bearer {token}"))
    except Denied as denied:
        return denied.status
    return 200


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        ("", 401),
        ("Bearer", 401),
        ("Bearer  ", 401),
        ("Basic Z29vZDpnb29k", 401),
        ("good", 401),
        ("Bearer wrong", 401),
        ("Bearer good", 200),
        ("bearer good", 200),
    ],
)
async def test_headers(header: str | None, status: int) -> None:
    try:
        await Authorizer(Fake(good=GOOD)).check("/metrics", "get", Caller(header))
        found = 200
    except Denied as denied:
        found = denied.status
    assert found == status


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(OSError("connection refused"), id="nobody is there"),
        pytest.param(TimeoutError(), id="nobody answers"),
        pytest.param(b"<html>", id="not JSON"),
        pytest.param(b"[]", id="not a review"),
        pytest.param({"authenticated": "yes"}, id="not a boolean"),
        pytest.param({"authenticated": True, "user": {"groups": 7}}, id="not groups"),
    ],
)
async def test_what_cannot_be_reviewed_is_denied(answer: object) -> None:
    assert await outcome(Authorizer(Fake(good=answer)), "good") == 503


@pytest.mark.parametrize("answer", [{}, {"authenticated": None}], ids=["empty", "null"])
async def test_a_review_without_a_yes_is_no_yes(answer: object) -> None:
    assert await outcome(Authorizer(Fake(good=answer)), "good") in (401, 503)


async def test_access_that_is_not_allowed_is_forbidden() -> None:
    api = Fake(good=GOOD)
    api.allowed = False
    with pytest.raises(Denied) as caught:
        await Authorizer(api).check("/configz", "get", Caller("Bearer good"))

    assert caught.value.status == 403
    assert caught.value.text == 'Forbidden: user "prometheus" cannot get path "/configz"'


async def test_what_the_api_server_is_asked() -> None:
    reviews = Reviews({"good": "prometheus"}, {("prometheus", "/metrics")})
    async with reviews.serving() as api:
        assert await outcome(Authorizer(api), "good") == 200

    token, access = reviews.asked
    assert token == {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": "good"},
    }
    assert access == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "prometheus",
            "uid": "7",
            "groups": ["readers", "system:authenticated"],
            "extra": {"k": ["v"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        },
    }


@pytest.mark.parametrize(
    ("paths", "path", "status"),
    [
        (("/healthz", "/livez", "/readyz"), "/healthz", 200),
        (("/healthz",), "/healthz/ping", 401),
        (("/healthz",), "/healthzz", 401),
        (("/healthz/*",), "/healthz/ping", 200),
        (("/healthz/*",), "/metrics", 401),
        ((), "/healthz", 401),
    ],
)
async def test_open_paths(paths: tuple[str, ...], path: str, status: int) -> None:
    api = Fake()
    authorizer = Authorizer(api, AuthorizationSettings(paths))

    assert await outcome(authorizer, None, path) == status
    assert api.asked == []


@pytest.mark.parametrize(("token", "status"), [("good", 200), ("wrong", 401)])
async def test_answers_are_kept_for_ten_seconds(token: str, status: int) -> None:
    now = 0.0
    api = Fake(good=GOOD)
    authorizer = Authorizer(api, clock=lambda: now)

    for moment, asked in ((0.0, 1), (9.9, 1), (10.0, 2)):
        now = moment
        assert await outcome(authorizer, token) == status
        assert api.count(TOKEN_REVIEWS) == asked


async def test_a_no_to_access_is_kept_too() -> None:
    now = 0.0
    api = Fake(good=GOOD)
    api.allowed = False
    authorizer = Authorizer(api, clock=lambda: now)
    assert await outcome(authorizer, "good") == 403
    api.allowed = True

    assert await outcome(authorizer, "good") == 403
    now = 10.0
    assert await outcome(authorizer, "good") == 200


async def test_paths_are_reviewed_one_by_one() -> None:
    api = Fake(good=GOOD)
    authorizer = Authorizer(api)
    await outcome(authorizer, "good", "/metrics")
    api.allowed = False

    assert await outcome(authorizer, "good", "/metrics") == 200
    assert await outcome(authorizer, "good", "/configz") == 403


async def test_failures_are_not_kept() -> None:
    api = Fake(good=OSError("connection refused"))
    authorizer = Authorizer(api)
    assert await outcome(authorizer, "good") == 503
    api.tokens["good"] = GOOD

    assert await outcome(authorizer, "good") == 200


async def test_those_who_ask_at_once_share_one_review() -> None:
    api = Fake(good=GOOD)
    authorizer = Authorizer(api)

    assert await asyncio.gather(*(outcome(authorizer, "good") for _ in range(20))) == [200] * 20
    assert len(api.asked) == 2


async def test_who_goes_away_does_not_take_the_answer_along() -> None:
    api = Fake(good=GOOD)
    authorizer = Authorizer(api)
    first = asyncio.create_task(outcome(authorizer, "good"))
    second = asyncio.create_task(outcome(authorizer, "good"))
    await asyncio.sleep(0)
    first.cancel()

    assert await second == 200
    assert api.count(TOKEN_REVIEWS) == 1


async def test_made_up_tokens_fill_no_memory() -> None:
    api = Fake(good=GOOD)
    authorizer = Authorizer(api)
    for number in range(1_100):
        await outcome(authorizer, f"wrong{number}")

    # The first was forgotten for the sake of the last.
    await outcome(authorizer, "wrong1099")
    assert api.count(TOKEN_REVIEWS) == 1_100
    await outcome(authorizer, "wrong0")
    assert api.count(TOKEN_REVIEWS) == 1_101


async def test_few_reviews_are_under_way_at_once() -> None:
    under_way = most = 0

    class Slow:
        async def post(self, path: str, body: bytes) -> bytes:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            under_way -= 1
            return b"{}"

    api: ReviewApi = Slow()
    authorizer = Authorizer(api)
    await asyncio.gather(*(outcome(authorizer, f"t{number}") for number in range(30)))

    assert most == 8


async def test_made_up_tokens_push_out_no_good_one() -> None:
    api = Fake(good=GOOD)
    authorizer = Authorizer(api)
    assert await outcome(authorizer, "good") == 200
    for number in range(1_100):
        await outcome(authorizer, f"wrong{number}")
    asked = len(api.asked)

    assert await outcome(authorizer, "good") == 200
    assert len(api.asked) == asked


async def test_who_floods_with_made_up_tokens_waits_behind_himself_alone() -> None:
    may_answer = asyncio.Event()

    class Slow(Fake):
        async def post(self, path: str, body: bytes) -> bytes:
            if b"made-up" in body:
                await may_answer.wait()
            return await super().post(path, body)

    authorizer = Authorizer(Slow(good=GOOD))

    async def ask(token: str, address: str) -> int:
        try:
            await authorizer.check("/metrics", "get", Caller(f"Bearer {token}", address=address))
        except Denied as denied:
            return denied.status
        return 200

    assert await ask("good", "10.0.0.1") == 200
    flood = [asyncio.create_task(ask(f"made-up{n}", "10.0.0.9")) for n in range(100)]
    await asyncio.sleep(0)
    # What is known needs no review, whatever the address.
    assert await ask("good", "10.0.0.9") == 200
    may_answer.set()
    answers = await asyncio.gather(*flood)

    assert sorted(set(answers)) == [401, 429]
    assert answers.count(429) == 100 - 32
