"""Jobs: pods that run to their end, so many at a time, until enough have succeeded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mooring.embedded.wire import Json

from .cache import PODS, Seen
from .claiming import Claiming
from .cluster import Cluster
from .controller import Concerns, Controller
from .items import PodItem
from .job_counts import Counts, Tally
from .job_outcome import Outcome, ending, finish, new_status, outcome, time_of
from .job_pods import delay_after, due_indexes, indexed_pod, new_pods, surplus
from .pod_keeping import PodKeeper
from .recording import Recorder
from .replica_sets import ROUND
from .statuses import condition_of, soonest

JOBS = "jobs.batch"

_OURS = "kubernetes.io/job-controller"


class Jobs(Controller):
    name = "job"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._claiming = Claiming(cluster, JOBS, PODS)
        self._recorder = Recorder(cluster, "job-controller")
        self._keeper = PodKeeper(cluster, self._recorder)
        #: Pods that are gone count on, by uid of the job.
        self._tallies: dict[str, Tally] = {}

    def concerns(self) -> Mapping[str, Concerns]:
        return {JOBS: self._job_seen, PODS: self._pod_seen}

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.read(JOBS, key)
        if item is None or "deletionTimestamp" in item["metadata"]:
            return None
        if item["spec"].get("managedBy", _OURS) != _OURS:
            return None
        ended = ending(item)
        if ended:
            return self._expire(item, ended)
        self._claiming.settle(item, key)
        counts, tally = self._count(item)
        told = outcome(item, counts, tally, self.cluster.now)
        if told is not None:
            return self._end(item, counts, told)
        more, again = self._scale(item, counts, tally)
        status = self._status(item)
        self._tell_suspension(item, status)
        self.cluster.set_status(JOBS, item, status)
        return 0.0 if more else soonest(again, _deadline(item, status, self.cluster.now))

    def _job_seen(self, seen: Seen) -> Iterator[str]:
        if seen.after is None:
            self._tallies.pop(seen.item.uid, None)
        yield from self._claiming.owner_seen(seen)

    def _pod_seen(self, seen: Seen) -> Iterator[str]:
        """A pod that is gone is counted for good."""
        manager = seen.item.controller
        if seen.after is None and isinstance(seen.before, PodItem) and manager is not None:
            tally = self._tallies.get(manager.uid)
            if tally is not None:
                tally.count_gone(seen.before)
        yield from self._claiming.dependent_seen(seen)

    def _count(self, item: Json) -> tuple[Counts, Tally]:
        uid = item["metadata"]["uid"]
        pods = self.cluster.cache.pods_of(uid)
        if uid not in self._tallies:
            self._tallies[uid] = Tally.since(item, pods)
        tally = self._tallies[uid]
        return Counts.of(item, pods, tally), tally

    def _status(self, item: Json) -> Json:
        """What there is to say after what was done."""
        self.cluster.cache.catch_up()
        return new_status(item, *self._count(item), self.cluster.now_text)

    def _scale(self, item: Json, counts: Counts, tally: Tally) -> tuple[bool, float | None]:
        """Makes or removes pods; whether there is more to do, and when to look again."""
        now = self.cluster.now
        going = surplus(item, counts, now)
        if going:
            # They did nothing wrong, so they do not count as failures.
            tally.spare(going[:ROUND])
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
            self._keeper.create(item, pod)
        return counts.missing > ROUND and not again, again

    def _end(self, item: Json, counts: Counts, told: Outcome) -> float | None:
        """Removes what still runs; once nothing does, the job has ended."""
        self._remove(item, counts.active)
        before = item.get("status") or {}
        status = finish(self._status(item), told, self.cluster.now_text)
        self.cluster.set_status(JOBS, item, status)
        kind, reason, message = told
        if not condition_of(status, kind) or condition_of(before, kind):
            return None
        if kind == "Complete":
            self._recorder.tell(item, "Completed", "Job completed")
        else:
            self._recorder.tell(item, reason, message, "Warning")
        return 0.0

    def _remove(self, item: Json, pods: list[PodItem]) -> None:
        for pod in pods:
            self._keeper.delete(item, pod)

    def _tell_suspension(self, item: Json, status: Json) -> None:
        before = condition_of(item.get("status") or {}, "Suspended")
        after = condition_of(status, "Suspended")
        if before.get("status") != after.get("status"):
            # Without "Job" this is how the events are called, too.
            self._recorder.tell(item, after["reason"].removeprefix("Job"), after["message"])

    def _expire(self, item: Json, ended: Json) -> float | None:
        """A job that has ended goes after a while, if it says so."""
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


def _deadline(item: Json, status: Json, now: float) -> float | None:
    limit = item["spec"].get("activeDeadlineSeconds")
    if limit is None or "startTime" not in status or item["spec"].get("suspend"):
        return None
    return max(time_of(status["startTime"]) + limit - now, 0.001)
