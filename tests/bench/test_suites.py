"""Benchmarks run to their end on small clusters; their times are not looked at."""

from __future__ import annotations

import pytest

from mooring.bench.measure import NotAllPlaced, measure
from mooring.bench.suites import SUITES, memory
from mooring.bench.workloads import WORKLOADS, Workload
from mooring.config import default
from mooring.engine import Engine
from mooring.framework.profile import known_plugins
from mooring.plugins import REGISTRY


def engine() -> Engine:
    return Engine(default(known_plugins(REGISTRY)), REGISTRY)


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_places_every_pod(name: str) -> None:
    measured = list(SUITES[name](engine, 40, 40))

    assert measured
    assert all(each.decisions_per_second >= each.pods_per_second > 0 for each in measured)


def test_core_has_every_workload() -> None:
    names = [each.workload for each in SUITES["core"](engine, 20, 10)]
    assert names == [*WORKLOADS, "preemption"]


def test_memory_is_told_per_thing_that_is_kept() -> None:
    told = dict(memory(engine, 40, 40))
    assert list(told) == ["per node", "per running pod", "per class and node", "in all"]
    assert told["in all"] > 0


def test_a_run_in_which_a_pod_stays_pending_fails() -> None:
    with pytest.raises(NotAllPlaced, match="1 pods stay pending"):
        measure(Workload("too large", cpu="5", running_per_node=0), 2, 1, engine)
