"""Whatever happens, no device is held twice, none is lost, and every pod that fits is bound.

The API server of this machine keeps claims. Writes are carried out late, in part, or not at all,
and the scheduler may not hear of it, or hear of a failure before they come true; watches lag and
leave out what they missed. The scheduler may also be started anew at any time.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from moorage.cluster import check
from moorage.config import default
from moorage.documents.conversion import to_struct
from moorage.engine import Engine
from moorage.engine.actions import BindPod, PodRef, ReleaseClaim, RevokeClaims, WriteClaims
from moorage.engine.events import (
    Applied,
    BindingFailed,
    Bound,
    ClaimsRevoked,
    ClaimsWritten,
    ReleaseFailed,
    Removed,
)
from moorage.framework.profile import known_plugins
from moorage.objects.pod import Pod
from moorage.objects.resource_claim import EXTENDED_CLAIM, Allocation, ClaimUser, ResourceClaim
from moorage.plugins import REGISTRY
from tests.builders import node, pod
from tests.device_builders import claim, device_class, resource_slice

NODES = ("n1", "n2")
DEVICES = 2 * len(NODES)
#: Pods with a claim of their own, and pods that ask by an extended resource.
NAMES = ("p0", "p1", "p2", "p3", "x0", "x1", "x2")
names = st.sampled_from(NAMES)

#: How many writes of an action are carried out: none, the first alone, all.
NONE, FIRST, ALL = 0, 1, 9

CLAIM_ACTIONS = WriteClaims | RevokeClaims | ReleaseClaim


class Devices(RuleBasedStateMachine):
    """Pods that need a device each come, go and get one, with all that can go wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: dict[str, ResourceClaim] = {}
        self.pods: dict[str, Pod] = {}
        self.version = 0
        self.now = 0.0
        #: What was asked for and not carried out yet.
        self.asked: list[Any] = []
        #: Changes of claims that the scheduler has not seen yet, in order.
        self.unseen: list[Any] = []
        #: Writes that were given up and may still come through.
        self.late: list[WriteClaims] = []
        #: What was found out and not told yet.
        self.untold: list[ClaimsRevoked] = []
        self.start()

    def start(self) -> None:
        """A scheduler starts, and sees everything as it is."""
        self.engine = Engine(default(known_plugins(REGISTRY)), REGISTRY)
        self.asked, self.unseen, self.late, self.untold = [], [], [], []
        there: list[Any] = [device_class(extendedResourceName="example.com/gpu")]
        there += [node(name) for name in NODES]
        there += [resource_slice(name, 2) for name in NODES]
        for each in (*there, *self.claims.values(), *self.pods.values()):
            self.engine.handle(Applied(each), self.now)

    @initialize()
    def begin(self) -> None:
        self.add("p0")
        self.add("x0")

    def put(self, item: ResourceClaim) -> None:
        self.version += 1
        item = replace(item, resource_version=str(self.version))
        self.claims[item.name] = item
        self.unseen.append(Applied(item))

    def remove(self, name: str) -> None:
        gone = self.claims.pop(name, None)
        if gone is not None:
            self.unseen.append(Removed(gone))

    def make_claim(self, name: str, pod_name: str, pod_uid: str, **metadata: Any) -> None:
        owner = {"kind": "Pod", "name": pod_name, "uid": pod_uid, "controller": True}
        uid = f"c{self.version}"
        self.put(claim(name, metadata={"ownerReferences": [owner], "uid": uid, **metadata}))

    @rule(name=names)
    def add(self, name: str) -> None:
        if name in self.pods:
            return
        uid = f"u{self.version}"
        if name.startswith("x"):
            self.version += 1
            self.pods[name] = pod(name, metadata={"uid": uid}, gpu=1)
        else:
            self.make_claim(name, name, uid)
            spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
            made = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]}
            self.pods[name] = pod(name, metadata={"uid": uid}, spec=spec, status=made)
        self.engine.handle(Applied(self.pods[name]), self.now)

    @rule(name=names)
    def delete(self, name: str) -> None:
        """A pod goes, and its claim with it, as the garbage collector does."""
        gone = self.pods.pop(name, None)
        if gone is not None:
            self.engine.handle(Removed(gone), self.now)
            self.collect_garbage()

    def collect_garbage(self) -> None:
        uids = {each.uid for each in self.pods.values()}
        for each in list(self.claims.values()):
            if each.owner is not None and each.owner.uid not in uids:
                self.remove(each.name)

    @rule(seconds=st.sampled_from([0.0, 2.0, 30.0]))
    def decide(self, seconds: float) -> None:
        self.now += seconds
        self.asked += self.engine.step(self.now, 3)

    @rule()
    def see(self) -> None:
        while self.unseen:
            self.engine.handle(self.unseen.pop(0), self.now)

    @precondition(lambda self: self.unseen)
    @rule()
    def see_one(self) -> None:
        self.engine.handle(self.unseen.pop(0), self.now)

    @precondition(lambda self: self.unseen)
    @rule()
    def miss(self) -> None:
        """The watch breaks: what comes next of each claim is its newest form."""
        newest = {each.object.name: each for each in self.unseen}
        self.unseen = list(newest.values())

    @precondition(lambda self: self.untold)
    @rule()
    def tell(self) -> None:
        self.engine.handle(self.untold.pop(0), self.now)

    @rule(name=names)
    def deallocate(self, name: str) -> None:
        """The controller has a claim that nobody uses give its devices back."""
        known = self.claims.get(name)
        if known is not None and known.allocation is not None and not known.reserved_for:
            self.put(known.deallocated())

    @precondition(lambda self: self.asked)
    @rule(at=st.integers(0, 20))
    def give_up(self, at: int) -> None:
        """A write is under way for so long that the scheduler hears of a failure."""
        writes = [each for each in self.asked if isinstance(each, WriteClaims)]
        if writes:
            action = writes[at % len(writes)]
            self.asked.remove(action)
            self.write(action, FIRST)
            self.late.append(action)
            self.engine.handle(BindingFailed(action.pod.uid, "lost"), self.now)

    @precondition(lambda self: self.late)
    @rule(at=st.integers(0, 20))
    def come_late(self, at: int) -> None:
        """A write that was given up comes through, if its claim is still as it was read."""
        action = self.late.pop(at % len(self.late))
        name = f"{action.pod.name}-{action.pod.uid}"
        if action.writes.creation is None or name in self.claims:
            self.write(action, ALL)

    def take(self, at: int) -> Any:
        """An action that was asked for; those about the claims of a pod come in order."""
        action = self.asked[at % len(self.asked)]
        if isinstance(action, CLAIM_ACTIONS):
            action = next(
                each
                for each in self.asked
                if isinstance(each, CLAIM_ACTIONS) and each.pod.uid == action.pod.uid
            )
        self.asked.remove(action)
        return action

    @precondition(lambda self: self.asked)
    @rule(at=st.integers(0, 20), heard=st.booleans(), writes=st.sampled_from([NONE, FIRST, ALL]))
    def carry_out(self, at: int, heard: bool, writes: int) -> None:
        """Something is carried out, or not, and the scheduler hears of it, or of a failure."""
        action = self.take(at)
        uid = action.pod.uid
        match action:
            case WriteClaims():
                well = self.write(action, writes)
                outcome = ClaimsWritten(uid) if well and heard else BindingFailed(uid, "no")
                self.engine.handle(outcome, self.now)
            case BindPod() if self.is_there(action.pod):
                self.pods[action.pod.name] = self.pods[action.pod.name].on(action.node)
                self.engine.handle(Bound(uid), self.now)
                self.engine.handle(Applied(self.pods[action.pod.name]), self.now)
            case BindPod():
                self.engine.handle(BindingFailed(uid, "no such pod"), self.now)
            case RevokeClaims():
                if writes:
                    self.revoke(action)
                self.untold.append(self.find_out(action))
            case ReleaseClaim():
                if not (writes and self.release(action) and heard):
                    self.engine.handle(ReleaseFailed(uid, "no"), self.now)
        self.collect_garbage()

    def is_there(self, ref: PodRef) -> bool:
        return ref.name in self.pods and self.pods[ref.name].uid == ref.uid

    @rule(name=names)
    def lose_answers(self, name: str) -> None:
        """Claims are written, nobody hears of it, and another pod comes before that is seen."""
        writes = [each for each in self.asked if isinstance(each, WriteClaims)]
        self.asked = [each for each in self.asked if each not in writes]
        for each in writes:
            self.write(each, ALL)
            self.engine.handle(BindingFailed(each.pod.uid, "lost"), self.now)
        self.add(name)
        # The new claim is seen before what was written, as another watch may tell it.
        for event in [each for each in self.unseen if each.object.name == name]:
            self.engine.handle(event, self.now)
            self.unseen.remove(event)
        self.decide(0.0)

    def write(self, action: WriteClaims, most: int) -> bool:
        """As an API server does: only what was read in its newest form is written."""
        for grant in action.writes.grants:
            known = self.claims.get(grant.claim.name)
            if known is None or known.resource_version != grant.claim.resource_version:
                return False
            if most < ALL:
                return False
            self.grant(known, grant.allocation, action.pod)
        creation = action.writes.creation
        return creation is None or self.create(action.pod, creation.allocation, most)

    def grant(self, known: ResourceClaim, wanted: dict[str, Any] | None, user: PodRef) -> None:
        made = None if wanted is None else to_struct(Allocation, wanted)
        self.put(known.granted(made, ClaimUser(resource="pods", name=user.name, uid=user.uid)))

    def create(self, user: PodRef, allocation: dict[str, Any], most: int) -> bool:
        """The claim for extended resources: one write makes it, others give it its device."""
        name = f"{user.name}-{user.uid}"
        if most >= FIRST and name not in self.claims and self.is_there(user):
            annotations = {EXTENDED_CLAIM: "true"}
            self.make_claim(name, user.name, user.uid, annotations=annotations)
        known = self.claims.get(name)
        if most < ALL or known is None or known.allocation is not None:
            return False
        self.grant(known, allocation, user)
        return True

    def revoke(self, action: RevokeClaims) -> None:
        for ref in action.claims:
            known = self.claims.get(ref.name)
            if known is not None and known.uid == ref.uid and known.is_for(action.pod.uid):
                self.put(replace(known, reserved_for=()))

    def find_out(self, action: RevokeClaims) -> ClaimsRevoked:
        """Which claims have devices. The others change, so that no late write fits any more."""
        held = []
        for ref in action.claims:
            known = self.claims.get(ref.name)
            if known is None or known.uid != ref.uid:
                continue
            if known.allocation is None:
                self.put(known)
            else:
                held.append(replace(ref, resource_version=known.resource_version))
        if action.deletes_special:
            self.remove(f"{action.pod.name}-{action.pod.uid}")
        return ClaimsRevoked(action.pod.uid, tuple(held))

    def release(self, action: ReleaseClaim) -> bool:
        ref = action.release.claim
        known = self.claims.get(ref.name)
        if known is None or known.uid != ref.uid:
            return action.release.deletes
        if action.release.deletes:
            self.remove(ref.name)
        elif known.resource_version == ref.resource_version:
            self.put(known.deallocated())
        else:
            return False
        return True

    @rule()
    def restart(self) -> None:
        """The scheduler is killed; another one starts, and sees the newest of everything."""
        self.start()

    @invariant()
    def no_device_is_given_away_twice(self) -> None:
        given = Counter(
            (result.driver, result.pool, result.device)
            for each in self.claims.values()
            if each.allocation is not None
            for result in each.allocation.results
        )
        assert not given or max(given.values()) == 1, given

    @invariant()
    def rows_see_what_claims_hold(self) -> None:
        check(self.engine.cluster)

    def teardown(self) -> None:
        """When nothing goes wrong any more, all pods for which there are devices are bound."""
        # Each time takes a pod one step further: stale claims go, then it is decided and written.
        for _ in range(8):
            self.see()
            while self.asked:
                self.carry_out(0, heard=True, writes=ALL)
            while self.untold:
                self.tell()
            self.see()
            self.decide(12.0)
        bound = [each.name for each in self.pods.values() if each.node_name]
        assert len(bound) == min(len(self.pods), DEVICES), (bound, sorted(self.pods))
        use = self.engine.cluster.nodes.devices.use
        held = sum(len(use.held(("gpu.example.com", name))) for name in NODES)
        holders = [each.name for each in self.claims.values() if each.allocation is not None]
        assert held == len(holders) == len(bound), (held, holders, bound)


TestDevices = Devices.TestCase
# A search looks longer, and at longer stories.
_SEARCHES = settings.get_current_profile_name() == "search"
TestDevices.settings = settings(
    max_examples=1_000 if _SEARCHES else 12,
    stateful_step_count=50 if _SEARCHES else 25,
    suppress_health_check=[*settings().suppress_health_check, HealthCheck.filter_too_much],
)


def test_devices_in_doubt_are_kept_until_somebody_knows_of_them() -> None:
    """The answer is lost, and the watch lags until the pod is tried again."""
    machine = Devices()
    machine.begin()
    machine.decide(0.0)
    machine.lose_answers("p1")
    machine.decide(2.0)
    machine.see_one()
    machine.decide(0.0)
    machine.lose_answers("p0")
    machine.no_device_is_given_away_twice()
    machine.teardown()


def test_a_write_that_comes_late_finds_a_claim_that_has_changed() -> None:
    machine = Devices()
    machine.add("p0")
    machine.see()
    machine.decide(0.0)
    machine.give_up(0)
    for name in ("p1", "p2", "p3"):
        # What was asked for before is carried out; then there is one more pod.
        machine.decide(0.0)
        while machine.asked:
            machine.carry_out(0, heard=True, writes=ALL)
        while machine.untold:
            machine.tell()
        machine.add(name)
        machine.see()
    machine.come_late(0)
    machine.no_device_is_given_away_twice()
    machine.teardown()


def test_a_claim_that_took_the_place_of_another_unseen_wakes_its_pod() -> None:
    machine = Devices()
    machine.begin()
    machine.see()
    machine.delete("p0")
    machine.add("p0")
    machine.miss()
    machine.teardown()
