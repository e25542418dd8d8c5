"""Jobs: pods that run to their end, so many at a time, until enough have succeeded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from moorage.embedded.api.metadata import condition_of
from moorage.embedded.controllers.controller import soonest
from moorage.embedded.store.object_store import Json

from .cache import PODS, ItemChange
from .controller import Concerns, Controller, ControllerApi
from .event_recorder import EventRecorder, PodKeeper
from .items import PodItem
from .job_counts import INDEX, INDEX_FAILURES, JobCounts, JobTally, index_of
from .job_groups import JobGroups, join_group
from .job_outcome import Outcome, find_ending, finish, job_status, outcome, time_of
from .ownership import Adoption, pod_of
from .replica_sets import ROUND, rank_for_removal

# A pod that failed is replaced after this time, and each further one after twice the last.
_FIRST_DELAY_SECONDS = 10
_LONGEST_DELAY_SECONDS = 600
_MOST_DOUBLINGS = 10

_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
# The longest beginning of a name that leaves room for five random letters.
_LONGEST_PREFIX = 58


def delay_after(failures: int, last: float, now: float) -> float:
    """Returns how many seconds to wait before the next pod after so many failures."""
    if not failures:
        return 0.0
    doublings = min(failures - 1, _MOST_DOUBLINGS)
    seconds = min(_FIRST_DELAY_SECONDS * 2**doublings, _LONGEST_DELAY_SECONDS)
    return max(last + seconds - now, 0.0)


def due_indexes(counts: JobCounts, tally: JobTally, now: float) -> tuple[list[int], float | None]:
    """Returns the indexes whose pods are due, and the seconds until the next one is."""
    due, next_due = [], None
    for index in counts.open_indexes[: counts.missing]:
        wait = delay_after(*tally.index_failures.get(index, (0, 0.0)), now)
        if not wait:
            due.append(index)
        elif next_due is None or wait < next_due:
            next_due = wait
    return due, next_due


def surplus(item: Json, counts: JobCounts, now: float) -> list[PodItem]:
    """Returns the pods that are too many, those without a valid index first."""
    least = max(-counts.missing, 0)
    strays = _strays(item, counts.active, now) if counts.completed is not None else []
    if not least and not strays:
        return []
    known = {pod.uid for pod in strays}
    others = [pod for pod in counts.active if pod.uid not in known]
    return [*strays, *rank_for_removal(others, now)][: max(least, len(strays))]


def _strays(item: Json, active: list[PodItem], now: float) -> list[PodItem]:
    """Returns pods whose index does not exist or belongs to another pod."""
    everyone = range(item["spec"]["completions"])
    indexes = {index_of(pod) for pod in active}
    if len(indexes) == len(active) and all(index in everyone for index in indexes):
        return []
    strays, seen = [], set()
    for pod in reversed(rank_for_removal(active, now)):
        index = index_of(pod)
        if index in seen or index not in everyone:
            strays.append(pod)
        seen.add(index)
    return strays


def new_pods(item: Json, number: int) -> Iterator[Json]:
    """Makes pods that are all alike."""
    return (pod_of(item, item["spec"]["template"]) for _ in range(number))


def indexed_pod(item: Json, index: int, tally: JobTally) -> Json:
    """Makes the pod of an index, with the index in label, annotation, hostname and environment."""
    pod, name = pod_of(item, item["spec"]["template"]), item["metadata"]["name"]
    metadata, ending = pod["metadata"], f"-{index}-"
    metadata["generateName"] = name[: _LONGEST_PREFIX - len(ending)] + ending
    for field in ("labels", "annotations"):
        metadata[field] = {**(metadata.get(field) or {}), INDEX: str(index)}
    if tally.judge.limit_per_index is not None:
        times, _ = tally.index_failures.get(index, (0, 0.0))
        metadata["annotations"][INDEX_FAILURES] = str(times)
    pod["spec"]["hostname"] = f"{name}-{index}"
    for field in ("initContainers", "containers"):
        for container in pod["spec"].get(field) or ():
            _add_index_variable(container)
    return pod


def _add_index_variable(container: Json) -> None:
    variables = container.get("env") or []
    if all(each["name"] != _INDEX_VARIABLE for each in variables):
        source = {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}
        variable = {"name": _INDEX_VARIABLE, "valueFrom": {"fieldRef": source}}
        container["env"] = [*variables, variable]


JOBS = "jobs.batch"

_OURS = "kubernetes.io/job-controller"


class JobController(Controller):
    name = "job"

    def __init__(self, cluster: ControllerApi) -> None:
        super().__init__(cluster)
        self._adoption = Adoption(cluster, JOBS, PODS)
        self._recorder = EventRecorder(cluster, "job-controller")
        self._keeper = PodKeeper(cluster, self._recorder)
        self._groups = JobGroups(cluster, self._recorder)
        #: Pods that are gone count on, by uid of the job.
        self._tallies: dict[str, JobTally] = {}

    def concerns(self) -> Mapping[str, Concerns]:
        return {JOBS: self._keys_of_job, PODS: self._keys_of_pod}

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.read(JOBS, key)
        if item is None or "deletionTimestamp" in item["metadata"]:
            return None
        if item["spec"].get("managedBy", _OURS) != _OURS:
            return None
        ended = find_ending(item)
        if ended:
            return self._expire(item, ended)
        self._adoption.adopt_and_release(item, key)
        counts, tally = self._count(item)
        result = outcome(item, counts, tally, self.cluster.now)
        if result is not None:
            return self._end(item, counts, result)
        group = self._groups.ensure(item, is_new=_is_new(item, counts))
        more, again = self._scale(item, counts, tally, group)
        status = self._status(item)
        self._record_suspension(item, status)
        self.cluster.set_status(JOBS, item, status)
        return 0.0 if more else soonest(again, _deadline(item, status, self.cluster.now))

    def _keys_of_job(self, seen: ItemChange) -> Iterator[str]:
        if seen.after is None:
            self._tallies.pop(seen.item.uid, None)
        yield from self._adoption.keys_of_owner(seen)

    def _keys_of_pod(self, seen: ItemChange) -> Iterator[str]:
        """Yields the job of a pod, and counts a pod that is gone."""
        manager = seen.item.controller
        if seen.after is None and isinstance(seen.before, PodItem) and manager is not None:
            tally = self._tallies.get(manager.uid)
            if tally is not None:
                tally.count_gone(seen.before)
        yield from self._adoption.keys_of_dependent(seen)

    def _count(self, item: Json) -> tuple[JobCounts, JobTally]:
        uid = item["metadata"]["uid"]
        pods = self.cluster.cache.pods_of(uid)
        if uid not in self._tallies:
            self._tallies[uid] = JobTally.since(item, pods)
        tally = self._tallies[uid]
        return JobCounts.of(item, pods, tally), tally

    def _status(self, item: Json) -> Json:
        """Returns the status of a job after the last writes."""
        self.cluster.cache.catch_up()
        return job_status(item, *self._count(item), self.cluster.now_text)

    def _scale(
        self, item: Json, counts: JobCounts, tally: JobTally, group: Json | None
    ) -> tuple[bool, float | None]:
        """Makes or removes pods; returns whether there is more to do, and when to look again."""
        now = self.cluster.now
        going = surplus(item, counts, now)
        if going:
            # They did nothing wrong, so they do not count as failures.
            tally.note_removed(going[:ROUND])
            self._remove(item, going[:ROUND])
            return len(going) > ROUND, None
        if counts.missing <= 0:
            return False, None
        if tally.judge.limit_per_index is not None:
            due, again = due_indexes(counts, tally, now)
        else:
            again = delay_after(counts.failed_lately, counts.last_failure, now) or None
            due = [] if again else counts.open_indexes[: counts.missing]
        pods: Iterable[Json]
        if counts.completed is not None:
            pods = (indexed_pod(item, index, tally) for index in due[:ROUND])
        else:
            pods = new_pods(item, 0 if again else min(counts.missing, ROUND))
        for pod in pods:
            self._keeper.create(item, join_group(pod, group))
        return counts.missing > ROUND and not again, again

    def _end(self, item: Json, counts: JobCounts, result: Outcome) -> float | None:
        """Removes the pods of a job that ends, and writes its status."""
        self._remove(item, counts.active)
        before = item.get("status") or {}
        status = finish(self._status(item), result, self.cluster.now_text)
        self.cluster.set_status(JOBS, item, status)
        kind, reason, message = result
        if not condition_of(status, kind) or condition_of(before, kind):
            return None
        if kind == "Complete":
            self._recorder.record(item, "Completed", "Job completed")
        else:
            self._recorder.record(item, reason, message, "Warning")
        return 0.0

    def _remove(self, item: Json, pods: list[PodItem]) -> None:
        for pod in pods:
            self._keeper.delete(item, pod)

    def _record_suspension(self, item: Json, status: Json) -> None:
        before = condition_of(item.get("status") or {}, "Suspended")
        after = condition_of(status, "Suspended")
        if before.get("status") != after.get("status"):
            # Without "Job" this is how the events are called, too.
            self._recorder.record(item, after["reason"].removeprefix("Job"), after["message"])

    def _expire(self, item: Json, ended: Json) -> float | None:
        """Deletes a job that has ended after its time to live."""
        uid = item["metadata"]["uid"]
        self._tallies.pop(uid, None)
        lives = item["spec"].get("ttlSecondsAfterFinished")
        if lives is None:
            return None
        left = time_of(ended["lastTransitionTime"]) + lives - self.cluster.now
        if left > 0:
            return left
        self.cluster.delete(self.cluster.cache.by_uid[uid])
        return None


def _is_new(item: Json, counts: JobCounts) -> bool:
    """Whether a job has never started: only then its pods can be told to be a group."""
    status = item.get("status") or {}
    if counts.active or any(status.get(field) for field in ("startTime", "succeeded", "failed")):
        return False
    return not condition_of(status, "Suspended")


def _deadline(item: Json, status: Json, now: float) -> float | None:
    limit = item["spec"].get("activeDeadlineSeconds")
    if limit is None or "startTime" not in status or item["spec"].get("suspend"):
        return None
    return max(time_of(status["startTime"]) + limit - now, 0.001)
