"""What a controller is: it is told what happened, and brings one object at a time in order."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from mooring.embedded.errors import Refused

from .cache import Seen
from .cluster import Cluster
from .queue import WorkQueue

#: The keys that an event concerns.
Concerns = Callable[[Seen], Iterable[str]]
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

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @abstractmethod
    def concerns(self) -> Mapping[str, Concerns]:
        """Which keys are to be looked at, by the kind of what happened."""

    @abstractmethod
    def reconcile(self, key: str) -> float | None:
        """Brings an object in order; tells in how many seconds to look again, if at all.

        0 means that there is more to do at once.
        """


def own_key(seen: Seen) -> Iterable[str]:
    """The object itself."""
    return (seen.item.key,)


def follow(controller: Controller) -> WorkQueue:
    """The queue of what a controller has to look at."""
    queue = WorkQueue()
    cache = controller.cluster.cache

    def follower(concerned: Concerns) -> Callable[[Seen], None]:
        def tell(seen: Seen) -> None:
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
    except Refused as refusal:
        _log.info("%s: %s: %s", controller.name, key, refusal.message)
        queue.retry(key)
    except Exception:  # noqa: BLE001 - one object that breaks does not stop the others
        _log.exception("%s: %s: cannot be brought in order", controller.name, key)
        queue.retry(key)
    else:
        queue.succeeded(key)
        return again
    return None
