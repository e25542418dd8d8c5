"""Settings of hollow nodes, what their kubelets read of a pod, and timers."""

from __future__ import annotations

from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

import msgspec

from moorage.objects.meta import Wire
from moorage.objects.pod_refusal import Admit

#: A pod that is to run for another time, or to end with another exit code, says so.
RUN_SECONDS = "hollow.moorage.dev/run-seconds"
EXIT_CODE = "hollow.moorage.dev/exit-code"

#: On a pod or a node: images that cannot be pulled, separated by commas; * stands for all.
MISSING_IMAGES = "hollow.moorage.dev/missing-images"

#: On a node: policies that its kubelet knows, or does not, such as CoexistPolicy=false.
POLICIES = "hollow.moorage.dev/policies"

#: On a node: "stopped" stops its kubelet. The node falls silent; what runs there runs on.
KUBELET = "hollow.moorage.dev/kubelet"


@dataclass(frozen=True, slots=True, kw_only=True)
class HollowSettings:
    """How long things take on hollow nodes, and which policies their kubelets know."""

    #: From being bound to running.
    start_seconds: float = 0.0
    #: How long pods run that are not restarted; those that are run for ever.
    run_seconds: float = 10.0
    #: How long a pod takes to stop, if its grace period allows as much.
    stop_seconds: float = 1.0
    #: How kubelets admit pods by the policies that there are, by name.
    policies: Mapping[str, Admit] = field(default_factory=dict)
    #: Those that kubelets do not know unless their node says so.
    unknown: Container[str] = ()
    #: Leases are renewed as often as real kubelets do it.
    lease_seconds: float = 10.0
    #: But not more of them a second than this: with many nodes each has longer.
    most_renewals: float = 100.0

    def find_policies(self, annotations: Mapping[str, str]) -> tuple[Admit, ...]:
        """Returns how the kubelet of a node admits pods by policies, given its annotations."""
        said = dict(each.strip().split("=", 1) for each in _split(annotations.get(POLICIES)))
        return tuple(
            admit
            for name, admit in self.policies.items()
            if said.get(name, str(name not in self.unknown)).lower() == "true"
        )


def _split(text: str | None) -> list[str]:
    """Returns the parts of a list with commas that name something and its value."""
    return [each for each in (text or "").split(",") if "=" in each]


_FINISHED = ("Succeeded", "Failed")


class _Meta(Wire, frozen=True):
    uid: str = ""
    annotations: dict[str, str] | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None


class _Sleep(Wire, frozen=True):
    seconds: int = 0


class _PreStop(Wire, frozen=True):
    sleep: _Sleep | None = None


class _Lifecycle(Wire, frozen=True):
    pre_stop: _PreStop | None = None


class _Container(Wire, frozen=True):
    name: str = ""
    image: str = ""
    lifecycle: _Lifecycle | None = None

    @property
    def sleep_seconds(self) -> int:
        """How long it sleeps before it is told to stop."""
        hook = self.lifecycle and self.lifecycle.pre_stop
        return hook.sleep.seconds if hook and hook.sleep else 0


class _Spec(Wire, frozen=True):
    restart_policy: str = "Always"
    active_deadline_seconds: int | None = None
    containers: tuple[_Container, ...] | None = None
    init_containers: tuple[_Container, ...] | None = None
    resource_claims: tuple[msgspec.Raw, ...] | None = None


class _Status(Wire, frozen=True):
    phase: str = "Pending"
    start_time: datetime | None = None
    extended_resource_claim_status: dict[str, Any] | None = None


class PodLife(Wire, frozen=True):
    """The part of a pod that says how far it has come and when it ends."""

    metadata: _Meta
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def is_finished(self) -> bool:
        return self.status.phase in _FINISHED

    @property
    def is_running(self) -> bool:
        return self.status.phase == "Running"

    @property
    def has_claims(self) -> bool:
        """Whether it uses claims of devices."""
        return bool(self.spec.resource_claims or self.status.extended_resource_claim_status)

    @property
    def grace(self) -> int | None:
        """The grace period of a pod that is being deleted; None for others.

        None also once its kubelet has released it.
        """
        if self.metadata.deletion_timestamp is None:
            return None
        return self.metadata.deletion_grace_period_seconds or None

    @property
    def deadline(self) -> int | None:
        """How many seconds it may run."""
        return self.spec.active_deadline_seconds

    def without_image(self, missing: frozenset[str]) -> frozenset[str]:
        """Returns the containers whose images cannot be pulled on a node that misses some."""
        missing |= images_in(self.metadata.annotations)
        return frozenset(
            each.name
            for each in self._containers
            if missing and (each.image in missing or _ALL_IMAGES in missing)
        )

    @property
    def _containers(self) -> tuple[_Container, ...]:
        return (*(self.spec.containers or ()), *(self.spec.init_containers or ()))

    def stop_seconds(self, settings: HollowSettings) -> float:
        """How long it takes to stop, if its grace period allows as much."""
        sleep = max((each.sleep_seconds for each in self._containers), default=0)
        return max(sleep, 0) + settings.stop_seconds

    @property
    def exit_code(self) -> int:
        return round(_number(self.metadata.annotations, EXIT_CODE) or 0)

    @property
    def restarts(self) -> bool:
        """Whether its containers are started again once they have exited."""
        policy = self.spec.restart_policy
        return policy == "Always" or (policy == "OnFailure" and self.exit_code != 0)

    def seconds(self, settings: HollowSettings) -> float | None:
        """How long its containers run; None if for ever.

        Containers that are always restarted run for ever unless an annotation says otherwise.
        """
        asked = _number(self.metadata.annotations, RUN_SECONDS)
        if asked is None and self.spec.restart_policy == "Always" and not self.exit_code:
            return None
        return settings.run_seconds if asked is None else asked


class _Condition(Wire, frozen=True):
    type: str = ""
    status: str = ""


class _Conditions(Wire, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class _Pod(Wire, frozen=True):
    status: _Conditions = _Conditions()


read_life = msgspec.json.Decoder(PodLife).decode
_read_conditions = msgspec.json.Decoder(_Pod).decode


def is_ready(body: bytes) -> bool:
    """Whether the Ready condition of a pod is true."""
    conditions = _read_conditions(body).status.conditions
    return any((each.type, each.status) == ("Ready", "True") for each in conditions)


_ALL_IMAGES = "*"


def images_in(annotations: Mapping[str, str] | None) -> frozenset[str]:
    """Returns the images that an annotation says to be missing."""
    names = (annotations or {}).get(MISSING_IMAGES, "").split(",")
    return frozenset(each.strip() for each in names) - {""}


def _number(annotations: Mapping[str, str] | None, key: str) -> float | None:
    """Reads an annotation as a number; None if it is none or negative."""
    number = -1.0
    with suppress(ValueError, KeyError, OverflowError):
        number = float((annotations or {})[key])
    return number if 0 <= number < float("inf") else None


T = TypeVar("T")


class Timers(Generic[T]):
    """One timer per key; setting it again replaces the earlier one."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, str]] = []
        self._last: dict[str, tuple[int, T]] = {}
        self._turn = 0

    def set(self, key: str, due: float, what: T) -> None:
        self._turn += 1
        self._last[key] = self._turn, what
        heappush(self._heap, (due, self._turn, key))

    def cancel(self, key: str) -> None:
        self._last.pop(key, None)

    def due(self, now: float) -> tuple[str, T] | None:
        """Takes the next timer that is due; None if there is none."""
        next_due = self.next
        if next_due is None or next_due > now:
            return None
        _, _, key = heappop(self._heap)
        return key, self._last.pop(key)[1]

    @property
    def next(self) -> float | None:
        """When the next thing is due."""
        heap = self._heap
        while heap:
            due, turn, key = heap[0]
            known = self._last.get(key)
            if known is not None and known[0] == turn:
                return due
            heappop(heap)
        return None
