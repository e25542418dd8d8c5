"""`mooring bench`: measure decisions a second."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mooring.bench.measure import MakeEngine


class Suite(StrEnum):
    """What is measured."""

    CORE = "core"
    ONE_PER_NODE = "one-per-node"
    INTERLEAVED = "interleaved"
    SCALE = "scale"
    HOPELESS = "hopeless"
    EXCLUSIVE = "exclusive"
    COEXIST_OVERHEAD = "coexist-overhead"
    MEMORY = "memory"


def bench(
    suite: Annotated[Suite, typer.Argument(help="What to measure.")] = Suite.CORE,
    nodes: Annotated[int, typer.Option(min=1, help="How many nodes.")] = 5_000,
    pods: Annotated[int, typer.Option(min=1, help="How many pods are timed.")] = 2_000,
    reuse: Annotated[
        bool, typer.Option(help="Whether like pods share their answers (classes and batches).")
    ] = True,
) -> None:
    """Time decisions on a cluster in memory, without an API server.

    decisions/s counts the time of deciding alone; confirmed/s also that of taking in what came of
    it. Every pod must be placed, or the run fails.
    """
    # Here, so that the other commands start without NumPy.
    from mooring.bench.suites import SUITES, memory

    make_engine = _engines(reuse=reuse)
    if suite is Suite.MEMORY:
        for what, amount in memory(make_engine, nodes, pods):
            print(f"{what:20} {amount:16,.0f} bytes", flush=True)
        return
    print(f"{'workload':28} {'nodes':>8} {'pods':>8} {'decisions/s':>12} {'confirmed/s':>12}")
    for found in SUITES[suite.value](make_engine, nodes, pods):
        rates = f"{found.decisions_per_second:12,.0f} {found.pods_per_second:12,.0f}"
        print(f"{found.workload:28} {found.nodes:8,} {found.pods:8,} {rates}", flush=True)


def _engines(*, reuse: bool) -> MakeEngine:
    from mooring.config import FeatureGates, default
    from mooring.engine import Engine
    from mooring.engine.registry import registry
    from mooring.engine.reuse import ReuseSettings
    from mooring.framework.profile import known_plugins

    plugins = registry()
    known = known_plugins(plugins)
    settings = ReuseSettings(classes=reuse, batches=reuse)

    def make_engine(**gates: bool) -> Engine:
        return Engine(default(known, FeatureGates(**gates)), plugins, settings)

    return make_engine
