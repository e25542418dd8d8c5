"""Claims to devices: as they were last seen, and what was decided about them since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from mooring.objects.pod import Pod
from mooring.objects.resource_claim import Allocation, ResourceClaim


class DecidedClaim(msgspec.Struct, frozen=True, gc=False):
    """What a claim will be given. The claim for extended resources has no uid before it is made."""

    key: str
    uid: str
    allocation: Allocation


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What was decided about the claims of a pod that is on its way to a node."""

    node_name: str
    claims: tuple[DecidedClaim, ...] = ()


class Flight(msgspec.Struct, gc=False):
    """An allocation that no claim has shown yet, and the pod that it was decided for."""

    pod_uid: str
    #: Of the claim.
    key: str
    allocation: Allocation
    #: Whether somebody was asked to write it: then it may come true at any time.
    is_asked: bool = False
    #: The version in which the claim was read to have it. The watch will tell of that one, or of a
    #: later one.
    read_in: str = ""


class ResourceClaims:
    """Claims by key. A decision holds its devices until a claim is seen that has them.

    A decision that was taken back while it was being written holds them, too: nobody knows whether
    the API server has got it, and until somebody does, the claim gets no other devices. That ends
    when the claim is seen to have devices or is gone, or when it was found out that it has none.
    """

    def __init__(self) -> None:
        self._known: dict[str, ResourceClaim] = {}
        #: The keys of the claims for extended resources, by the uid of the pod.
        self._extended: dict[str, list[str]] = {}
        #: Decisions by the uid of the pod.
        self.decisions: dict[str, Decision] = {}
        #: By the uid of the claim.
        self.flights: dict[str, Flight] = {}
        self._flights_of: dict[str, list[str]] = {}
        #: How often it is being found out what the claims of a pod have, by the uid of the pod.
        self._revocations: Counter[str] = Counter()

    def get(self, key: str) -> ResourceClaim | None:
        return self._known.get(key)

    def extended_of(self, pod_uid: str) -> tuple[ResourceClaim, ...]:
        """The claims that were made for the extended resources of a pod.

        There is more than one if a scheduler died while its claim was being made.
        """
        keys = self._extended.get(pod_uid)
        return tuple(self._known[key] for key in keys) if keys else ()

    def used_by(self, pod: Pod) -> Iterator[ResourceClaim]:
        """All claims that a pod refers to, or that were made for it, as far as they are there."""
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
        """Whether it was decided about a claim that has not been seen allocated since."""
        return uid in self.flights

    def decision(self, pod_uid: str) -> Decision | None:
        """What was decided about the claims of a pod that is on its way."""
        return self.decisions.get(pod_uid)

    def __iter__(self) -> Iterator[ResourceClaim]:
        return iter(self._known.values())

    def held(self) -> Iterator[Allocation]:
        """All allocations, seen and decided."""
        for claim in self._known.values():
            if claim.allocation is not None:
                yield claim.allocation
        for flight in self.flights.values():
            yield flight.allocation


class ClaimsWriter(ResourceClaims):
    """The same for the cluster, which writes it."""

    def put(self, claim: ResourceClaim) -> list[Allocation]:
        """Notes a claim as it is now; returns the decisions that it makes obsolete."""
        before = self._known.get(claim.key)
        landed = [] if before is None or before.uid == claim.uid else self.drop(before)
        self._known[claim.key] = claim
        uids = [claim.uid]
        if claim.is_extended and claim.owner is not None:
            keys = self._extended.setdefault(claim.owner.uid, [])
            if claim.key not in keys:
                keys.append(claim.key)
            # It was decided before it had a uid.
            special = extended_uid(claim.owner.uid)
            flight = self.flights.get(special)
            if flight is not None and flight.allocation.has_same_devices(claim.allocation):
                uids.append(special)
        is_seen = claim.allocation is not None or self._is_overtaken(claim)
        return landed + self._land(uids) if is_seen else landed

    def _is_overtaken(self, claim: ResourceClaim) -> bool:
        """Whether a claim had its devices in an earlier version, and has given them back."""
        flight = self.flights.get(claim.uid)
        return (
            flight is not None
            and flight.read_in != ""
            and _is_as_new(claim.resource_version, flight.read_in)
        )

    def drop(self, claim: ResourceClaim) -> list[Allocation]:
        """A claim is gone; returns the decision about it, if it was in flight."""
        self._known.pop(claim.key, None)
        owner = "" if claim.owner is None else claim.owner.uid
        keys = self._extended.get(owner, [])
        if claim.key in keys:
            keys.remove(claim.key)
            if not keys:
                del self._extended[owner]
        return self._land([claim.uid])

    def decide(self, pod_uid: str, decision: Decision) -> None:
        self.decisions[pod_uid] = decision
        for each in decision.claims:
            self.flights[each.uid] = Flight(pod_uid, each.key, each.allocation)
        self._flights_of[pod_uid] = [each.uid for each in decision.claims]

    def ask(self, pod_uid: str) -> None:
        """What was decided for a pod is being written from now on."""
        for uid in self._flights_of.get(pod_uid, ()):
            self.flights[uid].is_asked = True

    def settle(self, pod_uid: str) -> None:
        """The pod is on its node; what it was given stays until its claims are seen."""
        self.decisions.pop(pod_uid, None)

    def release(self, pod_uid: str) -> list[Allocation]:
        """Takes a decision back; returns what is free again for sure."""
        self.decisions.pop(pod_uid, None)
        uids = self._flights_of.get(pod_uid, ())
        return self._land([uid for uid in uids if not self.flights[uid].is_asked])

    def revoke(self, pod_uid: str) -> None:
        """What was being written for a pod is taken back: `end_doubt` will tell what became of it.

        Several times, if the pod was placed again before it was told.
        """
        self._revocations[pod_uid] += 1

    def end_doubt(self, pod_uid: str, held: Mapping[str, str]) -> list[Allocation]:
        """It was found out what a pod's claims have; returns what was asked for and is free.

        `held` are the uids of those that have devices, each with the version in which it was read.
        They keep these until they are seen.
        """
        self._revocations[pod_uid] -= 1
        if self._revocations[pod_uid] > 0:
            return []
        del self._revocations[pod_uid]
        if pod_uid in self.decisions:
            # The pod is on its way again, with what was decided since.
            return []
        uids = self._flights_of.get(pod_uid, ())
        for uid in uids:
            self.flights[uid].read_in = held.get(uid, "")
        return self._land([uid for uid in uids if uid not in held or self._is_seen(uid)])

    def _is_seen(self, uid: str) -> bool:
        """Whether the watch has told of a claim since it was read."""
        known = self._known.get(self.flights[uid].key)
        return known is not None and known.uid == uid and self._is_overtaken(known)

    def adopt(self, other: ClaimsWriter) -> list[Allocation]:
        """Takes over the decisions of another; returns what they hold."""
        self.decisions = dict(other.decisions)
        self.flights = dict(other.flights)
        self._flights_of = {uid: list(uids) for uid, uids in other._flights_of.items()}
        self._revocations = Counter(other._revocations)
        return [flight.allocation for flight in self.flights.values()]

    def _land(self, uids: Iterable[str]) -> list[Allocation]:
        landed = []
        for uid in list(uids):
            flight = self.flights.pop(uid, None)
            if flight is not None:
                others = self._flights_of[flight.pod_uid]
                others.remove(uid)
                if not others:
                    del self._flights_of[flight.pod_uid]
                landed.append(flight.allocation)
        return landed


def _is_as_new(version: str, other: str) -> bool:
    """Whether a version of an object is another one, or came after it."""
    if version.isdecimal() and other.isdecimal():
        return int(version) >= int(other)
    return version == other


def extended_uid(pod_uid: str) -> str:
    """What stands for the uid of the claim for a pod's extended resources before it is made."""
    return f"\0{pod_uid}"
