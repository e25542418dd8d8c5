"""Gangs that evict as few pods as possible, where the profile says so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from hypothesis import given, settings, strategies as st

from moorage.config import GangPolicy
from moorage.engine.gangs.group_decision import GroupDecision
from moorage.objects.decode import from_builtins
from moorage.plugins import REGISTRY
from moorage.simulate.conformance import make_engine, walk_groups
from moorage.simulate.verdicts import read_scenarios
from moorage.testing.builders import node, pod
from moorage.testing.driver import Driver, evictions
from tests.engine.gangs import IN_EACH_VERSION, drive_gangs, gang, members

pytestmark = IN_EACH_VERSION

FEWEST = [{"schedulerName": "default-scheduler", "gangs": {"victims": "fewest"}}]
HIGH = {"priority": 10}

#: The first preempting steps about gangs of equal members that ask for cpu alone.
EIGHT = {
    ("public-gang-03", "default/g3"),
    ("public-gang-10", "default/g2"),
    ("public-gangpreemption-00", "default/high1"),
    ("public-gangpreemption-02", "default/high0"),
    ("public-gangpreemption-02", "default/high1"),
    ("public-gangpreemption-03", "default/high1"),
    ("public-gangpreemption-06", "default/high2"),
    ("public-gangpreemption-08", "default/high1"),
}


def drive_fewest(*objects: Any) -> Driver:
    return drive_gangs(*objects, profiles=FEWEST)


def high(name: str, count: int, **fields: Any) -> list[Any]:
    """A gang of important pods that need all of each other."""
    return [gang(name, count, priority=10), *members(name, count, spec=HIGH, **fields)]


def test_eight_recorded_gangs_evict_24_pods_or_fewer_instead_of_43() -> None:
    recorded, found = {}, {}
    for file in ("gang", "gangpreemption"):
        for recording in read_scenarios(Path(f"tests/golden/{file}.jsonl.gz")):
            name = recording.scenario.name
            if name not in {scenario for scenario, _ in EIGHT}:
                continue
            engine = make_engine(recording.scenario, REGISTRY)
            for step, replay in walk_groups(recording, engine):
                key = name, step.group
                victims = step.preemption.victims if step.preemption is not None else ()
                if key not in EIGHT or key in found or not victims:
                    continue
                profile = engine.profiles[replay.members[0].spec.scheduler_name]
                profile = replace(profile, gangs=GangPolicy(victims="fewest"))
                decision = engine.gangs.decide(
                    replay.group, replay.members, profile, engine.decide_member
                )
                decision.trial.roll_back()
                _check(decision, replay.group.min_count)
                recorded[key] = len(victims)
                found[key] = _count(decision)

    assert found.keys() == EIGHT
    assert sum(recorded.values()) == 43
    # Members above the minimum evict nobody: where kube-scheduler does, fewer than 24 suffice.
    assert sum(found.values()) == 15
    assert all(found[key] <= recorded[key] for key in EIGHT)


def _count(decision: GroupDecision) -> int:
    return 0 if decision.remedy is None else len(decision.remedy.victims)


def _check(decision: GroupDecision, needed: int) -> None:
    """Whoever evicts has a place for all whom the gang needs."""
    remedy = decision.remedy
    if remedy is not None and remedy.victims:
        running = len(decision.trial.cluster.groups.placed(decision.group.group_key))
        assert running + len(remedy.nominations or ()) >= needed


@given(
    st.lists(st.lists(st.integers(1, 4), max_size=4), min_size=1, max_size=4),
    st.integers(1, 3),
    st.integers(1, 5),
)
@settings(max_examples=40)
def test_no_fewer_victims_would_do(running: Sequence[Sequence[int]], size: int, count: int) -> None:
    nodes = [node(f"n{number}", cpu=8) for number in range(len(running))]
    lesser = [
        pod(f"low-{row}-{number}", cpu=cpu, node=f"n{row}")
        for row, here in enumerate(running)
        for number, cpu in enumerate(here)
    ]
    expected = _fewest(running, size, count)
    driver = drive_fewest(*nodes, *lesser, *high("g", count, cpu=size))

    evicted = evictions(driver.step())

    assert len(evicted) == (expected or 0)
    if expected:
        driver.evict(driver.story)
        driver.now += 5
        driver.settle()
        assert all(driver.node_of(f"g-{number}") for number in range(count))


def _fewest(running: Sequence[Sequence[int]], size: int, count: int) -> int | None:
    """The least number of victims, by trying all sets of them; None if no set is enough."""
    best: dict[int, int] = {0: 0}
    for here in running:
        slots: dict[int, int] = defaultdict(lambda: 99)
        for kept in product((0, 1), repeat=len(here)):
            free = 8 - sum(cpu for cpu, keeps in zip(here, kept, strict=True) if keeps)
            room = max(0, free // size)
            slots[room] = min(slots[room], kept.count(0))
        merged: dict[int, int] = {}
        for (before, cost), (room, more) in product(best.items(), slots.items()):
            reached = min(count, before + room)
            merged[reached] = min(merged.get(reached, 99), cost + more)
        best = merged
    return best.get(count)


def test_a_budget_is_not_broken_to_spare_a_pod() -> None:
    nodes = [node("a", cpu=4), node("b", cpu=4)]
    guarded = pod("guarded", cpu=4, node="a", labels={"app": "guarded"})
    small = [pod(f"small-{number}", cpu=2, node="b") for number in range(2)]
    kept = from_builtins(
        "PodDisruptionBudget",
        {
            "metadata": {"name": "kept"},
            "spec": {"selector": {"matchLabels": {"app": "guarded"}}},
            "status": {"disruptionsAllowed": 0},
        },
    )

    driver = drive_fewest(*nodes, guarded, *small, kept, *high("g", 1, cpu=4))

    assert sorted(evictions(driver.step())) == ["small-0", "small-1"]


def test_a_group_that_is_evicted_whole_counts_with_all_its_pods() -> None:
    nodes = [node(f"n{number}", cpu=4) for number in range(3)]
    whole = gang("whole", 3, is_evicted_whole=True)
    large = [members("whole", 1, at, cpu=3, node=f"n{at}")[0] for at in range(3)]
    others = [pod(f"o-{number}", cpu=1, node=f"n{number}") for number in range(3)]
    # Two places take either two of the others and the whole group, or only the group.
    driver = drive_fewest(*nodes, whole, *large, *others, *high("g", 2, cpu=3))

    assert sorted(evictions(driver.step())) == ["whole-0", "whole-1", "whole-2"]


def test_members_above_the_minimum_evict_nobody() -> None:
    running = [pod(f"low-{number}", cpu=1, node="n") for number in range(4)]
    group = [gang("g", 2, priority=10), *members("g", 4, cpu=1, spec=HIGH)]
    driver = drive_fewest(node("n", cpu=4), *running, *group)

    assert len(evictions(driver.step())) == 2
    driver.evict(driver.story)
    for _ in range(10):
        driver.now += 30
        driver.settle()

    assert len([each for each in driver.pods.values() if each.node_name]) == 4
    assert len(evictions(driver.story)) == 2


def test_members_that_mind_each_other_evict_fewer_too() -> None:
    nodes = [node(f"n{number}", cpu=4, labels={"host": f"n{number}"}) for number in range(4)]
    running = [
        pod(f"low-{row}-{number}", cpu=4 // (row + 1), node=f"n{row}")
        for row in range(4)
        for number in range(row + 1)
    ]
    apart = {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {"matchLabels": {"app": "g"}}, "topologyKey": "host"}
                ]
            }
        }
    }
    spec = {**HIGH, **apart}
    group = [gang("g", 2, priority=10), *members("g", 2, cpu=4, spec=spec, labels={"app": "g"})]

    driver = drive_fewest(*nodes, *running, *group)

    assert sorted(evictions(driver.step())) == ["low-0-0", "low-1-0", "low-1-1"]


def test_nobody_is_evicted_for_a_part_of_a_gang() -> None:
    running = [pod(f"low-{number}", cpu=1, node="n") for number in range(4)]
    driver = drive_fewest(node("n", cpu=4), *running, *high("g", 5, cpu=1))

    assert evictions(driver.step()) == []
