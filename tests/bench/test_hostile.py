"""The hostile benchmark in its short form: every attack is survived, and its memory comes back."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from moorage.bench.hostile import GANGS, HostileBenchmark
from moorage.bench.hostile_pods import ATTACKS, pod
from moorage.cluster import check


def traced_mib() -> float:
    gc.collect()
    return tracemalloc.get_traced_memory()[0] / 2**20


@pytest.fixture(scope="module")
def benchmark() -> Iterator[HostileBenchmark]:
    tracemalloc.start()
    made = HostileBenchmark(100, 100, traced_mib, disks=100)
    # What the first attack makes the process keep is not that attack's.
    made.run("first", pod(ATTACKS["annotations"], SIZE))
    yield made
    tracemalloc.stop()


# A column takes 1 KiB here, so that a column per rule would take several times as much.
SIZE, MOST_GROWTH_MIB, MOST_LEFT_MIB = 25_000, 1.5, 0.5


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack(benchmark: HostileBenchmark, name: str) -> None:
    outcome = benchmark.run(name, pod(ATTACKS[name], SIZE))

    assert outcome.growth_mib < MOST_GROWTH_MIB
    assert outcome.left_mib < MOST_LEFT_MIB
    check(benchmark.engine.cluster)
    benchmark.engine.queue.check()


@pytest.mark.parametrize("name", GANGS)
def test_a_gang(benchmark: HostileBenchmark, name: str) -> None:
    outcome = benchmark.run_gang(name, replace(GANGS[name], size=3))

    assert outcome.growth_mib < MOST_GROWTH_MIB
    assert outcome.left_mib < MOST_LEFT_MIB
    check(benchmark.engine.cluster)
    benchmark.engine.queue.check()
