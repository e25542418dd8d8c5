"""Gangs in a cluster where anything happens in any order: never placed in part, none forgotten."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from moorage.cluster import check
from moorage.engine.actions import Action, BindPod, EvictPod
from moorage.engine.events import BindingFailed
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.testing.builders import node, pod
from moorage.testing.driver import Driver
from tests.engine.gangs import drive_gangs, gang, members

_NODES = 3
_GANGS = 3
_HIGH = 10
_GATE = {"schedulingGates": [{"name": "quota"}]}


class GangMachine:
    """Gangs, single pods and nodes that come, change and go while bindings are under way."""

    def __init__(self) -> None:
        self.minimum: dict[str, int] = {}
        self.racked: set[str] = set()
        #: Groups that were deleted while their pods are there.
        self.gone: set[str] = set()
        self.cordoned: set[int] = set()
        self.under_way: list[BindPod | EvictPod] = []
        #: Gangs that lost members after they had started, or need more than they did then.
        self.lost: set[str] = set()
        self._made = 0
        self.driver: Driver = drive_gangs(*self._nodes())

    def _nodes(self) -> list[Node]:
        return [self._node(number) for number in range(_NODES)]

    def _node(self, number: int) -> Node:
        spec = {"unschedulable": number in self.cordoned}
        return node(f"n{number}", cpu=3, labels={"rack": f"r{number % 2}"}, spec=spec)

    def _group(self, name: str) -> PodGroup:
        key = "rack" if name in self.racked else ""
        return gang(name, self.minimum[name], topology_key=key)

    def _placed(self, name: str) -> int:
        groups = self.driver.engine.cluster.groups
        return len(groups.placed(("scheduling.k8s.io", f"default/{name}")))

    # What happens

    def come(self, name: str, size: int) -> None:
        """A gang comes with one pod less than it needs, or with enough."""
        if name not in self.minimum:
            self.minimum[name] = max(1, size - 1)
            if size % 2:
                self.racked.add(name)
            self.driver.apply(self._group(name))
        for _ in range(size - 1):
            self.join(name, size)

    def join(self, name: str, _: int) -> None:
        """One more member, while the gang waits, is decided or runs."""
        self._made += 1
        self.driver.apply(*members(name, 1, start=self._made, cpu=1))

    def join_gated(self, name: str, _: int) -> None:
        """One more member that must not be tried yet, and holds back the others."""
        self._made += 1
        self.driver.apply(*members(name, 1, start=self._made, cpu=1, spec=_GATE))

    def ungate(self, name: str, _: int) -> None:
        for known in self._pods_of(name):
            if known.spec.scheduling_gates:
                self.driver.apply(*members(name, 1, start=_number(known), cpu=1))

    def change_minimum(self, name: str, size: int) -> None:
        if name not in self.minimum:
            return
        if size > self.minimum[name]:
            self.lost.add(name)
        self.minimum[name] = size
        if name not in self.gone:
            self.driver.apply(self._group(name))

    def drop_group(self, name: str, _: int) -> None:
        if name in self.minimum and name not in self.gone:
            self.gone.add(name)
            self.driver.remove(self._group(name))

    def restore_group(self, name: str, _: int) -> None:
        if name in self.gone:
            self.gone.discard(name)
            self.driver.apply(self._group(name))

    def delete(self, name: str, _: int) -> None:
        for known in self._pods_of(name)[:1]:
            self._forget(known)

    def terminate(self, name: str, _: int) -> None:
        """A member begins to go, and goes later."""
        for known in self._pods_of(name)[:1]:
            self.lost.add(name)
            self.driver.apply(replace(known, terminating=True))

    def cordon(self, _: str, size: int) -> None:
        self.cordoned ^= {size % _NODES}
        self.driver.apply(self._node(size % _NODES))

    def lose_node(self, _: str, size: int) -> None:
        """A node goes with its pods, and is back at once."""
        number = size % _NODES
        for known in list(self.driver.pods.values()):
            if self.driver.node_of(known.name) == f"n{number}":
                self._forget(known)
        self.driver.remove(self._node(number))
        self.driver.apply(self._node(number))

    def single(self, _: str, size: int) -> None:
        """A pod of its own comes, which may evict members."""
        self._made += 1
        priority = _HIGH if size % 2 else 0
        self.driver.apply(pod(f"single-{self._made}", cpu=1, spec={"priority": priority}))

    def step(self, _: str, size: int) -> None:
        self._take(self.driver.step(size))

    def perform(self, _: str, __: int) -> None:
        if self.under_way:
            action = self.under_way.pop(0)
            if isinstance(action, BindPod):
                self.driver.bind([action])
            else:
                self.lost.add(_gang_of(action.pod.name))
                self._drop_actions(action.pod.uid)
                self.driver.evict([action])

    def fail(self, _: str, __: int) -> None:
        if self.under_way and isinstance(self.under_way[0], BindPod):
            failed = self.under_way.pop(0)
            self.lost.add(_gang_of(failed.pod.name))
            self.driver.tell(BindingFailed(failed.pod.uid, "no"))

    def wait(self, _: str, size: int) -> None:
        self.driver.now += size

    def restart(self, _: str, __: int) -> None:
        """Another scheduler takes over: it knows what is bound, and nothing else."""
        before = self.driver
        self.lost |= {_gang_of(each.pod.name) for each in self.under_way}
        self.under_way = []
        self.driver = drive_gangs(*self._nodes())
        self.driver.now = before.now
        self.driver.apply(*(self._group(name) for name in self.minimum if name not in self.gone))
        self.driver.apply(*before.pods.values())

    def _pods_of(self, name: str) -> list[Pod]:
        return [each for each in self.driver.pods.values() if _gang_of(each.name) == name]

    def _forget(self, known: Pod) -> None:
        if self._placed(_gang_of(known.name)):
            self.lost.add(_gang_of(known.name))
        self._drop_actions(known.uid)
        self.driver.remove(known)

    def _drop_actions(self, uid: str) -> None:
        self.under_way = [each for each in self.under_way if each.pod.uid != uid]

    def _take(self, actions: list[Action]) -> None:
        self.under_way += [each for each in actions if isinstance(each, BindPod | EvictPod)]

    # What must hold

    def check(self) -> None:
        """No gang that has lost nothing is placed in part."""
        check(self.driver.engine.cluster)
        self.driver.engine.queue.check()
        for name, needed in self.minimum.items():
            count = self._placed(name)
            assert count == 0 or count >= needed or name in self.lost, f"{name} has {count}"

    def check_end(self) -> None:
        """With room for all, all are placed but members of gangs that have too few."""
        self._make_whole()
        self._make_room()
        for _ in range(15):
            self.driver.settle()
            self.driver.now += 30
        for known in self.driver.pods.values():
            name = _gang_of(known.name)
            count = len(self._pods_of(name))
            is_short = name in self.minimum and count < self.minimum[name]
            assert known.node_name or is_short, f"{known.name} of {count} waits for ever"

    def _make_whole(self) -> None:
        """Ends what is under way, and what holds gangs back."""
        while self.under_way:
            self.perform("", 0)
        for name in list(self.gone):
            self.restore_group(name, 0)
        for name in self.minimum:
            self.ungate(name, 0)
        for known in list(self.driver.pods.values()):
            if known.terminating:
                self._forget(known)

    def _make_room(self) -> None:
        self.cordoned.clear()
        self.driver.apply(*self._nodes())
        racks = ("r0", "r1")
        self.driver.apply(*(node(f"in-{rack}", cpu=99, labels={"rack": rack}) for rack in racks))


def _gang_of(name: str) -> str:
    return name.partition("-")[0]


def _number(member: Pod) -> int:
    return int(member.name.partition("-")[2])


Deed = Callable[[GangMachine, str, int], None]

_DEEDS: list[Deed] = [
    GangMachine.come,
    GangMachine.join,
    GangMachine.join_gated,
    GangMachine.ungate,
    GangMachine.change_minimum,
    GangMachine.drop_group,
    GangMachine.restore_group,
    GangMachine.delete,
    GangMachine.terminate,
    GangMachine.cordon,
    GangMachine.lose_node,
    GangMachine.single,
    *[GangMachine.step] * 4,
    *[GangMachine.perform] * 3,
    GangMachine.fail,
    GangMachine.wait,
    GangMachine.restart,
]


_NAMES = st.integers(0, _GANGS - 1).map("g{}".format)
_SIZES = st.integers(1, 5)


@settings(max_examples=40)
@given(
    st.lists(_SIZES, min_size=_GANGS, max_size=_GANGS),
    st.lists(st.tuples(st.sampled_from(_DEEDS), _NAMES, _SIZES), min_size=8, max_size=30),
)
def test_no_gang_is_placed_in_part_and_none_is_forgotten(
    sizes: list[int], deeds: list[tuple[Deed, str, int]]
) -> None:
    machine = GangMachine()
    for number, size in enumerate(sizes):
        machine.come(f"g{number}", size)
        machine.step("", size % 2)
    for deed, name, size in deeds:
        deed(machine, name, size)
        machine.check()
    machine.check_end()
