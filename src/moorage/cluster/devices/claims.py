"""Claims to devices as they were last seen, and the decisions about them since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from moorage.objects.pod import Pod
from moorage.objects.resource_claim import Allocation, ResourceClaim


class DecidedClaim(msgspec.Struct, frozen=True, gc=False):
    """The devices decided for a claim.

    The claim for extended resources has no uid of its own before it is created.
    """

    key: str
    uid: str
    allocation: Allocation


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The decision about the claims of a pod that is being bound to a node."""

    node_name: str
    claims: tuple[DecidedClaim, ...] = ()


class PendingAllocation(msgspec.Struct, gc=False):
    """An allocation in flight: decided, and not seen in its claim yet."""

    #: The key of the claim.
    key: str
    allocation: Allocation
    #: The pods that it was decided for, by uid, and whether it is being written for them: then the
    #: API server may have it at any time. There are several if members of a group share the claim.
    users: dict[str, bool]
    #: The version in which the claim was read and had these devices. The watch will show that
    #: version or a later one.
    read_in: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it is only decided, so that nobody but us knows of it."""
        return not self.read_in and not any(self.users.values())

    def copy(self) -> PendingAllocation:
        return replace(self, users=dict(self.users))


class ResourceClaims:
    """Claims by key. A decision holds its devices until a claim is seen that has them.

    A decision that was taken back while it was being written holds its devices, too: it is not
    known whether the API server has stored it. Until that is known, the claim gets no other
    devices. It is known when the watch shows the claim with devices, when the claim is gone, or
    when the claim was read and has no devices.
    """

    def __init__(self) -> None:
        self._known: dict[str, ResourceClaim] = {}
        #: The keys of the claims for extended resources, by the uid of the pod.
        self._extended: dict[str, list[str]] = {}
        #: Decisions by the uid of the pod.
        self.decisions: dict[str, Decision] = {}
        #: Allocations in flight, by the uid of the claim.
        self.pending: dict[str, PendingAllocation] = {}
        self._pending_of: dict[str, list[str]] = {}
        #: How many times the claims of a pod are being read after its decision was taken back, by
        #: the uid of the pod.
        self._revocations: Counter[str] = Counter()

    def get(self, key: str) -> ResourceClaim | None:
        return self._known.get(key)

    def extended_of(self, pod_uid: str) -> tuple[ResourceClaim, ...]:
        """Returns the claims that were created for the extended resources of a pod.

        There is more than one if a scheduler stopped while it created one.
        """
        keys = self._extended.get(pod_uid)
        return tuple(self._known[key] for key in keys) if keys else ()

    def used_by(self, pod: Pod) -> Iterator[ResourceClaim]:
        """Yields the existing claims that a pod refers to or that were created for it."""
        if not pod.spec.resource_claims:
            yield from self.extended_of(pod.uid)
            return
        made = {
            each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses or ()
        }
        for each in pod.spec.resource_claims:
            name = each.resource_claim_name or made.get(each.name)
            known = None if name is None else self.get(f"{pod.namespace}/{name}")
            if known is not None:
                yield known
        yield from self.extended_of(pod.uid)

    def is_in_flight(self, uid: str) -> bool:
        """Returns whether devices are decided for a claim that has not been seen with them."""
        return uid in self.pending

    def find_open(self, uid: str, users: Container[str]) -> Allocation | None:
        """Returns what is decided for a claim and for one of these pods, and not being written."""
        pending = self.pending.get(uid)
        if (
            pending is None
            or not pending.is_open
            or not any(map(users.__contains__, pending.users))
        ):
            return None
        return pending.allocation

    def decision(self, pod_uid: str) -> Decision | None:
        """Returns the decision about the claims of a pod that is being bound."""
        return self.decisions.get(pod_uid)

    def __iter__(self) -> Iterator[ResourceClaim]:
        return iter(self._known.values())


class ClaimsWriter(ResourceClaims):
    """The claims with the methods that change them, which only the cluster calls."""

    def put(self, claim: ResourceClaim) -> list[Allocation]:
        """Adds or updates a claim; returns the allocations that are no longer in flight."""
        before = self._known.get(claim.key)
        ended = [] if before is None or before.uid == claim.uid else self.drop(before)
        self._known[claim.key] = claim
        uids = [claim.uid]
        if claim.is_extended and claim.owner is not None:
            keys = self._extended.setdefault(claim.owner.uid, [])
            if claim.key not in keys:
                keys.append(claim.key)
            # It was decided before the claim had a uid.
            special = extended_uid(claim.owner.uid)
            pending = self.pending.get(special)
            if pending is not None and pending.allocation.has_same_devices(claim.allocation):
                uids.append(special)
        is_seen = claim.allocation is not None or self._is_overtaken(claim)
        return ended + self._end_pending(uids) if is_seen else ended

    def _is_overtaken(self, claim: ResourceClaim) -> bool:
        """Returns whether a claim is as new as the version that was read with its devices.

        If it has no devices now, it has given them back, unless they are being written again.
        """
        pending = self.pending.get(claim.uid)
        return (
            pending is not None
            and not pending.users
            and pending.read_in != ""
            and _is_as_new(claim.resource_version, pending.read_in)
        )

    def drop(self, claim: ResourceClaim) -> list[Allocation]:
        """Removes a claim; returns its allocation if that was in flight."""
        self._known.pop(claim.key, None)
        owner = "" if claim.owner is None else claim.owner.uid
        keys = self._extended.get(owner, [])
        if claim.key in keys:
            keys.remove(claim.key)
            if not keys:
                del self._extended[owner]
        return self._end_pending([claim.uid])

    def decide(self, pod_uid: str, decision: Decision) -> list[Allocation]:
        """Notes a decision; returns its allocations that no earlier one has made."""
        self.decisions[pod_uid] = decision
        made = []
        for each in decision.claims:
            pending = self.pending.get(each.uid)
            if pending is None:
                pending = self.pending[each.uid] = PendingAllocation(each.key, each.allocation, {})
                made.append(each.allocation)
            pending.users[pod_uid] = False
        self._pending_of[pod_uid] = [each.uid for each in decision.claims]
        return made

    def ask(self, pod_uid: str) -> None:
        """Notes that the decision for a pod is being written from now on."""
        for uid in self._pending_of.get(pod_uid, ()):
            self.pending[uid].users[pod_uid] = True

    def end_decision(self, pod_uid: str) -> None:
        """Ends the decision for a pod that is on its node.

        Its allocations stay in flight until its claims are seen with them.
        """
        self.decisions.pop(pod_uid, None)

    def release(self, pod_uid: str) -> list[Allocation]:
        """Takes a decision back; returns the allocations that were not being written, now free."""
        self.decisions.pop(pod_uid, None)
        uids = self._pending_of.get(pod_uid, ())
        return self._leave(pod_uid, [uid for uid in uids if not self.pending[uid].users[pod_uid]])

    def revoke(self, pod_uid: str) -> None:
        """Notes that a decision was taken back while it was being written.

        One call of `end_doubt` follows each. There are several at a time if the pod was placed
        again before the first of them.
        """
        self._revocations[pod_uid] += 1

    def end_doubt(self, pod_uid: str, held: Mapping[str, str]) -> list[Allocation]:
        """Takes in what was read of a pod's claims; returns the allocations that are free.

        `held` has the uids of the claims that have devices, each with the version that was read.
        They keep their devices until the watch shows them.
        """
        self._revocations[pod_uid] -= 1
        if self._revocations[pod_uid] > 0:
            return []
        del self._revocations[pod_uid]
        if pod_uid in self.decisions:
            # The pod is being bound again, with a newer decision.
            return []
        uids = [*self._pending_of.get(pod_uid, ())]
        for uid in uids:
            pending = self.pending[uid]
            pending.read_in = held.get(uid, pending.read_in)
        return self._leave(pod_uid, uids)

    def _leave(self, pod_uid: str, uids: Iterable[str]) -> list[Allocation]:
        """Ends what a pod has to do with allocations; returns those that are free then."""
        free = []
        for uid in uids:
            self._part(pod_uid, uid)
            pending = self.pending[uid]
            if not pending.users and (not pending.read_in or self._is_seen(uid)):
                free.append(uid)
        return self._end_pending(free)

    def _part(self, pod_uid: str, uid: str) -> None:
        """Notes that a pod has nothing to do with the allocation of a claim any more."""
        del self.pending[uid].users[pod_uid]
        others = self._pending_of[pod_uid]
        others.remove(uid)
        if not others:
            del self._pending_of[pod_uid]

    def _is_seen(self, uid: str) -> bool:
        """Returns whether the watch has shown a claim since it was read."""
        known = self._known.get(self.pending[uid].key)
        return known is not None and known.uid == uid and self._is_overtaken(known)

    def adopt(self, other: ClaimsWriter) -> list[Allocation]:
        """Copies the decisions of another; returns the allocations that are in flight."""
        self.decisions = dict(other.decisions)
        self.pending = {uid: pending.copy() for uid, pending in other.pending.items()}
        self._pending_of = {uid: list(uids) for uid, uids in other._pending_of.items()}
        self._revocations = Counter(other._revocations)
        return [pending.allocation for pending in self.pending.values()]

    def _end_pending(self, uids: Iterable[str]) -> list[Allocation]:
        """Ends the pending allocations of claims; returns their allocations."""
        ended = []
        for uid in uids:
            pending = self.pending.get(uid)
            if pending is not None:
                for pod_uid in list(pending.users):
                    self._part(pod_uid, uid)
                del self.pending[uid]
                ended.append(pending.allocation)
        return ended


def _is_as_new(version: str, other: str) -> bool:
    """Returns whether a version of an object is equal to another or newer."""
    if version.isdecimal() and other.isdecimal():
        return int(version) >= int(other)
    return version == other


def extended_uid(pod_uid: str) -> str:
    """Returns a substitute for the uid of the claim for extended resources, until it has one."""
    return f"\0{pod_uid}"
