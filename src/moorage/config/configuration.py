"""KubeSchedulerConfiguration: the settings in force, and the document as files contain it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from moorage.documents.conversion import find_fields
from moorage.documents.errors import child, describe
from moorage.objects.meta import Wire

from .duration import Duration
from .extenders import Extender, find_extender_problems
from .gates import FeatureGates
from .plugin_sets import EnabledPlugin

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
            yield "resourceLock", f'must be "leases", got {describe(self.resource_lock)}'


class ClientConnection(Wire, frozen=True):
    """How the API server is reached."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    #: Requests a second; 0 or less is no limit. kube-scheduler's default of 50 would hold back
    #: bindings that take milliseconds to decide by the hundred.
    qps: float = 0.0
    #: Requests at once; 0 is as many as a second has.
    burst: Int32 = 0

    def problems(self) -> Iterator[tuple[str, str]]:
        if not math.isfinite(self.qps):
            yield "qps", f"must be finite, got {self.qps}"
        if self.burst < 0:
            yield "burst", f"must be 0 or greater, got {self.burst}"


class SchedulerSettings(Wire, frozen=True):
    """The settings of the scheduler as a whole."""

    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    delay_cache_until_active: bool = False
    extenders: tuple[Extender, ...] = ()
    #: Moorage's own: how many pods extenders are asked about at a time.
    extender_concurrency: Int32 = 1
    #: Moorage's own: whether nodes that an extender sent back are scored with the pods that run
    #: there. kube-scheduler scores them as if they were empty.
    extender_nodes_keep_pods: bool = False

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.parallelism <= 0:
            yield "parallelism", f"must be greater than 0, got {self.parallelism}"
        yield from percentage_problems(self.percentage_of_nodes_to_score)
        initial, longest = self.pod_initial_backoff_seconds, self.pod_max_backoff_seconds
        if initial <= 0:
            yield "podInitialBackoffSeconds", f"must be greater than 0, got {describe(initial)}"
        if longest < initial:
            wanted = f"must not be less than podInitialBackoffSeconds ({describe(initial)})"
            yield "podMaxBackoffSeconds", f"{wanted}, got {describe(longest)}"
        for name, section in (
            ("leaderElection", apply_defaults(self.leader_election)),
            ("clientConnection", apply_defaults(self.client_connection)),
        ):
            yield from ((child(name, where), message) for where, message in section.problems())
        yield from find_extender_problems(self.extenders)
        if self.extender_concurrency <= 0:
            problem = f"must be greater than 0, got {self.extender_concurrency}"
            yield "extenderConcurrency", problem


class ProfileConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """One profile: which plugins run where, in order, and with which args."""

    scheduler_name: str
    #: The profile's own percentage, else that of the configuration; 0 when neither says.
    percentage_of_nodes_to_score: int
    #: Every point of POINTS, in that order.
    points: Mapping[str, tuple[EnabledPlugin, ...]]
    #: Every plugin enabled at any point; None for one that takes no args.
    args: Mapping[str, msgspec.Struct | None]
    #: The weights by which topology domains are scored for groups, by plugin; None for the default.
    placement_weights: Mapping[str, int] | None = None


class Configuration(SchedulerSettings, frozen=True, kw_only=True):
    """All settings that the scheduler gets before it starts."""

    profiles: tuple[ProfileConfiguration, ...]
    gates: FeatureGates


def apply_defaults(section: _Section) -> _Section:
    """Returns the section with defaults for empty strings and zeros, as in Kubernetes."""
    return msgspec.structs.replace(
        section,
        **{
            field.name: field.default
            for field in find_fields(type(section))
            if getattr(section, field.name) in ("", 0) and field.type is not bool
        },
    )


def percentage_problems(percentage: int | None) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with a percentageOfNodesToScore."""
    if percentage is not None and not 0 <= percentage <= 100:
        yield "percentageOfNodesToScore", f"must be between 0 and 100, got {percentage}"


API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"


class PluginDocument(Wire, frozen=True):
    """A plugin by name. Its weight has a meaning at score only."""

    name: str = ""
    weight: Int32 = 0


class PluginSetDocument(Wire, frozen=True):
    """The plugins that a file enables and disables at a point."""

    enabled: tuple[PluginDocument, ...] = ()
    disabled: tuple[PluginDocument, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.enabled or self.disabled)


class PluginsDocument(Wire, frozen=True):
    """The plugins of a profile, point by point."""

    pre_enqueue: PluginSetDocument = PluginSetDocument()
    queue_sort: PluginSetDocument = PluginSetDocument()
    pre_filter: PluginSetDocument = PluginSetDocument()
    filter: PluginSetDocument = PluginSetDocument()
    post_filter: PluginSetDocument = PluginSetDocument()
    pre_score: PluginSetDocument = PluginSetDocument()
    score: PluginSetDocument = PluginSetDocument()
    reserve: PluginSetDocument = PluginSetDocument()
    permit: PluginSetDocument = PluginSetDocument()
    pre_bind: PluginSetDocument = PluginSetDocument()
    bind: PluginSetDocument = PluginSetDocument()
    post_bind: PluginSetDocument = PluginSetDocument()
    multi_point: PluginSetDocument = PluginSetDocument()
    placement_generate: PluginSetDocument = PluginSetDocument()
    placement_score: PluginSetDocument = PluginSetDocument()
    pod_group_post_filter: PluginSetDocument = PluginSetDocument()

    def by_point(self) -> dict[str, PluginSetDocument]:
        """Returns the sets by the name that the file uses."""
        fields = find_fields(type(self))
        return {field.encode_name: getattr(self, field.name) for field in fields}


class PluginConfigDocument(Wire, frozen=True):
    """The args of a plugin. They are read once their type is known."""

    name: str = ""
    args: dict[str, Any] | None = None


class ProfileDocument(Wire, frozen=True):
    """A profile, before it is merged with the default one."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: PluginsDocument = PluginsDocument()
    plugin_config: tuple[PluginConfigDocument, ...] = ()

    def problems(self) -> Iterator[tuple[str, str]]:
        if not self.scheduler_name:
            yield "schedulerName", "is required"
        yield from percentage_problems(self.percentage_of_nodes_to_score)


class ConfigurationDocument(SchedulerSettings, frozen=True):
    """A whole configuration file."""

    api_version: str = API_VERSION
    kind: str = KIND
    profiles: tuple[ProfileDocument, ...] = ()
