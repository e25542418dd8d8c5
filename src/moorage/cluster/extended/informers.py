"""Informs handles about custom objects, and reports what goes wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from traceback import walk_tb
from typing import TypeVar

from moorage.documents.errors import STOPPED, MoorageError
from moorage.objects.custom import CustomKind, CustomObject
from moorage.objects.node import Node

T = TypeVar("T", CustomObject, Node)

Listener = Callable[[CustomObject], None]
NodeListener = Callable[[Node], None]

# An object of an informer: its kind and its key.
_Identity = tuple[str, str]


class Informer:
    """Tells a handle about the objects of its custom resources, now and from then on.

    It also tells about nodes, and about objects that were not written for too long, by the time of
    events. A listener that raises is reported, with the object and what was raised: `DecodeError`
    names the field. It is told about the object again when that changes.
    """

    def __init__(
        self,
        sources: Iterable[Mapping[str, CustomObject]],
        reports: Reports,
        max_age: float | None = None,
    ) -> None:
        self._sources = tuple(sources)
        self._reports = reports
        self._max_age = max_age
        self._listeners: list[tuple[Listener, Listener, Listener | None]] = []
        self._node_listeners: list[tuple[NodeListener, NodeListener]] = []
        #: Every object with the time at which it was last written to, as far as anybody knows.
        self._heard: dict[_Identity, tuple[float, CustomObject]] = {}
        self._old: set[_Identity] = set()
        #: Before this time no object becomes too old.
        self.next_expiry = inf

    @property
    def objects(self) -> Iterator[CustomObject]:
        """All objects as they were last seen."""
        return (item for source in self._sources for item in source.values())

    def listen(self, applied: Listener, removed: Listener, expired: Listener | None = None) -> None:
        """Registers functions for new or changed objects (`applied`) and deleted ones (`removed`).

        `expired` is called with an object that is older than the handle's `max_age`; when there is
        news of it, `applied` is called again.
        """
        self._listeners.append((applied, removed, expired))
        for item in list(self.objects):
            self._call(applied, item)

    def listen_to_nodes(self, applied: NodeListener, removed: NodeListener) -> None:
        """Registers functions for new or changed nodes and for deleted ones."""
        self._node_listeners.append((applied, removed))

    def applied(self, item: CustomObject) -> None:
        for applied, _, _ in self._listeners:
            self._call(applied, item)

    def removed(self, item: CustomObject) -> None:
        self._heard.pop(_identity(item), None)
        self._old.discard(_identity(item))
        for applied, removed, expired in self._listeners:
            self._call(removed, item)
            self._reports.forget((applied, item.key))
            self._reports.forget((expired, item.key))

    def node_applied(self, node: Node) -> None:
        for applied, _ in self._node_listeners:
            self._call(applied, node)

    def node_removed(self, node: Node) -> None:
        for applied, removed in self._node_listeners:
            self._call(removed, node)
            self._reports.forget((applied, node.name))

    # Ages

    def hear(self, item: CustomObject, now: float, is_news: bool) -> None:
        """Notes that an object was written, whether or not it says anything new."""
        if self._max_age is not None:
            who = _identity(item)
            is_news = is_news or who in self._old
            self._old.discard(who)
            self._heard[who] = now, item
            self.next_expiry = min(self.next_expiry, now + self._max_age)
        if is_news:
            self.applied(item)

    def is_old(self, item: CustomObject) -> bool:
        """Whether an object, as it was last seen, is too old to count."""
        return _identity(item) in self._old

    def expire(self, now: float) -> None:
        """Tells the handle about objects that are too old by now."""
        assert self._max_age is not None, "only informers with an age have something due"
        self.next_expiry = inf
        for who, (heard, item) in list(self._heard.items()):
            if who in self._old:
                continue
            if heard + self._max_age > now:
                self.next_expiry = min(self.next_expiry, heard + self._max_age)
                continue
            self._old.add(who)
            for _, _, expired in self._listeners:
                if expired is not None:
                    self._call(expired, item)

    def _call(self, listener: Callable[[T], None], item: T) -> None:
        about = listener, item.name if isinstance(item, Node) else item.key
        try:
            listener(item)
        except STOPPED as error:  # one bad object must not stop the others
            text = str(error) if isinstance(error, ValueError) else describe(error)
            title = f"Node {item.name}" if isinstance(item, Node) else item.title
            self._reports.tell(about, f"{title}: {text}")
        else:
            self._reports.forget(about)


def _identity(item: CustomObject) -> _Identity:
    return f"{item.api_version}/{item.kind}", item.key


@dataclass(slots=True)
class _Known:
    kind: CustomKind
    objects: dict[str, CustomObject] = field(default_factory=dict)
    informers: list[Informer] = field(default_factory=list)


class CustomObjects:
    """The objects of the custom kinds that handles asked for; no others are kept."""

    def __init__(self, kinds: Iterable[CustomKind], reports: Reports) -> None:
        self._reports = reports
        self._known: dict[tuple[str, str], _Known] = {}
        for kind in kinds:
            known = self._known.setdefault((kind.api_version, kind.kind), _Known(kind))
            if known.kind.whole != kind.whole:
                raise ValueError(f"{kind.kind} of {kind.api_version}: two handles differ about it")
        self._informers: list[Informer] = []

    def informer(self, kinds: Iterable[CustomKind], max_age: float | None = None) -> Informer:
        """Returns a new informer for a handle; one without a kind tells about nodes only."""
        wanted = dict.fromkeys((kind.api_version, kind.kind) for kind in kinds)
        followed = [self._known[each] for each in wanted]
        informer = Informer((each.objects for each in followed), self._reports, max_age)
        for known in followed:
            known.informers.append(informer)
        self._informers.append(informer)
        return informer

    def kind_of(self, item: CustomObject) -> CustomKind | None:
        """Returns the kind of an object if a handle asked for it."""
        known = self._known.get((item.api_version, item.kind))
        return None if known is None else known.kind

    def put(self, item: CustomObject, now: float = 0.0) -> CustomObject | None:
        """Adds or updates an object; returns what it was before."""
        known = self._known[item.api_version, item.kind]
        before = known.objects.get(item.key)
        known.objects[item.key] = item
        # What measures may report again and again that nothing has changed.
        is_news = before is None or not _says_the_same(before, item)
        for informer in known.informers:
            informer.hear(item, now, is_news)
        return before

    def remove(self, item: CustomObject) -> CustomObject | None:
        """Removes an object; returns its last form."""
        known = self._known[item.api_version, item.kind]
        before = known.objects.pop(item.key, None)
        if before is not None:
            for informer in known.informers:
                informer.removed(before)
        return before

    # Nodes and ages

    def put_node(self, node: Node) -> None:
        """Takes in a node that came or changed."""
        for informer in self._informers:
            informer.node_applied(node)

    def remove_node(self, node: Node) -> None:
        for informer in self._informers:
            informer.node_removed(node)

    def is_old(self, item: CustomObject) -> bool:
        """Whether an object no longer counts for some handle, so that any news of it matters."""
        return any(each.is_old(item) for each in self._known[item.api_version, item.kind].informers)

    @property
    def next_expiry(self) -> float:
        """Returns a time before which no object becomes too old."""
        return min((each.next_expiry for each in self._informers), default=inf)

    def expire(self, now: float) -> None:
        """Tells handles about objects that are too old by now."""
        for informer in self._informers:
            if informer.next_expiry <= now:
                informer.expire(now)


def _says_the_same(one: CustomObject, other: CustomObject) -> bool:
    return (one.fields, one.labels, one.annotations) == (
        other.fields,
        other.labels,
        other.annotations,
    )


def describe(error: BaseException) -> str:
    """Describes what a plugin raised: type, text and place."""
    name = type(error).__name__
    try:
        text = f"{name}: {error}"
    except STOPPED:  # the text of an exception is the plugin's code as well
        return name
    # An event or a status cannot hold half a surrogate pair.
    return text.encode(errors="backslashreplace").decode() + _locate(error)


_PACKAGE = str(Path(__file__).parents[2])


def _calls_plugins(file: str) -> bool:
    """Whether a file is of Moorage itself, and not a plugin."""
    return file.startswith(_PACKAGE) and not file.startswith(f"{_PACKAGE}/plugins")


def _locate(error: BaseException) -> str:
    """Returns the file and line of the plugin that raised; empty if no line of it has run."""
    if isinstance(error, MoorageError):
        # It is about an object, not about the plugin.
        return ""
    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    file = next((name for name, _ in lines if not _calls_plugins(name)), None)
    if file is None:
        return ""
    # What it called may have raised it, but its author knows this line.
    return f" ({Path(file).name}:{[line for name, line in lines if name == file][-1]})"


class Reports:
    """Texts that wait to be reported. Each is reported once until it is forgotten."""

    def __init__(self) -> None:
        self._told: dict[Hashable, str] = {}
        #: The texts that were not taken yet.
        self.waiting: list[str] = []

    def tell(self, about: Hashable, text: str) -> None:
        if self._told.get(about) != text:
            self._told[about] = text
            self.waiting.append(text)

    def forget(self, about: Hashable) -> None:
        """Forgets a text, so that it is reported if it comes again."""
        self._told.pop(about, None)

    def take(self) -> list[str]:
        """Returns all texts that were not reported yet."""
        taken, self.waiting = self.waiting, []
        return taken
