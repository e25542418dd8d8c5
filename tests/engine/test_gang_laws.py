"""Laws of gangs: never placed in part, decided alike with and without counting, no trace left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings, strategies as st

from moorage.cluster import check
from moorage.engine.actions import Action, BindPod
from moorage.engine.classes.statistics import DecisionPath
from moorage.engine.cycle import Found, Window, decide
from moorage.engine.events import Applied, BindingFailed
from moorage.engine.gangs.group_decision import GroupDecision
from moorage.engine.gangs.group_result import Domain
from moorage.framework.attempt import Failed
from moorage.objects.pod import Pod
from moorage.testing.builders import node, pod
from moorage.testing.driver import Driver, bindings, drive, only
from tests.engine.gangs import GATES, drive_gangs, gang, members

RACKS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=6)


def racked(shapes: Sequence[tuple[int, int]]) -> list[Any]:
    return [
        node(f"n{number}", cpu=cpu, labels={"rack": f"r{rack}"})
        for number, (cpu, rack) in enumerate(shapes)
    ]


@settings(max_examples=25)
@given(RACKS, st.integers(1, 6), st.integers(1, 6), st.sampled_from(["rack", ""]))
def test_counting_domains_decides_as_trying_them_does(
    shapes: list[tuple[int, int]], count: int, needed: int, key: str
) -> None:
    found = []
    for is_literal in (False, True):
        driver = drive_gangs(*racked(shapes), gang("g", needed, topology_key=key))
        pods = members("g", count, cpu=1)
        engine = driver.engine
        group = next(iter(engine.cluster.groups))
        profile = engine.profiles["default-scheduler"]
        decision = engine.gangs.decide(
            group, pods, profile, engine.decide_member, is_literal=is_literal
        )
        placed = [(each.pod.name, each.node_name) for each in decision.result.placed]
        domain = decision.result.domain
        found.append((decision.status, placed, decision.failures(), domain and domain.name))
        decision.trial.roll_back()
        check(engine.cluster)
        assert not engine.cluster.pods

    assert found[0] == found[1]


SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@settings(max_examples=25)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), SIZES, st.integers(1, 5))
def test_members_of_any_size_are_placed_all_or_none_and_find_room(
    shapes: list[int], sizes: list[int], needed: int
) -> None:
    nodes = [node(f"n{number}", cpu=cpu) for number, cpu in enumerate(shapes)]
    driver = drive_gangs(*nodes, gang("g", needed))
    driver.apply(*(members("g", 1, start=at, cpu=size)[0] for at, size in enumerate(sizes)))

    bound = bindings(driver.step())

    assert not bound or len(bound) >= needed
    for at, cpu in enumerate(shapes):
        used = sum(sizes[int(name[2:])] for name, where in bound.items() if where == f"n{at}")
        assert used <= cpu


class Interleaving:
    """A cluster in which gangs come, pods go and bindings fail, in any order."""

    def __init__(self) -> None:
        nodes = [node(f"n{number}", cpu=3) for number in range(2)]
        self.driver: Driver = drive_gangs(*nodes)
        self.minimum: dict[str, int] = {}
        self.under_way: list[BindPod] = []
        #: Gangs of which a member was lost after they had started.
        self.lost: set[str] = set()

    def do(self, what: str, number: int, size: int) -> None:
        name = f"g{number}"
        match what:
            case "come":
                self._come(name, size)
            case "step":
                self._take(self.driver.step(size))
            case "bind" if self.under_way:
                self.driver.bind([self.under_way.pop(0)])
            case "fail" if self.under_way:
                failed = self.under_way.pop(0)
                self.lost.add(failed.pod.name.partition("-")[0])
                self.driver.tell(BindingFailed(failed.pod.uid, "no"))
            case "delete":
                self._delete(name)
            case "wait":
                self.driver.now += 5
            case "restart":
                self._restart()
        self.check()

    def _come(self, name: str, size: int) -> None:
        if name not in self.minimum:
            self.minimum[name] = max(1, size - 1)
            self.driver.apply(gang(name, self.minimum[name]), *members(name, size, cpu=1))

    def _take(self, actions: Sequence[Action]) -> None:
        self.under_way += only(actions, BindPod)

    def _delete(self, name: str) -> None:
        known = [each for each in self.driver.pods.values() if each.name.startswith(f"{name}-")]
        for gone in known[:1]:
            self.lost.add(name)
            self.under_way = [each for each in self.under_way if each.pod.uid != gone.uid]
            self.driver.remove(gone)

    def _restart(self) -> None:
        """Another scheduler takes over: it knows what is bound, and nothing else."""
        before = self.driver
        nodes = [node(f"n{number}", cpu=3) for number in range(2)]
        self.driver = drive_gangs(*nodes)
        self.driver.now = before.now
        self.lost |= {each.pod.name.partition("-")[0] for each in self.under_way}
        self.under_way = []
        self.driver.apply(*(gang(name, count) for name, count in self.minimum.items()))
        self.driver.apply(*before.pods.values())

    def check(self) -> None:
        groups = self.driver.engine.cluster.groups
        for name, needed in self.minimum.items():
            count = len(groups.placed(("scheduling.k8s.io", f"default/{name}")))
            assert count == 0 or count >= needed or name in self.lost, f"{name} has {count}"


SIZE = st.integers(2, 5)
DEEDS = ["step", "step", "bind", "fail", "delete", "wait", "restart"]


@settings(max_examples=40)
@given(
    st.lists(SIZE, min_size=2, max_size=4),
    st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 3), SIZE), max_size=20),
)
def test_no_gang_is_ever_placed_in_part(
    sizes: list[int], deeds: list[tuple[str, int, int]]
) -> None:
    world = Interleaving()
    for number, size in enumerate(sizes):
        world.do("come", number, size)
        world.do("step", number, 1)
    for deed in deeds:
        world.do(*deed)


def _finish(driver: Driver, waits: int = 60) -> None:
    """Decides and binds until nothing is left to do, moving the time."""
    for _ in range(waits):
        driver.settle()
        driver.now += 2


def _sizes(driver: Driver) -> dict[str, int]:
    counts: dict[str, int] = {}
    for known in driver.engine.cluster.pods.values():
        name = known.name.rpartition("-")[0]
        counts[name] = counts.get(name, 0) + 1
    return counts


def _come_interleaved(driver: Driver, gangs: Sequence[Sequence[Pod]]) -> None:
    """The members of several gangs, one of each in turn."""
    for at in range(max(map(len, gangs))):
        driver.apply(*(pods[at] for pods in gangs if at < len(pods)))


def test_scheduler_plugins_114_two_gangs_that_each_need_most_of_the_room() -> None:
    driver = drive_gangs(*(node(f"n{number}", cpu=2) for number in range(2)))
    driver.apply(gang("a", 3), gang("b", 3))
    _come_interleaved(driver, [members("a", 3, cpu=1), members("b", 3, cpu=1)])

    _finish(driver, 5)
    assert _sizes(driver) == {"a": 3}

    # When the first is done, the other runs.
    driver.remove(*[each for each in driver.pods.values() if each.name.startswith("a-")])
    _finish(driver)
    assert _sizes(driver) == {"b": 3}


def test_scheduler_plugins_117_sixty_jobs_of_one_to_eight_on_two_nodes() -> None:
    driver = drive_gangs(*(node(f"n{number}", gpu=8, cpu=64) for number in range(2)))
    jobs = {f"j{number}": 1 + number % 8 for number in range(60)}
    driver.apply(*(gang(name, size) for name, size in jobs.items()))
    _come_interleaved(driver, [members(name, size, gpu=1) for name, size in jobs.items()])
    done: set[str] = set()

    for _ in range(400):
        driver.settle()
        sizes = _sizes(driver)
        assert all(sizes[name] == jobs[name] for name in sizes)
        done |= sizes.keys()
        if len(done) == len(jobs):
            break
        driver.remove(*[each for each in driver.pods.values() if each.node_name])
        driver.now += 5

    assert len(done) == len(jobs)


def test_koordinator_872_members_arrive_interleaved_with_others() -> None:
    driver = drive_gangs(node("n0", cpu=4), node("n1", cpu=4))
    driver.apply(gang("a", 4), gang("b", 4))
    first, second = members("a", 4, cpu=1), members("b", 4, cpu=1)
    for at in (0, 2, 1, 3):
        driver.apply(first[at], pod(f"single-{at}", cpu="100m"), second[at])
        driver.settle()

    _finish(driver)

    sizes = _sizes(driver)
    assert sizes["single"] == 4
    assert sorted(sizes.get(name, 0) for name in ("a", "b")) == [0, 4]


def test_koordinator_1919_a_gang_waits_for_an_hour_and_holds_nothing() -> None:
    driver = drive_gangs(node("n0", cpu=4))
    driver.apply(gang("g", 5), *members("g", 5, cpu=1))
    for _ in range(60):
        driver.settle()
        driver.now += 60
        assert not driver.engine.cluster.pods
    driver.apply(pod("other", cpu=4))
    driver.settle()
    assert driver.node_of("other") == "n0"

    driver.apply(node("n1", cpu=8))
    _finish(driver)

    assert _sizes(driver)["g"] == 5


def test_volcano_5131_members_that_fit_count_while_others_are_preempted_for() -> None:
    driver = drive_gangs(*(node(f"n{number}", cpu=2) for number in range(2)))
    driver.apply(pod("low", cpu=1, node="n0"))
    high = {"priority": 10}
    driver.apply(gang("g", 4, priority=10), *members("g", 4, cpu=1, spec=high))

    _finish(driver, 10)

    assert _sizes(driver) == {"g": 4}


def test_armada_2268_no_part_of_a_gang_is_evicted() -> None:
    driver = drive_gangs(*(node(f"n{number}", cpu=2) for number in range(2)))
    low = members("low", 4, cpu=1)
    driver.apply(gang("low", 4, is_evicted_whole=True), *low)
    _finish(driver, 2)
    assert _sizes(driver) == {"low": 4}

    driver.apply(pod("high", cpu=1, spec={"priority": 10}))
    _finish(driver, 10)

    assert _sizes(driver) == {"high": 1} or driver.node_of("high")
    assert "low" not in _sizes(driver)


def test_replacement_pods_of_a_running_gang_need_no_new_minimum() -> None:
    driver = drive_gangs(*(node(f"n{number}", cpu=2) for number in range(2)))
    driver.apply(gang("g", 4), *members("g", 4, cpu=1))
    _finish(driver, 2)
    lost = driver.pods["default/g-0"]
    driver.remove(lost)

    driver.engine.handle(Applied(members("g", 1, start=9, cpu=1)[0]), driver.now)
    driver.pods["default/g-9"] = members("g", 1, start=9, cpu=1)[0]
    _finish(driver, 2)

    assert driver.node_of("g-9")


# Where ties begin, for the first placements of an engine.
FIRST_TURN = crc32(b"default-scheduler")


class RackedCluster:
    """Gangs in racks on one engine, decided twice in every state: counted, and tried plainly."""

    def __init__(self) -> None:
        self.nodes = [(4, f"r{number % 3}", False) for number in range(7)]
        self.driver = drive_gangs(*(self._node(number) for number in range(7)))
        self.placed: list[Pod] = []
        self.count = 0

    def _node(self, number: int) -> Any:
        cpu, rack, is_cordoned = self.nodes[number]
        labels = {"rack": rack} if rack else {}
        spec = {"unschedulable": True} if is_cordoned else {}
        return node(f"n{number}", cpu=cpu, labels=labels, spec=spec)

    def do(self, what: str, number: int, size: int) -> None:
        cpu, rack, is_cordoned = self.nodes[number]
        match what:
            case "place":
                self._place(size)
                return
            case "remove" if self.placed:
                self.driver.remove(self.placed.pop(number % len(self.placed)))
                return
            case "resize":
                self.nodes[number] = 2 * size, rack, is_cordoned
            case "cordon":
                self.nodes[number] = cpu, rack, not is_cordoned
            case "move":
                self.nodes[number] = cpu, "" if size == 4 else f"r{size}", is_cordoned
        self.driver.apply(self._node(number))

    def _place(self, size: int) -> None:
        engine, self.count = self.driver.engine, self.count + 1
        group = gang(f"g{self.count}", max(1, size - 1), topology_key="rack")
        self.driver.apply(group)
        pods = members(group.name, size, cpu=1 + self.count % 2)
        profile = engine.profiles["default-scheduler"]

        def decide_plainly(pod: Pod, domain: Domain) -> Found | Failed:
            nodes = engine.cluster.nodes
            return decide(profile, pod, nodes, Window(FIRST_TURN % len(nodes), rows=domain.rows))

        plain = engine.gangs.decide(group, pods, profile, decide_plainly, is_literal=True)
        expected = self._tell(plain)
        plain.trial.roll_back()
        decision = engine.gangs.decide(group, pods, profile, engine.decide_member)
        assert self._tell(decision) == expected
        decision.trial.roll_back()
        for name, where in expected[1]:
            self.placed.append(next(each for each in pods if each.name == name).on(where))
            self.driver.apply(self.placed[-1])
        check(engine.cluster)

    def _tell(self, decision: GroupDecision) -> tuple[Any, list[tuple[str, str]], Any]:
        placed = [(each.pod.name, each.node_name) for each in decision.result.placed]
        domain = decision.result.domain
        return decision.status, placed, domain and domain.name


RACK_DEEDS = ["place", "place", "place", "remove", "resize", "cordon", "move"]


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from(RACK_DEEDS), st.integers(0, 6), st.integers(1, 4)),
        min_size=4,
        max_size=24,
    )
)
def test_what_is_kept_of_domains_decides_as_plain_trying_does(
    deeds: list[tuple[str, int, int]],
) -> None:
    world = RackedCluster()
    for deed in deeds:
        world.do(*deed)


class TwinClusters:
    """The same events for two engines, of which one keeps nothing from gang to gang."""

    def __init__(self) -> None:
        nodes = racked([(4, number % 3) for number in range(7)])
        off = {"EquivalenceCache": False, "OpportunisticBatching": False}
        self.drivers = [drive(*nodes, gates={**GATES, **more}) for more in ({}, off)]
        self.count = 0

    def do(self, what: str, number: int, size: int) -> None:
        self.count += 1
        for driver in self.drivers:
            self._do(driver, what, number, size)
            driver.settle()
            check(driver.engine.cluster)
        kept, plain = (
            {each.name: each.node_name for each in twin.pods.values()} for twin in self.drivers
        )
        assert kept == plain

    def _do(self, driver: Driver, what: str, number: int, size: int) -> None:
        name = f"g{self.count}"
        match what:
            case "gang":
                driver.apply(gang(name, 2, topology_key="rack"), *members(name, 2, cpu="500m"))
            case "larger gang":
                driver.apply(gang(name, 1, topology_key="rack"), *members(name, size, cpu=1))
            case "pod":
                driver.apply(pod(name, cpu=1, node=f"n{number}"))
            case "remove":
                gone = [each for each in driver.pods.values() if each.node_name][number:][:1]
                driver.remove(*gone)


TWIN_DEEDS = ["gang", "gang", "gang", "larger gang", "pod", "remove"]


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(TWIN_DEEDS), st.integers(0, 6), st.integers(1, 4)),
        min_size=4,
        max_size=24,
    )
)
def test_gangs_that_follow_each_other_are_placed_as_if_nothing_was_kept(
    deeds: list[tuple[str, int, int]],
) -> None:
    world = TwinClusters()
    for deed in deeds:
        world.do(*deed)


@pytest.mark.parametrize("what", ["a pod leaves", "a node grows"])
def test_a_domain_that_is_less_full_is_no_longer_the_best(what: str) -> None:
    """The best domain is kept while it only becomes fuller."""
    driver = drive_gangs(*racked([(8, 0), (8, 0), (8, 1), (8, 1)]))
    large, small = pod("large", node="n0", cpu=7), pod("small", node="n2", cpu=5)
    driver.apply(large, small)
    found = []
    for number in range(3):
        driver.apply(gang(f"g{number}", 2, topology_key="rack"), *members(f"g{number}", 2, cpu=1))
        bound = driver.step()
        found.append({int(where[1]) // 2 for where in bindings(bound).values()})
        driver.bind(only(bound, BindPod))
        if number == 1 and what == "a pod leaves":
            # Two gangs, of 4 cpu in all, are left in the one rack, and 5 cpu in the other.
            driver.remove(large)
        elif number == 1:
            # 11 of 48 cpu are less than 5 of 16.
            driver.apply(node("n0", cpu=40, labels={"rack": "r0"}))

    assert found == [{0}, {0}, {1}]


def test_no_member_is_tried_in_a_domain_that_became_too_full() -> None:
    """That is counted beforehand, so that trying has no more consequences than without classes."""
    driver = drive_gangs(*racked([(5, 0), (5, 1)]))
    engine, tried = driver.engine, []

    def decide_member(pod: Pod, domain: Domain) -> Found | Failed | None:
        tried.append(domain.name)
        return engine.decide_member(pod, domain)

    for number in range(4):
        group = gang(f"g{number}", 2, topology_key="rack")
        driver.apply(group)
        profile = engine.profiles["default-scheduler"]
        pods = members(group.name, 2, cpu=1)
        decision = engine.gangs.decide(group, pods, profile, decide_member)
        decision.trial.keep()

    assert tried == ["r0"] * 4 + ["r1"] * 4


def test_members_in_a_domain_are_taken_from_its_ranking() -> None:
    """It is kept from gang to gang."""
    driver = drive_gangs(*racked([(8, 0), (8, 0), (8, 1), (8, 1)]))
    for number in range(3):
        driver.apply(gang(f"g{number}", 4, topology_key="rack"), *members(f"g{number}", 4, cpu=1))
        driver.settle()

    (classes,) = driver.engine.classes.values()
    assert _sizes(driver) == {"g0": 4, "g1": 4, "g2": 4}
    assert classes.statistics.paths[DecisionPath.BATCH] >= 9
