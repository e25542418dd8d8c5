"""What a controller is, what it can do to the cluster, and how it works through its queue."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from moorage.embedded.api.decoding import now_text
from moorage.embedded.api.kind import ServedKind
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.api.request_options import DeleteOptions, Propagation
from moorage.embedded.request_refusals import RequestRefused
from moorage.embedded.store.object_store import Json, StoredObject

from .cache import PODS, Cache, ItemChange
from .items import Item

_GONE, _CONFLICT = 404, 409


@dataclass(frozen=True, slots=True)
class ControllerApi:
    """The API and the cache, as controllers use them."""

    api: ObjectApi
    cache: Cache

    @property
    def now(self) -> float:
        return self.api.clock().timestamp()

    @property
    def now_text(self) -> str:
        return now_text(self.api.clock())

    def kind(self, table: str) -> ServedKind:
        return self.cache.kind(table)

    def read(self, table: str, key: str) -> Json | None:
        """Returns a copy of the object of a key; None if there is none."""
        entry = self.api.store.table(table).entries.get(key)
        return None if entry is None else entry.object

    def create(self, table: str, namespace: str, item: Json) -> StoredObject:
        return self.api.create(self.kind(table), namespace, item)

    def update(self, table: str, item: Json) -> StoredObject:
        """Replaces an object; a conflict if it has changed since it was read."""
        metadata = item["metadata"]
        namespace = metadata.get("namespace", "")
        return self.api.update(self.kind(table), namespace, metadata["name"], item)

    def set_status(self, table: str, item: Json, status: Json) -> None:
        """Writes a status if it differs."""
        if item.get("status") == status:
            return
        metadata = item["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        self.api.update_status(self.kind(table), namespace, name, {**item, "status": status})

    def delete(
        self, item: Item, grace_seconds: int | None = None, propagation: Propagation = "Background"
    ) -> None:
        """Deletes an object; does nothing if it is gone or replaced by another."""
        options = DeleteOptions(uid=item.uid, grace_seconds=grace_seconds, propagation=propagation)
        kind = self.kind(item.table)
        try:
            self.api.delete(kind, item.namespace, item.name, options)
        except RequestRefused as error:
            if error.code not in (_GONE, _CONFLICT):
                raise

    def disrupt(self, pod: Item, reason: str, message: str, grace: int | None = None) -> None:
        """Deletes a pod with the condition DisruptionTarget."""
        item = self.read(PODS, pod.key)
        if item is None or item["metadata"]["uid"] != pod.uid:
            return
        status = item.setdefault("status", {})
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": reason,
            "message": message,
            "lastProbeTime": None,
            "lastTransitionTime": self.now_text,
        }
        others = [
            each for each in status.get("conditions") or () if each["type"] != condition["type"]
        ]
        self.set_status(PODS, item, {**status, "conditions": [*others, condition]})
        self.delete(pod, grace)

    def rewrite_owners(self, item: Item, owners: list[Json]) -> None:
        """Replaces the owner references of an object."""
        stored = self.read(item.table, item.key)
        if stored is None or stored["metadata"]["uid"] != item.uid:
            return
        _set(stored["metadata"], "ownerReferences", owners)
        self.update(item.table, stored)

    def without_finalizer(self, item: Item, finalizer: str) -> None:
        """Removes a finalizer of an object."""
        stored = self.read(item.table, item.key)
        if stored is None or stored["metadata"]["uid"] != item.uid:
            return
        metadata = stored["metadata"]
        kept = [each for each in metadata.get("finalizers") or () if each != finalizer]
        _set(metadata, "finalizers", kept)
        self.update(item.table, stored)


def _set(metadata: Json, name: str, values: list[Any]) -> None:
    """Sets a list of the metadata; an empty one is removed."""
    if values:
        metadata[name] = values
    else:
        metadata.pop(name, None)


#: The keys that an event concerns.
Concerns = Callable[[ItemChange], Iterable[str]]
#: Stands for every kind of object.
EVERY_KIND = "*"

# A look that takes longer than this is followed by a rest of so many times its length, so that an
# owner of ten thousand pods that become ready one by one takes a fifth of the time and no more.
_SHORT_LOOK_SECONDS = 0.002
_REST = 4.0

_log = logging.getLogger(__name__)


class Controller(ABC):
    """Brings the objects of one kind into the state that they ask for."""

    name: ClassVar[str]

    def __init__(self, cluster: ControllerApi) -> None:
        self.cluster = cluster

    @abstractmethod
    def concerns(self) -> Mapping[str, Concerns]:
        """Returns, by kind, a function that gives the keys that a change concerns."""

    @abstractmethod
    def reconcile(self, key: str) -> float | None:
        """Brings an object into the state that it asks for; returns when to look again, in seconds.

        None means not before the next change, 0 means at once.
        """


def own_key(seen: ItemChange) -> Iterable[str]:
    """Returns the key of the object itself."""
    return (seen.item.key,)


def follow(controller: Controller) -> WorkQueue:
    """Makes the queue of a controller, and fills it from the cache."""
    queue = WorkQueue()
    cache = controller.cluster.cache

    def follower(concerned: Concerns) -> Callable[[ItemChange], None]:
        def add_keys(seen: ItemChange) -> None:
            for key in concerned(seen):
                queue.add(key)

        return add_keys

    for table, concerned in controller.concerns().items():
        if table == EVERY_KIND:
            cache.follow_all(follower(concerned))
        else:
            cache.follow(table, follower(concerned))
    return queue


async def work(controller: Controller, queue: WorkQueue) -> None:
    """Reconciles one key after another."""
    clock = asyncio.get_running_loop().time
    try:
        while True:
            key = await queue.take()
            begun = clock()
            again = _look(controller, queue, key)
            took = clock() - begun
            if again is not None:
                queue.add_after(key, again)
            if again != 0 and took > _SHORT_LOOK_SECONDS:
                queue.rest(key, took * _REST)
            # Requests have their turn between two looks.
            await asyncio.sleep(0)
    finally:
        queue.close()


def _look(controller: Controller, queue: WorkQueue, key: str) -> float | None:
    try:
        controller.cluster.cache.catch_up()
        again = controller.reconcile(key)
    except RequestRefused as refusal:
        _log.info("%s: %s: %s", controller.name, key, refusal.message)
        queue.retry(key)
    except Exception:  # noqa: BLE001 - one object that breaks does not stop the others
        _log.exception("%s: %s: cannot be brought in order", controller.name, key)
        queue.retry(key)
    else:
        queue.forget_failures(key)
        return again
    return None


def soonest(*waits: float | None) -> float | None:
    """Returns the shortest of several waits; None means no wait."""
    return min((wait for wait in waits if wait is not None), default=None)


# A first retry is nearly at once, for conflicts; a lasting failure is tried twice a minute.
_FIRST_RETRY_SECONDS = 0.005


_LONGEST_RETRY_SECONDS = 30.0


_MOST_DOUBLINGS = 20


class WorkQueue:
    """A queue of keys. Each key is in it at most once; failed ones come back later and later."""

    def __init__(self) -> None:
        self._keys: dict[str, None] = {}
        self._later: dict[str, asyncio.TimerHandle] = {}
        self._failures: dict[str, int] = {}
        self._resting: dict[str, bool] = {}
        self._filled = asyncio.Event()

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: str) -> None:
        """Adds a key; one that rests is added after its rest."""
        if key in self._resting:
            self._resting[key] = True
            return
        self.add_now(key)

    def add_now(self, key: str) -> None:
        """Adds a key, even if it rests."""
        self._keys[key] = None
        self._filled.set()

    def add_after(self, key: str, seconds: float) -> None:
        """Adds a key after some seconds, unless it is due sooner."""
        if seconds <= 0:
            self.add_now(key)
            return
        loop = asyncio.get_running_loop()
        pending = self._later.get(key)
        if pending is not None:
            if pending.when() <= loop.time() + seconds:
                return
            pending.cancel()
        self._later[key] = loop.call_later(seconds, self._due, key)

    def retry(self, key: str) -> None:
        """Adds a key that failed again, later each time."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        seconds = _FIRST_RETRY_SECONDS * 2 ** min(failures, _MOST_DOUBLINGS)
        self.add_after(key, min(seconds, _LONGEST_RETRY_SECONDS))

    def forget_failures(self, key: str) -> None:
        self._failures.pop(key, None)

    def rest(self, key: str, seconds: float) -> None:
        """Keeps a key out of the queue for some seconds."""
        self._resting[key] = self._keys.pop(key, 0) is None
        asyncio.get_running_loop().call_later(seconds, self._end_rest, key)

    async def take(self) -> str:
        """Waits for a key, and takes the one that has waited longest."""
        while not self._keys:
            self._filled.clear()
            await self._filled.wait()
        key = next(iter(self._keys))
        del self._keys[key]
        return key

    def close(self) -> None:
        """Cancels the keys that would be added later."""
        for each in self._later.values():
            each.cancel()
        self._later.clear()

    def _due(self, key: str) -> None:
        self._later.pop(key, None)
        self.add(key)

    def _end_rest(self, key: str) -> None:
        if self._resting.pop(key, False):
            self.add_now(key)
