"""Claims whose writes are taken back: what is sent, and what is known of them then."""

from __future__ import annotations

from typing import Any, cast

import pytest

from moorage.app import claim_revocation
from moorage.app.claim_revocation import ClaimRevoker, Revocation
from moorage.client.api import STRATEGIC_MERGE_PATCH, Api
from moorage.client.api_errors import OutcomeUnknown
from moorage.engine.actions import PodRef, ReleaseClaim, RevokeClaims
from moorage.framework.device_writes import ClaimRelease, DeviceClaimRef
from moorage.objects.resource_claim import FINALIZER

from .fake_api import FakeApi, refusal

POD = PodRef("team", "web", "u1")
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims"
PATH, STATUS = f"{CLAIMS}/c", f"{CLAIMS}/c/status"
REF = DeviceClaimRef("team", "c", "uc", "7")
SPECIAL = DeviceClaimRef("team", "c", "us")
LOST = OutcomeUnknown("reset")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_revocation, "_FIRST_PAUSE", 0.0)


def as_read(version: str, finalizers: tuple[str, ...] = (), **status: Any) -> dict[str, Any]:
    meta = {"name": "c", "uid": "uc", "resourceVersion": version, "finalizers": finalizers}
    return {"metadata": meta, "status": status}


def held_in(version: str) -> list[DeviceClaimRef]:
    return [DeviceClaimRef("team", "c", "uc", version)]


HOLDING = as_read("9", (FINALIZER,), allocation={"devices": {}})


async def revoke(api: FakeApi, made: DeviceClaimRef | None = None) -> Revocation:
    claims = (REF,) if made is None else ()
    action = RevokeClaims(POD, claims, deletes_special=made is not None)
    return await ClaimRevoker(cast(Api, api)).revoke(action, made)


async def test_a_pod_is_taken_out_of_its_claims() -> None:
    api = FakeApi()
    api.script("patch", STATUS, HOLDING)

    found = await revoke(api)

    (sent,) = api.requests
    assert (sent.path, sent.content_type) == (STATUS, STRATEGIC_MERGE_PATCH)
    user = {"$patch": "delete", "uid": "u1"}
    assert sent.body == {"metadata": {"uid": "uc"}, "status": {"reservedFor": [user]}}
    assert (found.is_done, found.held) == (True, held_in("9"))


async def test_a_claim_without_devices_changes_so_that_no_late_write_gives_it_some() -> None:
    api = FakeApi()
    api.script("patch", STATUS, as_read("9", ("other", FINALIZER)))

    found = await revoke(api)

    meta = {"uid": "uc", "resourceVersion": "9", "finalizers": ["other"]}
    assert (api.requests[-1].path, api.requests[-1].body) == (PATH, {"metadata": meta})
    assert (found.is_done, found.held) == (True, [])


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(as_read("9"), id="it never had the finalizer"),
        pytest.param(refusal(404), id="it is gone"),
        pytest.param({"metadata": {"uid": "another"}}, id="another has its name"),
    ],
)
async def test_nothing_comes_late_to_a_claim(answer: Any) -> None:
    api = FakeApi()
    api.script("patch", STATUS, answer)

    found = await revoke(api)

    assert (len(api.requests), found.is_done, found.held) == (1, True, [])


@pytest.mark.parametrize(
    ("reads", "held"),
    [
        pytest.param([LOST, HOLDING], held_in("9"), id="it has devices"),
        pytest.param([refusal(500), as_read("9")], [], id="it has none"),
        pytest.param([refusal(404)], [], id="it is gone"),
    ],
)
async def test_a_claim_is_read_until_somebody_answers(reads: list[Any], held: list[Any]) -> None:
    api = FakeApi()
    api.script("patch", STATUS, LOST)
    api.script("get", PATH, *reads)

    found = await revoke(api)
    assert not found.is_done
    await ClaimRevoker(cast(Api, api)).finish(found)

    assert len(api.asked("get")) == len(reads)
    assert (found.is_done, found.held) == (True, held)


async def test_a_claim_that_changes_while_it_is_read_is_read_again() -> None:
    """The late write comes through just before."""
    api = FakeApi()
    api.script("patch", STATUS, as_read("8", (FINALIZER,)))
    api.script("patch", PATH, refusal(409, "Conflict"))
    api.script("get", PATH, HOLDING)

    found = await revoke(api)
    assert not found.is_done
    await ClaimRevoker(cast(Api, api)).finish(found)

    assert found.held == held_in("9")


async def test_the_claim_for_extended_resources_is_deleted_in_the_end() -> None:
    api = FakeApi()
    api.script("patch", PATH, LOST, {})
    api.script("delete", PATH, LOST)

    found = await revoke(api, SPECIAL)
    assert not found.is_done
    await ClaimRevoker(cast(Api, api)).finish(found)

    assert [each.verb for each in api.requests] == ["patch", "patch", "delete", "patch", "delete"]
    assert found.is_done


async def test_a_claim_gives_its_devices_back_unless_it_has_changed() -> None:
    api = FakeApi()

    await ClaimRevoker(cast(Api, api)).release(ReleaseClaim(POD, ClaimRelease(REF)))

    (sent,) = api.requests
    assert sent.body == {
        "metadata": {"uid": "uc", "resourceVersion": "7"},
        "status": {"allocation": None, "reservedFor": None, "devices": None},
    }
