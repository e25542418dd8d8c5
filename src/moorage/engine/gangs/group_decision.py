"""The decision about a whole group: what happens to each member, and the status to write."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from moorage.cluster import Cluster
from moorage.config.kubernetes_versions import DEFAULT_VERSION, KubernetesVersion
from moorage.engine.diagnosis import SCHEDULER_ERROR, UNSCHEDULABLE, Failure
from moorage.framework.attempt import Failed
from moorage.framework.calls import ask_release
from moorage.framework.device_writes import ClaimRelease
from moorage.framework.gang_points import find_preemption, find_releaser
from moorage.framework.observe import GROUP_POST_FILTER, PODGROUP, Observer, PointTimer
from moorage.framework.profile import Profile
from moorage.framework.status import PluginError
from moorage.objects.meta import Condition
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup

from .domain_counts import sees_counts
from .group_checks import find_fault, find_gap
from .group_cycle import Decide, GroupCycle
from .group_preemption import GroupPreemption, GroupRemedy
from .group_result import (
    GROUP_UNSCHEDULABLE,
    GroupResult,
    GroupStatus,
    MemberResult,
    error,
    unschedulable,
)
from .member_fits import Look
from .trial import Trial


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Which features of groups are on."""

    #: Whether the topology key of a group counts.
    topology: bool = False
    #: The scheduler names that are served.
    profiles: Container[str] = ()
    version: KubernetesVersion = DEFAULT_VERSION


class GroupDecision(msgspec.Struct, frozen=True):
    """The decision about a group, whose placed members are in the trial."""

    group: PodGroup
    members: Sequence[Pod]
    result: GroupResult
    trial: Trial
    remedy: GroupRemedy | None = None

    @property
    def status(self) -> GroupStatus:
        """The final status, with what preemption said."""
        status = self.result.status
        return status if self.remedy is None else status.followed_by(self.remedy.text)

    @property
    def is_waiting(self) -> bool:
        """Whether pods are to be evicted for the group."""
        return self.remedy is not None and self.remedy.is_found

    def needs_room(self) -> bool:
        """Whether only room on nodes could help a group that was refused."""
        if self.status.code != "Unschedulable" or self.is_waiting:
            return False
        nodes, profile = self.trial.cluster.nodes, self.trial.profile
        kinds = {id(pod.spec): pod for pod in self.members}.values()
        try:
            return all(sees_counts(pod, profile, nodes) for pod in kinds)
        except PluginError:
            return False

    def condition(self) -> Condition | None:
        """Returns the condition to write to the group; None if nothing changes."""
        kind, known = self.group.condition_type, self.group.condition()
        status = self.status
        is_placed = status.code == "Success"
        if not kind or (known is not None and known.status == "True" and not is_placed):
            # That a group was placed once stays true whatever becomes of later members.
            return None
        reason = SCHEDULER_ERROR if status.code == "Error" else UNSCHEDULABLE
        wanted = Condition(
            type=kind,
            status="True" if is_placed else "False",
            reason="Scheduled" if is_placed else reason,
            message=status.message,
        )
        return None if known == wanted else wanted

    def releases(self) -> Iterator[tuple[Pod, ClaimRelease]]:
        """Yields what members of a group that fits nowhere keep in vain, one of each member.

        As in kube-scheduler, a group that stays in one domain keeps what it has.
        """
        plugin = find_releaser(self.trial.profile)
        if plugin is None or self.group.topology_key:
            return
        if self.result.status.code == "Unschedulable":
            for member in self.result.members:
                if isinstance(member.outcome, Failed):
                    nodes = self.trial.nodes
                    release = ask_release(plugin, member.pod, member.outcome, nodes)
                    if release is not None:
                        yield member.pod, release

    def failures(self) -> list[tuple[Pod, Failure]]:
        """Yields for each member without a node why it was not placed, and its nomination."""
        if self.status.code == "Success" and len(self.result.placed) == len(self.members):
            return []
        tried = {each.pod.uid: each for each in self.result.members}
        found = []
        for pod in self.members:
            member = tried.get(pod.uid)
            failure = self._failure(member)
            if failure is not None:
                found.append((pod, self._nominate(pod, failure)))
        return found

    def _failure(self, member: MemberResult | None) -> Failure | None:
        own = None if member is None else member.failure
        match self.status.code:
            case "Success":
                return own
            case "Error":
                if own is not None and own.reason == SCHEDULER_ERROR:
                    return own
                return Failure(SCHEDULER_ERROR, self.status.message)
        if own is not None:
            return own
        if member is None:
            return Failure(UNSCHEDULABLE, self.result.status.message, nominate=None)
        if self.is_waiting:
            return Failure(UNSCHEDULABLE, self.status.message, nominate=None)
        return Failure(UNSCHEDULABLE, f"{GROUP_UNSCHEDULABLE}, {self.status.message}")

    def _nominate(self, pod: Pod, failure: Failure) -> Failure:
        nominations = self.remedy.nominations if self.remedy is not None else None
        node_name = None if nominations is None else nominations.get(pod.uid)
        if node_name is None:
            return failure
        return Failure(
            failure.reason, failure.message, failure.rejectors, failure.pending, node_name
        )


@dataclass(frozen=True, slots=True)
class GroupDecider:
    """Decides groups of one cluster."""

    cluster: Cluster
    settings: GroupSettings
    observer: Observer
    look: Look | None = None

    def _find_unsupported(self, group: PodGroup) -> str | None:
        """Returns a feature that a group asks for and that is absent or off."""
        if group.parent:
            return f'composite pod group "{group.parent}": not supported by Moorage yet'
        if group.topology_key and not self.settings.topology:
            gate = "TopologyAwareWorkloadScheduling"
            return f"spec.schedulingConstraints.topology needs the feature gate {gate}"
        return None

    def decide(
        self,
        group: PodGroup,
        members: Sequence[Pod],
        profile: Profile,
        decide: Decide,
        *,
        is_literal: bool = False,
    ) -> GroupDecision:
        """Decides a whole group. Placed members stay in the trial until it is kept or undone.

        With `is_literal`, only what kube-scheduler tries is tried.
        """
        trial = Trial(self.cluster, profile, self.observer)
        placed = self.cluster.groups.placed(group.group_key).values()
        version = self.settings.version
        fault = self._find_unsupported(group) or find_fault(
            group,
            members,
            placed,
            self.settings.profiles,
            ranked_as_one=version.ranks_groups_as_one and not group.is_coscheduling,
        )
        if fault is not None:
            return GroupDecision(group, members, GroupResult(error(fault)), trial)
        gap = find_gap(group, self.cluster.nodes)
        if gap is not None:
            return GroupDecision(group, members, GroupResult(unschedulable(gap)), trial)
        cycle = GroupCycle(
            group, members, trial, decide, self.settings.topology, is_literal, self.look
        )
        began = self.observer.clock()
        result = cycle.run()
        self.observer.group_decided(began)
        needs_room = result.status.code == "Unschedulable"
        preempt = find_preemption(profile) if needs_room else None
        if preempt is None:
            return GroupDecision(group, members, result, trial)
        with PointTimer(self.observer, GROUP_POST_FILTER, profile.name) as running:
            began = self.observer.clock()
            remedy = GroupPreemption(cycle, version, preempt.name).seek()
            running.status = remedy.code
        self.observer.victims_sought(PODGROUP, remedy.code, began)
        return GroupDecision(group, members, result, trial, remedy)
