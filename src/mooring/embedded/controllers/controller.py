"""What a controller is, what it can do to the cluster, and how all of them run."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mooring.embedded.api.decoding import now_text
from mooring.embedded.api.kind import ServedKind
from mooring.embedded.api.object_api import ObjectApi
from mooring.embedded.api.options import DeleteOptions, Propagation
from mooring.embedded.refusals import RequestRefused
from mooring.embedded.store.table import Json, StoredObject

from .cache import PODS, Cache, ItemChange
from .items import Item
from .work_queue import WorkQueue

_GONE, _CONFLICT = 404, 409


@dataclass(frozen=True, slots=True)
class ControllerApi:
    """The server, and what is remembered of it."""

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
        """The object of a key as it is now; whoever asks may change it."""
        entry = self.api.store.table(table).entries.get(key)
        return None if entry is None else entry.object

    def create(self, table: str, namespace: str, item: Json) -> StoredObject:
        return self.api.create(self.kind(table), namespace, item)

    def update(self, table: str, item: Json) -> StoredObject:
        """Replaces an object, if nobody else has since it was read."""
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
        """Deletes the very object that is meant; one that is gone is fine."""
        options = DeleteOptions(uid=item.uid, grace_seconds=grace_seconds, propagation=propagation)
        kind = self.kind(item.table)
        try:
            self.api.delete(kind, item.namespace, item.name, options)
        except RequestRefused as error:
            if error.code not in (_GONE, _CONFLICT):
                raise

    def disrupt(self, pod: Item, reason: str, message: str, grace: int | None = None) -> None:
        """Deletes a pod that did nothing wrong, and notes why."""
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
        """Says anew whose an object is."""
        stored = self.read(item.table, item.key)
        if stored is None or stored["metadata"]["uid"] != item.uid:
            return
        _set(stored["metadata"], "ownerReferences", owners)
        self.update(item.table, stored)

    def without_finalizer(self, item: Item, finalizer: str) -> None:
        """Lets go of an object that was waiting for this."""
        stored = self.read(item.table, item.key)
        if stored is None or stored["metadata"]["uid"] != item.uid:
            return
        metadata = stored["metadata"]
        kept = [each for each in metadata.get("finalizers") or () if each != finalizer]
        _set(metadata, "finalizers", kept)
        self.update(item.table, stored)


def _set(metadata: Json, name: str, values: list[Any]) -> None:
    """Sets a list that is absent rather than empty."""
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
    """Looks after the objects of one kind."""

    name: ClassVar[str]

    def __init__(self, cluster: ControllerApi) -> None:
        self.cluster = cluster

    @abstractmethod
    def concerns(self) -> Mapping[str, Concerns]:
        """Which keys are to be looked at, by the kind of what happened."""

    @abstractmethod
    def reconcile(self, key: str) -> float | None:
        """Brings an object in order; tells in how many seconds to look again, if at all.

        0 means that there is more to do at once.
        """


def own_key(seen: ItemChange) -> Iterable[str]:
    """The object itself."""
    return (seen.item.key,)


def follow(controller: Controller) -> WorkQueue:
    """The queue of what a controller has to look at."""
    queue = WorkQueue()
    cache = controller.cluster.cache

    def follower(concerned: Concerns) -> Callable[[ItemChange], None]:
        def tell(seen: ItemChange) -> None:
            for key in concerned(seen):
                queue.add(key)

        return tell

    for table, concerned in controller.concerns().items():
        if table == EVERY_KIND:
            cache.follow_all(follower(concerned))
        else:
            cache.follow(table, follower(concerned))
    return queue


async def work(controller: Controller, queue: WorkQueue) -> None:
    """Looks at one key after another."""
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
        queue.succeeded(key)
        return again
    return None
