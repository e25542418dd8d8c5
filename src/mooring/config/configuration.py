"""The configuration in force: everything defaulted, merged and checked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, TypeVar

import msgspec

from mooring.objects.meta import Wire

from .duration import Duration
from .gates import FeatureGates
from .merge import EnabledPlugin
from .problems import child, shown

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]

# The leader may be late by this factor, see client-go's leaderelection.
_JITTER = 1.2

_Section = TypeVar("_Section", bound=msgspec.Struct)


class LeaderElection(Wire, frozen=True):
    """How replicas agree on the one that schedules."""

    leader_elect: bool = True
    lease_duration: Duration = Duration.of_seconds(15)
    renew_deadline: Duration = Duration.of_seconds(10)
    retry_period: Duration = Duration.of_seconds(2)
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"

    def problems(self) -> Iterator[tuple[str, str]]:
        if not self.leader_elect:
            return
        for name, duration in (
            ("leaseDuration", self.lease_duration),
            ("renewDeadline", self.renew_deadline),
            ("retryPeriod", self.retry_period),
        ):
            if duration <= 0:
                yield name, f"must be greater than 0, got {duration}"
        if self.lease_duration <= self.renew_deadline:
            wanted = f"must be greater than renewDeadline ({self.renew_deadline})"
            yield "leaseDuration", f"{wanted}, got {self.lease_duration}"
        if self.renew_deadline <= _JITTER * self.retry_period:
            wanted = f"must be greater than {_JITTER} times retryPeriod ({self.retry_period})"
            yield "renewDeadline", f"{wanted}, got {self.renew_deadline}"
        if self.resource_lock != "leases":
            yield "resourceLock", f'must be "leases", got {shown(self.resource_lock)}'


class ClientConnection(Wire, frozen=True):
    """How the API server is reached."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: Int32 = 100

    def problems(self) -> Iterator[tuple[str, str]]:
        if not math.isfinite(self.qps):
            yield "qps", f"must be finite, got {self.qps}"
        if self.burst < 0:
            yield "burst", f"must be 0 or greater, got {self.burst}"


class Settings(Wire, frozen=True):
    """What holds for the scheduler as a whole."""

    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    delay_cache_until_active: bool = False

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.parallelism <= 0:
            yield "parallelism", f"must be greater than 0, got {self.parallelism}"
        yield from percentage_problems(self.percentage_of_nodes_to_score)
        initial, longest = self.pod_initial_backoff_seconds, self.pod_max_backoff_seconds
        if initial <= 0:
            yield "podInitialBackoffSeconds", f"must be greater than 0, got {shown(initial)}"
        if longest < initial:
            wanted = f"must not be less than podInitialBackoffSeconds ({shown(initial)})"
            yield "podMaxBackoffSeconds", f"{wanted}, got {shown(longest)}"
        for name, section in (
            ("leaderElection", filled(self.leader_election)),
            ("clientConnection", filled(self.client_connection)),
        ):
            yield from ((child(name, where), message) for where, message in section.problems())


class ProfileConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """One profile: which plugins run where, in order, and with which args."""

    scheduler_name: str
    #: The profile's own percentage, else that of the configuration; 0 when neither says.
    percentage_of_nodes_to_score: int
    #: Every point of POINTS, in that order.
    points: Mapping[str, tuple[EnabledPlugin, ...]]
    #: Every plugin enabled at any point; None for one that takes no args.
    args: Mapping[str, msgspec.Struct | None]


class Configuration(Settings, frozen=True, kw_only=True):
    """All that the scheduler is told before it starts."""

    profiles: tuple[ProfileConfiguration, ...]
    gates: FeatureGates


def filled(section: _Section) -> _Section:
    """A section in which, as in Kubernetes, an empty string or zero means the default."""
    return msgspec.structs.replace(
        section,
        **{
            field.name: field.default
            for field in msgspec.structs.fields(section)
            if getattr(section, field.name) in ("", 0) and field.type is not bool
        },
    )


def percentage_problems(percentage: int | None) -> Iterator[tuple[str, str]]:
    """What is wrong with a percentageOfNodesToScore."""
    if percentage is not None and not 0 <= percentage <= 100:
        yield "percentageOfNodesToScore", f"must be between 0 and 100, got {percentage}"
