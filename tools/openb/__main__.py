"""`python -m tools.openb FOLDER`: compare the modes of GPUAware on the OpenB trace."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from mooring.documents.errors import InputError
from mooring.engine.registry import registry

from .study import SETTINGS, Outcome, study, wants_gpu
from .trace import GPU, PODS, Trace, read


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a table; returns the exit code."""
    parser = ArgumentParser(
        prog="python -m tools.openb",
        description="Compare the modes of GPUAware on OpenB, the trace of a GPU cluster in"
        " production. Pods arrive in the order of their creation, and no pod leaves.",
    )
    parser.add_argument(
        "folder",
        type=Path,
        help="The csv folder of cluster-trace-gpu-v2023, of github.com/alibaba/clusterdata.",
    )
    parser.add_argument("--pods", default=PODS, help="File in that folder that lists the pods.")
    given = parser.parse_args(arguments)
    try:
        trace = read(given.folder, given.pods)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    outcomes = list(study(trace, registry()))
    print(f"{len(trace.nodes):,} nodes, {len(trace.pods):,} pods\n")
    print(f"{'GPUAware':48}" + "".join(f"{setting:>8}" for setting in SETTINGS))
    for line in _lines(trace, outcomes):
        print(line)
    return 0


def _lines(trace: Trace, outcomes: Sequence[Outcome]) -> list[str]:
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


if __name__ == "__main__":
    sys.exit(main())
