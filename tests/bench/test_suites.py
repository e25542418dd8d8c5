"""Benchmarks run to their end on small clusters; their times are not looked at."""

from __future__ import annotations

import re

import pytest

from mooring.bench.coexist import BY_ANTI_AFFINITY, BY_POLICY
from mooring.bench.measure import NotAllPlaced, fill, measure, place_all
from mooring.bench.suites import SUITES, memory
from mooring.bench.workloads import WORKLOADS, Workload
from mooring.config import FeatureGates, default
from mooring.engine import Engine
from mooring.framework.profile import known_plugins
from mooring.plugins import REGISTRY


def engine(**gates: bool) -> Engine:
    return Engine(default(known_plugins(REGISTRY), FeatureGates(**gates)), REGISTRY)


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_places_every_pod(name: str) -> None:
    measured = list(SUITES[name](engine, 40, 40))

    assert measured
    assert all(each.decisions_per_second >= each.pods_per_second > 0 for each in measured)


def test_core_has_every_workload() -> None:
    names = [each.workload for each in SUITES["core"](engine, 20, 10)]
    assert names == [*WORKLOADS, "preemption"]


def test_exclusive_pods_are_alone_either_way() -> None:
    """Both means must do the same, or comparing them would mean nothing."""
    for alone in (BY_POLICY, BY_ANTI_AFFINITY):
        made = engine()
        fill(made, alone, 8)
        place_all(made, alone.pods(4, "alone"))
        place_all(made, Workload("others", labels=alone.labels).pods(12, "other"))
        nodes = made.cluster.nodes
        together = [sorted(pod.name[:5] for pod in nodes.pods(row).values()) for row in nodes.rows]
        assert together.count(["alone"]) == 4
        assert sum(each == ["other"] * len(each) for each in together) == 4


def test_the_overhead_is_told_for_the_gate_on_and_off() -> None:
    off, on = SUITES["coexist-overhead"](engine, 10, 10)
    assert off.workload == "gate off"
    assert re.fullmatch(r"gate on \([+-]\d+\.\d\d%\)", on.workload)


def test_memory_is_told_per_thing_that_is_kept() -> None:
    told = dict(memory(engine, 40, 40))
    assert list(told) == ["per node", "per running pod", "per class and node", "in all"]
    assert told["in all"] > 0


def test_a_run_in_which_a_pod_stays_pending_fails() -> None:
    with pytest.raises(NotAllPlaced, match="1 pods stay pending"):
        measure(Workload("too large", cpu="5", running_per_node=0), 2, 1, engine)
