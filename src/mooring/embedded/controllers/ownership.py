"""Who owns what: references, pods made from templates, adoption and release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy

import msgspec

from mooring.embedded.api.names import read_selector
from mooring.embedded.store.table import Json
from mooring.objects.selector import Selector

from .cache import ItemChange
from .controller import ControllerApi
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
        self._suspects: dict[str, set[str]] = {}

    def keys_of_owner(self, seen: ItemChange) -> Iterator[str]:
        """Yields the key of an owner; notes what a new one may adopt."""
        item = seen.item
        of_namespace = self._selectors.setdefault(item.namespace, {})
        if seen.after is None:
            of_namespace.pop(item.key, None)
            self._suspects.pop(item.key, None)
        elif seen.before is None:
            selector = self._read(item)
            if selector is not None:
                of_namespace[item.key] = (item.uid, selector)
                self._suspect_all(item, selector)
        yield item.key

    def keys_of_dependent(self, seen: ItemChange) -> Iterator[str]:
        """Yields the owners that own, owned or may adopt an object."""
        if seen.before is not None:
            yield from self._owner_of(seen.before)
        if seen.after is not None:
            yield from self._owner_of(seen.after)
            if _may_change_hands(seen):
                yield from self._suspicious(seen.after)

    def settle(self, owner: Json, key: str) -> None:
        """Adopts and releases the objects that were noted for an owner."""
        suspects = self._suspects.pop(key, None)
        selector = selector_of(owner)
        if not suspects or selector is None:
            return
        for each in sorted(suspects):
            item = self._cluster.cache.items(self._dependents).get(each)
            if item is not None:
                self._settle(owner, selector, item)
        self._cluster.cache.catch_up()

    def _settle(self, owner: Json, selector: Selector, item: Item) -> None:
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

    def _suspicious(self, item: Item) -> Iterator[str]:
        manager = item.controller
        for key, (uid, selector) in self._selectors.get(item.namespace, {}).items():
            if manager is not None and manager.uid != uid:
                continue
            if selector.matches(item.labels) is (manager is None):
                self._suspects.setdefault(key, set()).add(item.key)
                yield key

    def _suspect_all(self, owner: Item, selector: Selector) -> None:
        found = {
            each.key
            for each in self._cluster.cache.unmanaged(self._dependents, owner.namespace)
            if selector.matches(each.labels)
        }
        if found:
            self._suspects.setdefault(owner.key, set()).update(found)

    def _read(self, owner: Item) -> Selector | None:
        item = self._cluster.read(self._owners, owner.key)
        return None if item is None else selector_of(item)


def _may_change_hands(seen: ItemChange) -> bool:
    before, after = seen.before, seen.after
    if before is None or after is None:
        return True
    return before.labels != after.labels or before.owners != after.owners
