"""Garbage collection: what has lost its owners goes; what has dependents goes as was asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mooring.embedded.options import Propagation

from .cache import Seen
from .controller import EVERY_KIND, Concerns, Controller
from .items import Item, Owner
from .ownership import written

_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"


class Garbage(Controller):
    """Keys are uids: names come back, what was owned does not."""

    name = "garbage"

    def concerns(self) -> Mapping[str, Concerns]:
        return {EVERY_KIND: self._concerned}

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

    def _concerned(self, seen: Seen) -> Iterator[str]:
        cache, after = self.cluster.cache, seen.after
        if after is None:
            yield from [each.uid for each in cache.dependents(seen.item.uid)]
            yield from (owner.uid for owner in seen.item.owners)
            return
        if after.terminating and not (seen.before and seen.before.terminating):
            # Whoever waits for dependents and whoever depends on it may have to act.
            yield after.uid
            yield from [each.uid for each in cache.dependents(after.uid)]
        elif after.owners and (seen.before is None or seen.before.owners != after.owners):
            yield after.uid
        if seen.before is not None and seen.before.owners != after.owners:
            # An owner that waits for this one may not have to any more.
            yield from (owner.uid for owner in seen.before.owners)

    def _orphan(self, item: Item) -> None:
        """Dependents stay and forget their owner, which may go then."""
        for each in list(self.cluster.cache.dependents(item.uid)):
            kept = [written(owner) for owner in each.owners if owner.uid != item.uid]
            self.cluster.rewrite_owners(each, kept)
        self.cluster.without_finalizer(item, _ORPHAN)

    def _wait(self, item: Item) -> None:
        """An owner goes after the dependents that block it."""
        blocking = [
            each for each in self.cluster.cache.dependents(item.uid) if _blocks(each, item.uid)
        ]
        if not blocking:
            self.cluster.without_finalizer(item, _FOREGROUND)
        for each in blocking:
            if not each.terminating:
                self._judge(each)

    def _judge(self, item: Item) -> None:
        """Deletes an object none of whose owners is there to stay."""
        present = [owner for owner in item.owners if self._exists(owner, item)]
        waiting = [owner for owner in present if self._waits(owner)]
        staying = [owner for owner in present if owner not in waiting]
        if staying:
            if len(staying) < len(item.owners):
                self.cluster.rewrite_owners(item, [written(owner) for owner in staying])
        elif waiting and any(True for _ in self.cluster.cache.dependents(item.uid)):
            self.cluster.delete(item, propagation="Foreground")
        else:
            self.cluster.delete(item, propagation=_asked(item))

    def _exists(self, owner: Owner, item: Item) -> bool:
        """Whether an owner is there; of a kind that is not served nobody can say it is not."""
        found = self.cluster.cache.by_uid.get(owner.uid)
        if found is None:
            return not self._is_served(owner)
        return found.namespace in ("", item.namespace)

    def _is_served(self, owner: Owner) -> bool:
        kinds = self.cluster.api.kinds
        return any(each.kind == owner.kind and each.group == owner.group for each in kinds)

    def _waits(self, owner: Owner) -> bool:
        found = self.cluster.cache.by_uid.get(owner.uid)
        return found is not None and found.terminating and _FOREGROUND in found.finalizers


def _blocks(item: Item, uid: str) -> bool:
    return any(owner.uid == uid and owner.block_owner_deletion for owner in item.owners)


def _asked(item: Item) -> Propagation:
    if _ORPHAN in item.finalizers:
        return "Orphan"
    return "Foreground" if _FOREGROUND in item.finalizers else "Background"
