"""The controller of PodDisruptionBudgets: how many pods of a budget may be evicted now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from moorage.embedded.api.metadata import with_condition
from moorage.embedded.controllers.rollouts import share
from moorage.embedded.store.object_store import Json
from moorage.objects.selector import Selector

from .cache import PODS, ItemChange
from .controller import Concerns, Controller, ControllerApi
from .items import ENDED, Item, PodItem
from .ownership import selector_of

BUDGETS = "poddisruptionbudgets.policy"

# A pod that was to be evicted and is still there after so long stays.
_EVICTION_SECONDS = 120


class _Uncountable(Exception):
    """The expected number of pods is not known."""


class BudgetController(Controller):
    name = "disruption"

    def __init__(self, cluster: ControllerApi) -> None:
        super().__init__(cluster)
        #: By namespace, then by key of the budget.
        self._selectors: dict[str, dict[str, Selector]] = {}
        self._guarded: dict[str, dict[str, None]] = {}

    def concerns(self) -> Mapping[str, Concerns]:
        return {BUDGETS: self._keys_of_budget, PODS: self._keys_of_pod}

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.read(BUDGETS, key)
        if item is None:
            return None
        guarded = [self.cluster.cache.pod(each) for each in self._guarded.get(key, ())]
        pods = [pod for pod in guarded if pod is not None and pod.phase not in ENDED]
        disrupted, again = self._read_disrupted(item, pods)
        try:
            expected, desired = self._count_wanted(item["spec"], pods)
        except _Uncountable as reason:
            self._report(item, _sync_failure(item, str(reason)))
            return again
        healthy = sum(
            pod.ready and not pod.terminating and pod.name not in disrupted for pod in pods
        )
        allowed = max(healthy - desired, 0) if expected else 0
        counts = {
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
        }
        self._report(item, {**counts, **({"disruptedPods": disrupted} if disrupted else {})})
        return again

    def _keys_of_budget(self, seen: ItemChange) -> Iterator[str]:
        item = seen.item
        of_namespace = self._selectors.setdefault(item.namespace, {})
        selector = self._selector(item) if seen.after is not None else None
        if selector is None:
            of_namespace.pop(item.key, None)
            self._guarded.pop(item.key, None)
        elif of_namespace.get(item.key) != selector:
            of_namespace[item.key] = selector
            pods = self.cluster.api.store.table(PODS).in_order(item.namespace)
            matching = (pod.key for pod in pods if selector.matches(pod.labels))
            self._guarded[item.key] = dict.fromkeys(matching)
        yield item.key

    def _keys_of_pod(self, seen: ItemChange) -> Iterator[str]:
        pod = seen.item
        for key, selector in self._selectors.get(pod.namespace, {}).items():
            guarded = self._guarded[key]
            was = pod.key in guarded
            matches = seen.after is not None and selector.matches(pod.labels)
            if matches:
                guarded[pod.key] = None
            elif was:
                del guarded[pod.key]
            if was != matches or (matches and _differs(seen)):
                yield key

    def _selector(self, budget: Item) -> Selector | None:
        item = self.cluster.read(BUDGETS, budget.key)
        return None if item is None else selector_of(item)

    def _count_wanted(self, spec: Json, pods: list[PodItem]) -> tuple[int, int]:
        """Returns how many pods are expected, and how many of them must be healthy."""
        least, most_missing = spec.get("minAvailable"), spec.get("maxUnavailable")
        if isinstance(least, int):
            return len(pods), least
        if least is None and most_missing is None:
            return len(pods), 0
        expected = self._count_expected(pods)
        if least is not None:
            return expected, share(least, expected, up=True)
        return expected, max(expected - share(most_missing, expected, up=True), 0)

    def _count_expected(self, pods: list[PodItem]) -> int:
        """Returns how many pods the controllers of these pods want."""
        owners = {owner.uid: owner for pod in pods if (owner := pod.controller) is not None}
        sizes: dict[str, int] = {}
        for uid, reference in sorted(owners.items()):
            found = self.cluster.cache.by_uid.get(uid)
            if found is not None and found.controller is not None:
                found = self.cluster.cache.by_uid.get(found.controller.uid) or found
            size = (found.entry.object.get("spec") or {}).get("replicas") if found else None
            if found is None or not isinstance(size, int):
                message = f"{reference.kind} {reference.name} does not say how many pods it wants"
                raise _Uncountable(message)
            sizes[found.uid] = size
        return sum(sizes.values())

    def _read_disrupted(self, item: Json, pods: list[PodItem]) -> tuple[Json, float | None]:
        """Returns the pods that are being evicted, and when to stop waiting for that."""
        noted = (item.get("status") or {}).get("disruptedPods") or {}
        present = {pod.name for pod in pods if not pod.terminating}
        left = {
            name: datetime.fromisoformat(since).timestamp() + _EVICTION_SECONDS - self.cluster.now
            for name, since in noted.items()
            if name in present
        }
        kept = {name: noted[name] for name in left if left[name] > 0}
        return kept, min((left[name] for name in kept), default=None)

    def _report(self, item: Json, counts: Json) -> None:
        allowed = counts.get("disruptionsAllowed", 0)
        condition = counts.pop("condition", None) or {
            "reason": "SufficientPods" if allowed else "InsufficientPods",
            "message": "",
        }
        generation = item["metadata"].get("generation", 0)
        whole = {
            "type": "DisruptionAllowed",
            "status": "True" if allowed else "False",
            "observedGeneration": generation,
            **condition,
        }
        conditions = with_condition(item.get("status") or {}, whole, self.cluster.now_text)
        status = {**counts, "conditions": conditions, "observedGeneration": generation}
        self.cluster.set_status(BUDGETS, item, status)


def _sync_failure(item: Json, reason: str) -> Json:
    """Returns counts that allow no eviction, because the expected number of pods is not known."""
    names = ("currentHealthy", "desiredHealthy", "expectedPods")
    known = item.get("status") or {}
    counts = {name: known.get(name, 0) for name in names}
    condition = {"reason": "SyncFailed", "message": reason}
    return {"disruptionsAllowed": 0, **counts, "condition": condition}


def _differs(seen: ItemChange) -> bool:
    """Whether a change of a pod changes the counts of its budget."""
    return _facts(seen.before) != _facts(seen.after)


def _facts(pod: Item | None) -> tuple[object, ...]:
    if not isinstance(pod, PodItem):
        return ()
    return (pod.ready, pod.terminating, pod.phase in ENDED, pod.uid, pod.owners)
