"""The controller of resource quotas: counts what a namespace uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from mooring.embedded.api.decoding import amount_text, part
from mooring.embedded.kinds.pod_amounts import Nanos
from mooring.embedded.kinds.quotas import (
    CLAIMS,
    PODS,
    QUOTAS,
    SERVICES,
    applies,
    counted_table,
    usage_of,
)
from mooring.embedded.store.table import Json, StoredObject

from .cache import ItemChange
from .controller import EVERY_KIND, Concerns, Controller, ControllerApi
from .items import PodItem


class QuotaController(Controller):
    """Writes what is used into the status of each quota."""

    name = "resourcequota"

    def __init__(self, cluster: ControllerApi) -> None:
        super().__init__(cluster)
        #: What objects use, by quota, table and key, with the versions that say so.
        self._usage: dict[str, dict[tuple[str, str], tuple[int, Nanos]]] = {}

    def concerns(self) -> Mapping[str, Concerns]:
        return {EVERY_KIND: self._keys_of_change}

    def reconcile(self, key: str) -> float | None:
        quota = self.cluster.read(QUOTAS, key)
        if quota is None:
            self._usage.pop(key, None)
            return None
        hard = part(quota["spec"], "hard")
        used = self._count(key, quota, hard)
        status = {"hard": hard, "used": {name: amount_text(name, used[name]) for name in hard}}
        if part(quota, "status") != status:
            self.cluster.set_status(QUOTAS, quota, status)
        return None

    def _count(self, key: str, quota: Json, hard: Mapping[str, str]) -> Counter[str]:
        """Counts anew; only objects that changed since are read."""
        before, now = self._usage.get(key, {}), dict[tuple[str, str], tuple[int, Nanos]]()
        total: Counter[str] = Counter()
        served = {each.table for each in self.cluster.api.kinds}
        for table in sorted({counted_table(name) for name in hard} & served):
            for entry in self.cluster.api.store.table(table).in_order(
                quota["metadata"]["namespace"]
            ):
                at = (table, entry.key)
                known = before.get(at)
                if known is None or known[0] != entry.version:
                    known = (entry.version, _usage_in(quota, table, entry))
                now[at] = known
                total.update(known[1])
        self._usage[key] = now
        return total

    def _keys_of_change(self, seen: ItemChange) -> Iterator[str]:
        item = seen.item
        if item.table == QUOTAS:
            if seen.after is None or seen.before is None or _spec_changed(seen):
                self._usage.pop(item.key, None)
            yield item.key
        elif item.namespace and _frees(seen):
            for key, quota in self.cluster.cache.items(QUOTAS).items():
                if quota.namespace == item.namespace:
                    yield key


def _usage_in(quota: Json, table: str, entry: StoredObject) -> Nanos:
    item = entry.object
    return usage_of(table, item) if applies(quota, table, item) else {}


def _spec_changed(seen: ItemChange) -> bool:
    before, after = seen.before, seen.after
    if before is None or after is None:
        return True
    return part(before.entry.object, "spec") != part(after.entry.object, "spec")


def _frees(seen: ItemChange) -> bool:
    """Whether a change may alter what is used. What is created the server has counted."""
    before, after = seen.before, seen.after
    if after is None:
        return True
    if before is None:
        return False
    if isinstance(before, PodItem) and isinstance(after, PodItem):
        return before.active != after.active
    return after.table in (CLAIMS, SERVICES, PODS)
