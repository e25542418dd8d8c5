"""`python -m tools.openb FOLDER`: compare the modes of GPUAware on the OpenB trace."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from moorage.documents.errors import InputError
from moorage.engine.registry import registry
from moorage.simulate.traces.arrivals import ArrivalTrace
from moorage.simulate.traces.csv_trace import GPU, PODS, read_openb

from .churn import ChurnOutcome, churn
from .month import write_month
from .study import SETTINGS, Outcome, study, wants_gpu


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
    parser.add_argument(
        "--churn",
        type=int,
        metavar="TURNS",
        help="Let pods leave as well: in each turn one at random, and the next one comes.",
    )
    parser.add_argument(
        "--month",
        type=int,
        metavar="PODS",
        help="Draw so many pods that come within thirty days, and write them as a trace.",
    )
    parser.add_argument("--into", type=Path, help="Folder to write the month to.")
    given = parser.parse_args(arguments)
    if given.month:
        if given.into is None:
            parser.error("--month needs --into")
        print(f"moorage simulate --trace {_write_month(given)}")
        return 0
    try:
        trace = read_openb(given.folder / given.pods)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{len(trace.nodes):,} nodes, {len(trace.pods):,} pods\n")
    if given.churn:
        _print_churn(list(churn(trace, registry(), given.churn)))
        return 0
    outcomes = list(study(trace, registry()))
    print(f"{'':48}" + "".join(f"{setting:>8}" for setting in SETTINGS))
    for line in _lines(trace, outcomes):
        print(line)
    return 0


def _write_month(given: Namespace) -> Path:
    return write_month(given.folder / given.pods, given.into, given.month)


def _print_churn(outcomes: Sequence[ChurnOutcome]) -> None:
    print(f"{'mean over the turns':48}" + "".join(f"{setting:>8}" for setting in SETTINGS))
    rows = {
        "GPUs allocated": [each.gpus_allocated for each in outcomes],
        "GPU pods waiting": [each.gpu_pods_waiting for each in outcomes],
        "CPU pods waiting": [each.cpu_pods_waiting for each in outcomes],
    }
    for name, row in rows.items():
        print(f"{name:48}" + "".join(f"{value:8,.1f}" for value in row))


def _lines(trace: ArrivalTrace, outcomes: Sequence[Outcome]) -> list[str]:
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
