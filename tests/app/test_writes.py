"""Status patches, evictions and volumes, as they are sent."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from moorage.app import writes
from moorage.app.writes import Writer
from moorage.client.api import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Api
from moorage.client.api_errors import ApiError, OutcomeUnknown, Unreachable
from moorage.engine.actions import (
    EvictPod,
    PatchPodStatus,
    PodRef,
    PodScheduledCondition,
    WriteVolumes,
)
from moorage.engine.events import BindingFailed, Evicted, EvictionFailed
from moorage.framework.plugin import ClaimWrite, VolumeWrite

from .fake_api import FakeApi, Request, refusal

POD = PodRef("team", "web", "u1")
PATH = "/api/v1/namespaces/team/pods/web"
STATUS = f"{PATH}/status"
EVICT = EvictPod(POD, PodRef("team", "big", "u2"), "default-scheduler: make way")
VOLUME = "/api/v1/persistentvolumes/pv1"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "_PAUSE", 0.0)


def writer(api: FakeApi) -> Writer:
    return Writer(cast(Api, api), lambda: datetime(2026, 11, 15, 12, tzinfo=UTC))


async def test_a_condition_is_merged_by_its_type() -> None:
    api = FakeApi()
    condition = PodScheduledCondition("Unschedulable", "0/3 nodes", observed_generation=2)
    await writer(api).patch_status(PatchPodStatus(POD, condition, "n1"))

    assert api.requests == [
        Request(
            "patch",
            STATUS,
            {
                "metadata": {"uid": "u1"},
                "status": {
                    "nominatedNodeName": "n1",
                    "conditions": [
                        {
                            "type": "PodScheduled",
                            "status": "False",
                            "reason": "Unschedulable",
                            "message": "0/3 nodes",
                            "lastProbeTime": None,
                            "lastTransitionTime": "2026-11-15T12:00:00Z",
                            "observedGeneration": 2,
                        }
                    ],
                },
            },
            STRATEGIC_MERGE_PATCH,
        )
    ]


async def test_an_empty_nomination_takes_the_field_away() -> None:
    api = FakeApi()
    await writer(api).patch_status(PatchPodStatus(POD, None, ""))

    assert api.requests[0].body["status"] == {"nominatedNodeName": None}


@pytest.mark.parametrize("status", [404, 409])
async def test_the_status_of_a_pod_that_is_gone_is_not_missed(status: int) -> None:
    api = FakeApi()
    api.script("patch", STATUS, refusal(status, "x"))

    await writer(api).patch_status(PatchPodStatus(POD, None, "n1"))


@pytest.mark.parametrize("lost", [Unreachable("down"), OutcomeUnknown("cut")])
async def test_a_status_is_written_once_more_when_the_answer_is_lost(lost: Exception) -> None:
    api = FakeApi()
    api.script("patch", STATUS, lost)
    await writer(api).patch_status(PatchPodStatus(POD, None, "n1"))

    assert len(api.requests) == 2


async def test_a_status_that_is_refused_is_an_error() -> None:
    api = FakeApi()
    api.script("patch", STATUS, refusal(403, "Forbidden"))

    with pytest.raises(ApiError):
        await writer(api).patch_status(PatchPodStatus(POD, None, "n1"))


async def test_a_victim_is_marked_and_then_deleted() -> None:
    api = FakeApi()

    assert await writer(api).evict(EVICT) == Evicted("u1", "u2")
    mark, delete = api.requests
    assert (mark.path, mark.content_type) == (STATUS, STRATEGIC_MERGE_PATCH)
    assert mark.body["status"]["conditions"] == [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "default-scheduler: make way",
            "lastProbeTime": None,
            "lastTransitionTime": "2026-11-15T12:00:00Z",
        }
    ]
    assert (delete.verb, delete.path) == ("delete", PATH)
    assert delete.body["preconditions"] == {"uid": "u1"}


@pytest.mark.parametrize("status", [404, 409])
@pytest.mark.parametrize("verb", ["patch", "delete"])
async def test_a_victim_that_is_gone_was_evicted(verb: str, status: int) -> None:
    api = FakeApi()
    api.script(verb, STATUS if verb == "patch" else PATH, refusal(status, "x"))

    assert await writer(api).evict(EVICT) == Evicted("u1", "u2")


@pytest.mark.parametrize("problem", [refusal(403), Unreachable("no"), OutcomeUnknown("no")])
async def test_an_eviction_that_fails_is_told(problem: Exception) -> None:
    api = FakeApi()
    api.script("delete", PATH, problem)

    assert await writer(api).evict(EVICT) == EvictionFailed("u1", "u2", "no")


def free(**claim_ref: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"claimRef": claim_ref} if claim_ref else {}
    return {"metadata": {"uid": "v", "resourceVersion": "7"}, "spec": spec}


BIND_VOLUME = WriteVolumes(POD, "n1", volumes=(VolumeWrite("pv1", "team", "data", "c1"),))


@pytest.mark.parametrize("volume", [free(), free(namespace="team", name="data")])
async def test_a_volume_is_bound_unless_it_changed(volume: dict[str, Any]) -> None:
    api = FakeApi()
    api.script("get", VOLUME, volume)

    assert await writer(api).write_volumes(BIND_VOLUME) is None
    patch = api.requests[1]
    assert (patch.path, patch.content_type) == (VOLUME, MERGE_PATCH)
    assert patch.body["metadata"] == {
        "resourceVersion": "7",
        "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
    }
    assert patch.body["spec"]["claimRef"] == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "team",
        "name": "data",
        "uid": "c1",
    }


async def test_a_volume_that_is_bound_already_is_left_alone() -> None:
    api = FakeApi()
    api.script("get", VOLUME, free(namespace="team", name="data", uid="c1"))

    assert await writer(api).write_volumes(BIND_VOLUME) is None
    assert len(api.requests) == 1


@pytest.mark.parametrize(
    "volume", [free(namespace="team", name="data", uid="c2"), free(namespace="other", name="data")]
)
async def test_a_volume_of_somebody_else_is_not_taken(volume: dict[str, Any]) -> None:
    api = FakeApi()
    api.script("get", VOLUME, volume)

    outcome = await writer(api).write_volumes(BIND_VOLUME)

    assert isinstance(outcome, BindingFailed)
    assert "volume 'pv1' is bound to claim" in outcome.message
    assert len(api.requests) == 1


async def test_a_claim_names_the_node_it_is_provisioned_for() -> None:
    api = FakeApi()
    action = WriteVolumes(POD, "n1", claims=(ClaimWrite("team", "data", "n1"),))

    assert await writer(api).write_volumes(action) is None
    (patch,) = api.requests
    assert patch.path == "/api/v1/namespaces/team/persistentvolumeclaims/data"
    assert patch.body == {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}}


async def test_volumes_that_cannot_be_written_fail_the_binding() -> None:
    api = FakeApi()
    api.script("get", VOLUME, refusal(404, "NotFound", "no volume"))

    outcome = await writer(api).write_volumes(BIND_VOLUME)

    assert outcome == BindingFailed("u1", "binding volumes: no volume (404 NotFound)")
