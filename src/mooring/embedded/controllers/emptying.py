"""Namespaces that are deleted: everything in them goes first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mooring.embedded.namespaces import finalize
from mooring.embedded.options import Write
from mooring.embedded.rules.cluster import NAMESPACE_FINALIZER
from mooring.embedded.rules.plain import part
from mooring.embedded.tables import Entry

from .cache import Seen
from .controller import EVERY_KIND, Concerns, Controller
from .reading import item_of
from .replica_sets import ROUND

NAMESPACES = "namespaces"


class Emptying(Controller):
    name = "namespace"

    def concerns(self) -> Mapping[str, Concerns]:
        return {EVERY_KIND: self._concerned}

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.read(NAMESPACES, key)
        if item is None or "deletionTimestamp" not in item["metadata"]:
            return None
        left = False
        going = 0
        for table, entry in self._content(key):
            left = True
            if going >= ROUND:
                return 0.0
            going += self._delete(table, entry)
        finalizers = part(item, "spec").get("finalizers") or []
        if not left and NAMESPACE_FINALIZER in finalizers:
            kept = [each for each in finalizers if each != NAMESPACE_FINALIZER]
            finalize(self.cluster.api, key, {**item, "spec": {"finalizers": kept}}, Write())
        return 0.0 if going else None

    def _concerned(self, seen: Seen) -> Iterator[str]:
        item = seen.item
        if item.table == NAMESPACES:
            yield item.key
        elif item.namespace and seen.after is None:
            namespace = self.cluster.cache.items(NAMESPACES).get(item.namespace)
            if namespace is not None and namespace.terminating:
                yield namespace.key

    def _content(self, namespace: str) -> Iterator[tuple[str, Entry]]:
        cache = self.cluster.cache
        # Events are not followed, and are content nevertheless.
        for table in (*cache.tables, "events"):
            if cache.kind(table).namespaced:
                for entry in self.cluster.api.store.table(table).in_order(namespace):
                    yield table, entry

    def _delete(self, table: str, entry: Entry) -> bool:
        """Has an object deleted that is not yet; whether there was anything to do."""
        item = item_of(table, entry)
        if item.terminating:
            return False
        self.cluster.delete(item)
        return True
