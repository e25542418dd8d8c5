"""`mooring bench`: measure decisions a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mooring.bench.measure import Measured


def bench(
    nodes: Annotated[int, typer.Option(min=1, help="How many nodes.")] = 5_000,
    pods: Annotated[int, typer.Option(min=1, help="How many pods are timed.")] = 2_000,
    only: Annotated[
        str, typer.Option(metavar="TEXT", help="Only workloads whose name has this in it.")
    ] = "",
) -> None:
    """Time decisions on a cluster in memory: from the queue to the confirmed place of a pod.

    Every pod must be placed, or the run fails.
    """
    # Here, so that the other commands start without NumPy.
    from mooring.bench.measure import measure, measure_preemption
    from mooring.bench.workloads import HIGH_PRIORITY, WORKLOADS
    from mooring.config import default
    from mooring.engine.registry import registry
    from mooring.framework.profile import known_plugins

    plugins = registry()
    configuration = default(known_plugins(plugins))
    print(f"{'workload':28} {'nodes':>7} {'pods':>7} {'decisions/s':>12}")
    for workload in WORKLOADS.values():
        if only in workload.name:
            _tell(measure(workload, nodes, pods, configuration, plugins))
    if only in HIGH_PRIORITY.name:
        # Three evictions make room for each, and no more than one fits on a node.
        _tell(measure_preemption(nodes, min(pods, nodes // 5), configuration, plugins))


def _tell(found: Measured) -> None:
    rate = f"{found.decisions_per_second:12,.0f}"
    print(f"{found.workload:28} {found.nodes:7,} {found.pods:7,} {rate}", flush=True)
