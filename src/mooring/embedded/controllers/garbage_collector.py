"""Garbage collection: deletes objects whose owners are gone, and the content of namespaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mooring.embedded.api.decoding import part
from mooring.embedded.api.request_options import Propagation, WriteOptions
from mooring.embedded.kinds.cluster_kinds import NAMESPACE_FINALIZER
from mooring.embedded.kinds.subresources import finalize
from mooring.embedded.store.table import StoredObject

from .cache import ItemChange
from .controller import EVERY_KIND, Concerns, Controller
from .items import Item, ItemOwner, item_of
from .ownership import owner_json
from .replica_sets import ROUND

_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"


class GarbageController(Controller):
    """Deletes objects whose owners are gone. Its keys are uids, since names can be used again."""

    name = "garbage"

    def concerns(self) -> Mapping[str, Concerns]:
        return {EVERY_KIND: self._keys_of_change}

    def reconcile(self, key: str) -> float | None:
        item = self.cluster.cache.by_uid.get(key)
        if item is None:
            return None
        if item.terminating and _ORPHAN in item.finalizers:
            self._orphan(item)
        elif item.terminating and _FOREGROUND in item.finalizers:
            self._wait(item)
        elif item.owners and not item.terminating:
            self._judge(item)
        return None

    def _keys_of_change(self, seen: ItemChange) -> Iterator[str]:
        cache, after = self.cluster.cache, seen.after
        if after is None:
            yield from [each.uid for each in cache.dependents(seen.item.uid)]
            yield from (owner.uid for owner in seen.item.owners)
            return
        if after.terminating and not (seen.before and seen.before.terminating):
            # Its owners and its dependents may have to be looked at.
            yield after.uid
            yield from [each.uid for each in cache.dependents(after.uid)]
        elif after.owners and (seen.before is None or seen.before.owners != after.owners):
            yield after.uid
        if seen.before is not None and seen.before.owners != after.owners:
            # An owner that waits for this one may not have to any more.
            yield from (owner.uid for owner in seen.before.owners)

    def _orphan(self, item: Item) -> None:
        """Removes the references of dependents to an owner, which can go then."""
        for each in list(self.cluster.cache.dependents(item.uid)):
            kept = [owner_json(owner) for owner in each.owners if owner.uid != item.uid]
            self.cluster.rewrite_owners(each, kept)
        self.cluster.without_finalizer(item, _ORPHAN)

    def _wait(self, item: Item) -> None:
        """Deletes the dependents that block an owner, which can go after them."""
        blocking = [
            each for each in self.cluster.cache.dependents(item.uid) if _blocks(each, item.uid)
        ]
        if not blocking:
            self.cluster.without_finalizer(item, _FOREGROUND)
        for each in blocking:
            if not each.terminating:
                self._judge(each)

    def _judge(self, item: Item) -> None:
        """Deletes an object if none of its owners stays."""
        present = [owner for owner in item.owners if self._exists(owner, item)]
        waiting = [owner for owner in present if self._waits(owner.uid)]
        staying = [owner for owner in present if owner not in waiting]
        if staying:
            if len(staying) < len(item.owners):
                self.cluster.rewrite_owners(item, [owner_json(owner) for owner in staying])
        elif waiting and (dependents := list(self.cluster.cache.dependents(item.uid))):
            if any(self._waits(each.uid) for each in dependents):
                # The owners may wait in a circle, so this one is no longer waited for.
                self._unblock(item)
            self.cluster.delete(item, propagation="Foreground")
        else:
            self.cluster.delete(item, propagation=_propagation_of(item))

    def _exists(self, owner: ItemOwner, item: Item) -> bool:
        """Whether an owner exists; one of a kind that is not served counts as existing."""
        found = self.cluster.cache.by_uid.get(owner.uid)
        if found is None:
            return not self._is_served(owner)
        return found.namespace in ("", item.namespace)

    def _is_served(self, owner: ItemOwner) -> bool:
        kinds = self.cluster.api.kinds
        return any(each.kind == owner.kind and each.group == owner.group for each in kinds)

    def _unblock(self, item: Item) -> None:
        """Lets the owners of an object go before it."""
        owners = [owner_json(owner) for owner in item.owners]
        self.cluster.rewrite_owners(
            item, [{**owner, "blockOwnerDeletion": False} for owner in owners]
        )

    def _waits(self, uid: str) -> bool:
        """Whether an object waits for its dependents to go."""
        found = self.cluster.cache.by_uid.get(uid)
        return found is not None and found.terminating and _FOREGROUND in found.finalizers


def _blocks(item: Item, uid: str) -> bool:
    return any(owner.uid == uid and owner.block_owner_deletion for owner in item.owners)


def _propagation_of(item: Item) -> Propagation:
    if _ORPHAN in item.finalizers:
        return "Orphan"
    return "Foreground" if _FOREGROUND in item.finalizers else "Background"


NAMESPACES = "namespaces"


class NamespaceController(Controller):
    name = "namespace"

    def concerns(self) -> Mapping[str, Concerns]:
        return {EVERY_KIND: self._keys_of_change}

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
            finalize(self.cluster.api, key, {**item, "spec": {"finalizers": kept}}, WriteOptions())
        return 0.0 if going else None

    def _keys_of_change(self, seen: ItemChange) -> Iterator[str]:
        item = seen.item
        if item.table == NAMESPACES:
            yield item.key
        elif item.namespace and seen.after is None:
            namespace = self.cluster.cache.items(NAMESPACES).get(item.namespace)
            if namespace is not None and namespace.terminating:
                yield namespace.key

    def _content(self, namespace: str) -> Iterator[tuple[str, StoredObject]]:
        cache = self.cluster.cache
        # Events are not followed, and are content nevertheless.
        for table in (*cache.tables, "events"):
            if cache.kind(table).namespaced:
                for entry in self.cluster.api.store.table(table).in_order(namespace):
                    yield table, entry

    def _delete(self, table: str, entry: StoredObject) -> bool:
        """Deletes an object unless it is being deleted; returns whether it did."""
        item = item_of(table, entry)
        if item.terminating:
            return False
        self.cluster.delete(item)
        return True
