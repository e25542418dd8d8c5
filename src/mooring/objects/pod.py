"""Pods: what scheduling reads of them. Pods of one template share one `PodSpec` value."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeVar
from weakref import WeakValueDictionary

import msgspec

from .lazy_property import lazy_property
from .meta import Condition, ObjectMeta, OwnerReference, Wire, seconds
from .node_selector import (
    Malformed,
    NodeAffinityRules,
    NodeTerm,
    Preferences,
    compile_preferences,
    compile_term,
    meets_any,
    named_nodes,
)
from .placement_rules import Affinity, Terms, Toleration, TopologySpreadConstraint, compile_terms
from .quantity import Quantity
from .resources import (
    CPU,
    MEMORY,
    Amounts,
    amounts,
    has_sizes,
    held_nonzero,
    held_requests,
    native,
    scoring_requests,
    spec_requests,
)
from .volume import ClaimUse, Disk, Volume

T = TypeVar("T")

ANY_ADDRESS = "0.0.0.0"

#: The phases of pods that have run to their end.
FINISHED = ("Succeeded", "Failed")

#: Where a pod listens on its node: address, protocol, port.
HostPort = tuple[str, str, int]


def add_tag(image: str) -> str:
    """Returns the name of an image with a tag, even if that goes without saying."""
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"


def ports_conflict(one: HostPort, other: HostPort) -> bool:
    """Whether two pods with these ports cannot run on one node."""
    addresses = {one[0], other[0]}
    return one[1:] == other[1:] and (len(addresses) == 1 or ANY_ADDRESS in addresses)


#: The annotation that stands for `spec.coexistPolicy`: see `objects.coexist`.
COEXIST_POLICY = "scheduling.mooring.dev/coexist-policy"
#: The annotation that a scheduler puts on a pod with that policy when it binds it: the pod's uid.
PLACED = "scheduling.mooring.dev/placed"


class Resources(Wire, frozen=True):
    """Requests and limits of a container or a pod."""

    requests: dict[str, Quantity] | None = None
    limits: dict[str, Quantity] | None = None


class ContainerPort(Wire, frozen=True):
    """A port that a container opens, perhaps on the node itself."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class RestartRule(Wire, frozen=True):
    """What happens when a container exits in some way."""

    action: str = ""


class Container(Wire, frozen=True):
    """A container; an init container that always restarts is a sidecar."""

    name: str = ""
    image: str = ""
    resources: Resources | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartRule, ...] | None = None

    @property
    def is_sidecar(self) -> bool:
        return self.restart_policy == "Always"

    @property
    def requests(self) -> Mapping[str, int]:
        return (self.resources.requests if self.resources else None) or {}


class SchedulingGate(Wire, frozen=True):
    """A name that must be taken off before the pod may be scheduled."""

    name: str = ""


class PodResourceClaim(Wire, frozen=True):
    """A claim to devices: one of that name, or one made from a template for this pod alone."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Wire, frozen=True):
    """The group of pods that a pod is placed with."""

    pod_group_name: str = ""


class template_property(lazy_property[T]):
    """Something that follows from a template without its volumes: the same for all such templates.

    A pod with claims has a template of its own, because it names them.
    """

    def __get__(self, instance: Any, owner: type) -> Any:
        template = None if instance is None else instance.__dict__.get("_template")
        if template is None:
            return super().__get__(instance, owner)
        value = instance.__dict__[self.name] = getattr(template, self.name)
        return value


class PodSpec(Wire, frozen=True, dict=True, weakref=True):
    """The template part of a pod: equal for all pods of a template, whichever node they are on."""

    scheduler_name: str = "default-scheduler"
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: Literal["", "Never", "PreemptLowerPriority"] | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] | None = None
    resources: Resources | None = None
    overhead: dict[str, Quantity] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    host_network: bool = False
    host_users: bool | None = None
    #: Read by `coexist` alone, which also says what other values mean.
    coexist_policy: str | None = None

    @property
    def template(self) -> PodSpec:
        """The template without its volumes, if it has any: one value for all that are alike so."""
        template: PodSpec = self.__dict__.get("_template", self)
        return template

    @template_property
    def requests(self) -> Amounts:
        """Returns the pod's requests in native units."""
        return amounts(spec_requests(self, {}))

    @template_property
    def scoring_requests(self) -> Mapping[str, int]:
        """Returns the requests that count when nodes are scored for the pod, in native units."""
        return dict(amounts(scoring_requests(self)))

    @template_property
    def all_containers(self) -> tuple[Container, ...]:
        """Init containers, then containers."""
        return (self.init_containers or ()) + self.containers

    @template_property
    def image_names(self) -> tuple[str, ...]:
        """Returns the images of all containers, as nodes report them."""
        return tuple(add_tag(each.image) for each in self.all_containers)

    @template_property
    def host_ports(self) -> tuple[HostPort, ...]:
        """Returns the node ports that the pod takes while it runs: of containers and sidecars."""
        serving = self.containers + tuple(c for c in self.init_containers or () if c.is_sidecar)
        taken = (
            (port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
            for container in serving
            for port in container.ports or ()
            if port.host_port > 0
        )
        return tuple(sorted(set(taken)))

    @template_property
    def node_terms(self) -> tuple[NodeTerm | Malformed | None, ...] | None:
        """Returns the compiled terms of required node affinity; None when there is no such rule."""
        rule = self.node_affinity.required
        if not rule:
            return None
        return tuple(compile_term(each) for each in rule.node_selector_terms)

    def chooses(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Whether node selector and required node affinity match a node."""
        if not (self.node_selector or {}).items() <= labels.items():
            return False
        return meets_any(self.node_terms, node_name, labels)

    @template_property
    def named_nodes(self) -> frozenset[str] | None:
        """Returns the only nodes that required node affinity allows by name; else None."""
        rule = self.node_affinity.required
        return None if rule is None else named_nodes(rule)

    @template_property
    def node_preferences(self) -> Preferences | Malformed | None:
        """Returns the compiled terms of preferred node affinity; None if there is no rule."""
        if self.node_affinity.preferred_during_scheduling_ignored_during_execution is None:
            return None
        return compile_preferences(self.node_affinity.preferred)

    @template_property
    def without_volumes(self) -> bytes:
        """Returns the template without volumes, one object for all that are equal then."""
        return _ENCODE(msgspec.structs.replace(self, volumes=None))

    @lazy_property
    def named_claims(self) -> tuple[ClaimUse, ...] | None:
        """Returns the claims of such pods; None if some are named after the pod."""
        if any(volume.persistent_volume_claim is None for volume in self.claiming):
            return None
        return tuple([volume.claim_of("") for volume in self.claiming])

    @lazy_property
    def claiming(self) -> tuple[Volume, ...]:
        """Returns the volumes that are claims, or make one."""
        return tuple(volume for volume in self.volumes or () if volume.claims)

    @lazy_property
    def migratable(self) -> tuple[Volume, ...]:
        """Returns the volumes named in the pod itself that a CSI driver attaches."""
        return tuple(
            volume for volume in self.volumes or () if volume.migratable and not volume.claims
        )

    @lazy_property
    def disks(self) -> tuple[Disk, ...]:
        """Returns the disks in the pod itself of which a node may have one writing user only."""
        return tuple(disk for volume in self.volumes or () for disk in volume.disks)

    @property
    def node_affinity(self) -> NodeAffinityRules:
        return (self.affinity and self.affinity.node_affinity) or NodeAffinityRules()

    @template_property
    def own_label_keys(self) -> frozenset[str]:
        """Returns the label keys that its own affinity terms and spread constraints read."""
        keys = [key for each in self.topology_spread_constraints or () for key in each.label_keys]
        if self.affinity is not None:
            keys += self.affinity.label_keys
        return frozenset(keys)

    @template_property
    def held(self) -> Held:
        """Returns what such a pod takes on a node, as long as its status reports nothing else."""
        return _add_granted(self, NO_STATUS)

    @template_property
    def _terms(self) -> dict[str, Terms]:
        return {}

    def terms_in(self, namespace: str) -> Terms:
        """Returns the compiled inter-pod terms of such a pod in a namespace."""
        known = self._terms.get(namespace)
        if known is None:
            known = self._terms[namespace] = compile_terms(self.affinity, namespace)
        return known


class ContainerStatus(Wire, frozen=True):
    """What the kubelet granted a container."""

    name: str = ""
    resources: Resources | None = None
    allocated_resources: dict[str, Quantity] | None = None


class PodResourceClaimStatus(Wire, frozen=True):
    """The claim that was made from a template; a name of None means that none was needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ExtendedClaimStatus(Wire, frozen=True):
    """The claim that the scheduler made for the extended resources of a pod."""

    resource_claim_name: str = ""


class PodStatus(Wire, frozen=True):
    """What is reported about a pod."""

    phase: str = ""
    nominated_node_name: str = ""
    start_time: datetime | None = None
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    resources: Resources | None = None
    allocated_resources: dict[str, Quantity] | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None
    extended_resource_claim_status: ExtendedClaimStatus | None = None

    @property
    def resize_infeasible(self) -> bool:
        """Whether the kubelet has refused a resize, so that the spec is not what will run."""
        return any(
            each.type == "PodResizePending" and each.reason == "Infeasible"
            for each in self.conditions or ()
        )

    @property
    def sizes(self) -> bool:
        """Whether granted resources are reported, which then count beside the spec."""
        running, init = self.container_statuses, self.init_container_statuses
        if self.resources is None and running is None and init is None:
            return False
        return self.resources is not None or has_sizes((running or ()) + (init or ()))

    def of(self, container: Container) -> ContainerStatus | None:
        """Returns the status of a container or sidecar."""
        known = self.init_container_statuses if container.is_sidecar else self.container_statuses
        return next((each for each in known or () if each.name == container.name), None)


NO_STATUS = PodStatus()


class _WireSpec(PodSpec, frozen=True):
    node_name: str = ""
    scheduling_group: SchedulingGroup | None = None


class _WirePod(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _WireSpec = _WireSpec()
    status: PodStatus = NO_STATUS


class Held(msgspec.Struct, frozen=True):
    """What a pod on a node counts for, in native units."""

    requests: Amounts
    nonzero_cpu_milli: int
    nonzero_memory_bytes: int


class Pod(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod. `node_name` is where it runs or was asked to run; `spec` is its template.

    There are very many of them, and nothing that a pod holds leads back to it: so the garbage
    collector need not look at them.
    """

    wire: ClassVar = _WirePod

    namespace: str
    name: str
    uid: str
    spec: PodSpec
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner: OwnerReference | None = None
    node_name: str = ""
    #: The group of pods that it is placed with, in its namespace; empty if there is none.
    group_name: str = ""
    status: PodStatus = NO_STATUS
    created: float | None = None
    terminating: bool = False
    generation: int = 0
    resource_version: str = ""

    @classmethod
    def of(cls, wire: _WirePod) -> Pod:
        meta = wire.metadata
        namespace = meta.namespace or "default"
        return cls(
            namespace=namespace,
            name=meta.name,
            uid=meta.uid or f"{namespace}/{meta.name}",
            spec=_share(wire.spec),
            labels=meta.labels or {},
            annotations=meta.annotations or {},
            owner=meta.controller,
            node_name=wire.spec.node_name,
            group_name=wire.spec.scheduling_group.pod_group_name
            if wire.spec.scheduling_group is not None
            else "",
            status=wire.status,
            created=seconds(meta.creation_timestamp),
            terminating=meta.deletion_timestamp is not None,
            generation=meta.generation,
            resource_version=meta.resource_version,
        )

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def nominated_node_name(self) -> str:
        return self.status.nominated_node_name

    @property
    def has_place(self) -> bool:
        """Whether it takes room on a node, or room is kept for it there."""
        return bool(self.node_name or self.nominated_node_name)

    @property
    def started(self) -> float | None:
        """When it started to run, in seconds since the epoch."""
        return seconds(self.status.start_time)

    @property
    def requests(self) -> Amounts:
        return self.spec.requests

    @property
    def terms(self) -> Terms:
        """The inter-pod affinity terms of this pod."""
        return self.spec.terms_in(self.namespace)

    @property
    def claims(self) -> tuple[ClaimUse, ...]:
        """The claims that this pod uses, in the order of its volumes."""
        named = self.spec.named_claims
        if named is not None:
            return named
        return tuple([volume.claim_of(self.name) for volume in self.spec.claiming])

    @property
    def is_finished(self) -> bool:
        """Whether it has run to its end, and so takes no room any more."""
        return self.status.phase in FINISHED

    @property
    def held(self) -> Held:
        """What it counts for on a node: granted resources too, where they are reported."""
        status = self.status
        return _add_granted(self.spec, status) if status.sizes else self.spec.held

    def on(self, node_name: str) -> Pod:
        """Returns the same pod, bound to that node by a scheduler."""
        if self.spec.coexist_policy or COEXIST_POLICY in self.annotations:
            annotations = {**self.annotations, PLACED: self.uid}
            return msgspec.structs.replace(self, node_name=node_name, annotations=annotations)
        return msgspec.structs.replace(self, node_name=node_name)


_SPECS: WeakValueDictionary[bytes, PodSpec] = WeakValueDictionary()
_ENCODE = msgspec.json.Encoder(order="sorted", enc_hook=repr).encode
_SPEC_FIELDS = PodSpec.__struct_fields__


def _share(wire: _WireSpec) -> PodSpec:
    """Returns one object per distinct template, so that derived values are computed once."""
    volumes = tuple(volume for volume in wire.volumes or () if volume.decides)
    # Pods of different groups are alike in all else.
    key = _ENCODE(
        msgspec.structs.replace(wire, node_name="", scheduling_group=None, volumes=volumes or None)
    )
    spec = _SPECS.get(key)
    if spec is None:
        fields = {name: getattr(wire, name) for name in _SPEC_FIELDS}
        spec = _SPECS[key] = PodSpec(**{**fields, "volumes": volumes or None})
        if volumes:
            spec.__dict__["_template"] = _share(msgspec.structs.replace(wire, volumes=None))
    return spec


def _add_granted(spec: PodSpec, status: PodStatus) -> Held:
    held = held_requests(spec, status)
    nonzero = held_nonzero(spec, status, held)
    return Held(
        amounts(held), native(CPU, nonzero.get(CPU, 0)), native(MEMORY, nonzero.get(MEMORY, 0))
    )
