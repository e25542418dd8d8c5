"""Results as files: scheduler_perf's data items, thresholds, and where a run was made."""

from __future__ import annotations

import math
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage import __version__

from .cases import Job, WorkloadError
from .measurement import Measurement, summary

_CPU_INFO = Path("/proc/cpuinfo")

# An absolute path in a command: at the beginning of a word, or behind what gives it a name.
_PATH = re.compile(r"(?<![^\s'\"=])/(?:[\w.@+-]+/)+[\w.@+-]+")


def provenance(command: Sequence[str], target: str) -> dict[str, str | int | float]:
    """Returns what one needs to know to repeat a run: machine, commit, command."""
    return {
        "moorage": __version__,
        "commit": _commit(),
        "command": without_folders(shlex.join(command)),
        "target": target,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory_mebibytes():,} MiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        # Others that were at work make figures worse than they are.
        "load": round(os.getloadavg()[0], 2),
    }


def without_folders(text: str) -> str:
    """Shortens the paths of files to their names, so that no folder of the machine is published."""
    return _PATH.sub(lambda found: _name(Path(found[0])), text)


def _name(path: Path) -> str:
    # What only looks like a path may be a regular expression.
    return path.name if path.parent.is_dir() else str(path)


def _commit() -> str:
    """Returns the commit of the source tree that this runs from; empty for an installed package."""
    here = Path(__file__).parent
    try:
        answer = subprocess.run(
            ("git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12"),
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout.strip()


def _processor() -> str:
    try:
        lines = _CPU_INFO.read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _memory_mebibytes() -> int:
    if sys.platform == "win32":
        return 0
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MEBI


VERSION = "v1"

# What scheduler_perf's own runs put before the name of a test case.
_PREFIX = "BenchmarkPerfScheduling"

THROUGHPUT = "SchedulingThroughput"
ATTEMPTS = "scheduler_scheduling_attempt_duration_seconds"
DECISIONS = "DecisionThroughput"
#: Of the engine with what is timed around it, and of a scheduler's process with all it does.
PROCESSOR, PROCESS_PROCESSOR = "processor_time_per_pod", "process_processor_time_per_pod"
MEMORY, DURATION = "resident_memory_usage", "SchedulingDuration"

#: Tells schedulers apart where several were measured.
SCHEDULER = "scheduler"

# perf-dash shows only items that have a value for every label of the file, so one is made up.
_NOT_APPLICABLE = "not applicable"

_MILLI, _MICRO, _MEBI = 1e3, 1e6, 2**20


class DataItem(msgspec.Struct, kw_only=True):
    """Some numbers of one kind about one measurement."""

    data: dict[str, float] = {}
    unit: str = ""
    labels: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The measurement: test case, workload and what was collected."""
        return self.labels.get("Name", "").removeprefix(f"{_PREFIX}/")

    @property
    def metric(self) -> str:
        """What the numbers are, with what tells them from others of that metric."""
        others = (
            f"{key}={value}"
            for key, value in sorted(self.labels.items())
            if key not in ("Name", "Metric", SCHEDULER)
        )
        return " ".join((self.labels.get("Metric", ""), *others))

    @property
    def scheduler(self) -> str:
        return self.labels.get(SCHEDULER, "")


class DataItems(msgspec.Struct, kw_only=True):
    """A file of results. `run` tells how they came about; kube-scheduler's have none."""

    version: str = VERSION
    data_items: list[DataItem] = msgspec.field(name="dataItems", default_factory=list)
    run: Mapping[str, Any] | None = None


class _ItemDocument(msgspec.Struct, kw_only=True):
    """As scheduler_perf writes it: without figures where a run was too short for a sample."""

    data: dict[str, float] | None = None
    unit: str = ""
    labels: dict[str, str] | None = None

    @property
    def item(self) -> DataItem:
        labels = self.labels or {}
        known = {key: value for key, value in labels.items() if value != _NOT_APPLICABLE}
        return DataItem(data=self.data or {}, unit=self.unit, labels=known)


class _ItemsDocument(msgspec.Struct, kw_only=True):
    version: str = VERSION
    data_items: list[_ItemDocument] | None = msgspec.field(name="dataItems", default=None)
    run: Mapping[str, Any] | None = None


def data_items(job: Job, measured: Measurement, by: str = "") -> Iterator[DataItem]:
    """Yields the items of one measurement, the one with the threshold marked by it.

    Where several schedulers are measured, the label `scheduler` tells which one it was.
    """
    name = f"{_PREFIX}/{job.name}/{measured.name}"
    for item in _items(name, measured):
        if by:
            item.labels[SCHEDULER] = by
        if _has_threshold(job, item) and job.workload.threshold_for(job.case.topic):
            bucket = job.selector.data_bucket
            item.data[f"{bucket}Threshold"] = job.workload.threshold_for(job.case.topic)
        yield item


def describe_miss(job: Job, items: Sequence[DataItem]) -> str | None:
    """Says how the threshold was missed; None if it was met or there is none."""
    threshold, selector = job.workload.threshold_for(job.case.topic), job.selector
    for item in items if threshold else ():
        if not _has_threshold(job, item):
            continue
        found = item.data.get(selector.data_bucket)
        if found is None:
            return f"no {selector.data_bucket} of {selector.name} was measured"
        if (found >= threshold) if selector.expect_lower else (found <= threshold):
            side = "below" if selector.expect_lower else "above"
            return f"{found:,.1f} is not {side} the threshold of {threshold:,.1f} {item.unit}"
    return None


def check_selector(job: Job) -> None:
    """Raises WorkloadError if the threshold is about something that is not measured."""
    known = (
        *(THROUGHPUT, ATTEMPTS, DECISIONS, PROCESSOR, PROCESS_PROCESSOR),
        *(MEMORY, DURATION),
    )
    if job.workload.threshold_for(job.case.topic) and job.selector.name not in known:
        text = f"is not measured; there are {', '.join(known)}"
        raise job.error(f"thresholdMetricSelector: {job.selector.name}", text)


def read_results(path: Path) -> DataItems:
    """Returns the results in a file, or in all JSON files of a folder."""
    if path.is_dir():
        files = [read_results(file) for file in sorted(path.glob("*.json"))]
        if not files:
            raise WorkloadError(path, "no JSON files in this folder")
        return DataItems(data_items=[item for each in files for item in each.data_items])
    try:
        written = msgspec.json.decode(path.read_bytes(), type=_ItemsDocument)
    except OSError as error:
        raise WorkloadError(path, (error.strerror or str(error)).lower()) from None
    except msgspec.MsgspecError as error:
        raise WorkloadError(path, error) from None
    items = [each.item for each in written.data_items or ()]
    return DataItems(version=written.version, data_items=items, run=written.run)


def write_results(path: Path, items: DataItems) -> None:
    """Writes results, every item with every label."""
    labels = {label: _NOT_APPLICABLE for item in items.data_items for label in item.labels}
    alike = [
        msgspec.structs.replace(item, labels={**labels, **item.labels}) for item in items.data_items
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    written = msgspec.json.encode(msgspec.structs.replace(items, data_items=alike))
    path.write_bytes(msgspec.json.format(written, indent=2) + b"\n")


def _items(name: str, measured: Measurement) -> Iterator[DataItem]:
    def item(metric: str, unit: str, data: dict[str, float], **labels: str) -> DataItem:
        return DataItem(data=data, unit=unit, labels={"Name": name, "Metric": metric, **labels})

    yield item(THROUGHPUT, "pods/s", measured.throughput)
    for result, seconds in measured.latencies.items():
        if len(seconds):
            found = summary([each * _MILLI for each in seconds])
            yield item(ATTEMPTS, "ms", found, result=result)
    if measured.deciding_seconds:
        rate = measured.decisions / measured.deciding_seconds
        yield item(DECISIONS, "decisions/s", {"Average": rate})
    if measured.placed:
        each = measured.processor_seconds / measured.placed
        # Only an engine of our own can be asked for its decisions.
        metric = PROCESSOR if measured.decisions else PROCESS_PROCESSOR
        yield item(metric, "us", {"Average": each * _MICRO})
    memory = [each / _MEBI for each in measured.memory_bytes]
    yield item(MEMORY, "MB", {**summary(memory), "Max": max(memory)})
    yield item(DURATION, "s", {"Duration": measured.seconds})


def _has_threshold(job: Job, item: DataItem) -> bool:
    selector = job.selector
    return item.labels["Metric"] == selector.name and all(
        item.labels.get(key) == value for key, value in selector.labels.items()
    )


#: What the cells are called: the first one is the name.
HEADERS = ("workload", "pods", "pods/s", "decisions/s", "p50 ms", "p99 ms", "CPU us/pod", "MB")


def cells(measured: Measurement) -> tuple[str, ...]:
    """Returns the figures of a measurement for a table: all but the name."""
    latencies = milliseconds(measured)
    decisions, pods = measured.decisions, measured.placed
    return (
        f"{pods:,}",
        f"{measured.pods_per_second:,.0f}",
        f"{decisions / measured.deciding_seconds:,.0f}" if decisions else "-",
        f"{percentile(latencies, 50):.3f}" if decisions else "-",
        f"{percentile(latencies, 99):.3f}" if decisions else "-",
        f"{measured.processor_seconds / pods * _MICRO:,.0f}" if pods else "-",
        f"{max(measured.memory_bytes) / _MEBI:,.0f}",
    )


def milliseconds(measured: Measurement) -> NDArray[np.float64]:
    """Returns how long each decision took, whatever came of it, the shortest first."""
    each = [np.asarray(seconds) for seconds in measured.latencies.values()]
    return np.sort(np.concatenate(each)) * _MILLI


def percentile(ordered: NDArray[np.float64], percent: int) -> float:
    """Returns the value that so many percent do not exceed; always one of the values."""
    return float(ordered[math.ceil(len(ordered) * percent / 100) - 1])
