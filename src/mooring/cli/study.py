"""`mooring study`: schedule the trace of a real cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .rendering import ProgressBar

if TYPE_CHECKING:
    from mooring.simulate.gpu_study import Outcome
    from mooring.simulate.openb import Trace

app = typer.Typer(help="Schedule the trace of a real cluster.", no_args_is_help=True)


@app.callback()
def _trace() -> None:
    # With a callback, the name of the trace is part of the command though there is only one.
    pass


@app.command()
def openb(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="The csv folder of cluster-trace-gpu-v2023, of github.com/alibaba/clusterdata.",
            show_default=False,
        ),
    ],
    pods: Annotated[
        str, typer.Option(metavar="FILE", help="File in that folder that lists the pods.")
    ] = "openb_pod_list_default.csv",
) -> None:
    """Compare the modes of GPUAware on OpenB, the trace of a GPU cluster in production.

    Pods arrive in the order of their creation, and no pod leaves.
    """
    # Here, so that the other commands start without NumPy.
    from mooring.engine.registry import registry
    from mooring.simulate.gpu_study import SETTINGS, study
    from mooring.simulate.openb import read

    with ProgressBar() as bar:
        trace = read(folder, pods)
        bar.stage("scheduling", len(trace.pods))
        outcomes = list(study(trace, registry(), bar.update))
    print(f"{len(trace.nodes):,} nodes, {len(trace.pods):,} pods\n")
    print(f"{'GPUAware':48}" + "".join(f"{setting:>8}" for setting in SETTINGS))
    for line in _lines(trace, outcomes):
        print(line)


def _lines(trace: Trace, outcomes: Sequence[Outcome]) -> list[str]:
    from mooring.simulate.gpu_study import wants_gpu
    from mooring.simulate.openb import GPU

    gpus = sum(dict(node.allocatable).get(GPU, 0) for node in trace.nodes)
    gpu_pods = sum(map(wants_gpu, trace.pods))
    cpu_pods = len(trace.pods) - gpu_pods
    rows = {
        f"GPUs allocated, of {gpus:,}": [each.gpus_allocated for each in outcomes],
        f"GPU pods pending, of {gpu_pods:,}": [each.gpu_pods_pending for each in outcomes],
        f"CPU pods pending, of {cpu_pods:,}": [each.cpu_pods_pending for each in outcomes],
        "CPU pods on GPU nodes": [each.cpu_pods_on_gpu_nodes for each in outcomes],
        "GPU nodes with free GPUs": [each.nodes_with_free_gpus for each in outcomes],
        "... but no CPU or memory for a pending GPU pod": [
            each.starved_for_pending for each in outcomes
        ],
        "... nor for any GPU pod of the trace": [each.starved_for_all for each in outcomes],
    }
    return [f"{name:48}" + "".join(f"{count:8,}" for count in row) for name, row in rows.items()]
