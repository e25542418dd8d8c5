"""Prepares the claims of a pod before any node is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Rows, View
from moorage.cluster.derived import Recent
from moorage.cluster.devices.claims import DecidedClaim, ResourceClaims, extended_uid
from moorage.cluster.devices.device_classes import DeviceClasses
from moorage.cluster.devices.groups import RowGroups
from moorage.config import FeatureGates
from moorage.framework.status import Code, Rejected, unresolvable
from moorage.objects.node_selector import Malformed, NodeTerm, compile_term
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.objects.resource_claim import Allocation, ClaimSpec, DeviceRequest, ResourceClaim

from .asks import CompiledClaim
from .device_allocation import AllocationFound, AllocationOutcome, ClaimsPlan
from .device_binding import Readiness, readiness
from .extended import SPECIAL_NAME, ExtendedAsk
from .selectors import SelectorAnswers

# Plans hold outcomes. More kinds of claims than this are rarely in use at once.
_MOST_PLANS = 1_024

# If all plans together know more groups of rows than this, about 100 MB, they are made again. There
# are as many only if most nodes differ in their devices and most claims in what they ask for.
_MOST_KNOWN = 200_000

_DEVICES = AllocationFound.DEVICES.value

# The most steps that all searches for a pod take together.
MOST_STEPS_OF_POD = 200_000


class ClaimPlans:
    """The plans for claims, by what the claims ask for."""

    def __init__(self, gates: FeatureGates | None = None) -> None:
        self._gates = gates or FeatureGates()
        self._answers = SelectorAnswers()
        self._claims: Recent[ClaimSpec, CompiledClaim] = Recent(_MOST_PLANS)
        self._plans: Recent[tuple[ClaimSpec, ...], ClaimsPlan] = Recent(_MOST_PLANS)
        self._classes_version = -1

    def plan(self, specs: tuple[ClaimSpec, ...], classes: DeviceClasses) -> ClaimsPlan:
        """Returns the plan for claims with these specs, in this order."""
        if self._classes_version != classes.version:
            # A class may select other devices now.
            self._begin_anew()
            self._classes_version = classes.version
        plan = self._plans.find(specs)
        if plan is None:
            if sum(map(len, self._plans)) > _MOST_KNOWN:
                self._begin_anew()
            plan = ClaimsPlan(tuple(self._compile(spec, classes) for spec in specs), self._answers)
            self._plans.put(specs, plan)
        return plan

    def _begin_anew(self) -> None:
        self._claims = Recent(_MOST_PLANS)
        self._plans = Recent(_MOST_PLANS)

    def _compile(self, spec: ClaimSpec, classes: DeviceClasses) -> CompiledClaim:
        known = self._claims.find(spec)
        if known is None:
            known = CompiledClaim(spec, classes, self._answers, self._gates)
            self._claims.put(spec, known)
        return known


@dataclass(frozen=True, slots=True)
class AllocatedClaim:
    """A claim that has devices, and where these can be used; None means everywhere."""

    claim: ResourceClaim
    allocation: Allocation
    terms: tuple[NodeTerm | None, ...] | None
    readiness: Readiness = Readiness.READY


@dataclass(frozen=True, eq=False)
class PreparedClaims:
    """The claims of a pod, and a plan for those that have no devices yet."""

    pod: Pod
    claims: tuple[ResourceClaim, ...] = ()
    allocated: tuple[AllocatedClaim, ...] = ()
    unallocated: tuple[ResourceClaim, ...] = ()
    plan: ClaimsPlan | None = None
    extended: ExtendedAsk | None = None
    plans: ClaimPlans | None = None
    #: Devices decided for other members of the pod's group, which share a claim with it.
    shared: tuple[DecidedClaim, ...] = ()
    #: The pod's group, if claims can be those of groups.
    group: PodGroup | None = None
    #: Whether evicting pods may free devices.
    frees_devices: bool = False
    #: The claims of pods that would be gone, by the uid of the pod.
    gone: Mapping[str, tuple[ResourceClaim, ...]] = field(default_factory=dict)
    #: The claims of pods that come first on the row, by the uid of the pod: their keys, and what
    #: they ask for.
    ahead: Mapping[str, tuple[tuple[str, ClaimSpec], ...]] = field(default_factory=dict)

    @property
    def claims_ahead(self) -> tuple[tuple[str, ClaimSpec], ...]:
        """Returns the claims that get devices before those of the pod."""
        return tuple(claim for claims in self.ahead.values() for claim in claims)


def prepare_claims(
    pod: Pod,
    claims: tuple[ResourceClaim, ...],
    extended: ExtendedAsk | None,
    nodes: View,
    plans: ClaimPlans,
    timeout: float,
) -> PreparedClaims | Rejected:
    """Sorts a pod's claims into those that have devices and those that need some."""
    devices = nodes.devices
    if extended is not None and devices.claims.is_in_flight(extended_uid(pod.uid)):
        # An earlier decision for the pod may have been written.
        return _in_flight(f"{pod.namespace}/{SPECIAL_NAME}")
    allocated: list[AllocatedClaim] = []
    unallocated: list[ResourceClaim] = []
    shared: list[DecidedClaim] = []
    for claim in claims:
        allocation, state = claim.allocation, Readiness.READY
        if allocation is None:
            allocation = _find_shared(claim, pod, nodes)
            if allocation is not None:
                shared.append(DecidedClaim(claim.key, claim.uid, allocation))
        else:
            state = readiness(claim, devices.today, timeout)
        if allocation is None:
            refused = _check(claim, devices.claims, devices.classes)
            if refused is not None:
                return refused
            unallocated.append(claim)
            continue
        terms = _compile(allocation)
        if isinstance(terms, Rejected):
            return terms
        allocated.append(AllocatedClaim(claim, allocation, terms, state))
    specs = tuple(claim.spec for claim in unallocated)
    plan = plans.plan(specs, devices.classes) if specs else None
    found = tuple(allocated), tuple(unallocated)
    return PreparedClaims(pod, claims, *found, plan, extended, plans, tuple(shared))


def _find_shared(claim: ResourceClaim, pod: Pod, nodes: View) -> Allocation | None:
    """Returns the devices that another member of the pod's group has just got for the claim."""
    if not nodes.devices.claims.is_in_flight(claim.uid):
        return None
    group = nodes.groups.key_of(pod)
    if group is None:
        return None
    return nodes.devices.claims.find_open(claim.uid, nodes.groups.placed(group))


def _compile(allocation: Allocation) -> tuple[NodeTerm | None, ...] | Rejected | None:
    """Returns where devices can be used; a rejection if that cannot be told."""
    selector = allocation.node_selector
    if selector is None:
        return None
    terms: list[NodeTerm | None] = []
    for each in selector.node_selector_terms:
        term = compile_term(each)
        if isinstance(term, Malformed):
            return Rejected(Code.ERROR, (str(term),))
        terms.append(term)
    return tuple(terms)


def _check(claim: ResourceClaim, claims: ResourceClaims, classes: DeviceClasses) -> Rejected | None:
    """Returns why a claim cannot be allocated on any node; None if nothing is wrong."""
    if claims.is_in_flight(claim.uid):
        return _in_flight(claim.key)
    for request in claim.spec.requests:
        refused = _check_request(claim, request, classes)
        if refused is not None:
            return refused
    return None


def _in_flight(key: str) -> Rejected:
    return unresolvable(f"resource claim {key} is in the process of being allocated")


def _check_request(
    claim: ResourceClaim, request: DeviceRequest, classes: DeviceClasses
) -> Rejected | None:
    if request.exactly is not None:
        wanted = [(request.name, request.exactly.device_class_name)]
    elif request.first_available:
        wanted = [
            (f"{request.name}/{each.name}", each.device_class_name)
            for each in request.first_available
        ]
    else:
        return unresolvable(
            f"resource claim {claim.key}, request {request.name}: unknown request type"
        )
    for name, class_name in wanted:
        if not class_name:
            return Rejected(Code.ERROR, (f"request {name}: unsupported request type",))
        if classes.get(class_name) is None:
            return unresolvable(f"request {name}: device class {class_name} does not exist")
    return None


class RowOutcomes:
    """The outcome of the search for each of some rows."""

    def __init__(self, plan: ClaimsPlan, groups: RowGroups, rows: Rows) -> None:
        self._plan = plan
        self._groups = groups
        self._patterns = groups.pattern_count
        self._codes = groups.local[rows]
        if self._patterns == 1:
            self._found = plan.found(groups, MOST_STEPS_OF_POD)
        else:
            self._codes = self._codes * self._patterns + groups.patterns[rows]
            self._found = np.zeros(int(self._codes.max(initial=0)) + 1, np.int8)
            for code, outcome in self.outcomes.items():
                self._found[code] = outcome.found.value

    @cached_property
    def outcomes(self) -> dict[int, AllocationOutcome]:
        """Returns the outcome for each code that a row has."""
        found: dict[int, AllocationOutcome] = {}
        steps = 0
        with self._plan.limited():
            for code in sorted(set(self._codes.tolist())):
                if steps > MOST_STEPS_OF_POD:
                    found[code] = GAVE_UP
                    continue
                outcome = self._plan.outcome(self._groups, *divmod(code, self._patterns))
                # Steps of known outcomes count too: what is known must not change the result.
                steps += outcome.steps
                found[code] = outcome
        return found

    @property
    def all_get_devices(self) -> bool:
        """Whether every row gets devices. This is the usual case."""
        found = self._found[self._codes]
        # This is faster than `all`, which matters for few rows that are asked about often.
        return np.count_nonzero(found == _DEVICES) == len(found)

    def where(self, found: AllocationFound) -> NDArray[np.bool_]:
        """Returns the rows that have this outcome."""
        mask: NDArray[np.bool_] = self._found[self._codes] == found.value
        return mask

    def gather(self, values: dict[int, int]) -> NDArray[np.int64]:
        """Returns a number per row, from a number per group."""
        table = np.zeros(max(self.outcomes, default=0) + 1, np.int64)
        for code, value in values.items():
            table[code] = value
        return table[self._codes]


GAVE_UP = AllocationOutcome(
    AllocationFound.ERROR,
    error=f"gave up trying to allocate devices after {MOST_STEPS_OF_POD} steps",
    names_itself=False,
)
