"""The tables of figures in the docs, made from what `moorage bench` wrote; `make docs`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from moorage.bench.results import (
    ATTEMPTS,
    DECISIONS,
    PROCESS_PROCESSOR,
    PROCESSOR,
    THROUGHPUT,
    DataItem,
    DataItems,
    read_results,
)

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
COMPARED = RESULTS / "kube-scheduler"
THEIRS = RESULTS / "scheduler_perf"

#: What the short workloads of benchmarks/ are, by case or by case and workload.
TITLES = {
    "PlainPods": "plain pods",
    "RequiredPodAffinity": "required pod affinity",
    "RequiredPodAntiAffinity": "required pod anti-affinity",
    "PreferredPodAffinity": "preferred pod affinity",
    "HardTopologySpread": "hard topology spread",
    "SoftTopologySpread": "soft topology spread",
    "HostPort": "a host port each",
    "NodeEach": "so large that a node takes one",
    "ExclusivePods": "a node each, by coexist policy",
    "AloneByAntiAffinity": "a node each, by anti-affinity",
    "WithoutGPUFilter": "plain pods beside GPU nodes",
    "WithGPUFilter": "… kept off them by GPUAware",
    "WithoutDiskIO": "pods that name their disk bandwidth",
    "WithDiskIO": "… counted by DiskIO",
    "InterleavedClasses/1Classes_5000Nodes": "one class",
    "InterleavedClasses/10Classes_5000Nodes": "ten classes in turn",
    "InfeasibleBacklog": "behind 4,000 pods that fit nowhere",
    "PreemptionAtScale": "preemption, three victims each",
}

_BESIDE = (
    "Workloads of scheduler_perf through a real API server, one scheduler after the other on the "
    "same machine\n([how](#beside-kube-scheduler)):"
)

_NODES = re.compile(r"(\d+)(k?)Nodes")


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def title(workload: str) -> str | None:
    """What a workload of ours is called in tables."""
    return TITLES.get(workload) or TITLES.get(workload.partition("/")[0])


def speed_table() -> str:
    """What `make bench` measured, in the order of the titles."""
    results = read_results(RESULTS / "results.json")
    by_title = {title(name): name for name in _workloads(results.data_items)}
    lines = [
        row("workload", "nodes", "pods/s", "decisions/s", "p99", "CPU/pod"),
        row("---", *["---:"] * 5),
    ]
    for label in TITLES.values():
        if label in by_title:
            lines.append(row(label, *_figures(results.data_items, by_title[label])))
    return "\n".join((*lines, "", *_provenance(results), ""))


def comparison_table(folder: Path = COMPARED) -> str:
    """Schedulers side by side on the same workloads; nothing as long as nobody has measured it."""
    if not folder.is_dir():
        return ""
    results = read_results(folder / "results.json")
    schedulers = list(dict.fromkeys(item.scheduler for item in results.data_items))
    lines = [
        *(_BESIDE, ""),
        row("pods/s (CPU per pod)", *schedulers),
        row("---", *["---:"] * len(schedulers)),
    ]
    for workload in _workloads(results.data_items):
        lines.append(row(workload, *(_side(results, workload, each) for each in schedulers)))
    return "\n".join((*lines, "", *_provenance(results), ""))


def suites_table(folder: Path = THEIRS) -> str:
    """What the engine makes of every workload of scheduler_perf that it can run."""
    results = read_results(folder / "results.json")
    lines = [row("workload", "pods/s", "decisions/s", "CPU/pod"), row("---", *["---:"] * 3)]
    for workload in _workloads(results.data_items):
        rate, decisions, micros = (
            f"{_of(results.data_items, workload, metric)[0].data['Average']:,.0f}"
            for metric in (THROUGHPUT, DECISIONS, PROCESSOR)
        )
        lines.append(row(workload, rate, decisions, f"{micros} µs"))
    return "\n".join((*lines, "", *_provenance(results), ""))


def _side(results: DataItems, workload: str, scheduler: str) -> str:
    items = [item for item in results.data_items if item.scheduler == scheduler]
    rates = _of(items, workload, THROUGHPUT)
    if not rates:
        return "-"
    (micros,) = _of(items, workload, PROCESS_PROCESSOR)
    return f"{rates[0].data['Average']:,.0f} ({micros.data['Average'] / 1000:.1f} ms)"


def _figures(items: Iterable[DataItem], workload: str) -> Iterator[str]:
    found = _NODES.search(workload)
    assert found is not None, f"{workload}: does not say how many nodes"
    yield f"{int(found[1] + '000' * bool(found[2])):,}"
    for metric in (THROUGHPUT, DECISIONS):
        yield f"{_of(items, workload, metric)[0].data['Average']:,.0f}"
    # Pods that are placed and pods that are rejected: whichever takes longer.
    yield f"{max(item.data['Perc99'] for item in _of(items, workload, ATTEMPTS)):.2f} ms"
    yield f"{_of(items, workload, PROCESSOR)[0].data['Average']:,.0f} µs"


def _of(items: Iterable[DataItem], workload: str, metric: str) -> list[DataItem]:
    return [
        item for item in items if _workload(item) == workload and item.labels["Metric"] == metric
    ]


def _workloads(items: Iterable[DataItem]) -> Mapping[str, None]:
    """All workloads, in their order."""
    return dict.fromkeys(map(_workload, items))


def _workload(item: DataItem) -> str:
    """Case and workload, without what was collected."""
    return item.name.rpartition("/")[0]


def _provenance(results: DataItems) -> Iterator[str]:
    assert results.run is not None, "figures without machine, commit and command mean nothing"
    run = results.run
    target = "" if run["target"] == "engine" else f", {run['target']}"
    made_by = f"Python {run['python']}, commit {run['commit']}{target}"
    yield f"{run['machine']}, {made_by}, {run['date'][:10]}:"
    yield from ("", f"    {run['command']}")
