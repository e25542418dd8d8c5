"""`mooring bench`: measure decisions a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mooring.bench.measure import Measured
    from mooring.engine import Engine


def bench(
    nodes: Annotated[int, typer.Option(min=1, help="How many nodes.")] = 5_000,
    pods: Annotated[int, typer.Option(min=1, help="How many pods are timed.")] = 2_000,
    only: Annotated[
        str, typer.Option(metavar="TEXT", help="Only workloads whose name has this in it.")
    ] = "",
    reuse: Annotated[
        bool, typer.Option(help="Whether like pods share their answers (classes and batches).")
    ] = True,
) -> None:
    """Time decisions on a cluster in memory, without an API server.

    decisions/s counts the time of deciding alone; confirmed/s also that of taking in what came of
    it. Every pod must be placed, or the run fails.
    """
    # Here, so that the other commands start without NumPy.
    from mooring.bench.measure import measure, measure_preemption
    from mooring.bench.workloads import HIGH_PRIORITY, WORKLOADS

    make_engine = _engines(reuse=reuse)
    print(f"{'workload':28} {'nodes':>7} {'pods':>7} {'decisions/s':>12} {'confirmed/s':>12}")
    for workload in WORKLOADS.values():
        if only in workload.name:
            _tell(measure(workload, nodes, min(pods, workload.most(nodes)), make_engine))
    if only in HIGH_PRIORITY.name:
        # Three evictions make room for each, and no more than one fits on a node.
        _tell(measure_preemption(nodes, min(pods, nodes // 5), make_engine))


def _engines(*, reuse: bool) -> Callable[[], Engine]:
    from mooring.config import default
    from mooring.engine import Engine
    from mooring.engine.registry import registry
    from mooring.engine.reuse import ReuseSettings
    from mooring.framework.profile import known_plugins

    plugins = registry()
    configuration = default(known_plugins(plugins))
    settings = ReuseSettings(classes=reuse, batches=reuse)
    return lambda: Engine(configuration, plugins, settings)


def _tell(found: Measured) -> None:
    rates = f"{found.decisions_per_second:12,.0f} {found.pods_per_second:12,.0f}"
    print(f"{found.workload:28} {found.nodes:7,} {found.pods:7,} {rates}", flush=True)
