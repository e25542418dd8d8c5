"""Pods in a table: how many containers are ready, and the one word that tells how it goes."""

from __future__ import annotations

from collections.abc import Iterator

from .column import NAME, NONE, Column, Json, age, at, told

_ENDED = ("Succeeded", "Failed")


def _statuses(item: Json, name: str) -> list[Json]:
    listed = at(item, f"status.{name}", [])
    return listed if isinstance(listed, list) else []


def _ready(item: Json) -> str:
    sidecars = {
        each.get("name")
        for each in at(item, "spec.initContainers", [])
        if each.get("restartPolicy") == "Always"
    }
    containers = len(at(item, "spec.containers", [])) + len(sidecars)
    ready = sum(1 for each in _statuses(item, "containerStatuses") if each.get("ready"))
    ready += sum(
        1
        for each in _statuses(item, "initContainerStatuses")
        if each.get("ready") and each.get("name") in sidecars
    )
    return f"{ready}/{containers}"


def _status(item: Json) -> str:
    phase = at(item, "status.phase", "Unknown")
    if "deletionTimestamp" in item["metadata"] and phase not in _ENDED:
        lost = at(item, "status.reason", "") == "NodeLost"
        return "Unknown" if lost else "Terminating"
    return next(_reasons(item), at(item, "status.reason", phase))


def _reasons(item: Json) -> Iterator[str]:
    """What containers say about themselves, those that start first before the others."""
    for name, prefix in (("initContainerStatuses", "Init:"), ("containerStatuses", "")):
        for each in _statuses(item, name):
            waiting = at(each, "state.waiting.reason", "")
            ended = at(each, "state.terminated", {})
            if waiting and not (prefix and waiting == "PodInitializing"):
                yield f"{prefix}{waiting}"
            elif ended and (not prefix or ended.get("exitCode", 0) != 0):
                yield prefix + _ending(ended)
    for each in at(item, "status.conditions", []):
        if each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated":
            yield "SchedulingGated"


def _ending(ended: Json) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended['exitCode']}"


def _restarts(item: Json) -> str:
    return str(sum(each.get("restartCount", 0) for each in _statuses(item, "containerStatuses")))


def _gates(item: Json) -> str:
    wanted = [each.get("conditionType") for each in at(item, "spec.readinessGates", [])]
    if not wanted:
        return NONE
    true = {
        each.get("type")
        for each in at(item, "status.conditions", [])
        if each.get("status") == "True"
    }
    return f"{len([each for each in wanted if each in true])}/{len(wanted)}"


PODS = (
    NAME,
    told("Ready", _ready),
    told("Status", _status),
    told("Restarts", _restarts),
    age(),
    told("IP", lambda item: at(item, "status.podIP"), wide=True),
    told("Node", lambda item: at(item, "spec.nodeName"), wide=True),
    told("Nominated Node", lambda item: at(item, "status.nominatedNodeName"), wide=True),
    told("Readiness Gates", _gates, wide=True),
)


def _containers(item: Json) -> list[Json]:
    return at(item, "spec.template.spec.containers", [])


def template_columns() -> tuple[Column, ...]:
    """What the containers of a template are, for kinds that make pods."""
    return (
        told("Containers", lambda item: _joined(item, "name"), wide=True),
        told("Images", lambda item: _joined(item, "image"), wide=True),
    )


def _joined(item: Json, field: str) -> str:
    return ",".join(str(each.get(field, "")) for each in _containers(item))
