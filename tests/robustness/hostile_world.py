"""A cluster in which everything that an API server accepts may happen.

The streams of `tests.exactness` are what ordinary clusters do. Here tenants write pods that are
made to hurt, nodes lie about what they have, and watches break off and come back with a list.
All objects pass through the JSON of lists and watches, as they do in a running scheduler.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from moorage.client.mirror import Mirror
from moorage.engine.events import Applied, Event, Removed
from moorage.objects.custom import CustomKind
from moorage.objects.decode import reader
from tests.builders import Manifest
from tests.exactness.streams import Events, Kind, Shape, World
from tests.robustness import hostile_objects

#: How deep an API server lets the fields of an object be nested.
DEEPEST = 9_995


class Inbox:
    """What the watches of all kinds have told and the engines have not yet taken in."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def applied(self, item: Any, raw: Any) -> None:
        self.events.append(Applied(item))

    def removed(self, item: Any) -> None:
        self.events.append(Removed(item))

    def unreadable(self, kind: str, key: str, problem: str) -> None:
        """A running scheduler logs it; here only the others matter."""

    def take(self) -> list[Event]:
        taken, self.events = self.events, []
        return taken


class HostileWorld(World):
    """A stream with hostile objects, broken watches and lists."""

    def __init__(self, seed: int, shape: Shape) -> None:
        super().__init__(seed, shape)
        self._inbox = Inbox()
        self._mirrors: dict[Kind, Mirror] = {}
        #: Kinds whose watch is broken at the moment.
        self._silent: set[Kind] = set()
        self._version = 0
        self._incarnation = 0
        #: How likely a pod or node is hostile: in most streams some are, in some nearly all.
        self._hostility = self._pick([0.02, 0.1, 0.1, 0.5])
        hostile = self.random.sample(_HOSTILE, self._pick([1, 2, 4]))
        self._churn += [partial(_happen, self, each) for each in hostile]
        self.told = 0

    # Through the wire

    def apply(self, kind: Kind, manifest: Manifest) -> Events:
        if self.random.random() < self._hostility:
            hostile_objects.spoil(self.random, _name(kind), manifest)
        self._version += 1
        manifest["metadata"]["resourceVersion"] = str(self._version)
        known = self.all(kind).get(_key(manifest))
        self.all(kind)[_key(manifest)] = manifest
        return self._tell(kind, "ADDED" if known is None else "MODIFIED", manifest)

    def remove(self, kind: Kind, key: str) -> Events:
        return self._tell(kind, "DELETED", self.objects[kind].pop(key))

    def _tell(self, kind: Kind, change: str, manifest: Manifest) -> Events:
        if kind not in self._silent:
            line = f'{{"type":"{change}","object":{self._json(manifest)}}}'
            self._mirror(kind).take_line(line.encode())
        return self._hear()

    def _hear(self) -> Events:
        events = self._inbox.take()
        self.told += len(events)
        yield from events

    def _mirror(self, kind: Kind) -> Mirror:
        known = self._mirrors.get(kind)
        if known is None:
            known = self._mirrors[kind] = Mirror(_name(kind), reader(kind), self._inbox)
        return known

    def _json(self, manifest: Manifest) -> str:
        text = json.dumps(manifest)
        if self.random.random() < 0.003:
            depth = self.random.choice([300, 1_000, 5_000, DEEPEST])
            text = text.replace(
                '"metadata": {', f'"metadata": {{"managedFields": {_nested(depth)}, ', 1
            )
        return text

    # What happens to watches

    def break_watch(self) -> Events:
        """Something happens that the scheduler hears of only when it lists again."""
        kinds = ["Pod", "Pod", "Pod", "Node", *self.objects]
        self._silent.add(self._pick(kinds))
        self._later.append(self.list_again)
        yield from ()

    def list_again(self) -> Events:
        """All watches that broke come back, each with a list of what is there now."""
        for kind in list(self._silent):
            yield from self._list(kind)

    def _list(self, kind: Kind) -> Events:
        self._silent.discard(kind)
        mirror = self._mirror(kind)
        mirror.begin_list()
        items = list(self.all(kind).values())
        self.random.shuffle(items)
        half = len(items) // 2
        for part in (items[:half], items[half:]):
            listed = ",".join(self._json(each) for each in part)
            page = f'{{"metadata":{{"resourceVersion":"{self._version}"}},"items":[{listed}]}}'
            mirror.take_page(page.encode())
        mirror.end_list()
        yield from self._hear()

    def list_everything(self) -> Events:
        """The end of a stream: the scheduler is told all that is true."""
        while self._later:
            yield from self._later.pop()()
        for kind in list(self.objects):
            yield from self._list(kind)

    # What happens to objects

    def make_anew(self) -> Events:
        """A pod is deleted, and one of the same name is made at once."""
        if not self.all("Pod"):
            return
        manifest = self._change("Pod", self._pick(self.all("Pod")))
        yield from self.remove("Pod", _key(manifest))
        self._incarnation += 1
        manifest["metadata"]["uid"] += f"-{self._incarnation}"
        manifest["spec"].pop("nodeName", None)
        manifest["status"] = {}
        yield from self.apply("Pod", manifest)

    def run_hostile_pod(self) -> Events:
        """A tenant names the node itself."""
        nodes = [*self.all("Node"), "nowhere", "n" * 253]
        manifest = self._pod(self._pick(self.templates), self._pick(nodes))
        for _ in range(self._pick([1, 2, 5])):
            hostile_objects.spoil(self.random, "Pod", manifest)
        yield from self.apply("Pod", manifest)

    def create_hostile_pods(self) -> Events:
        manifest = self._pod(self._pick(self.templates), "")
        for _ in range(self._pick([1, 2, 5])):
            hostile_objects.spoil(self.random, "Pod", manifest)
        yield from self.apply("Pod", manifest)

    def lie(self) -> Events:
        """A kubelet says what is not so."""
        if self.all("Node"):
            manifest = self._change("Node", self._pick(self.all("Node")))
            hostile_objects.spoil(self.random, "Node", manifest)
            yield from self.apply("Node", manifest)

    def spoil_something(self) -> Events:
        kind = self._pick(self.objects)
        if self.all(kind):
            manifest = self._change(kind, self._pick(self.all(kind)))
            hostile_objects.spoil(self.random, _name(kind), manifest)
            yield from self.apply(kind, manifest)

    def finish_unseen(self) -> Events:
        """Pods that were just bound end while nobody looks."""
        self._silent.add("Pod")
        for uid in self._pods(placed=True)[-3:]:
            if self.random.random() < 0.5:
                yield from self.remove("Pod", uid)
            else:
                manifest = self._change("Pod", uid)
                manifest["status"]["phase"] = "Succeeded"
                yield from self.apply("Pod", manifest)
        self._later.append(self.list_again)


_HOSTILE: tuple[Callable[[HostileWorld], Events], ...] = (
    HostileWorld.break_watch,
    HostileWorld.break_watch,
    HostileWorld.list_again,
    HostileWorld.make_anew,
    HostileWorld.run_hostile_pod,
    HostileWorld.run_hostile_pod,
    HostileWorld.create_hostile_pods,
    HostileWorld.create_hostile_pods,
    HostileWorld.lie,
    HostileWorld.lie,
    HostileWorld.spoil_something,
    HostileWorld.finish_unseen,
)


def _happen(world: HostileWorld, happen: Callable[[HostileWorld], Events], _: World) -> Events:
    return happen(world)


def _nested(depth: int) -> str:
    return '[{"fieldsV1":' + '{"f:a":' * depth + "{}" + "}" * depth + "}]"


def _name(kind: Kind) -> str:
    return kind.kind if isinstance(kind, CustomKind) else kind


def _key(manifest: Manifest) -> str:
    """As in other streams; a pod is found by its uid, since its name may be another's later."""
    metadata = manifest["metadata"]
    if manifest.get("kind") == "Pod":
        return str(metadata["uid"])
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
