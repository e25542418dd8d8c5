"""The pods of jobs: which come next, which go, and what they are like."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.embedded.wire import Json

from .items import PodItem
from .job_counts import Counts, Tally
from .job_failures import INDEX, INDEX_FAILURES, index_of
from .ownership import pod_of
from .ranking import least_missed

# A pod that failed is replaced after this time, and each further one after twice the last.
_FIRST_DELAY_SECONDS = 10
_LONGEST_DELAY_SECONDS = 600
_MOST_DOUBLINGS = 10

_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
# The longest beginning of a name that leaves room for five random letters.
_LONGEST_PREFIX = 58


def delay_after(failures: int, last: float, now: float) -> float:
    """How long to wait after so many failures."""
    if not failures:
        return 0.0
    doublings = min(failures - 1, _MOST_DOUBLINGS)
    seconds = min(_FIRST_DELAY_SECONDS * 2**doublings, _LONGEST_DELAY_SECONDS)
    return max(last + seconds - now, 0.0)


def due_indexes(counts: Counts, tally: Tally, now: float) -> tuple[list[int], float | None]:
    """The indexes whose pods are due, each after its own failures; when the next one is."""
    due, next_due = [], None
    for index in counts.open_indexes[: counts.missing]:
        wait = delay_after(*tally.index_failures.get(index, (0, 0.0)), now)
        if not wait:
            due.append(index)
        elif next_due is None or wait < next_due:
            next_due = wait
    return due, next_due


def surplus(item: Json, counts: Counts, now: float) -> list[PodItem]:
    """The pods that are too many: those that no index needs first."""
    least = max(-counts.missing, 0)
    strays = _strays(item, counts.active, now) if counts.completed is not None else []
    if not least and not strays:
        return []
    known = {pod.uid for pod in strays}
    others = [pod for pod in counts.active if pod.uid not in known]
    return [*strays, *least_missed(others, now)][: max(least, len(strays))]


def _strays(item: Json, active: list[PodItem], now: float) -> list[PodItem]:
    """Pods with indexes that there are not (any more), or that another pod has."""
    everyone = range(item["spec"]["completions"])
    indexes = {index_of(pod) for pod in active}
    if len(indexes) == len(active) and all(index in everyone for index in indexes):
        return []
    strays, seen = [], set()
    for pod in reversed(least_missed(active, now)):
        index = index_of(pod)
        if index in seen or index not in everyone:
            strays.append(pod)
        seen.add(index)
    return strays


def new_pods(item: Json, number: int) -> Iterator[Json]:
    """Pods that are all alike."""
    return (pod_of(item, item["spec"]["template"]) for _ in range(number))


def indexed_pod(item: Json, index: int, tally: Tally) -> Json:
    """The pod of an index, which knows it by label, annotation, hostname and environment."""
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
            _tell_index(container)
    return pod


def _tell_index(container: Json) -> None:
    variables = container.get("env") or []
    if all(each["name"] != _INDEX_VARIABLE for each in variables):
        source = {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}
        variable = {"name": _INDEX_VARIABLE, "valueFrom": {"fieldRef": source}}
        container["env"] = [*variables, variable]
