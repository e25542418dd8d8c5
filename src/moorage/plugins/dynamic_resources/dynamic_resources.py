"""DynamicResources: a pod goes where its claims have devices, or can get them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, RowFacts, Rows, Scope, View
from moorage.cluster.devices.claims import extended_uid
from moorage.config import Duration, FeatureGates
from moorage.config.plugin_sets import IN_TREE
from moorage.framework.advice import Advice, Advise
from moorage.framework.attempt import Failed
from moorage.framework.device_writes import ClaimRelease
from moorage.framework.gang_points import ReleaseClaims
from moorage.framework.plugin import (
    UNSIGNABLE,
    Filter,
    NoRemedy,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    Preparation,
    PreScore,
    Reduction,
    Rescore,
    Reserve,
    Score,
    Scores,
    Sign,
    normalize_scores,
    rescore_row,
)
from moorage.framework.profile import Profile
from moorage.framework.status import Code, PluginError, Rejected, unresolvable
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Wakeup, on
from moorage.objects.meta import Wire
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.objects.resource_claim import ResourceClaim

from .asks import SearchError
from .claim_rows import ClaimRows, RowDecision, decide_on, find_plan_on, granted_claims
from .claim_scores import has_alternatives
from .claims_to_write import PLUGIN, is_ready, plan_writes
from .device_advice import advise_on_claims
from .device_allocation import AllocationFound
from .extended import ExtendedAsk, find_extended, may_claim
from .freed_devices import after_nominated, claims_left_on, with_pod, without_pod
from .preparation import MOST_STEPS_OF_POD, ClaimPlans, PreparedClaims, prepare_claims
from .references import UnresolvedClaim, find_claims, is_fresh
from .release import find_release
from .search import MOST_STEPS


class DynamicResourcesArgs(Wire, frozen=True):
    """How long to wait for devices, and whether pods may be evicted to free some."""

    #: It has no effect here, which is logged: searches end after a number of steps.
    filter_timeout: Duration = Duration.of_seconds(10)
    binding_timeout: Duration = Duration.of_seconds(600)
    #: Whether pods may be evicted so that more important ones get their devices. kube-scheduler has
    #: no such argument.
    preempt_devices: bool = False

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.filter_timeout.seconds < 0:
            yield "filterTimeout", f"must not be negative, got {self.filter_timeout}"
        if self.binding_timeout.seconds < 1:
            yield "bindingTimeout", f"must be at least 1s, got {self.binding_timeout}"


class DynamicResources(
    PreEnqueue,
    PreFilter[PreparedClaims],
    Filter[PreparedClaims],
    PostFilter,
    PreScore[PreparedClaims],
    Score[PreparedClaims],
    Reserve,
    PreBind,
    ReleaseClaims,
    Sign,
    Advise[PreparedClaims],
):
    """Resolves claims, allocates devices to them and has that written before the pod is bound."""

    name = PLUGIN
    Args = DynamicResourcesArgs
    reads = (
        Change.SLICES
        | Change.CLAIMS
        | Change.CLASSES
        | Change.LABELS
        | Change.ALLOCATABLE
        | Change.MEMBERSHIP
    )
    writes = Change.CLAIMS
    # A change of what many nodes share is recorded as a change of all rows.
    scope = Scope.ROW
    reduces = Reduction.LARGEST

    def __init__(
        self, args: DynamicResourcesArgs | None = None, gates: FeatureGates | None = None
    ) -> None:
        self._args = args or DynamicResourcesArgs()
        if self._args.preempt_devices:
            # Pods that leave free their devices.
            self.reads = type(self).reads | Change.PODS | Change.NOMINATED
        gates = gates or FeatureGates()
        self._version = gates.version
        self._knows_group_claims = gates.enabled("DRAWorkloadResourceClaims")
        self._plans = ClaimPlans(gates)
        self._nodes: View | None = None
        #: The answer for every pod without claims.
        self._has_nothing = self._release_nothing("no new claims to deallocate")

    @classmethod
    def create(cls, args: Any, gates: FeatureGates) -> Self:
        return cls(args, gates)

    def see_cluster(self, nodes: View) -> None:
        self._nodes = nodes

    def remarks(self) -> tuple[str, ...]:
        timeout = self._args.filter_timeout
        if timeout == DynamicResourcesArgs().filter_timeout:
            return ()
        bounds = f"{MOST_STEPS} steps on a node and {MOST_STEPS_OF_POD} for a pod"
        return (f"filterTimeout {timeout} has no effect: a search ends after {bounds}",)

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        if not may_claim(pod):
            return None
        extended = find_extended(pod, nodes)
        if self._args.preempt_devices and nodes.nominations.node_of(pod):
            # The answer for such a pod depends on the node that it is nominated to.
            return UNSIGNABLE
        if not pod.spec.resource_claims:
            return None if extended is None else _sign_extended(pod, extended, nodes)
        # Only claims that were made for a pod and have no devices yet are interchangeable.
        claims = self._resolve(pod, nodes)
        if claims is None or extended is not None:
            return UNSIGNABLE
        known = nodes.devices.claims
        if any(not is_fresh(claim, pod, known) for claim in claims):
            return UNSIGNABLE
        return tuple(claim.spec for claim in claims)

    def watch(self, pod: Pod, nodes: View) -> Change:
        return self.reads if self._may_claim(pod, nodes) else Change.CLASSES

    def reserves_for(self, pod: Pod, nodes: View) -> bool:
        return self._may_claim(pod, nodes)

    def _may_claim(self, pod: Pod, nodes: View) -> bool:
        return bool(pod.spec.resource_claims) or find_extended(pod, nodes) is not None

    # Filtering

    def pre_enqueue(self, pod: Pod) -> Rejected | None:
        if not pod.spec.resource_claims or self._nodes is None:
            return None
        try:
            find_claims(pod, self._nodes.devices.claims, self._find_group(pod, self._nodes))
        except UnresolvedClaim as error:
            return unresolvable(str(error))
        return None

    def pre_filter(self, pod: Pod, nodes: View) -> PreparedClaims | Rejected | None:
        return self.prepare_claims(pod, nodes)

    def prepare_claims(self, pod: Pod, nodes: View) -> PreparedClaims | Rejected | None:
        """Returns the prepared claims of a pod; None if it has none."""
        extended = find_extended(pod, nodes)
        if not pod.spec.resource_claims and extended is None:
            return None
        group = self._find_group(pod, nodes)
        try:
            claims = find_claims(pod, nodes.devices.claims, group)
        except UnresolvedClaim as error:
            return unresolvable(str(error))
        if not claims and extended is None:
            return None
        timeout = self._args.binding_timeout.seconds
        prepared = prepare_claims(pod, claims, extended, nodes, self._plans, timeout)
        if isinstance(prepared, PreparedClaims) and (self._args.preempt_devices or group):
            return replace(prepared, frees_devices=self._args.preempt_devices, group=group)
        return prepared

    def add_pod(self, prepared: PreparedClaims, nodes: View, pod: Pod, row: int) -> PreparedClaims:
        return with_pod(prepared, nodes, pod, row)

    def remove_pod(
        self, prepared: PreparedClaims, nodes: View, pod: Pod, row: int
    ) -> PreparedClaims:
        return without_pod(prepared, nodes, pod)

    def filter(self, prepared: PreparedClaims, nodes: View, rows: Rows) -> Verdict:
        return ClaimRows(prepared, nodes, rows).filter()

    def recheck(self, prepared: PreparedClaims, nodes: View, row: RowFacts) -> Rescore:
        extended, plan = prepared.extended, prepared.plan
        if extended is not None and not extended.others and not extended.is_stale:
            plan = find_plan_on(prepared, nodes, row.number)
            if plan is None:
                return Rescore.UPDATED
        elif plan is None or prepared.allocated or extended is not None:
            return Rescore.UNKNOWN
        outcome = plan.outcome_on(nodes.device_groups, row.number)
        if outcome.found is AllocationFound.ERROR:
            return Rescore.UNKNOWN
        return Rescore.UPDATED if outcome.found is AllocationFound.DEVICES else Rescore.INFEASIBLE

    def post_filter(self, pod: Pod, failed: Failed, nodes: View, profile: Profile) -> NoRemedy:
        # If an earlier plugin ended the pre-filters, kube-scheduler does not find the state of this
        # plugin: it answers "not found" and seeks no further remedy. The text is left out if
        # kube-scheduler does not have that plugin, because it would explain nothing there.
        before = failed.pre_filtered
        if not before.ran(self.name) and before.rejected_by != self.name:
            is_known = not before.rejected_by or before.rejected_by in IN_TREE
            return NoRemedy(Code.ERROR, ("not found",) if is_known else ())
        prepared = before.prepared.get(self.name)
        if not isinstance(prepared, PreparedClaims):
            return self._has_nothing
        if prepared.frees_devices and (waits_for := self._node_to_wait_for(pod, prepared, nodes)):
            # Evicting more pods now would not help.
            text = f"waiting for devices of node {waits_for} to be released"
            return NoRemedy(Code.UNRESOLVABLE, (text,))
        found = find_release(prepared, failed, nodes, self.name)
        return self._release_nothing("still not schedulable") if found is None else found

    def find_release(self, pod: Pod, failed: Failed, nodes: View) -> ClaimRelease | None:
        prepared = failed.pre_filtered.prepared.get(self.name)
        if not isinstance(prepared, PreparedClaims):
            return None
        found = find_release(prepared, failed, nodes, self.name)
        return None if found is None else found.release

    def _release_nothing(self, why: str) -> NoRemedy:
        return NoRemedy(Code.UNSCHEDULABLE, (why,) if self._version.tells_of_no_release else ())

    def _node_to_wait_for(self, pod: Pod, prepared: PreparedClaims, nodes: View) -> str:
        """Returns the node that a pod is nominated to, if it waits only for devices of its victims.

        Otherwise it returns an empty string.
        """
        # What is prepared may be that of another pod of the class, which is nominated since.
        name = nodes.nominations.node_of(pod)
        row = nodes.row(name)
        gone = {} if row is None else claims_left_on(nodes, row)
        if row is None or not gone:
            return ""
        freed = replace(prepared, gone=gone)
        return name if self.filter(freed, nodes, np.array([row], np.intp)).ok[0] else ""

    def advise(
        self, pod: Pod, prepared: PreparedClaims | None, nodes: View, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        if prepared is not None:
            yield from advise_on_claims(prepared, nodes, rows)

    # Scoring

    def pre_score(self, pod: Pod, nodes: View, rows: NDArray[np.intp]) -> PreparedClaims:
        # The result holds the claims as they are now. When it scores rows for like pods later, the
        # pod's own claims may have devices.
        found = self.prepare_claims(pod, nodes) if pod.spec.resource_claims else None
        return found if isinstance(found, PreparedClaims) else PreparedClaims(pod)

    def score(self, prepared: PreparedClaims, nodes: View, rows: Rows) -> Scores:
        if not has_alternatives(prepared.claims):
            nothing: Scores = np.zeros(nodes.count(rows), np.int64)
            return nothing
        return ClaimRows(prepared, nodes, rows).scores()

    def rescore(
        self, prepared: PreparedClaims, nodes: View, row: RowFacts, scores: Scores
    ) -> Rescore:
        if not has_alternatives(prepared.claims):
            return Rescore.UPDATED
        return rescore_row(self, prepared, nodes, row, scores)

    def normalize(self, prepared: PreparedClaims, scores: Scores) -> Scores:
        return normalize_scores(scores)

    # Binding

    def decide(self, pod: Pod, nodes: View, row: int) -> RowDecision | None:
        """Returns what a pod's claims get on a row; None if it has none or they get nothing."""
        prepared = self.prepare_claims(pod, nodes)
        return self._decide(prepared, nodes, row) if isinstance(prepared, PreparedClaims) else None

    def _decide(self, prepared: PreparedClaims, nodes: View, row: int) -> RowDecision | None:
        try:
            return decide_on(prepared, nodes, row)
        except SearchError as error:
            raise PluginError(error.text) from None

    def granted(self, pod: Pod, nodes: View, decided: RowDecision) -> tuple[ResourceClaim, ...]:
        """Returns the claims of a pod as they will be when it is bound, the special one last."""
        group = self._find_group(pod, nodes)
        return tuple(granted_claims(pod, nodes.devices.claims, group, decided))

    def reserve(self, pod: Pod, nodes: View, row: int) -> Rejected | None:
        prepared = self.prepare_claims(pod, nodes)
        if prepared is None or isinstance(prepared, Rejected):
            return prepared
        decided = None
        if prepared.frees_devices and nodes.nominations:
            decided = self._decide(after_nominated(prepared, nodes, row), nodes, row)
        decided = decided or self._decide(prepared, nodes, row)
        if decided is None:
            return Rejected(Code.ERROR, ("claim allocation not found for node",))
        nodes.device_decisions.decide(pod.uid, decided.decision)
        return None

    def unreserve(self, pod: Pod, nodes: View, node_name: str) -> None:
        nodes.device_decisions.release(pod.uid)

    def prepare(self, pod: Pod, nodes: View, node_name: str) -> Preparation | None:
        decision = nodes.devices.claims.decision(pod.uid)
        if decision is None:
            return None
        row = nodes.row(node_name)
        extended = find_extended(pod, nodes) if row is not None else None
        special = None
        if extended is not None and row is not None:
            own = extended_uid(pod.uid)
            if any(each.uid == own for each in decision.claims):
                special = extended.special_on(nodes, row)
        try:
            group = self._find_group(pod, nodes)
            writes = plan_writes(pod, nodes.devices.claims, group, decision, special)
        except UnresolvedClaim as error:
            raise PluginError(str(error)) from None
        if writes is None:
            return None
        nodes.device_decisions.ask(pod.uid)
        return Preparation(timeout_seconds=self._args.binding_timeout.seconds, devices=writes)

    def is_prepared(self, pod: Pod, nodes: View, node_name: str) -> bool | Rejected:
        devices, group = nodes.devices, self._find_group(pod, nodes)
        timeout = self._args.binding_timeout.seconds
        return is_ready(pod, devices.claims, group, devices.today, timeout)

    # Waking up

    def wakeups(self) -> tuple[Wakeup, ...]:
        add_or_update = Action.ADD | Action.UPDATE
        nodes = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
        return (
            on(Resource.NODE, nodes),
            on(Resource.DEVICE_CLASS, add_or_update),
            on(Resource.RESOURCE_SLICE, add_or_update),
            # In kube-scheduler rules change slices. One that comes only adds a taint.
            on(Resource.DEVICE_TAINT_RULE, Action.UPDATE | Action.DELETE),
            on(Resource.RESOURCE_CLAIM, add_or_update, self._after_claim_change),
            # kube-scheduler 1.36 does not wake pods when deleting a claim frees devices.
            on(Resource.RESOURCE_CLAIM, Action.DELETE, self._after_claim_is_gone),
            on(
                Resource.UNSCHEDULED_POD,
                Action.UPDATE_POD_GENERATED_CLAIM,
                self._after_claims_are_made,
            ),
        )

    def _after_claim_change(self, pod: Pod, old: ResourceClaim | None, new: ResourceClaim) -> bool:
        claims = () if self._nodes is None else self._resolve(pod, self._nodes)
        if claims is None:
            return False
        if old is not None and old.allocation is not None and new.allocation is None:
            return True
        if all(claim.uid != new.uid for claim in claims):
            return False
        return old is None or old.state != new.state

    def _after_claim_is_gone(self, pod: Pod, old: ResourceClaim, new: None) -> bool:
        # A special claim that an earlier attempt has left keeps its pod from getting a new one.
        return old.allocation is not None or (old.is_extended and old.is_made_for(pod.uid))

    def _after_claims_are_made(self, pod: Pod, old: Pod, new: Pod) -> bool:
        return (
            new.uid == pod.uid
            and self._nodes is not None
            and self._resolve(new, self._nodes) is not None
        )

    def _resolve(self, pod: Pod, nodes: View) -> tuple[ResourceClaim, ...] | None:
        """Returns the claims of a pod; None if one is missing."""
        try:
            return find_claims(pod, nodes.devices.claims, self._find_group(pod, nodes))
        except UnresolvedClaim:
            return None

    def _find_group(self, pod: Pod, nodes: View) -> PodGroup | None:
        """Returns the pod's group, if claims can be those of groups."""
        if not self._knows_group_claims or not pod.group_name:
            return None
        return nodes.groups.of(pod)


def _sign_extended(pod: Pod, extended: ExtendedAsk, nodes: View) -> Hashable:
    """Returns all that is read of a pod that requests devices only by extended resources."""
    devices = nodes.devices
    if extended.stale is not None or devices.claims.is_in_flight(extended_uid(pod.uid)):
        return UNSIGNABLE
    if not devices.scored_resources.isdisjoint(extended.classes):
        # The score by these resources changes with the devices in use, which no signature contains.
        return UNSIGNABLE
    return extended.look
