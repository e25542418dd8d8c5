"""Whatever is done to a queue, it agrees with a plain model, and no pod is lost."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

import hypothesis.strategies as st
import msgspec
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from moorage.framework.status import Rejected, unresolvable
from moorage.framework.wakeups import Action, ClusterEvent, Resource, on
from moorage.objects.pod import Pod
from moorage.queue import Backoff, Entity, FailedAttempt
from tests.builders import pod
from tests.queue.driver import PROFILE, make_queue

PLUGINS = ("Fit", "Ports", "Gate")
RESOURCES = {
    "Fit": Resource.CSI_NODE,
    "Ports": Resource.CSI_DRIVER,
    "Gate": Resource.STORAGE_CLASS,
}
#: One event per plugin, and one that nobody listens to.
EVENTS = {name: ClusterEvent(kind, Action.ADD, name) for name, kind in RESOURCES.items()}
EVENTS["nobody"] = ClusterEvent(Resource.NODE, Action.DELETE, "nobody")
NAMES = st.sampled_from("abcdef")
UNSCHEDULABLE_PLACES = ("unschedulable", "gated")


@dataclass
class Known:
    """What the model knows of a pod."""

    pod: Pod
    place: str
    timestamp: float
    arrival: int
    errors: int = 0
    rejected: int = 0
    waking_plugins: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    gated_by: str = ""
    flushed: float = 0.0
    missed: list[str] | None = None

    @property
    def order(self) -> tuple[int, float, int]:
        return -self.pod.priority, self.timestamp, self.arrival

    @property
    def expiry(self) -> int:
        failures = self.errors or self.rejected
        seconds = min([1, 2, 4, 8, 10][min(failures, 5) - 1], 10)
        return floor(self.timestamp + seconds) if failures else -1


class Model:
    """The rules of the queue over one dict, looking at every pod each time."""

    def __init__(self, pops_early: bool) -> None:
        self.pods: dict[str, Known] = {}
        self.closed_by = ""
        self.arrivals = 0
        self.pops_early = pops_early

    def at(self, *places: str) -> list[Known]:
        return [each for each in self.pods.values() if each.place in places]

    def add(self, new: Pod, now: float) -> None:
        self.pods = {
            uid: each
            for uid, each in self.pods.items()
            if each.pod.key != new.key or each.place == "in flight"
        }
        self.arrivals += 1
        self.pods[new.uid] = Known(new, "nowhere", now, self.arrivals)
        self.make_active(self.pods[new.uid])

    def admits(self, known: Known) -> bool:
        known.gated_by = self.closed_by
        if self.closed_by:
            known.waking_plugins |= {self.closed_by}
            known.place = "gated"
        return not self.closed_by

    def make_active(self, known: Known) -> None:
        asked = known.place.endswith("backoff") and self.pops_early
        if asked or self.admits(known):
            known.place = "active"

    def wake(self, known: Known, now: float) -> None:
        if known.expiry < floor(now):
            self.make_active(known)
        elif not self.pops_early or self.admits(known):
            known.place = "backoff" if known.waking_plugins | known.pending else "error backoff"

    def told(self, known: Known, event: str, now: float) -> None:
        if event in known.pending:
            self.make_active(known)
        elif event in known.waking_plugins:
            self.wake(known, now)

    def hear(self, event: str, now: float) -> None:
        for known in self.at("unschedulable"):
            self.told(known, event, now)
        for known in self.at("gated"):
            if known.gated_by == event:
                self.told(known, event, now)
        if event != "nobody":
            self.remember(event)

    def remember(self, event: str) -> None:
        for known in self.at("in flight"):
            assert known.missed is not None
            known.missed.append(event)

    def flush(self, now: float) -> None:
        for known in self.at("backoff", "error backoff"):
            if known.expiry < floor(now):
                self.make_active(known)
        late = [
            known
            for known in self.at(*UNSCHEDULABLE_PLACES)
            if floor(now / 30) * 30 - max(known.timestamp, known.flushed) > 300
        ]
        for known in late:
            known.flushed = now
            self.wake(known, now)
        if late:
            self.remember("*")

    def pop(self, now: float) -> Known | None:
        self.flush(now)
        ready = sorted(self.at("active"), key=lambda each: each.order)
        if not ready and self.pops_early:
            ready = sorted(self.at("backoff"), key=lambda each: (each.expiry, each.order))
        if not ready:
            return None
        known = ready[0]
        known.place, known.gated_by, known.missed = "in flight", "", []
        known.waking_plugins = known.pending = frozenset()
        return known

    def give_back(
        self, known: Known, waking_plugins: frozenset[str], pending: frozenset[str], now: float
    ) -> None:
        missed = set(known.missed or ())
        self.arrivals += 1
        known.timestamp, known.arrival, known.missed = now, self.arrivals, None
        known.waking_plugins, known.pending, known.place = waking_plugins, pending, "unschedulable"
        if waking_plugins | pending:
            known.rejected, known.errors = known.rejected + 1, 0
        else:
            known.errors += 1
        if missed & pending:
            self.make_active(known)
        elif "*" in missed or missed & waking_plugins or not waking_plugins | pending:
            self.wake(known, now)


class QueueMachine(RuleBasedStateMachine):
    """Does everything that can be done to a queue, to the queue and to its model."""

    @initialize(pops_early=st.sampled_from([True, True, False]))
    def start(self, pops_early: bool) -> None:
        self.now = 1000.0
        self.model = Model(pops_early)
        self.flying: dict[str, Entity] = {}
        self.born = 0
        self.queue = make_queue(
            admit=self.admit,
            wakeups={PROFILE: {name: (on(RESOURCES[name], Action.ADD),) for name in PLUGINS}},
            backoff=Backoff(pops_early=pops_early),
        )
        for name in "abcd":
            self.add(name, priority=1)

    def admit(self, of: Pod, first: str) -> tuple[str, Rejected] | None:
        by = self.model.closed_by
        return (by, unresolvable("closed")) if by else None

    @rule(seconds=st.sampled_from([0.3, 0.3, 1.0, 1.0, 2.5, 15.0, 200.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(by=st.sampled_from(["", "", "", "Gate", "Fit"]))
    def close(self, by: str) -> None:
        self.model.closed_by = by

    @rule(name=NAMES, priority=st.integers(0, 2))
    def add(self, name: str, priority: int) -> None:
        self.born += 1
        new = pod(name, spec={"priority": priority}, metadata={"uid": f"{name}-{self.born}"})
        self.queue.add(new, self.now)
        self.model.add(new, self.now)

    @rule(data=st.data(), priority=st.integers(0, 2))
    @precondition(lambda self: self.model.pods)
    def update(self, data: st.DataObject, priority: int) -> None:
        known = data.draw(st.sampled_from(list(self.model.pods.values())))
        spec = msgspec.structs.replace(known.pod.spec, priority=priority)
        new = msgspec.structs.replace(known.pod, spec=spec)
        self.queue.update(known.pod, new, self.now)
        if known.place != "in flight":
            known.pod = new

    @rule(data=st.data())
    @precondition(lambda self: self.model.pods)
    def delete(self, data: st.DataObject) -> None:
        known = data.draw(st.sampled_from(list(self.model.pods.values())))
        self.queue.delete(known.pod)
        if known.place != "in flight":
            del self.model.pods[known.pod.uid]

    @rule(times=st.integers(1, 4))
    def pop_some(self, times: int) -> None:
        for _ in range(times):
            self.pop()

    def pop(self) -> None:
        queued, known = self.queue.pop(self.now), self.model.pop(self.now)
        assert (queued and queued.pod) == (known and known.pod)
        if queued:
            self.flying[queued.pod.uid] = queued

    @rule(data=st.data())
    @precondition(lambda self: self.flying)
    def done(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(list(self.flying)))
        self.queue.done(uid)
        del self.flying[uid], self.model.pods[uid]

    @rule(
        data=st.data(),
        rejectors=st.frozensets(st.sampled_from(PLUGINS), max_size=2),
        pending=st.frozensets(st.sampled_from(PLUGINS), max_size=1),
    )
    @precondition(lambda self: self.flying)
    def give_back(
        self, data: st.DataObject, rejectors: frozenset[str], pending: frozenset[str]
    ) -> None:
        uid = data.draw(st.sampled_from(list(self.flying)))
        self.return_of(uid, rejectors, pending)

    @rule(
        rejectors=st.frozensets(st.sampled_from(PLUGINS), max_size=1),
        meanwhile=st.sampled_from(sorted(EVENTS)),
        backwards=st.booleans(),
    )
    def fail_all(self, rejectors: frozenset[str], meanwhile: str, backwards: bool) -> None:
        for _ in range(len(self.model.at("active"))):
            self.pop()
        self.wake(meanwhile)
        for uid in sorted(self.flying, reverse=backwards):
            self.return_of(uid, rejectors, frozenset())

    def return_of(self, uid: str, rejectors: frozenset[str], pending: frozenset[str]) -> None:
        queued = self.flying.pop(uid)
        attempt = FailedAttempt(rejectors, pending)
        self.queue.give_back(queued, pod=queued.pod, attempt=attempt, now=self.now)
        known = self.model.pods[uid]
        names = [each.pod.key for each in self.model.pods.values() if each.place != "in flight"]
        if known.pod.key in names:
            del self.model.pods[uid]
        else:
            self.model.give_back(known, rejectors, pending, self.now)

    @rule(event=st.sampled_from(sorted(EVENTS)))
    def wake(self, event: str) -> None:
        self.queue.wake(EVENTS[event], None, None, self.now)
        self.model.hear(event, self.now)

    @rule(data=st.data())
    @precondition(lambda self: self.model.pods)
    def activate(self, data: st.DataObject) -> None:
        known = data.draw(st.sampled_from(list(self.model.pods.values())))
        self.queue.activate(known.pod.uid, self.now)
        if known.missed is not None:
            known.missed.append("*")
        elif known.place != "active":
            self.model.make_active(known)

    @rule()
    def flush(self) -> None:
        self.queue.flush(self.now)
        self.model.flush(self.now)

    @invariant()
    def each_pod_is_where_the_model_says(self) -> None:
        self.queue.check()
        found = {each.pod.uid: str(each.place) for each in (*self.queue, *self.queue.in_flight)}
        assert found == {uid: known.place for uid, known in self.model.pods.items()}

    @invariant()
    def sizes_agree(self) -> None:
        sizes = {
            "active": len(self.model.at("active")),
            "backoff": len(self.model.at("backoff", "error backoff")),
            "unschedulable": len(self.model.at("unschedulable")),
            "gated": len(self.model.at("gated")),
        }
        assert self.queue.sizes() == sizes
        assert len(self.queue) == sum(sizes.values())

    @invariant()
    def time_may_jump_to_the_next_flush(self) -> None:
        moment = self.queue.next_flush(self.now)
        waiting = [each for each in self.model.pods.values() if each.place != "in flight"]
        assert (moment is None) == (not waiting)
        if moment is not None and moment > self.now:
            ends = [each.expiry + 1.0 for each in self.model.at("backoff", "error backoff")]
            ends += [self.swept_at(each) for each in self.model.at(*UNSCHEDULABLE_PLACES)]
            assert moment == min(ends)

    def teardown(self) -> None:
        for _ in range(len(self.queue)):
            self.pop()

    def swept_at(self, known: Known) -> float:
        due = max(known.timestamp, known.flushed) + 300
        return float((due // 30 + 1) * 30)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=80, stateful_step_count=50)
