"""Whatever happens, no device is held twice, none is lost, and rows see what claims hold.

The API server of this machine keeps claims. Writes are carried out late, twice, or not at all,
and the scheduler may not hear of it; the scheduler may also be started anew at any time.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from mooring.cluster import check
from mooring.config import default
from mooring.documents.conversion import to_struct
from mooring.engine import Engine
from mooring.engine.actions import BindPod, ReleaseClaim, RevokeClaims, WriteClaims
from mooring.engine.events import Applied, BindingFailed, Bound, ClaimsWritten, Removed
from mooring.framework.profile import known_plugins
from mooring.objects.pod import Pod
from mooring.objects.resource_claim import Allocation, ClaimUser, ResourceClaim
from mooring.plugins import REGISTRY
from tests.builders import node, pod
from tests.device_builders import claim, device_class, resource_slice

NODES = ("n1", "n2")
NAMES = [f"p{number}" for number in range(6)]
names = st.sampled_from(NAMES)


class Devices(RuleBasedStateMachine):
    """Pods with a claim each come, go and get devices, with all that can go wrong."""

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
        self.start()

    def start(self) -> None:
        """A scheduler starts, and sees everything as it is."""
        self.engine = Engine(default(known_plugins(REGISTRY)), REGISTRY)
        self.asked, self.unseen = [], []
        there: list[Any] = [device_class(), *(node(name) for name in NODES)]
        there += [resource_slice(name, 2) for name in NODES]
        for each in (*there, *self.claims.values(), *self.pods.values()):
            self.engine.handle(Applied(each), self.now)

    @initialize()
    def begin(self) -> None:
        self.add("p0")

    def put(self, item: ResourceClaim) -> None:
        self.version += 1
        item = replace(item, resource_version=str(self.version))
        self.claims[item.name] = item
        self.unseen.append(Applied(item))

    @rule(name=names)
    def add(self, name: str) -> None:
        if name in self.pods:
            return
        owner = [{"kind": "Pod", "name": name, "uid": f"default/{name}", "controller": True}]
        self.put(claim(name, metadata={"ownerReferences": owner, "uid": f"c{self.version}"}))
        spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
        made = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]}
        self.pods[name] = pod(name, spec=spec, status=made)
        self.engine.handle(Applied(self.pods[name]), self.now)

    @rule(name=names)
    def delete(self, name: str) -> None:
        """A pod goes, and its claim with it, as the garbage collector does."""
        gone = self.pods.pop(name, None)
        if gone is not None:
            self.engine.handle(Removed(gone), self.now)
            self.unseen.append(Removed(self.claims.pop(name)))

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

    @precondition(lambda self: self.asked)
    @rule(at=st.integers(0, 20), told=st.booleans(), done=st.booleans())
    def carry_out(self, at: int, told: bool, done: bool) -> None:
        """Something is carried out, or not, and the scheduler hears of it, or of a failure."""
        action = self.asked.pop(at % len(self.asked))
        match action:
            case WriteClaims():
                uid = action.pod.uid
                well = done and self.write(action)
                self.engine.handle(
                    ClaimsWritten(uid) if well and told else BindingFailed(uid, "no"), self.now
                )
            case BindPod() if action.pod.name in self.pods:
                self.pods[action.pod.name] = self.pods[action.pod.name].on(action.node)
                self.engine.handle(Bound(action.pod.uid), self.now)
                self.engine.handle(Applied(self.pods[action.pod.name]), self.now)
            case RevokeClaims() if done:
                for ref in action.claims:
                    self.revoke(ref.name, ref.uid, action.pod.uid)
            case ReleaseClaim() if done:
                self.release(action)

    @rule(name=names)
    def lose_answers(self, name: str) -> None:
        """Claims are written, nobody hears of it, and another pod comes before that is seen."""
        writes = [each for each in self.asked if isinstance(each, WriteClaims)]
        self.asked = [each for each in self.asked if each not in writes]
        for each in writes:
            self.write(each)
            self.engine.handle(BindingFailed(each.pod.uid, "lost"), self.now)
        self.add(name)
        # The new claim is seen before what was written, as another watch may tell it.
        for event in [each for each in self.unseen if each.object.name == name]:
            self.engine.handle(event, self.now)
            self.unseen.remove(event)
        self.decide(0.0)

    def write(self, action: WriteClaims) -> bool:
        """As an API server does: only what was read in its newest form is written."""
        for grant in action.writes.grants:
            known = self.claims.get(grant.claim.name)
            if known is None or known.resource_version != grant.claim.resource_version:
                return False
            made = None if grant.allocation is None else to_struct(Allocation, grant.allocation)
            user = ClaimUser(resource="pods", name=action.pod.name, uid=action.pod.uid)
            self.put(known.granted(made, user))
        return True

    def revoke(self, name: str, uid: str, pod_uid: str) -> None:
        known = self.claims.get(name)
        if known is not None and known.uid == uid and known.is_for(pod_uid):
            self.put(replace(known, reserved_for=()))

    def release(self, action: ReleaseClaim) -> None:
        ref = action.release.claim
        known = self.claims.get(ref.name)
        if known is not None and known.resource_version == ref.resource_version:
            self.put(known.deallocated())

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
        """Once everything is carried out and seen, only claims of pods hold devices."""
        for _ in range(6):
            self.see()
            while self.asked:
                self.carry_out(0, told=True, done=True)
            self.see()
            self.decide(30.0)
        self.see()
        use = self.engine.cluster.nodes.devices.use
        held = {name for key in NODES for name in use.held(("gpu.example.com", key))}
        given = [
            f"{result.pool}/{result.device}"
            for each in self.claims.values()
            if each.allocation is not None
            for result in each.allocation.results
        ]
        kept = sum(len(use.held(("gpu.example.com", key))) for key in NODES)
        assert kept == len(given), (held, given)


TestDevices = Devices.TestCase
TestDevices.settings = settings(
    max_examples=12,
    derandomize=True,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
