"""No plugin ever sees first-class and extended resources apart, whatever happens in between.

Every pod here asks for as much cpu as it uses of two extended resources, one in plain Python and
one in columns. So whoever looks must find the same three sums on every row: at every extension
point, in hints, in handles, on live rows and on those of a what-if.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Self

import hypothesis.strategies as st
import numpy as np
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from numpy.typing import NDArray

from moorage.cluster import HandleRegistry, Nodes, NodeView, Rows, check
from moorage.engine.actions import Action, BindPod, EvictPod, Report
from moorage.engine.events import Applied, BindingFailed, Bound, Evicted, EvictionFailed, Removed
from moorage.framework.attempt import Failed
from moorage.framework.plugin import (
    Filter,
    NoRemedy,
    Permit,
    PostFilter,
    PreFilter,
    PreScore,
    Reserve,
    Score,
    Scores,
    Sign,
)
from moorage.framework.profile import Profile
from moorage.framework.status import Code, Reason
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action as Happened, Resource, Wakeup, on
from moorage.objects.custom import CustomObject
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from tests.builders import node
from tests.engine.driver import engine
from tests.extended_fakes import SLOTS, ColumnsHandle, Slots, SlotsHandle, slots, status, using

IN_COLUMNS = f"{SLOTS}-1"
NAMES = ("a", "b", "c")
FULL = Reason("no slots")


class Looking(SlotsHandle):
    """A handle that looks at the cluster when it hears of an object."""

    def read(self, item: CustomObject) -> tuple[str, Slots]:
        Spy.look_at_cluster()
        return super().read(item)


class Spy(
    PreFilter[Pod], Filter[Pod], PreScore[Pod], Score[Pod], PostFilter, Reserve, Permit, Sign
):
    """Looks at all rows whenever it is called, and takes part in the decision by slots."""

    name = "Spy"
    faults: ClassVar[list[str]] = []
    looks: ClassVar[int] = 0
    cluster: ClassVar[Any] = None

    @classmethod
    def create_sharing(cls, args: Any, gates: Mapping[str, bool], handles: HandleRegistry) -> Self:
        handles.register(SLOTS, Looking)
        handles.register(IN_COLUMNS, ColumnsHandle)
        return cls()

    @classmethod
    def look_at_cluster(cls) -> None:
        if cls.cluster is not None:
            cls.look(cls.cluster.nodes)

    @classmethod
    def look(cls, nodes: Nodes) -> None:
        cls.looks += 1
        columns = nodes.extended.columns(IN_COLUMNS)
        assert columns is not None
        for row in nodes.rows.tolist():
            plain = NodeView(nodes, row).extended(SLOTS)
            if plain is None:
                assert not columns.present[row]
                continue
            sums = (
                int(nodes.requested[nodes.resources["cpu"], row]),
                plain.figures()["used"],
                int(columns["used"][row]),
            )
            if len(set(sums)) > 1:
                cls.faults.append(f"{nodes.name(row)}: {sums}")

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        self.look(nodes)
        return slots(pod)

    def pre_filter(self, pod: Pod, nodes: Nodes) -> Pod:
        self.look(nodes)
        return pod

    def add_pod(self, prepared: Pod, nodes: Nodes, pod: Pod, row: int) -> Pod:
        self.look(nodes)
        return prepared

    def remove_pod(self, prepared: Pod, nodes: Nodes, pod: Pod, row: int) -> Pod:
        self.look(nodes)
        return prepared

    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        self.look(nodes)
        views = (NodeView(nodes, row).extended(SLOTS) for row in nodes.numbers(rows))
        full = [each is None or not each.admit_pod(prepared).fits for each in views]
        return Verdict.rejecting(np.array(full, np.bool_), FULL)

    def pre_score(self, pod: Pod, nodes: Nodes, rows: NDArray[np.intp]) -> Pod:
        self.look(nodes)
        return pod

    def score(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Scores:
        self.look(nodes)
        return np.zeros(nodes.count(rows), np.int64)

    def post_filter(self, pod: Pod, failed: Failed, nodes: Nodes, profile: Profile) -> NoRemedy:
        self.look(nodes)
        return NoRemedy(Code.UNSCHEDULABLE, ())

    def reserve(self, pod: Pod, nodes: Nodes, row: int) -> None:
        self.look(nodes)

    def unreserve(self, pod: Pod, nodes: Nodes, node_name: str) -> None:
        self.look(nodes)

    def permit(self, pod: Pod, node_name: str) -> None:
        self.look_at_cluster()

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (on(Resource.ANYTHING, Happened.ALL, self._hint),)

    def _hint(self, pod: Pod, old: object, new: object) -> bool:
        self.look_at_cluster()
        return True


class Machine(RuleBasedStateMachine):
    """Everything that can happen, in any order."""

    def __init__(self) -> None:
        super().__init__()
        Spy.faults, Spy.looks, Spy.cluster = [], 0, None
        self.engine = engine(Spy)
        Spy.cluster = self.engine.cluster
        self.now = 0.0
        self.number = 0
        self.nodes: dict[str, Node] = {}
        self.statuses: dict[str, int] = {}
        self.pods: dict[str, Pod] = {}
        self.asked: list[Action] = []

    def tell(self, event: Any) -> None:
        self.engine.handle(event, self.now)

    # Nodes and what is told of them

    @rule(
        name=st.sampled_from(NAMES), cpu=st.sampled_from(["4m", "9m"]), zone=st.sampled_from("xy")
    )
    def put_node(self, name: str, cpu: str, zone: str) -> None:
        self.nodes[name] = node(name, cpu=cpu, labels={"zone": zone})
        self.tell(Applied(self.nodes[name]))

    @rule(name=st.sampled_from(NAMES))
    def remove_node(self, name: str) -> None:
        if name in self.nodes:
            self.tell(Removed(self.nodes.pop(name)))

    @rule(name=st.sampled_from(NAMES), count=st.integers(0, 9))
    def set_capacity(self, name: str, count: int) -> None:
        self.statuses[name] = count
        self.tell(Applied(status(name, count)))

    @rule(name=st.sampled_from(NAMES))
    def malformed(self, name: str) -> None:
        self.tell(Applied(status(name, 1, node="")))

    @rule(name=st.sampled_from(NAMES))
    def remove_status(self, name: str) -> None:
        if name in self.statuses:
            self.tell(Removed(status(name, self.statuses.pop(name))))

    # Pods

    def make(self, count: int, priority: int, on: str = "") -> Pod:
        self.number += 1
        name = f"p{self.number}"
        made = using(name, count, on, cpu=f"{count}m", spec={"priority": priority})
        self.pods[made.uid] = made
        return made

    @rule(counts=st.lists(st.integers(1, 4), min_size=1, max_size=3), priority=st.integers(0, 2))
    def create(self, counts: list[int], priority: int) -> None:
        for count in counts:
            self.tell(Applied(self.make(count, priority)))

    @rule(name=st.sampled_from(NAMES), count=st.integers(1, 4))
    def run_elsewhere(self, name: str, count: int) -> None:
        self.tell(Applied(self.make(count, 0, name)))

    @rule(name=st.sampled_from(NAMES))
    def crowd_out(self, name: str) -> None:
        """An important pod comes to a full node: in thought, others leave it and return."""
        self.put_node(name, "9m", "x")
        self.set_capacity(name, 9)
        for count in (3, 2, 1):
            self.tell(Applied(self.make(count, 0, name)))
        self.tell(Applied(self.make(4, 2)))
        self.step(1, 0.0)

    @rule(data=st.data(), name=st.sampled_from(NAMES))
    @precondition(lambda self: self.pods)
    def bind_elsewhere(self, data: st.DataObject, name: str) -> None:
        """Somebody else binds a pod, perhaps one that is assumed on another node."""
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        if not self.pods[uid].node_name:
            self.pods[uid] = self.pods[uid].on(name)
            self.tell(Applied(self.pods[uid]))

    @rule(data=st.data())
    @precondition(lambda self: self.pods)
    def delete(self, data: st.DataObject) -> None:
        self.tell(Removed(self.pods.pop(data.draw(st.sampled_from(sorted(self.pods))))))

    # Deciding and acting

    @rule(budget=st.integers(1, 4), later=st.sampled_from([0.0, 2.0, 60.0]))
    def step(self, budget: int, later: float) -> None:
        self.now += later
        actions = self.engine.step(self.now, budget)
        self.asked += [each for each in actions if isinstance(each, BindPod | EvictPod)]
        reports = [each.message for each in actions if isinstance(each, Report)]
        assert all("spec.nodeName: is required" in text for text in reports)

    @rule(data=st.data(), succeeds=st.booleans(), first=st.booleans())
    @precondition(lambda self: self.asked)
    def perform(self, data: st.DataObject, succeeds: bool, first: bool) -> None:
        action = self.asked.pop(data.draw(st.integers(0, len(self.asked) - 1)))
        match action:
            case BindPod(pod, name):
                self._bind(pod.uid, name, succeeds=succeeds, first=first)
            case EvictPod(pod, preemptor) if succeeds and pod.uid in self.pods:
                self.tell(Evicted(pod.uid, preemptor.uid))
                self.tell(Removed(self.pods.pop(pod.uid)))
            case EvictPod(pod, preemptor):
                self.tell(EvictionFailed(pod.uid, preemptor.uid, "no"))

    def _bind(self, uid: str, name: str, *, succeeds: bool, first: bool) -> None:
        if not succeeds or uid not in self.pods or self.pods[uid].node_name:
            self.tell(BindingFailed(uid, "no"))
            return
        self.pods[uid] = self.pods[uid].on(name)
        outcome = [Bound(uid), Applied(self.pods[uid])]
        for event in outcome if first else reversed(outcome):
            self.tell(event)

    @invariant()
    def nobody_sees_them_apart(self) -> None:
        Spy.look_at_cluster()
        assert not Spy.faults
        check(self.engine.cluster)

    def teardown(self) -> None:
        Spy.cluster = None


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=30, stateful_step_count=40)
