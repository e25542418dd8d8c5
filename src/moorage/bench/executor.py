"""Carries out the operations of a workload, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any

from moorage.app.python_garbage import freeze_objects, unfreeze_objects

from .blueprints import Blueprints, namespace
from .cases import Job, NotPlaced
from .device_claims import publish
from .measurement import Collector, Measurement, PodEntry, Watch
from .operations import (
    AllocResourceClaims,
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePodGroups,
    CreatePods,
    CreateResourceClaims,
    CreateResourceDriver,
    DeletePods,
    Operation,
    Sleep,
    StartCollectingMetrics,
    StopCollectingMetrics,
    UpdateAny,
    WaitForPodGroups,
)
from .target import BenchTarget, Stalled
from .templates import Manifest

#: Does something each time it is asked for the next value.
Task = Iterator[object]


@dataclass(slots=True)
class Background:
    """Tasks, each with its interval; the next one due is done first."""

    _due: list[tuple[float, int, float, Task]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def add(self, task: Task, interval: float, now: float) -> None:
        """Schedules a task one interval from now, and then at each further interval."""
        heappush(self._due, (now + interval, next(self._numbers), interval, task))

    @property
    def next_moment(self) -> float | None:
        return self._due[0][0] if self._due else None

    def do(self, now: float) -> None:
        """Does what is due. As with a ticker, what was missed is done once, not several times."""
        while self._due and self._due[0][0] <= now:
            due, number, interval, task = heappop(self._due)
            if next(task, None) is not None:
                missed = (now - due) // interval
                heappush(self._due, (due + (missed + 1) * interval, number, interval, task))


def churn_task(
    operation: Churn, namespace: str, blueprints: Blueprints, target: BenchTarget
) -> Task:
    """Makes one object of each template at a time; in mode recreate, deletes them in turn."""
    slots: list[list[Manifest]] = [[] for _ in range(operation.number)]
    numbers = count() if operation.mode == "recreate" or not slots else iter(range(len(slots)))
    for number in numbers:
        slot = slots[number % len(slots)] if operation.mode == "recreate" else []
        if slot:
            for manifest in slot:
                target.delete(manifest)
            slot.clear()
        else:
            slot += [
                blueprints.object_from(path, namespace if blueprints.is_namespaced(path) else "")
                for path in operation.template_paths
            ]
            target.create(slot)
        yield number


# How long pods are waited for, as in scheduler_perf, in the target's time.
_PATIENCE_SECONDS = 600.0

# Enough to see what kind of pod it is.
_MOST_NAMES = 3


class Executor:
    """One run of a workload on a target."""

    def __init__(self, job: Job, target: BenchTarget, blueprints: Blueprints) -> None:
        self._job = job
        self._target = target
        self._blueprints = blueprints
        self._background = Background()
        self._namespaces: set[str] = set()
        self._node_names: list[str] = []
        #: The pods that were not waited for when they were made.
        self._unawaited: list[str] = []
        self.measured: list[Measurement] = []
        self._runners: dict[type[Operation], Callable[[Any, int], None]] = {
            CreateNodes: self._create_nodes,
            CreateNamespaces: self._create_namespaces,
            CreatePods: self._create_pods,
            DeletePods: self._delete_pods,
            CreateAny: self._create_any,
            CreatePodGroups: self._create_from_template,
            CreateResourceClaims: self._create_from_template,
            CreateResourceDriver: self._create_driver,
            AllocResourceClaims: self._allocate_claims,
            WaitForPodGroups: lambda operation, index: None,
            UpdateAny: self._update_any,
            Churn: self._churn,
            Barrier: self._barrier,
            Sleep: self._sleep,
            StartCollectingMetrics: self._start_collecting,
            StopCollectingMetrics: self._stop_collecting,
        }

    def run(self, operations: Iterable[Operation]) -> None:
        """Carries out all operations; raises NotPlaced if a pod stays pending."""
        for index, operation in enumerate(operations):
            self._runners[type(operation)](operation, index)

    # Objects

    def _create_nodes(self, operation: CreateNodes, index: int) -> None:
        self._target.create(self._note_names(self._blueprints.nodes(operation, index)))

    def _note_names(self, made: Iterable[Manifest]) -> Iterator[Manifest]:
        for each in made:
            if each["kind"] == "Node":
                self._node_names.append(each["metadata"]["name"])
            yield each

    def _create_namespaces(self, operation: CreateNamespaces, index: int) -> None:
        made = [
            each
            for each in self._blueprints.namespaces(operation)
            if each["metadata"]["name"] not in self._namespaces
        ]
        self._namespaces.update(each["metadata"]["name"] for each in made)
        self._target.create(made)

    def _create_any(self, operation: CreateAny, index: int) -> None:
        self._check_scope(operation)
        self._ensure(operation.namespace)
        self._target.create(self._any(operation, number) for number in range(operation.count))

    def _create_from_template(
        self, operation: CreatePodGroups | CreateResourceClaims, index: int
    ) -> None:
        """Adds objects that are known at once, so that nothing waits for them."""
        self._ensure(operation.namespace)
        self._target.create(
            self._blueprints.object_from(
                operation.template_path, operation.namespace, operation.template_values(number)
            )
            for number in range(operation.count)
        )

    def _create_driver(self, operation: CreateResourceDriver, index: int) -> None:
        self._target.create(publish(operation, self._node_names))

    def _allocate_claims(self, operation: AllocResourceClaims, index: int) -> None:
        self._target.allocate_claims(operation.namespace)

    def _update_any(self, operation: UpdateAny, index: int) -> None:
        self._check_scope(operation)
        # All at once: what is measured would be slower right after a template was read.
        made = self._target.render(
            self._any(operation, number) for number in range(operation.count)
        )
        self._finish(self._update_task(operation, made), operation.update_per_second)

    def _update_task(self, operation: UpdateAny, made: Iterable[Manifest]) -> Task:
        for manifest in made:
            self._target.replace(manifest, operation.subresources)
            yield manifest

    def _any(self, operation: CreateAny | UpdateAny, number: int) -> Manifest:
        path, within = operation.template_path, operation.namespace
        return self._blueprints.object_from(path, within, operation.template_values(number))

    def _check_scope(self, operation: CreateAny | UpdateAny) -> None:
        path = operation.template_path
        if self._blueprints.is_namespaced(path) != bool(operation.namespace):
            rule = "must be empty for" if operation.namespace else "is required for"
            kind = self._blueprints.kind(path)
            raise self._job.error(path, f"namespace: {rule} a {kind}")

    def _ensure(self, name: str) -> None:
        if name and name not in self._namespaces:
            self._namespaces.add(name)
            self._target.create([namespace(name)])

    # Pods

    def _create_pods(self, operation: CreatePods, index: int) -> None:
        within = operation.namespace or f"namespace-{index}"
        self._ensure(within)
        if operation.collect_metrics:
            self._start_collecting(StartCollectingMetrics(namespaces=(within,), name=within), index)
        uids = self._make(operation, within)
        if operation.skip_wait_to_completion:
            self._unawaited += uids
            return
        self._wait_for_placed(uids)
        if operation.steady_state:
            self._keep_steady(operation, within)
        if operation.collect_metrics:
            self._stop_collecting(StopCollectingMetrics(), index)

    def _make(self, operation: CreatePods, within: str) -> list[str]:
        default = self._job.case.document.default_pod_template_path
        return self._target.create(self._blueprints.pods(operation, within, default))

    def _keep_steady(self, operation: CreatePods, within: str) -> None:
        """Replaces the pods of the namespace by new ones for the operation's duration."""
        end = self._target.now + operation.duration.seconds
        while self._target.now < end:
            for entry in list(self._target.ledger.of(within, {})):
                self._target.delete_pod(entry.uid)
            self._wait_for_placed(self._make(operation, within))

    def _delete_pods(self, operation: DeletePods, index: int) -> None:
        chosen = list(self._target.ledger.of(operation.namespace, operation.label_selector))
        task = self._delete_task(chosen)
        rate = operation.delete_pods_per_second
        if operation.skip_wait_to_completion and rate:
            self._background.add(task, 1 / rate, self._target.now)
        else:
            self._finish(task, rate)

    def _delete_task(self, entries: list[PodEntry]) -> Task:
        for entry in entries:
            self._target.delete_pod(entry.uid)
            yield entry

    def _churn(self, operation: Churn, index: int) -> None:
        within = operation.namespace or f"namespace-{index}"
        self._ensure(within)
        task = churn_task(operation, within, self._blueprints, self._target)
        self._background.add(task, operation.interval_seconds, self._target.now)

    # Waiting

    def _barrier(self, operation: Barrier, index: int) -> None:
        for name in operation.namespaces:
            if name not in self._namespaces:
                raise self._job.error(f"op {index}", f"namespaces: {name!r} is not known")
        awaited = list(self._find_awaited(operation))
        if operation.stage_requirement == "Attempted":
            self._wait(self._target.ledger.watch(awaited, for_attempts=True))
            return
        self._wait_for_placed(awaited)

    def _find_awaited(self, operation: Barrier) -> Iterator[str]:
        for uid in self._unawaited:
            entry = self._target.ledger.entries.get(uid)
            if entry is None or not entry.matches(operation.label_selector):
                continue
            if not operation.namespaces or entry.namespace in operation.namespaces:
                yield uid

    def _sleep(self, operation: Sleep, index: int) -> None:
        self._pass_time(self._target.now + operation.duration.seconds)

    def _wait_for_placed(self, uids: Iterable[str]) -> None:
        self._wait(self._target.ledger.watch(uids))

    def _wait(self, watch: Watch) -> None:
        """Lets the target work until no pod of the watch is missing."""
        deadline = self._target.now + _PATIENCE_SECONDS
        try:
            while watch.missing:
                if self._target.now >= deadline:
                    raise NotPlaced(self._describe(watch))
                # A target that has nothing to do, ever, says so.
                self._background.do(self._target.now)
                self._target.advance(self._background.next_moment)
        except Stalled:
            raise NotPlaced(self._describe(watch)) from None
        finally:
            self._target.ledger.unwatch(watch)

    def _pass_time(self, until: float) -> None:
        while self._target.now < until:
            self._background.do(self._target.now)
            moment = self._background.next_moment
            self._target.advance(until if moment is None else min(moment, until))

    def _finish(self, task: Task, rate: int) -> None:
        """Completes a task, with `rate` steps per second; 0 means at once."""
        for _ in task:
            if rate:
                self._pass_time(self._target.now + 1 / rate)

    def _describe(self, watch: Watch) -> str:
        entries = [self._target.ledger.entries[uid] for uid in sorted(watch.missing)]
        stage = "were not tried" if watch.is_for_attempts else "stay pending"
        names = [f"{each.namespace}/{each.name}" for each in entries[:_MOST_NAMES]]
        why = f": {entries[0].message}" if entries[0].message else ""
        return f"{len(entries)} pods {stage}, such as {', '.join(names)}{why}"

    # Measuring

    def _start_collecting(self, operation: StartCollectingMetrics, index: int) -> None:
        if self._target.collector is not None:
            raise self._job.error(f"op {index}", "a measurement is under way already")
        with self._target.stopwatch.pause():
            # As the running scheduler does once it knows the cluster.
            freeze_objects()
        self._target.collector = Collector(
            operation.name,
            frozenset(operation.namespaces),
            operation.label_selector,
            self._target.stopwatch,
            self._target.resident_bytes,
        )

    def _stop_collecting(self, operation: StopCollectingMetrics, index: int) -> None:
        collector = self._target.collector
        if collector is None:
            raise self._job.error(f"op {index}", "no measurement was started")
        self._target.collector = None
        self.measured.append(collector.finish())
        unfreeze_objects()
