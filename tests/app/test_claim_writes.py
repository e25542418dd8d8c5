"""Claims as they are written: the order of the writes, conflicts and lost answers."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest

from moorage.app import claim_writes
from moorage.app.claim_revocation import ClaimRevoker
from moorage.app.claim_writes import ClaimWriteError, ClaimWriter
from moorage.client.api import MERGE_PATCH, Api
from moorage.client.api_errors import OutcomeUnknown
from moorage.engine.actions import PodRef, RevokeClaims, WriteClaims
from moorage.framework.device_writes import (
    ClaimCreation,
    ClaimGrant,
    DeviceClaimRef,
    DeviceWrites,
)
from moorage.objects.resource_claim import FINALIZER, ClaimUser

from .fake_api import FakeApi, refusal

POD = PodRef("team", "web", "u1")
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims"
PATH, STATUS = f"{CLAIMS}/c", f"{CLAIMS}/c/status"
REF = DeviceClaimRef("team", "c", "uc", "7")
DEVICE = {"request": "r", "driver": "d", "pool": "p", "device": "gpu-0"}
ALLOCATION = {"devices": {"results": [DEVICE]}}
USER = {"resource": "pods", "name": "web", "uid": "u1"}
TIMED = {**ALLOCATION, "allocationTimestamp": "2026-11-15T12:00:00Z"}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_writes, "_PAUSE", 0.0)


def writer(api: FakeApi) -> ClaimWriter:
    return ClaimWriter(cast(Api, api), lambda: datetime(2026, 11, 15, 12, tzinfo=UTC))


def granting(grant: ClaimGrant) -> WriteClaims:
    return WriteClaims(POD, "n1", DeviceWrites((grant,), None, (grant.claim,)))


def as_read(version: str, uid: str = "uc", **status: Any) -> dict[str, Any]:
    meta = {"name": "c", "uid": uid, "resourceVersion": version, "finalizers": [FINALIZER]}
    return {"metadata": meta, "status": status}


async def revoke_special(api: FakeApi, written: ClaimWriter) -> None:
    revoker = ClaimRevoker(cast(Api, api))
    await revoker.revoke(RevokeClaims(POD, (), deletes_special=True), written.forget(POD.uid))


NEW = granting(ClaimGrant(REF, ALLOCATION))


def told(api: FakeApi) -> list[tuple[str, str, Any]]:
    return [(each.verb, each.path, each.body) for each in api.requests]


async def test_a_new_allocation_is_two_writes() -> None:
    api = FakeApi()
    api.script("patch", PATH, as_read("8"))

    await writer(api).write(NEW)

    meta = {"uid": "uc", "resourceVersion": "7"}
    assert told(api) == [
        ("patch", PATH, {"metadata": {**meta, "finalizers": [FINALIZER]}}),
        (
            "patch",
            STATUS,
            {
                "metadata": {"uid": "uc", "resourceVersion": "8"},
                "status": {"allocation": TIMED, "reservedFor": [USER]},
            },
        ),
    ]
    assert {each.content_type for each in api.requests} == {MERGE_PATCH}


async def test_a_reservation_leaves_the_allocation_alone() -> None:
    """A timestamp that an older scheduler did not write is not added: API servers refuse it."""
    api = FakeApi()
    other = {"resource": "pods", "name": "other", "uid": "u0"}

    await writer(api).write(granting(ClaimGrant(REF, None, (), (other,))))

    (sent,) = api.requests
    assert sent.body["status"] == {"reservedFor": [other, USER]}


async def test_after_a_conflict_the_claim_is_read_again() -> None:
    api = FakeApi()
    api.script("patch", STATUS, refusal(409, "Conflict"))
    api.script("get", PATH, as_read("9"))

    await writer(api).write(NEW)

    assert [each.verb for each in api.requests] == ["patch", "patch", "get", "patch"]
    assert api.requests[-1].body["metadata"]["resourceVersion"] == "9"


async def test_pods_that_share_a_claim_do_not_conflict() -> None:
    """Each goes on from what the one before it has written."""
    api = FakeApi()
    first, second = (PodRef("team", name, f"u-{name}") for name in ("a", "b"))
    users = [{"resource": "pods", "name": each.name, "uid": each.uid} for each in (first, second)]
    answer = as_read("8", allocation=TIMED, reservedFor=users[:1])
    api.script("patch", STATUS, answer, as_read("9", allocation=TIMED, reservedFor=users))
    writes = DeviceWrites((ClaimGrant(REF),), None, (REF,))
    written = writer(api)

    await asyncio.gather(
        *(written.write(WriteClaims(each, "n1", writes)) for each in (first, second))
    )

    assert [each.verb for each in api.requests] == ["patch", "patch"]
    assert api.requests[1].body["metadata"]["resourceVersion"] == "8"
    assert api.requests[1].body["status"] == {"reservedFor": users}


@pytest.mark.parametrize("first_fails", [False, True])
async def test_the_devices_of_members_that_share_a_claim_are_written_once(
    first_fails: bool,
) -> None:
    """Whoever comes first writes them."""
    api = FakeApi()
    first, second = (PodRef("team", name, f"u-{name}") for name in ("a", "b"))
    users = [{"resource": "pods", "name": each.name, "uid": each.uid} for each in (first, second)]
    if first_fails:
        api.script("patch", STATUS, refusal(403, "Forbidden"))
        users = users[1:]
    api.script("patch", PATH, as_read("8"))
    api.script("patch", STATUS, as_read("9", allocation=TIMED, reservedFor=users[:1]))
    writes = DeviceWrites((ClaimGrant(REF, ALLOCATION),), None, (REF,))
    written = writer(api)

    answers = await asyncio.gather(
        *(written.write(WriteClaims(each, "n1", writes)) for each in (first, second)),
        return_exceptions=True,
    )

    assert [isinstance(each, ClaimWriteError) for each in answers] == [first_fails, False]
    statuses = [each.body["status"] for each in api.requests if each.path == STATUS]
    assert statuses[first_fails] == {"allocation": TIMED, "reservedFor": users[:1]}
    assert [each["reservedFor"] for each in statuses[first_fails:]][-1] == users
    assert sum("allocation" in each for each in statuses[first_fails:]) == 1


async def test_a_claim_of_a_group_is_reserved_for_the_group_once() -> None:
    """Members write one after the other, and those that come later find it done."""
    api = FakeApi()
    group = msgspec.to_builtins(ClaimUser.of_group("g", "ug"))
    api.script("patch", PATH, as_read("8"))
    api.script("patch", STATUS, as_read("9", allocation=TIMED, reservedFor=[group]))
    writes = DeviceWrites((ClaimGrant(REF, ALLOCATION, user=group),), None, (REF,))
    written = writer(api)

    members = (PodRef("team", name, f"u-{name}") for name in ("a", "b"))
    await asyncio.gather(*(written.write(WriteClaims(each, "n1", writes)) for each in members))

    statuses = [each.body["status"] for each in api.requests if each.path == STATUS]
    assert statuses == [{"allocation": TIMED, "reservedFor": [group]}]
    assert group == {
        "apiGroup": "scheduling.k8s.io",
        "resource": "podgroups",
        "name": "g",
        "uid": "ug",
    }


@pytest.mark.parametrize(
    ("grant", "read", "text"),
    [
        pytest.param(
            ClaimGrant(REF, ALLOCATION),
            as_read("9", allocation={}, reservedFor=[]),
            "claim team/c got allocated elsewhere in the meantime",
            id="allocated",
        ),
        pytest.param(
            ClaimGrant(REF),
            as_read("9"),
            "claim team/c got deallocated elsewhere in the meantime",
            id="deallocated",
        ),
        pytest.param(
            ClaimGrant(REF, ALLOCATION),
            as_read("9", uid="other"),
            "claim team/c got deleted in the meantime",
            id="another of that name",
        ),
        pytest.param(
            ClaimGrant(REF, ALLOCATION),
            refusal(404, "NotFound"),
            "claim team/c got deleted in the meantime",
            id="deleted",
        ),
    ],
)
async def test_what_others_did_meanwhile_ends_it(grant: ClaimGrant, read: Any, text: str) -> None:
    api = FakeApi()
    api.script("patch", STATUS, refusal(409, "Conflict"))
    api.script("get", PATH, read)

    with pytest.raises(ClaimWriteError, match=text):
        await writer(api).write(granting(grant))


async def test_a_write_whose_answer_was_lost_is_found_done() -> None:
    api = FakeApi()
    api.script("patch", STATUS, OutcomeUnknown("reset"))
    api.script("get", PATH, as_read("9", allocation=TIMED, reservedFor=[USER]))

    await writer(api).write(NEW)

    assert [each.verb for each in api.requests] == ["patch", "patch", "get"]


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ([refusal(409, "Conflict")] * 5, "add allocation and reservation to claim team/c: no"),
        ([refusal(422, "Invalid")], "add allocation and reservation to claim team/c: no"),
    ],
)
async def test_it_is_given_up_in_the_end(answers: list[Exception], text: str) -> None:
    api = FakeApi()
    api.script("patch", STATUS, *answers)
    api.script("get", PATH, *[as_read("9")] * 4)

    with pytest.raises(ClaimWriteError, match=text):
        await writer(api).write(NEW)


async def test_a_claim_for_extended_resources_is_made_filled_and_told() -> None:
    api = FakeApi()
    made = {"name": "web-extended-resources-x", "uid": "um", "resourceVersion": "1"}
    path = f"{CLAIMS}/web-extended-resources-x"
    api.script("post", CLAIMS, {"metadata": made})
    api.script("get", path, {"metadata": made})
    mapping = {"containerName": "main", "resourceName": "r/x", "requestName": "container-0"}
    creation = ClaimCreation({"requests": []}, ALLOCATION, (mapping,))
    written = writer(api)

    await written.write(WriteClaims(POD, "n1", DeviceWrites((), creation)))

    assert [(each.verb, each.path) for each in api.requests] == [
        ("post", CLAIMS),
        ("get", path),
        ("patch", path),
        ("patch", f"{path}/status"),
        ("patch", "/api/v1/namespaces/team/pods/web/status"),
    ]
    meta = api.requests[0].body["metadata"]
    assert meta["generateName"] == "web-extended-resources-"
    assert meta["ownerReferences"][0]["uid"] == "u1"
    assert api.requests[-1].body["status"]["extendedResourceClaimStatus"] == {
        "resourceClaimName": "web-extended-resources-x",
        "requestMappings": [mapping],
    }
    await revoke_special(api, written)
    assert [(each.verb, each.path) for each in api.requests[-2:]] == [
        ("patch", path),
        ("delete", path),
    ]


def name_of_special(api: FakeApi) -> str:
    """The name that a claim was asked to have, the same for every try."""
    (name,) = {each.body["metadata"]["name"] for each in api.requests if each.verb == "post"}
    assert isinstance(name, str)
    return name


LEFT = {"name": "web-extended-resources-x", "uid": "um", "ownerReferences": [{"uid": "u1"}]}
CREATION = WriteClaims(POD, "n1", DeviceWrites((), ClaimCreation({"requests": []}, ALLOCATION)))


async def test_a_claim_that_was_made_though_the_answer_was_lost_is_used() -> None:
    api = FakeApi()
    api.script("post", CLAIMS, OutcomeUnknown("reset"), refusal(409, "AlreadyExists"))
    name = "web-extended-resources-bb82030dbc"
    found = {"metadata": {**LEFT, "name": name}, "spec": {"devices": {"requests": []}}}
    api.script("get", f"{CLAIMS}/{name}", found, found)

    await writer(api).write(CREATION)

    assert name_of_special(api) == name
    assert api.requests[-2].path == f"{CLAIMS}/{name}/status"


async def test_requests_to_make_a_claim_are_counted() -> None:
    api = FakeApi()
    api.script("post", CLAIMS, OutcomeUnknown("reset"), {"metadata": LEFT})
    api.script("get", f"{CLAIMS}/{LEFT['name']}", {"metadata": LEFT})
    written = writer(api)

    await written.write(CREATION)

    assert written.creations == {"failure": 1, "success": 1}


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        pytest.param({"devices": {"requests": [{"name": "r"}]}}, {}, id="asks for something else"),
        pytest.param({}, {"allocation": ALLOCATION}, id="has devices already"),
    ],
)
async def test_a_claim_of_an_earlier_scheduler_is_removed_before_another_is_made(
    spec: dict[str, Any], status: dict[str, Any]
) -> None:
    api = FakeApi()
    api.script("post", CLAIMS, refusal(409, "AlreadyExists"))
    name = "web-extended-resources-bb82030dbc"
    left = {"metadata": {**LEFT, "name": name}, "spec": spec, "status": status}
    api.script("get", f"{CLAIMS}/{name}", left)
    written = writer(api)

    with pytest.raises(ClaimWriteError, match="left behind by an earlier attempt"):
        await written.write(CREATION)
    await revoke_special(api, written)

    assert (api.requests[-1].verb, api.requests[-1].path) == ("delete", f"{CLAIMS}/{name}")


async def test_a_name_that_somebody_else_has_is_left_to_the_api_server() -> None:
    api = FakeApi()
    api.script("post", CLAIMS, refusal(409, "AlreadyExists"), {"metadata": LEFT})
    name = "web-extended-resources-bb82030dbc"
    api.script("get", f"{CLAIMS}/{name}", {"metadata": {"name": name, "uid": "uo"}})
    api.script("get", f"{CLAIMS}/web-extended-resources-x", {"metadata": LEFT})

    await writer(api).write(CREATION)

    second = api.requests[2].body["metadata"]
    assert "name" not in second
    assert second["generateName"] == "web-extended-resources-"
