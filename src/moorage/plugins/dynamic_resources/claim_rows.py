"""Decides which rows have devices for a pod's claims, and which devices the claims get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from moorage.cluster import Mask, Rows, View
from moorage.cluster.devices.claims import (
    DecidedClaim,
    Decision,
    ResourceClaims,
    extended_uid,
)
from moorage.cluster.devices.pools import PoolView
from moorage.framework.status import Code, Reason
from moorage.framework.verdict import Verdict
from moorage.objects.meta import OwnerReference
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.objects.resource_claim import Allocation, ClaimUser, ResourceClaim

from .allocation_results import make_allocation
from .asks import SearchError
from .claim_scores import known_score, outcome_score
from .device_allocation import (
    UNFINISHED,
    AllocationFound,
    AllocationOutcome,
    ClaimsPlan,
    allocate,
)
from .device_binding import Readiness
from .extended import SPECIAL_NAME, SpecialClaim
from .freed_devices import FreedOutcomes
from .preparation import GAVE_UP, AllocatedClaim, PreparedClaims, RowOutcomes
from .references import find_claims, find_users
from .search import Pick, claim_number

NOTHING = Reason("cannot allocate all claims", Code.UNRESOLVABLE)
INVALID = Reason("invalid resource pools were encountered", Code.UNRESOLVABLE)
UNAVAILABLE = Reason("resourceclaim not available on the node", Code.UNRESOLVABLE)
STALE = Reason("cannot schedule extended resource claim", Code.UNRESOLVABLE)
UNFIT = Reason("cannot fit resource", Code.UNRESOLVABLE)

_REASONS = (STALE, UNFIT, NOTHING, INVALID, UNAVAILABLE)
# The reasons if evicting pods may free devices.
_HELPABLE = (STALE, UNFIT, Reason(NOTHING.text, Code.UNSCHEDULABLE), INVALID, UNAVAILABLE)


@dataclass(frozen=True, slots=True)
class RowPart:
    """Rows on which the same claims have to be allocated."""

    #: None means all rows.
    where: Mask | None
    plan: ClaimsPlan | None
    special: SpecialClaim | None

    def keep(self, rows: Mask) -> Mask:
        """Returns those of some rows that belong to the part."""
        return rows if self.where is None else rows & self.where


class ClaimRows:
    """A pod's claims on some rows."""

    def __init__(self, prepared: PreparedClaims, nodes: View, rows: Rows) -> None:
        self._prepared = prepared
        self._nodes = nodes
        self._rows = rows
        self._count = nodes.count(rows)

    # All rows

    def parts(self) -> Iterator[RowPart]:
        """Yields the rows, grouped by what has to be allocated there."""
        extended = self._prepared.extended
        if extended is None:
            yield self._part(None, frozenset())
            return
        for names, where in extended.combinations(self._nodes, self._rows):
            yield self._part(where, names)

    def found(self, plan: ClaimsPlan) -> RowOutcomes | FreedOutcomes:
        """Returns the outcomes of the search, with the devices of evicted pods taken as free."""
        gone = self._prepared.gone
        if gone:
            return FreedOutcomes(plan, gone, self._nodes, self._rows)
        return self.outcomes(plan)

    def outcomes(self, plan: ClaimsPlan) -> RowOutcomes:
        return RowOutcomes(plan, self._nodes.device_groups, self._rows)

    def filter(self) -> Verdict:
        outcomes = [(part, self.found(part.plan)) for part in self.parts() if part.plan is not None]
        failing = [(part, found) for part, found in outcomes if not found.all_get_devices]
        extended = self._prepared.extended
        is_refused = extended is not None and (extended.is_stale or bool(extended.others))
        if not (failing or is_refused or self._prepared.allocated):
            # This is the usual case. It needs no flags.
            return Verdict.accepting(self._count)
        failed = np.zeros((len(_REASONS), self._count), np.bool_)
        stale, unfit, nothing, invalid, unavailable = failed
        broken = np.zeros(self._count, np.bool_)
        if extended is not None and is_refused:
            stale[:] = extended.is_stale
            unfit[:] = extended.unfit(self._nodes, self._rows) & ~stale
        early = stale | unfit
        for part, found in failing:
            nothing |= part.keep(found.where(AllocationFound.NOTHING)) & ~early
            invalid |= part.keep(found.where(AllocationFound.INVALID)) & ~early
            broken |= part.keep(found.where(AllocationFound.ERROR)) & ~early
        # Where allocation fails, a node gives no reason about claims that already have devices.
        for claim in self._prepared.allocated:
            unavailable |= ~self.available(claim)
        unavailable &= ~(early | nothing | invalid | broken)
        reasons = _HELPABLE if self._prepared.frees_devices else _REASONS
        return Verdict(reasons, failed, broken if broken.any() else None, self.describe)

    def available(self, allocated: AllocatedClaim) -> Mask:
        """Returns where the devices of a claim can be used."""
        if allocated.readiness in (Readiness.FAILED, Readiness.LATE):
            return self._nodes.nothing(self._rows)
        if allocated.terms is None:
            return np.ones(self._count, np.bool_)
        return self._nodes.satisfying_any(allocated.terms, self._rows)

    def scores(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Returns the score of the alternatives that each row allows; 0 if it allocates nothing."""
        total = np.zeros(self._count, np.int64)
        known = known_score(self._prepared.allocated)
        for part in self.parts():
            if part.plan is None:
                continue
            found = self.outcomes(part.plan)
            values = {
                code: known + outcome_score(part.plan.claims, outcome.picks)
                for code, outcome in found.outcomes.items()
                if outcome.found is AllocationFound.DEVICES
            }
            gained = found.gather(values)
            total += gained if part.where is None else np.where(part.where, gained, 0)
        return total

    def _part(self, where: Mask | None, names: frozenset[str]) -> RowPart:
        """Returns the part of the rows on which devices have to serve these extended resources."""
        return RowPart(where, *_find_plan(self._prepared, self._nodes, names))

    def describe(self, row: int) -> str:
        """Returns the error of a row, with the names of its claims and its node."""
        outcome, keys = self._search(row)
        if outcome.found is not AllocationFound.ERROR:
            # The row has no error of its own: the searches of all rows take too many steps.
            outcome = GAVE_UP
        text = outcome.error
        for at, key in enumerate(keys):
            text = text.replace(claim_number(at), key)
        return text if outcome.names_itself else f"node {self._nodes.name(row)}: {text}"

    def _search(self, row: int) -> tuple[AllocationOutcome, list[str]]:
        plan = find_plan_on(self._prepared, self._nodes, row)
        assert plan is not None, "nothing is searched where nothing has to be allocated"
        groups = self._nodes.device_groups
        views = groups.views(self._nodes.name(row), row)
        use = self._nodes.devices.use
        outcome = UNFINISHED
        if not plan.is_unfinished:
            outcome = allocate(plan.claims, [(view, use.state(view)) for view in views])
        keys = [key for key, _ in self._prepared.claims_ahead]
        keys += [claim.key for claim in self._prepared.unallocated]
        keys.append(f"{self._prepared.pod.namespace}/{SPECIAL_NAME}")
        return outcome, keys


def decide_on(prepared: PreparedClaims, nodes: View, row: int) -> RowDecision | None:
    """Returns what a pod's claims get on a row; None if they find nothing. Raises SearchError."""
    plan, special = _find_plan(prepared, nodes, _names_on(prepared, nodes, row))
    name = nodes.name(row)
    if plan is None:
        return RowDecision(Decision(name, prepared.shared), special)
    groups = nodes.device_groups
    outcome = plan.outcome_on(groups, row)
    if outcome.found is not AllocationFound.DEVICES:
        return None
    claims = _allocate(prepared, plan, outcome.picks, groups.views(name, row), name)
    return RowDecision(Decision(name, (*prepared.shared, *claims)), special)


def _allocate(
    prepared: PreparedClaims,
    plan: ClaimsPlan,
    picks: Sequence[Pick],
    views: Sequence[PoolView],
    node_name: str,
) -> list[DecidedClaim]:
    """Returns what each claim of a pod gets of the devices that were picked."""
    ahead = len(prepared.claims_ahead) if prepared.ahead else 0
    made: list[DecidedClaim] = []
    for at, claim in enumerate(plan.claims[ahead:]):
        if at < len(prepared.unallocated):
            key, uid = prepared.unallocated[at].key, prepared.unallocated[at].uid
        else:
            key = f"{prepared.pod.namespace}/{SPECIAL_NAME}"
            uid = extended_uid(prepared.pod.uid)
        own = picks
        if len(plan.claims) > 1:
            own = [pick for pick in picks if pick.claim == at + ahead]
        try:
            allocation = make_allocation(claim, own, views, node_name, uid)
        except SearchError as error:
            text = f"create NodeSelector for claim {key.partition('/')[2]}: {error.text}"
            raise SearchError(text) from None
        made.append(DecidedClaim(key, uid, allocation))
    return made


def find_plan_on(prepared: PreparedClaims, nodes: View, row: int) -> ClaimsPlan | None:
    """Returns the plan for the claims on a row; None if nothing has to be allocated."""
    return _find_plan(prepared, nodes, _names_on(prepared, nodes, row))[0]


def _names_on(prepared: PreparedClaims, nodes: View, row: int) -> frozenset[str]:
    extended = prepared.extended
    return frozenset() if extended is None else extended.names_on(nodes, row)


def _find_plan(
    prepared: PreparedClaims, nodes: View, names: frozenset[str]
) -> tuple[ClaimsPlan | None, SpecialClaim | None]:
    """Returns the plan and the special claim for rows where devices serve these resources."""
    special = None
    if names and prepared.extended is not None:
        special = prepared.extended.special(names)
    ahead = tuple(spec for _, spec in prepared.claims_ahead) if prepared.ahead else ()
    if prepared.plans is None or (special is None and (prepared.plan is None or not ahead)):
        return prepared.plan, None
    own = tuple(claim.spec for claim in prepared.unallocated)
    specs = (*ahead, *own) if special is None else (*ahead, *own, special.spec)
    return prepared.plans.plan(specs, nodes.devices.classes), special


@dataclass(frozen=True, slots=True)
class RowDecision:
    """What is decided for a pod's claims on a row."""

    decision: Decision
    special: SpecialClaim | None

    @property
    def allocations(self) -> Mapping[str, Allocation]:
        return {each.key: each.allocation for each in self.decision.claims}


def granted_claims(
    pod: Pod, claims: ResourceClaims, group: PodGroup | None, decided: RowDecision
) -> Iterator[ResourceClaim]:
    """Yields the claims of a pod as they will be when it is bound, the special one last."""
    user = ClaimUser(resource="pods", name=pod.name, uid=pod.uid)
    allocations = decided.allocations
    users = find_users(pod, group)
    for claim in find_claims(pod, claims, group):
        yield claim.granted(allocations.get(claim.key), users.get(claim.name, user))
    if decided.special is not None:
        made = ResourceClaim(
            namespace=pod.namespace,
            name=SPECIAL_NAME,
            uid=extended_uid(pod.uid),
            spec=decided.special.spec,
            owner=OwnerReference(
                api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True
            ),
            is_extended=True,
        )
        yield made.granted(allocations.get(made.key), user)
