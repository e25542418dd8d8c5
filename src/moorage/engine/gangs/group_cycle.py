"""One attempt to place a group: its members one after the other, each with the others in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zlib import crc32

import msgspec

from moorage.engine import diagnosis
from moorage.engine.cycle import Found
from moorage.engine.diagnosis import SCHEDULER_ERROR, UNSCHEDULABLE, Failure
from moorage.framework.attempt import Failed
from moorage.framework.observe import PLACEMENT_GENERATE, PLACEMENT_SCORE, PointTimer
from moorage.framework.status import PluginError
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup

from . import topology
from .domain_counts import count_members
from .group_result import (
    SUCCESS,
    WAITING,
    Domain,
    GroupResult,
    GroupStatus,
    MemberResult,
    error,
    unschedulable,
)
from .member_fits import Look
from .topology import BestDomain
from .trial import Trial

#: Decides one member on the nodes of a domain; None means that there are no nodes.
Decide = Callable[[Pod, Domain], Found | Failed | None]

EVERYWHERE = Domain("")


class GroupCycle(msgspec.Struct, frozen=True):
    """A group, its members in the order in which they are tried, and where it is tried."""

    group: PodGroup
    members: Sequence[Pod]
    trial: Trial
    decide: Decide
    #: Whether the group's topology key counts, as a feature gate says.
    with_topology: bool = False
    #: Whether only what kube-scheduler tries is tried, and all of it.
    is_literal: bool = False
    look: Look | None = None

    @property
    def _scheduled(self) -> int:
        """How many members have a node."""
        return len(self.trial.nodes.groups.placed(self.group.group_key))

    def run(self) -> GroupResult:
        """Tries to place the group. On success the members stay placed, otherwise nothing stays."""
        result = self._run_domains() if self.with_topology else self.try_domain(EVERYWHERE)
        if not result.has_placed and result.is_success:
            # To have nothing to do is no success: the members that are left found no node.
            result.status = unschedulable()
            self.trial.roll_back()
        return result

    def try_domain(self, domain: Domain) -> GroupResult:
        """Tries to place the members on the nodes of a domain."""
        mark = self.trial.mark()
        result = self._try_members(domain)
        if not result.is_success:
            self.trial.roll_back(mark)
            result.has_placed = False
        return result

    def _try_members(self, domain: Domain) -> GroupResult:
        scheduled = self._scheduled
        remaining = len(self.members)
        if scheduled + remaining < self.group.min_count:
            status = progress(self.group, scheduled, remaining)
            return GroupResult(unschedulable(*status.reasons), domain=domain)
        result = GroupResult(WAITING, domain=domain)
        for pod in self.members:
            member = self.try_member(pod, domain)
            result.members.append(member)
            remaining -= 1
            if member.failure is None:
                scheduled += 1
                result.has_placed = True
                continue
            if member.failure.reason == SCHEDULER_ERROR:
                what = f"failed to schedule other pod from a pod group: {member.failure.message}"
                result.status = error(what)
                return result
            if scheduled + remaining < self.group.min_count:
                break
        result.status = progress(self.group, scheduled, remaining)
        if result.status.code == "Wait":
            result.status = unschedulable(*result.status.reasons)
        return result

    def try_member(self, pod: Pod, domain: Domain) -> MemberResult:
        """Finds a node for one member and places it there."""
        trial = self.trial
        trial.work_left -= trial.member_work(pod)
        try:
            outcome = self.decide(pod, domain)
        except PluginError as broken:
            return MemberResult(pod, failure=Failure(SCHEDULER_ERROR, str(broken)))
        if outcome is None:
            return MemberResult(pod, failure=Failure(UNSCHEDULABLE, diagnosis.NO_NODES))
        if isinstance(outcome, Failed):
            failure = Failure(
                UNSCHEDULABLE,
                diagnosis.message(outcome),
                diagnosis.rejectors(outcome),
                nominate=None,
            )
            return MemberResult(pod, outcome=outcome, failure=failure)
        node_name = trial.nodes.name(outcome.row)
        placed = trial.place(pod, node_name)
        if isinstance(placed, Failure):
            return MemberResult(pod, outcome=outcome, failure=placed)
        return MemberResult(pod, node_name, outcome)

    # Domains

    def _run_domains(self) -> GroupResult:
        """Tries each domain, and keeps the result of the best one that takes the group."""
        profile, observer = self.trial.profile, self.trial.observer
        with PointTimer(observer, PLACEMENT_GENERATE, profile.name):
            domains = topology.find_domains(self.group, self.trial.nodes)
        if isinstance(domains, GroupStatus):
            return GroupResult(domains)
        observer.domains_found(profile.name, len(domains))
        if len(domains) == 1:
            return self._run_only(domains[0])
        counted = None if self.is_literal else self._run_best(domains)
        return counted if counted is not None else self._run_each(domains)

    def _run_each(self, domains: Sequence[Domain]) -> GroupResult:
        """Tries all domains, one after the other, until that takes too long."""
        profile, observer = self.trial.profile, self.trial.observer
        tried: list[GroupResult] = []
        for domain in self._order(domains):
            if tried and self.trial.is_spent:
                break
            began = observer.clock()
            mark = self.trial.mark()
            result = self.try_domain(domain)
            self.trial.roll_back(mark)
            observer.domain_tried(profile.name, result.is_success, began)
            if result.status.code == "Error":
                return result
            tried.append(result)
        successes = [each for each in tried if each.is_success]
        if not successes:
            return _refusal(len(domains), tried[0], tried, len(domains) - len(tried))
        if len(successes) > 1:
            with PointTimer(observer, PLACEMENT_SCORE, profile.name):
                topology.score_domains(successes, self.trial.nodes, profile)
        best = max(successes, key=lambda each: each.score)
        self._place_again(best)
        best.tried = tried
        return best

    def _order(self, domains: Sequence[Domain]) -> Sequence[Domain]:
        """Returns the domains in the order in which they are tried.

        If there are too many to try all, another one comes first whenever the cluster has changed.
        """
        needed = len(domains) * sum(map(self.trial.member_work, self.members))
        changes = self.trial.nodes.changes
        if needed <= self.trial.work_left or changes is None:
            return domains
        seed = f"{self.group.uid}/{changes.generation}".encode()
        first = crc32(seed) % len(domains)
        return [*domains[first:], *domains[:first]]

    def _run_only(self, domain: Domain) -> GroupResult:
        """Tries the only domain."""
        began = self.trial.observer.clock()
        result = self.try_domain(domain)
        self.trial.observer.domain_tried(self.trial.profile.name, result.is_success, began)
        if result.status.code == "Error":
            return result
        if not result.is_success:
            return _refusal(1, result, [result])
        result.tried = [GroupResult(result.status, result.members, result.has_placed, domain)]
        return result

    def _run_best(self, domains: Sequence[Domain]) -> GroupResult | None:
        """Tries only the domain that is best by counting; None if counting does not decide it."""
        trial = self.trial
        best = self._count_domains(domains)
        if best is None:
            return None
        rejected = len(domains) - best.feasible
        trial.observer.domains_counted(trial.profile.name, best.feasible, rejected)
        if not best.feasible:
            return self._refuse_all(domains)
        mark = trial.mark()
        result = self.try_domain(domains[best.place])
        if not result.has_placed or len(result.placed) != best.members:
            trial.roll_back(mark)
            return None
        return result

    def _count_domains(self, domains: Sequence[Domain]) -> BestDomain | None:
        """Counts how many members domains take, and which is best; None if only trying can tell."""
        nodes, profile = self.trial.nodes, self.trial.profile
        key, pod = self.group.topology_key, self.members[0]
        counts = count_members(self.members, domains, profile, nodes, key, self.look)
        if counts is None:
            return None
        return topology.choose_domain(pod, self.group, profile, counts, domains, nodes)

    def _refuse_all(self, domains: Sequence[Domain]) -> GroupResult | None:
        """Returns the refusal if no domain takes enough members; the first one says why."""
        first = self.try_domain(domains[0])
        if first.is_success:
            self.trial.roll_back()
            return None
        return _refusal(len(domains), first, [first])

    def _place_again(self, result: GroupResult) -> None:
        """Places members where a place was found for them before."""
        for member in result.placed:
            again = self.trial.place(member.pod, member.node_name)
            assert not isinstance(again, Failure), "what was reserved once can be reserved again"


def _refusal(
    count: int, first: GroupResult, tried: list[GroupResult], unseen: int = 0
) -> GroupResult:
    """Returns the refusal if no domain takes the group, with the results of the first one."""
    what = f"0/{count} placements are available, first placement status: "
    message = what + first.status.quote
    if unseen:
        message += f", {unseen} placements were not looked at, since that would take too long"
    return GroupResult(unschedulable(message), first.members, tried=tried)


def progress(group: PodGroup, scheduled: int, remaining: int) -> GroupStatus:
    """Returns whether enough members have a node, may still get one, or cannot."""
    needed = group.min_count
    if scheduled >= needed:
        return SUCCESS
    so_far = f"{scheduled} scheduled, {remaining} remaining"
    if scheduled + remaining < needed:
        return unschedulable(f"minCount ({needed}) cannot be satisfied: {so_far}", headline="")
    return WAITING.followed_by(f"minCount ({needed}) is not yet satisfied: {so_far}")
