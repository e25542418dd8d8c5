"""What a kubelet reads of a pod beside what scheduling reads: how long it is to live."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

import msgspec

from mooring.objects.meta import Wire

from .settings import EXIT_CODE, RUN_SECONDS, HollowSettings

_FINISHED = ("Succeeded", "Failed")


class _Meta(Wire, frozen=True):
    uid: str = ""
    annotations: dict[str, str] | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None


class _Spec(Wire, frozen=True):
    restart_policy: str = "Always"
    active_deadline_seconds: int | None = None


class _Status(Wire, frozen=True):
    phase: str = "Pending"
    start_time: datetime | None = None


class Life(Wire, frozen=True):
    """How far a pod has come, and when it is to end."""

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
    def grace(self) -> int | None:
        """The seconds that a pod has which is being deleted; None for others.

        Without any seconds left its kubelet has let go of it, and others have not.
        """
        if self.metadata.deletion_timestamp is None:
            return None
        return self.metadata.deletion_grace_period_seconds or None

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

        Those that are always started again do, unless somebody has asked for something else.
        """
        asked = _number(self.metadata.annotations, RUN_SECONDS)
        if asked is None and self.spec.restart_policy == "Always" and not self.exit_code:
            return None
        return settings.run_seconds if asked is None else asked


class _Condition(Wire, frozen=True):
    type: str = ""
    status: str = ""


class _Told(Wire, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class _Pod(Wire, frozen=True):
    status: _Told = _Told()


life_of = msgspec.json.Decoder(Life).decode
_told_of = msgspec.json.Decoder(_Pod).decode


def is_ready(body: bytes) -> bool:
    """Whether a pod is said to be ready; asked of few, so not part of every life."""
    conditions = _told_of(body).status.conditions
    return any((each.type, each.status) == ("Ready", "True") for each in conditions)


def _number(annotations: Mapping[str, str] | None, key: str) -> float | None:
    """A number that is not negative; what is none does not count, as nobody could be told."""
    number = -1.0
    with suppress(ValueError, KeyError, OverflowError):
        number = float((annotations or {})[key])
    return number if 0 <= number < float("inf") else None
