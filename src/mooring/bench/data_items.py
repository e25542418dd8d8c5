"""Figures in the form that perf-dash reads: scheduler_perf's data items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from .cases import Job
from .collector import Measured, summary
from .problems import WorkloadError

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


class _WrittenItem(msgspec.Struct, kw_only=True):
    """As scheduler_perf writes it: without figures where a run was too short for a sample."""

    data: dict[str, float] | None = None
    unit: str = ""
    labels: dict[str, str] | None = None

    @property
    def item(self) -> DataItem:
        labels = self.labels or {}
        known = {key: value for key, value in labels.items() if value != _NOT_APPLICABLE}
        return DataItem(data=self.data or {}, unit=self.unit, labels=known)


class _WrittenItems(msgspec.Struct, kw_only=True):
    version: str = VERSION
    data_items: list[_WrittenItem] | None = msgspec.field(name="dataItems", default=None)
    run: Mapping[str, Any] | None = None


def data_items(job: Job, measured: Measured, by: str = "") -> Iterator[DataItem]:
    """The items of one measurement, the one with the threshold marked by it.

    Where several schedulers are measured, the label `scheduler` tells which one it was.
    """
    name = f"{_PREFIX}/{job.name}/{measured.name}"
    for item in _items(name, measured):
        if by:
            item.labels[SCHEDULER] = by
        if _is_meant(job, item) and job.workload.threshold_for(job.case.topic):
            bucket = job.selector.data_bucket
            item.data[f"{bucket}Threshold"] = job.workload.threshold_for(job.case.topic)
        yield item


def missed(job: Job, items: Sequence[DataItem]) -> str | None:
    """How the threshold was missed, if there is one and it was."""
    threshold, selector = job.workload.threshold_for(job.case.topic), job.selector
    for item in items if threshold else ():
        if not _is_meant(job, item):
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
        told = f"is not measured; there are {', '.join(known)}"
        raise job.error(f"thresholdMetricSelector: {job.selector.name}", told)


def read(path: Path) -> DataItems:
    """The results in a file, or in all JSON files of a folder."""
    if path.is_dir():
        files = [read(file) for file in sorted(path.glob("*.json"))]
        if not files:
            raise WorkloadError(path, "no JSON files in this folder")
        return DataItems(data_items=[item for each in files for item in each.data_items])
    try:
        written = msgspec.json.decode(path.read_bytes(), type=_WrittenItems)
    except OSError as error:
        raise WorkloadError(path, (error.strerror or str(error)).lower()) from None
    except msgspec.MsgspecError as error:
        raise WorkloadError(path, error) from None
    items = [each.item for each in written.data_items or ()]
    return DataItems(version=written.version, data_items=items, run=written.run)


def write(path: Path, items: DataItems) -> None:
    """Writes results, every item with every label."""
    labels = {label: _NOT_APPLICABLE for item in items.data_items for label in item.labels}
    alike = [
        msgspec.structs.replace(item, labels={**labels, **item.labels}) for item in items.data_items
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    written = msgspec.json.encode(msgspec.structs.replace(items, data_items=alike))
    path.write_bytes(msgspec.json.format(written, indent=2) + b"\n")


def _items(name: str, measured: Measured) -> Iterator[DataItem]:
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


def _is_meant(job: Job, item: DataItem) -> bool:
    selector = job.selector
    return item.labels["Metric"] == selector.name and all(
        item.labels.get(key) == value for key, value in selector.labels.items()
    )
