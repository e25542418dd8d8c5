"""Events of the cluster: written once, repeated in a series."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

import pytest

from moorage.app.writes import ClusterEvents
from moorage.client.api import Api
from moorage.client.api_errors import ApiError
from moorage.engine.actions import PodRef, RecordEvent

from .fake_api import FakeApi, refusal

POD = PodRef("team", "web", "u1")
FOLDER = "/apis/events.k8s.io/v1/namespaces/team/events"


def event(note: str = "0/3 nodes", reason: str = "FailedScheduling") -> RecordEvent:
    return RecordEvent(POD, "Warning", reason, "Scheduling", note, "default-scheduler")


class Recorder:
    """A recorder with a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.api = FakeApi()
        self.events = ClusterEvents(
            cast(Api, self.api),
            "moorage-host",
            clock=lambda: self.now,
            today=lambda: datetime(2026, 11, 15, 12, 0, 0, 250_000, tzinfo=UTC),
        )

    async def record(self, action: RecordEvent, *, at: float) -> None:
        self.now = at
        await self.events.record(action)


async def test_an_event_tells_who_what_and_about_whom() -> None:
    recorder = Recorder()
    victim = RecordEvent(
        POD, "Normal", "Preempted", "Preempting", "make way", "batch", PodRef("ops", "big", "u2")
    )
    await recorder.record(victim, at=0)

    (request,) = recorder.api.requests
    name = request.body["metadata"].pop("name")
    assert name.startswith("web.")
    assert (request.verb, request.path) == ("post", FOLDER)
    assert request.body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "team"},
        "eventTime": "2026-11-15T12:00:00.250000Z",
        "reportingController": "batch",
        "reportingInstance": "moorage-host",
        "action": "Preempting",
        "reason": "Preempted",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "team",
            "name": "web",
            "uid": "u1",
        },
        "related": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "ops",
            "name": "big",
            "uid": "u2",
        },
        "note": "make way",
        "type": "Normal",
    }


async def test_the_longest_pod_name_leaves_room_for_the_event() -> None:
    recorder = Recorder()
    long = RecordEvent(PodRef("team", "x" * 253, "u"), "Normal", "Scheduled", "Binding", "n", "p")
    await recorder.record(long, at=0)

    assert len(recorder.api.requests[0].body["metadata"]["name"]) <= 253


async def test_repetitions_become_a_series_that_is_written_now_and_then() -> None:
    recorder = Recorder()
    for at in (0, 1, 2, 3, 40):
        await recorder.record(event(f"told at {at}"), at=at)

    first, *patches = recorder.api.requests
    where = f"{FOLDER}/{first.body['metadata']['name']}"
    assert [patch.path for patch in patches] == [where, where]
    assert [patch.body["series"]["count"] for patch in patches] == [2, 5]
    assert patches[0].body["series"]["lastObservedTime"] == "2026-11-15T12:00:00.250000Z"


async def test_an_event_after_a_long_silence_is_a_new_one() -> None:
    recorder = Recorder()
    for at in (0, 361):
        await recorder.record(event(), at=at)

    assert [request.verb for request in recorder.api.requests] == ["post", "post"]


async def test_other_reasons_are_other_events() -> None:
    recorder = Recorder()
    await recorder.record(event(), at=0)
    await recorder.record(event(reason="Preempted"), at=1)

    assert [request.verb for request in recorder.api.requests] == ["post", "post"]


async def test_an_event_that_could_not_be_written_is_written_when_it_repeats() -> None:
    recorder = Recorder()
    recorder.api.script("post", FOLDER, refusal(500))
    with pytest.raises(ApiError):
        await recorder.record(event(), at=0)
    await recorder.record(event(), at=1)

    assert [request.verb for request in recorder.api.requests] == ["post", "post"]


async def test_what_happens_once_is_not_remembered() -> None:
    recorder = Recorder()
    scheduled = RecordEvent(POD, "Normal", "Scheduled", "Binding", "to n1", "default-scheduler")
    await recorder.record(scheduled, at=0)

    assert not recorder.events._known
