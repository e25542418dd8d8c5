"""What the failure of a pod means for its job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mooring.embedded.wire import Json

from .items import PodItem

INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"

# Others take a longer number for none.
_LONGEST_NUMBER = 9


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure of a pod."""

    #: Whether it counts towards the limit.
    counts: bool = True
    #: Why the whole job has failed with it, if it has.
    ends_job: str = ""
    ends_index: bool = False
    #: How often its index has failed by now.
    times: int = 1


_PLAIN = Failure()


@dataclass(frozen=True, slots=True)
class Judge:
    """How failures of the pods of a job are taken."""

    rules: tuple[Json, ...]
    #: How often an index may fail; None if indexes are not looked at by themselves.
    limit_per_index: int | None
    #: Whether pods that are being deleted count, and are replaced, only once they have ended.
    patient: bool

    @classmethod
    def of(cls, spec: Json) -> Judge:
        policy = spec.get("podFailurePolicy") or {}
        return cls(
            rules=tuple(policy.get("rules") or ()),
            limit_per_index=spec.get("backoffLimitPerIndex"),
            patient=spec.get("podReplacementPolicy") == "Failed" or bool(policy),
        )

    def has_failed(self, pod: PodItem) -> bool:
        """A pod that is being deleted will not succeed any more."""
        return pod.phase == "Failed" or (pod.is_stopping and not self.patient)

    def verdict(self, pod: PodItem) -> Failure:
        """What the failure of a pod means."""
        if not self.rules and self.limit_per_index is None:
            return _PLAIN
        item = pod.entry.object
        action, why = self._action(item)
        counts = action != "Ignore"
        notes = item["metadata"].get("annotations") or {}
        times = _number(notes.get(INDEX_FAILURES, "")) + counts
        limit = self.limit_per_index
        exceeded = counts and limit is not None and times > limit
        return Failure(
            counts=counts,
            ends_job=why if action == "FailJob" else "",
            ends_index=limit is not None and (exceeded or action == "FailIndex"),
            times=times,
        )

    def _action(self, pod: Json) -> tuple[str, str]:
        """What the first rule that speaks of a pod says, and why."""
        for at, rule in enumerate(self.rules):
            why = _matched(pod, rule)
            if why:
                return rule["action"], f"{why} matching {rule['action']} rule at index {at}"
        return "Count", ""


def index_of(pod: PodItem) -> int:
    """The index of a pod; -1 if it has none."""
    text = pod.labels.get(INDEX, "")
    return int(text) if text.isascii() and text.isdecimal() else -1


def _matched(pod: Json, rule: Json) -> str:
    """What of a pod a rule speaks of; empty if nothing."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    named = f"{metadata['namespace']}/{metadata['name']}"
    codes = rule.get("onExitCodes")
    if codes is None:
        for each in status.get("conditions") or ():
            for pattern in rule.get("onPodConditions") or ():
                wanted = (pattern["type"], pattern.get("status", "True"))
                if (each["type"], each["status"]) == wanted:
                    return f"Pod {named} has condition {each['type']}"
        return ""
    for container, code in _exits(status):
        if codes.get("containerName") in (None, container):
            listed = code in (codes.get("values") or ())
            if code and listed is (codes["operator"] == "In"):
                return f"Container {container} for pod {named} failed with exit code {code}"
    return ""


def _exits(status: Json) -> Iterator[tuple[str, int]]:
    """The containers that have ended, and with which code."""
    for field in ("containerStatuses", "initContainerStatuses"):
        for each in status.get(field) or ():
            ended: dict[str, Any] | None = (each.get("state") or {}).get("terminated")
            if ended is not None:
                yield each["name"], ended.get("exitCode", 0)


def _number(text: str) -> int:
    fits = text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER
    return int(text) if fits else 0
