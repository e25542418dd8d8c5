"""Who owns what: references, pods made from templates, adoption, release and garbage collection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy

import msgspec

from moorage.embedded.api.names import read_selector
from moorage.embedded.api.request_options import Propagation
from moorage.embedded.store.object_store import Json
from moorage.objects.selector import Selector

from .cache import ItemChange
from .controller import EVERY_KIND, Concerns, Controller, ControllerApi
from .items import Item, ItemOwner

# The longest name that leaves room for a suffix.
_LONGEST_PREFIX = 57


def reference(owner: Json) -> Json:
    """Makes the reference by which an owner is the controller of an object."""
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owner_json(owner: ItemOwner) -> Json:
    """Returns an owner reference as JSON."""
    return msgspec.to_builtins(owner)


def pod_of(owner: Json, template: Json) -> Json:
    """Makes a pod from a template, without a name."""
    metadata = deepcopy(template.get("metadata") or {})
    kept = {
        key: metadata[key] for key in ("labels", "annotations", "finalizers") if key in metadata
    }
    return {
        "metadata": {
            **kept,
            "generateName": f"{owner['metadata']['name'][:_LONGEST_PREFIX]}-",
            "ownerReferences": [reference(owner)],
        },
        "spec": deepcopy(template["spec"]),
    }


def selector_of(owner: Json) -> Selector | None:
    """Reads the selector of an owner."""
    selector = owner["spec"].get("selector")
    if owner["kind"] == "ReplicationController":
        selector = {"matchLabels": selector}
    return read_selector(selector)


def is_managed_by(item: Item, uid: str) -> bool:
    manager = item.controller
    return manager is not None and manager.uid == uid


#: Whether a dependent of this name can belong to an owner of that name.
Suits = Callable[[str, str], bool]


def _any_name(owner: str, dependent: str) -> bool:
    return True


class Adoption:
    """Adopts and releases objects of one kind for owners of another.

    Only objects that are new, or have new labels or owners, are looked at.
    """

    def __init__(
        self, cluster: ControllerApi, owners: str, dependents: str, suits: Suits = _any_name
    ) -> None:
        self._cluster = cluster
        self._suits = suits
        self._owners = owners
        self._dependents = dependents
        #: By namespace, then by key of the owner.
        self._selectors: dict[str, dict[str, tuple[str, Selector]]] = {}
        self._candidates: dict[str, set[str]] = {}

    def keys_of_owner(self, seen: ItemChange) -> Iterator[str]:
        """Yields the key of an owner; notes what a new one may adopt."""
        item = seen.item
        of_namespace = self._selectors.setdefault(item.namespace, {})
        if seen.after is None:
            of_namespace.pop(item.key, None)
            self._candidates.pop(item.key, None)
        elif seen.before is None:
            selector = self._read(item)
            if selector is not None:
                of_namespace[item.key] = (item.uid, selector)
                self._note_candidates(item, selector)
        yield item.key

    def keys_of_dependent(self, seen: ItemChange) -> Iterator[str]:
        """Yields the owners that own, owned or may adopt an object."""
        if seen.before is not None:
            yield from self._owner_of(seen.before)
        if seen.after is not None:
            yield from self._owner_of(seen.after)
            if _may_change_hands(seen):
                yield from self._possible_owners(seen.after)

    def adopt_and_release(self, owner: Json, key: str) -> None:
        """Adopts and releases the objects that were noted for an owner."""
        candidates = self._candidates.pop(key, None)
        selector = selector_of(owner)
        if not candidates or selector is None:
            return
        for each in sorted(candidates):
            item = self._cluster.cache.items(self._dependents).get(each)
            if item is not None:
                self._adopt_or_release(owner, selector, item)
        self._cluster.cache.catch_up()

    def _adopt_or_release(self, owner: Json, selector: Selector, item: Item) -> None:
        uid, selected = owner["metadata"]["uid"], selector.matches(item.labels)
        if not self._suits(owner["metadata"]["name"], item.name):
            return
        others = [owner_json(each) for each in item.owners if each.uid != uid]
        if is_managed_by(item, uid) and not selected:
            self._cluster.rewrite_owners(item, others)
        elif item.controller is None and selected and not item.terminating:
            self._cluster.rewrite_owners(item, [*others, reference(owner)])

    def _owner_of(self, item: Item) -> Iterator[str]:
        manager = item.controller
        if manager is None:
            return
        owner = self._cluster.cache.by_uid.get(manager.uid)
        if owner is not None and owner.table == self._owners:
            yield owner.key

    def _possible_owners(self, item: Item) -> Iterator[str]:
        manager = item.controller
        for key, (uid, selector) in self._selectors.get(item.namespace, {}).items():
            if manager is not None and manager.uid != uid:
                continue
            if selector.matches(item.labels) is (manager is None):
                self._candidates.setdefault(key, set()).add(item.key)
                yield key

    def _note_candidates(self, owner: Item, selector: Selector) -> None:
        found = {
            each.key
            for each in self._cluster.cache.unmanaged(self._dependents, owner.namespace)
            if selector.matches(each.labels)
        }
        if found:
            self._candidates.setdefault(owner.key, set()).update(found)

    def _read(self, owner: Item) -> Selector | None:
        item = self._cluster.read(self._owners, owner.key)
        return None if item is None else selector_of(item)


def _may_change_hands(seen: ItemChange) -> bool:
    before, after = seen.before, seen.after
    if before is None or after is None:
        return True
    return before.labels != after.labels or before.owners != after.owners


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
