"""Templates of pods, and what follows from one for all of its pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import msgspec

from .container import ANY_ADDRESS, Container, HostPort, Resources, add_tag
from .held import Held, count_held
from .lazy_property import lazy_property
from .meta import Wire
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
from .pod_status import NO_STATUS
from .quantity import Quantity
from .resources import Amounts, amounts, scoring_requests, spec_requests
from .volume import ClaimUse, Disk, Volume

T = TypeVar("T")

#: Writes a template, the same for equal ones.
encode_spec = msgspec.json.Encoder(order="sorted", enc_hook=repr).encode


class SchedulingGate(Wire, frozen=True):
    """A name that must be taken off before the pod may be scheduled."""

    name: str = ""


class PodResourceClaim(Wire, frozen=True):
    """A claim to devices: one of that name, or one made from a template for this pod alone."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


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
        return encode_spec(msgspec.structs.replace(self, volumes=None))

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
        return count_held(self, NO_STATUS)

    @template_property
    def _terms(self) -> dict[str, Terms]:
        return {}

    @template_property
    def has_terms(self) -> bool:
        """Whether it has inter-pod terms that can be read; no namespace changes that."""
        return bool(compile_terms(self.affinity, ""))

    def terms_in(self, namespace: str) -> Terms:
        """Returns the compiled inter-pod terms of such a pod in a namespace."""
        known = self._terms.get(namespace)
        if known is None:
            known = self._terms[namespace] = compile_terms(self.affinity, namespace)
        return known
