"""Jobs: pods that run to their end, so many at a time, until enough have succeeded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mooring.embedded.wire import Json

from .cache import PODS, Seen
from .claiming import Claiming
from .cluster import Cluster
from .controller import Concerns, Controller
from .items import PodItem
from .job_outcome import INDEX, Counts, Tally, finish, new_status, outcome, time_of
from .ownership import is_managed_by, pod_of
from .ranking import least_missed
from .replica_sets import ROUND
from .statuses import condition_of

JOBS = "jobs.batch"

# A pod that failed is replaced after this time, and each further one after twice the last.
_FIRST_DELAY_SECONDS = 10
_LONGEST_DELAY_SECONDS = 600
_MOST_DOUBLINGS = 10


class Jobs(Controller):
    name = "job"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._claiming = Claiming(cluster, JOBS, PODS)
        #: Pods that are gone count on, by uid of the job.
        self._tallies: dict[str, Tally] = {}

    def concerns(self) -> Mapping[str, Concerns]:
        return {JOBS: self._job_seen, PODS: self._pod_seen}

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.read(JOBS, key)
        if item is None or "deletionTimestamp" in item["metadata"]:
            return None
        ended = _ended(item)
        if ended:
            return self._expire(item, ended)
        self._claiming.settle(item, key)
        counts = self._counts(item)
        told = outcome(item, counts, self.cluster.now)
        if told is not None:
            self._remove(item, counts.active)
            self.cluster.cache.catch_up()
            status = finish(item, self._counts(item), told, self.cluster.now_text)
            self.cluster.set_status(JOBS, item, status)
            return 0.0
        more, again = self._scale(item, counts)
        self.cluster.cache.catch_up()
        status = new_status(item, self._counts(item), self.cluster.now_text)
        self.cluster.set_status(JOBS, item, status)
        return 0.0 if more else _soonest(again, _deadline(item, status, self.cluster.now))

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

    def _counts(self, item: Json) -> Counts:
        uid = item["metadata"]["uid"]
        pods = [pod for pod in self.cluster.cache.pods_of(uid) if is_managed_by(pod, uid)]
        if uid not in self._tallies:
            self._tallies[uid] = Tally.since(item.get("status") or {}, pods)
        return Counts.of(item, pods, self._tallies[uid])

    def _scale(self, item: Json, counts: Counts) -> tuple[bool, float | None]:
        """Makes or removes pods; whether there is more to do, and when to look again."""
        wanted = 0 if item["spec"].get("suspend") else counts.wanted
        missing = wanted - len(counts.active)
        if missing < 0:
            surplus = least_missed(counts.active, self.cluster.now)[: min(-missing, ROUND)]
            self._remove(item, surplus)
            return -missing > ROUND, None
        delay = self._delay(counts) if missing else 0.0
        if not missing or delay > 0:
            return False, delay or None
        for pod in self._pods(item, counts, min(missing, ROUND)):
            self.cluster.create(PODS, item["metadata"]["namespace"], pod)
        return missing > ROUND, None

    def _pods(self, item: Json, counts: Counts, number: int) -> Iterator[Json]:
        template = item["spec"]["template"]
        if counts.completed is None:
            yield from (pod_of(item, template) for _ in range(number))
            return
        for index in counts.open_indexes[:number]:
            pod = pod_of(item, template)
            metadata = pod["metadata"]
            metadata["generateName"] = f"{item['metadata']['name']}-{index}-"
            for field in ("labels", "annotations"):
                metadata[field] = {**(metadata.get(field) or {}), INDEX: str(index)}
            pod["spec"].setdefault("hostname", f"{item['metadata']['name']}-{index}")
            yield pod

    def _remove(self, item: Json, pods: list[PodItem]) -> None:
        """Removes pods that did nothing wrong, so that they do not count as failures."""
        self._tallies[item["metadata"]["uid"]].spare(pods)
        for pod in pods:
            self.cluster.delete(pod)

    def _delay(self, counts: Counts) -> float:
        if not counts.failed_lately:
            return 0.0
        doublings = min(counts.failed_lately - 1, _MOST_DOUBLINGS)
        seconds = min(_FIRST_DELAY_SECONDS * 2**doublings, _LONGEST_DELAY_SECONDS)
        return max(counts.last_failure + seconds - self.cluster.now, 0.0)

    def _expire(self, item: Json, ended: Json) -> float | None:
        """A job that has ended goes after a while, if it says so."""
        uid = item["metadata"]["uid"]
        if uid in self._tallies:
            status = new_status(item, self._counts(item), self.cluster.now_text)
            self.cluster.set_status(JOBS, item, status)
        lives = item["spec"].get("ttlSecondsAfterFinished")
        if lives is None:
            return None
        left = time_of(ended["lastTransitionTime"]) + lives - self.cluster.now
        if left > 0:
            return left
        self.cluster.delete(self.cluster.cache.by_uid[uid])
        return None


def _ended(item: Json) -> Json | None:
    status = item.get("status") or {}
    for kind in ("Complete", "Failed"):
        condition = condition_of(status, kind)
        if condition.get("status") == "True":
            return condition
    return None


def _deadline(item: Json, status: Json, now: float) -> float | None:
    limit = item["spec"].get("activeDeadlineSeconds")
    if limit is None or "startTime" not in status or item["spec"].get("suspend"):
        return None
    return max(time_of(status["startTime"]) + limit - now, 0.001)


def _soonest(*waits: float | None) -> float | None:
    return min((wait for wait in waits if wait is not None), default=None)
