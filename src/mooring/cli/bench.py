"""`mooring bench`: measure decisions a second."""

from __future__ import annotations

from typing import Annotated

import typer


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
    from mooring.bench.measure import measure
    from mooring.bench.workloads import WORKLOADS
    from mooring.config import default
    from mooring.engine.registry import registry
    from mooring.framework.profile import known_plugins

    plugins = registry()
    configuration = default(known_plugins(plugins))
    print(f"{'workload':28} {'nodes':>7} {'pods':>7} {'decisions/s':>12}")
    for workload in WORKLOADS.values():
        if only in workload.name:
            found = measure(workload, nodes, pods, configuration, plugins)
            rate = f"{found.decisions_per_second:12,.0f}"
            print(f"{workload.name:28} {nodes:7,} {pods:7,} {rate}", flush=True)
