"""What people read in tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from moorage.embedded.api.column import duration
from moorage.embedded.api.kind import ServedKinds
from moorage.embedded.kinds.catalogue import catalogue
from moorage.embedded.kinds.custom_resources import read_columns
from tests.embedded.serving import pod

KINDS = ServedKinds(catalogue())
NOW = datetime(2026, 1, 1, tzinfo=UTC)


RESOURCE = {
    "metadata": {"name": "w", "annotations": {"example.com/a": "b"}},
    "spec": {"sizes": [1, 2], "since": "2025-12-31T23:00:00Z", "odd": "x", "day": "2025-12-31"},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "Stalled", "status": "False", "new": True},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "kind", "shown"),
    [
        (".metadata.name", "string", "w"),
        (r".metadata.annotations.example\.com/a", "string", "b"),
        (".metadata.annotations['example.com/a']", "string", "b"),
        ('.status.conditions[?(@.type=="Ready")].status', "string", "True"),
        (".status.conditions[?(@.type == 'Stalled')].status", "string", "False"),
        ('.status.conditions[?(@.type!="Ready")].type', "string", "Stalled"),
        (".status.conditions[?(@.new==true)].type", "string", "Stalled"),
        ('.status.conditions[?(@.type=="Gone")].status', "string", None),
        (".spec.sizes[1]", "integer", 2),
        (".spec.sizes[-1]", "integer", 2),
        (".spec.sizes[*]", "integer", 1),
        (".spec.sizes[7]", "integer", None),
        (".spec.sizes.x", "integer", None),
        (".spec.since", "date", "60m"),
        (".spec.odd", "date", "<invalid>"),
        (".spec.day", "date", "<invalid>"),
        ("{.spec", "string", None),
        (".spec[", "string", None),
    ],
)
def test_what_definitions_show_of_their_resources(path: str, kind: str, shown: Any) -> None:
    given = {"name": "Shown", "type": kind, "jsonPath": path}

    columns = read_columns({"additionalPrinterColumns": [given]})

    assert columns[1].cell(RESOURCE, NOW) == shown


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (301, "5m1s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600 + 60, "3h1m"),
        (9 * 3600, "9h"),
        (50 * 3600, "2d2h"),
        (9 * 86_400, "9d"),
        (800 * 86_400, "2y70d"),
        (9 * 365 * 86_400, "9y"),
    ],
)
def test_spans_of_time_are_short(seconds: int, text: str) -> None:
    assert duration(timedelta(seconds=seconds)) == text


def cells(status: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    item = {**pod("a"), "status": status}
    item["metadata"].update(metadata)
    return {each.name: each.cell(item, NOW) for each in KINDS["pods"].columns}


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"phase": "Pending"}, "Pending"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        ({}, "Unknown"),
        (
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}],
            },
            "SchedulingGated",
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
            },
            "CrashLoopBackOff",
        ),
        (
            {
                "phase": "Pending",
                "initContainerStatuses": [{"state": {"terminated": {"exitCode": 3}}}],
            },
            "Init:ExitCode:3",
        ),
        (
            {
                "phase": "Succeeded",
                "containerStatuses": [
                    {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
                ],
            },
            "Completed",
        ),
    ],
)
def test_how_a_pod_is_doing(status: dict[str, Any], word: str) -> None:
    assert cells(status)["Status"] == word


def test_a_pod_that_leaves() -> None:
    gone = "2026-01-01T00:00:00Z"

    assert cells({"phase": "Running"}, deletionTimestamp=gone)["Status"] == "Terminating"
    assert cells({"phase": "Succeeded"}, deletionTimestamp=gone)["Status"] == "Succeeded"


def test_ready_containers_and_age() -> None:
    status = {"phase": "Running", "containerStatuses": [{"ready": True, "restartCount": 2}]}

    told = cells(status, creationTimestamp="2025-12-31T23:55:00Z")

    assert (told["Ready"], told["Restarts"], told["Age"]) == ("1/1", "2", "5m")


def test_how_a_job_is_doing() -> None:
    item = {
        "metadata": {"name": "j"},
        "spec": {"completions": 3},
        "status": {"succeeded": 1, "startTime": "2025-12-31T23:59:00Z"},
    }

    told = {each.name: each.cell(item, NOW) for each in KINDS["jobs.batch"].columns}

    assert (told["Status"], told["Completions"], told["Duration"]) == ("Running", "1/3", "60s")
