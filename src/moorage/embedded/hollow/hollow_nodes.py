"""Runs all hollow nodes, in three tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from moorage.embedded.api.kind import ServedKind
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.request_refusals import RequestRefused
from moorage.embedded.store.object_store import StoredObject
from moorage.embedded.store.queries import Selection, TableWatch, WatchEvent, list_entries

from .kubelets import Kubelets
from .pod_life import HollowSettings

_ALL = Selection()

# So much of what happened is taken in at once, before others may do something.
_AT_ONCE = 256

Take = Callable[[StoredObject, bool], None]


class HollowNodes:
    """The kubelets of all nodes, and the tasks that run them."""

    def __init__(self, api: ObjectApi, settings: HollowSettings) -> None:
        self.kubelets = Kubelets(api, settings)
        self._api = api
        #: Set once all nodes that were there are looked after.
        self.known = asyncio.Event()
        self._due = asyncio.Event()

    async def run(self) -> None:
        """Follows nodes and pods until cancelled."""
        nodes, pods = self._api.kinds["nodes"], self._api.kinds["pods"]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(nodes, self._list_nodes, self._take_node))
            # Pods that run already have their places before others are asked for room, so all
            # nodes come first.
            await self.known.wait()
            group.create_task(self._follow(pods, self._list_pods, self._take_pod))
            group.create_task(self._keep_time())

    async def _follow(
        self,
        kind: ServedKind,
        listed: Callable[[list[StoredObject]], list[StoredObject]],
        take: Take,
    ) -> None:
        store = self._api.store
        while True:
            found = list_entries(store, kind.table, _ALL)
            watch = TableWatch(store, kind.table, _ALL, found.version)
            await self._take_all([(entry, False) for entry in listed(found.entries)], take)
            if kind.plural == "nodes":
                self.known.set()
            try:
                async for events in watch.events():
                    await self._take_all(_latest(events), take)
            except RequestRefused:
                # So much has happened meanwhile that some of it is forgotten already.
                continue

    async def _take_all(self, changes: Sequence[tuple[StoredObject, bool]], take: Take) -> None:
        for start in range(0, len(changes), _AT_ONCE):
            await self._api.store.until_writable()
            for entry, gone in changes[start : start + _AT_ONCE]:
                take(entry, gone)
            self._due.set()
            await asyncio.sleep(0)

    async def _keep_time(self) -> None:
        """Lets kubelets act when something is due."""
        while True:
            await self._api.store.until_writable()
            if self.kubelets.act():
                await asyncio.sleep(0)
                continue
            self._due.clear()
            due = self.kubelets.next
            seconds = None if due is None else max(0.0, due - self._api.clock().timestamp())
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._due.wait()

    def _take_node(self, entry: StoredObject, gone: bool) -> None:
        self.kubelets.take_node(entry, gone=gone)

    def _take_pod(self, entry: StoredObject, gone: bool) -> None:
        self.kubelets.take_pod(entry, gone=gone)

    def _list_nodes(self, entries: list[StoredObject]) -> list[StoredObject]:
        self.kubelets.forget_other_nodes({entry.name for entry in entries})
        return entries

    def _list_pods(self, entries: list[StoredObject]) -> list[StoredObject]:
        self.kubelets.forget_other_pods({entry.key for entry in entries})
        return self.kubelets.running_first(entries)


def _latest(events: list[WatchEvent]) -> list[tuple[StoredObject, bool]]:
    """Returns the last event of each object."""
    last = {event.entry.key: event for event in events}
    return [(event.entry, event.type == "DELETED") for event in last.values()]
