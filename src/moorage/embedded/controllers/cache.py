"""A cache of objects for controllers, indexed by owner and node, that follows the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from moorage.embedded.api.kind import ServedKind
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.request_refusals import RequestRefused
from moorage.embedded.store.object_store import TableChange

from .items import Item, NodeItem, PodItem, StorageItem, item_of

PODS, NODES = "pods", "nodes"
CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"

_Group = TypeVar("_Group")
_Kept = TypeVar("_Kept")

# Events have no owners, and there are many of them.
_LEFT_OUT = frozenset(("events",))


@dataclass(frozen=True, slots=True)
class ItemChange:
    """An item before and after a change; None where there was none."""

    before: Item | None
    after: Item | None

    @property
    def item(self) -> Item:
        item = self.after or self.before
        assert item is not None
        return item


Follower = Callable[[ItemChange], None]


class Cache:
    """Objects by kind and key, by uid, by owner and by node.

    `catch_up` brings it level with the store, own writes included, so a controller that reads after
    it need not remember what it has just written.
    """

    def __init__(self, api: ObjectApi) -> None:
        self.by_uid: dict[str, Item] = {}
        self._api = api
        self._version = -1
        self._items: dict[str, dict[str, Item]] = {}
        self._owned: dict[str, dict[str, dict[str, Item]]] = {}
        self._unmanaged: dict[tuple[str, str], dict[str, Item]] = {}
        self._on_node: dict[str, dict[str, PodItem]] = {}
        self._followers: dict[str, list[Follower]] = {}
        self._following_all: list[Follower] = []
        self._tables: list[str] = []
        self._kinds: dict[str, ServedKind] = {}
        self._revision = -1

    def follow(self, table: str, follower: Follower) -> None:
        """Calls a function on every change of objects of a kind."""
        self._followers.setdefault(table, []).append(follower)

    def follow_all(self, follower: Follower) -> None:
        """Calls a function on every change of any object."""
        self._following_all.append(follower)

    def items(self, table: str) -> Mapping[str, Item]:
        return self._items.get(table, {})

    def pod(self, key: str) -> PodItem | None:
        item = self.items(PODS).get(key)
        return item if isinstance(item, PodItem) else None

    def node(self, name: str) -> NodeItem | None:
        item = self.items(NODES).get(name)
        return item if isinstance(item, NodeItem) else None

    def storage(self, table: str, key: str) -> StorageItem | None:
        item = self.items(table).get(key)
        return item if isinstance(item, StorageItem) else None

    def owned(self, uid: str, table: str) -> Iterable[Item]:
        """Returns the objects of a kind that name an owner."""
        return self._owned.get(uid, {}).get(table, {}).values()

    def pods_of(self, uid: str) -> list[PodItem]:
        """Returns the pods that an owner manages."""
        found = []
        for item in self.owned(uid, PODS):
            manager = item.controller
            if isinstance(item, PodItem) and manager is not None and manager.uid == uid:
                found.append(item)
        return found

    def dependents(self, uid: str) -> Iterator[Item]:
        """Yields all objects that name an owner."""
        for of_kind in self._owned.get(uid, {}).values():
            yield from of_kind.values()

    def unmanaged(self, table: str, namespace: str) -> Iterable[Item]:
        """Returns the objects of a kind that no controller manages."""
        return self._unmanaged.get((table, namespace), {}).values()

    def on_node(self, name: str) -> list[PodItem]:
        return list(self._on_node.get(name, {}).values())

    @property
    def tables(self) -> list[str]:
        """The tables that are followed, those of kinds that were added later included."""
        kinds = self._api.kinds
        if self._revision != kinds.revision:
            self._revision = kinds.revision
            stored = [each for each in kinds if "watch" in each.verbs and each.view is None]
            # What is not served any more is followed to its end.
            self._kinds |= {each.table: each for each in reversed(stored)}
            self._tables = sorted(self._kinds.keys() - _LEFT_OUT)
        return self._tables

    def kind(self, table: str) -> ServedKind:
        return self._kinds[table]

    def catch_up(self) -> None:
        """Takes in the writes since the last call."""
        store = self._api.store
        # Followers must not write, so the version does not change meanwhile.
        while self._version != store.version:
            since, self._version = self._version, store.version
            for table in self.tables:
                self._catch_up(table, since)

    async def until_changed(self, table: str) -> None:
        """Waits until there is something to catch up with."""
        try:
            await self._api.store.until_changed(table, self._version)
        except RequestRefused:
            # More happened than the store remembers.
            return

    def _catch_up(self, table: str, since: int) -> None:
        if table not in self._items:
            self._items[table] = {}
            self._look_again(table)
            return
        try:
            changes = self._api.store.table(table).changes(since, self._version)
        except RequestRefused:
            self._look_again(table)
            return
        for change in changes:
            self._take(table, change)

    def _take(self, table: str, change: TableChange) -> None:
        self._replace(
            table, change.after.key, None if change.gone else item_of(table, change.after)
        )

    def _look_again(self, table: str) -> None:
        entries, known = self._api.store.table(table).entries, self._items[table]
        for key in [key for key in known if key not in entries]:
            self._replace(table, key, None)
        for key, entry in sorted(entries.items()):
            if key not in known or known[key].entry.version != entry.version:
                self._replace(table, key, item_of(table, entry))

    def _replace(self, table: str, key: str, after: Item | None) -> None:
        before = self._items[table].get(key)
        if before is not None:
            self._drop(before)
        if after is not None:
            self._keep(after)
        if before is None and after is None:
            return
        seen = ItemChange(before, after)
        if before is not None and after is not None and before.uid != after.uid:
            # One went and another came between two looks.
            self._notify(table, ItemChange(before, None))
            seen = ItemChange(None, after)
        self._notify(table, seen)

    def _notify(self, table: str, seen: ItemChange) -> None:
        for follower in self._followers.get(table, ()):
            follower(seen)
        for follower in self._following_all:
            follower(seen)

    def _keep(self, item: Item) -> None:
        self._items[item.table][item.key] = item
        self.by_uid[item.uid] = item
        for owner in item.owners:
            of_owner = self._owned.setdefault(owner.uid, {})
            of_owner.setdefault(item.table, {})[item.key] = item
        if item.controller is None:
            self._unmanaged.setdefault((item.table, item.namespace), {})[item.key] = item
        if isinstance(item, PodItem) and item.node:
            self._on_node.setdefault(item.node, {})[item.key] = item

    def _drop(self, item: Item) -> None:
        del self._items[item.table][item.key]
        self.by_uid.pop(item.uid, None)
        for owner in item.owners:
            of_owner = self._owned.get(owner.uid, {})
            _discard(of_owner, item.table, item.key)
            if not of_owner:
                self._owned.pop(owner.uid, None)
        if item.controller is None:
            _discard(self._unmanaged, (item.table, item.namespace), item.key)
        if isinstance(item, PodItem) and item.node:
            _discard(self._on_node, item.node, item.key)


def _discard(index: dict[_Group, dict[str, _Kept]], group: _Group, key: str) -> None:
    members = index.get(group)
    if members is not None:
        members.pop(key, None)
        if not members:
            del index[group]
