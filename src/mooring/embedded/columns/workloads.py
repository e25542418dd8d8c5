"""Controllers of pods in a table: how many pods they want and have."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from mooring.embedded.scale import selector_text

from .column import NAME, NONE, Column, Json, age, at, duration, field, told
from .pods import template_columns


def _number(name: str, path: str) -> Column:
    return told(name, lambda item: at(item, path, 0), type="integer")


_SELECTOR = told(
    "Selector", lambda item: selector_text(at(item, "spec.selector", None)) or NONE, wide=True
)
_TEMPLATE = (*template_columns(), _SELECTOR)


def _of(ready: str, wanted: str, default: int) -> Any:
    return lambda item: f"{at(item, ready, 0)}/{at(item, wanted, default)}"


def _job_status(item: Json) -> str:
    true = [
        each.get("type")
        for each in at(item, "status.conditions", [])
        if each.get("status") == "True"
    ]
    for condition, word in (("Complete", "Complete"), ("Failed", "Failed")):
        if condition in true:
            return word
    if "deletionTimestamp" in item["metadata"]:
        return "Terminating"
    for condition, word in (("Suspended", "Suspended"), ("FailureTarget", "FailureTarget")):
        if condition in true:
            return word
    return "Running"


def _completions(item: Json) -> str:
    done, wanted = at(item, "status.succeeded", 0), at(item, "spec.completions", None)
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = at(item, "spec.parallelism", 0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_duration(item: Json, now: datetime) -> str:
    started, ended = at(item, "status.startTime", ""), at(item, "status.completionTime", "")
    if not started:
        return ""
    end = datetime.fromisoformat(ended) if ended else now
    return duration(end - datetime.fromisoformat(started))


DEPLOYMENTS = (
    NAME,
    told("Ready", _of("status.readyReplicas", "spec.replicas", 1)),
    told("Up-to-date", lambda item: str(at(item, "status.updatedReplicas", 0))),
    told("Available", lambda item: str(at(item, "status.availableReplicas", 0))),
    age(),
    *_TEMPLATE,
)
SCALES = (
    NAME,
    _number("Desired", "spec.replicas"),
    _number("Available", "status.replicas"),
    age(),
)
REPLICA_SETS = (
    NAME,
    _number("Desired", "spec.replicas"),
    _number("Current", "status.replicas"),
    _number("Ready", "status.readyReplicas"),
    age(),
    *_TEMPLATE,
)
STATEFUL_SETS = (
    NAME,
    told("Ready", _of("status.readyReplicas", "spec.replicas", 1)),
    age(),
    *template_columns(),
)
DAEMON_SETS = (
    NAME,
    _number("Desired", "status.desiredNumberScheduled"),
    _number("Current", "status.currentNumberScheduled"),
    _number("Ready", "status.numberReady"),
    _number("Up-to-date", "status.updatedNumberScheduled"),
    _number("Available", "status.numberAvailable"),
    told(
        "Node Selector",
        lambda item: selector_text(at(item, "spec.template.spec.nodeSelector", None)) or NONE,
    ),
    age(),
    *_TEMPLATE,
)
JOBS = (
    NAME,
    told("Status", _job_status),
    told("Completions", _completions),
    Column("Duration", _job_duration),
    age(),
    *_TEMPLATE,
)
BUDGETS = (
    NAME,
    told("Min Available", lambda item: str(at(item, "spec.minAvailable", "N/A"))),
    told("Max Unavailable", lambda item: str(at(item, "spec.maxUnavailable", "N/A"))),
    _number("Allowed Disruptions", "status.disruptionsAllowed"),
    age(),
)
REVISIONS = (
    NAME,
    told(
        "Controller",
        lambda item: next(
            (
                f"{each.get('kind', '').lower()}.{each.get('apiVersion', '').partition('/')[0]}"
                f"/{each.get('name')}"
                for each in at(item, "metadata.ownerReferences", [])
                if each.get("controller")
            ),
            NONE,
        ),
    ),
    field("Revision", "revision", 0),
    age(),
)
