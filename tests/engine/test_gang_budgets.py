"""Gangs have budgets: what a gang may cost is bounded, and what is left out is told."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, strategies as st

from moorage.engine import budget
from moorage.engine.actions import PatchPodGroupStatus
from moorage.engine.gangs import group_preemption
from moorage.engine.gangs.group_preemption import VictimChoice
from moorage.engine.gangs.group_result import MemberResult
from moorage.engine.gangs.trial import Trial
from moorage.framework.observe import UNOBSERVED
from moorage.framework.victim_units import find_units
from moorage.objects.pod import Pod
from moorage.testing.builders import node, pod
from moorage.testing.driver import Driver, bindings, conditions, evictions, nominations, only
from tests.engine.gangs import IN_EACH_VERSION, NEW, drive_gangs, gang, members

pytestmark = IN_EACH_VERSION

HIGH = {"priority": 10}
NAME = "kubernetes.io/hostname"


def together(kind: str, key: str, label: str = "g") -> dict[str, Any]:
    """A spec with a required term, of affinity or anti-affinity to pods of an app."""
    term = {"labelSelector": {"matchLabels": {"app": label}}, "topologyKey": key}
    return {**HIGH, "affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def racks(count: int, cpu: int = 2) -> list[Any]:
    return [node(f"n{at}", cpu=cpu, labels={"rack": f"r{at // 2}"}) for at in range(count)]


def lesser(count: int, nodes: int, **fields: Any) -> list[Pod]:
    return [pod(f"low-{at}", cpu=1, node=f"n{at % nodes}", **fields) for at in range(count)]


def told(actions: Any) -> str:
    return " ".join(each.condition.message for each in only(actions, PatchPodGroupStatus))


def drive(*objects: Any, spec: dict[str, Any], size: int = 2, **fields: Any) -> Driver:
    group = gang("g", size, priority=10, **fields)
    return drive_gangs(*objects, group, *members("g", size, cpu=1, labels={"app": "g"}, spec=spec))


# Victims


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from("ab")), max_size=10),
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.sampled_from(["", NAME, "rack"]),
)
def test_units_are_chosen_in_parts_as_they_are_one_by_one(
    running: list[tuple[int, int, str]], places: list[int], avoids: str
) -> None:
    low = [
        pod(f"low-{at}", cpu=1, node=f"n{where}", labels={"app": app}, spec={"priority": rank})
        for at, (where, rank, app) in enumerate(running)
    ]
    spec = together("podAntiAffinity", avoids, "a") if avoids else HIGH
    driver = drive_gangs(*racks(4), *low, gang("g", 9, priority=10))
    engine = driver.engine
    trial = Trial(engine.cluster, engine.profiles["default-scheduler"], UNOBSERVED)
    units = find_units(engine.cluster.nodes, 10)
    placed = [
        MemberResult(each, f"n{at}")
        for each, at in zip(members("g", len(places), cpu=1, spec=spec), places, strict=True)
    ]
    trial.lift_all(low)
    choice = VictimChoice(placed, trial)
    mark = trial.mark()
    one_by_one = choice._choose_one_by_one(units, placed, {})
    trial.roll_back(mark)

    assert choice._choose_in_parts(units) == one_by_one
    trial.roll_back()


def test_what_is_tried_for_a_gang_with_affinity_does_not_grow_with_members_times_pods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: Counter[str] = Counter()
    fits = VictimChoice._fits

    def count(self: VictimChoice, member: MemberResult) -> bool:
        tried["members"] += 1
        return fits(self, member)

    monkeypatch.setattr(VictimChoice, "_fits", count)
    monkeypatch.setattr(group_preemption, "MOST_GROUP_WORK", 40_000_000)
    for size in (10, 20):
        spec = together("podAffinity", "zone")
        nodes = [node(f"n{at}", cpu=2, labels={"zone": "z"}) for at in range(5 * size)]
        driver = drive(*nodes, *lesser(10 * size, 5 * size), spec=spec, size=size)
        actions = driver.step()

        assert len(evictions(actions)) == size
        assert tried.pop("members") <= 3 * size


def test_nobody_is_evicted_if_it_takes_too_long_to_find_out_who_must_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_preemption, "MOST_GROUP_WORK", 1_000)
    avoids = together("podAntiAffinity", "rack", "low")
    objects = (*racks(4), *lesser(8, 4, labels={"app": "low"}))
    actions = drive(*objects, spec=avoids).step()

    assert evictions(actions) == []
    assert nominations(actions) == {}
    assert "to find out which pods have to go would take too long" in told(actions)


@pytest.mark.parametrize(
    ("spec", "size", "cpu", "expected"),
    [
        pytest.param(HIGH, 1, 2, 2, id="all pods of a node"),
        pytest.param(together("podAntiAffinity", NAME), 4, 1, 4, id="one pod of each node"),
        pytest.param(HIGH, 4, 2, 0, id="more pods than are looked at"),
    ],
)
def test_of_many_lesser_pods_some_are_looked_at(
    monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any], size: int, cpu: int, expected: int
) -> None:
    monkeypatch.setattr(group_preemption, "MOST_LIFTED", 4)
    group = gang("g", size, priority=10)
    pods = members("g", size, cpu=cpu, labels={"app": "g"}, spec=spec)
    driver = drive_gangs(*racks(4), *lesser(8, 4), group, *pods)

    actions = driver.step()

    assert len(evictions(actions)) == expected
    assert ("were looked at" in told(actions)) == (not expected)


def test_other_pods_are_looked_at_once_the_cluster_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_preemption, "MOST_LIFTED", 2)
    group = gang("g", 1, priority=10)
    pods = members("g", 1, cpu=2, spec={**HIGH, "nodeSelector": {"rack": "r7"}})
    driver = drive_gangs(*racks(16), *lesser(32, 16), group, *pods)
    for round in range(100):
        driver.apply(node("elsewhere", cpu=1, labels={"round": f"{round}"}))
        actions = driver.step()
        if evictions(actions):
            break
        driver.now += 300
    assert round > 0
    assert nominations(actions)["g-0"] in {"n14", "n15"}


def test_pods_of_one_domain_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_preemption, "MOST_LIFTED", 4)
    group = gang("g", 2, priority=10, topology_key="rack")
    high = members("g", 2, cpu=2, spec=HIGH)
    driver = drive_gangs(*racks(8), *lesser(16, 8), group, *high, version=NEW)

    assert len(evictions(driver.step())) == 4


# Places


def test_a_gang_that_is_too_large_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MOST_GROUP_WORK", 100_000)
    driver = drive_gangs(*racks(4), gang("g", 3), *members("g", 3, cpu=1))
    driver.apply(pod("other", cpu=1))

    actions = [*driver.step(), *driver.step()]

    assert bindings(actions).keys() == {"other"}
    assert {each.reason for each in conditions(actions).values()} == {"TooCostly"}
    message = conditions(actions)["g-0"].message
    assert "the group's 3 members need 0.1 million steps, 0.1 million are the most" in message


def test_no_more_domains_are_tried_than_the_budget_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first member of each domain fails and takes 50,000 and something for its term.
    monkeypatch.setattr(budget, "MOST_GROUP_WORK", 250_000)
    beside = together("podAffinity", "rack")
    filling = lesser(32, 16, spec={"priority": 20})
    full = drive(*racks(16), *filling, spec=beside, topology_key="rack")

    message = told(full.step())

    assert "3 placements were not looked at, since that would take too long" in message
    full.remove(*(each for each in filling if each.node_name in ("n14", "n15")))
    # Whenever the cluster has changed, another domain comes first, until one takes the gang.
    for round in range(40):
        full.now += 300
        full.apply(node("elsewhere", cpu=1, labels={"round": f"{round}"}))
        actions = full.step()
        if bindings(actions):
            break
    assert bindings(actions)["g-0"] in {"n14", "n15"}
