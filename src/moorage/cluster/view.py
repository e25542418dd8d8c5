"""Views: what one plugin sees of the nodes. Anything that it does not declare raises.

There is one class per set of declared facts, and it has the members of these facts only. So what is
declared costs next to nothing to read, and what is not declared is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from moorage.objects.node import Node
from moorage.objects.pod import Pod

from .changes import Change
from .columns import RowFacts
from .facts import DERIVED, OF_CLUSTER, WRITERS, find_members, name_kinds, refuse, top_level
from .ledger import Counts, K, Ledger
from .nodes import Nodes

T = TypeVar("T")

# What views do not have as such: it is reached by `pods`, and by arguments.
_ITEMS = ("pod", "row")

# Of a pod, what changes whenever anything does, and which nothing reports.
_VERSIONS = frozenset(("resource_version", "generation"))


class Reader(Protocol):
    """A plugin, which says which facts it reads."""

    @property
    def name(self) -> str: ...

    @property
    def reads(self) -> Change: ...


class _Shown:
    """An object of which a plugin may read some members: `find_class` adds them."""

    __slots__ = ("_item", "_kinds", "_plugin")

    #: What errors call the object.
    _title = ""

    def __init__(self, item: Any, plugin: str, kinds: int) -> None:
        self._item, self._plugin, self._kinds = item, plugin, kinds

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise refuse(self._plugin, f"{self._title}.{name}", self._kinds)

    def __iter__(self) -> Iterator[Any]:
        raise refuse(self._plugin, self._title, self._kinds)

    def __bool__(self) -> bool:
        raise refuse(self._plugin, self._title, self._kinds)

    def __contains__(self, item: object) -> bool:
        raise refuse(self._plugin, self._title, self._kinds)


class _ShownItem(_Shown):
    """The same for a node, a pod or the figures of a row, which it may stand for."""

    __slots__ = ()

    _kind: type = object

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self._kind

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return bool(self._item == (other._item if type(other) is type(self) else other))

    def __hash__(self) -> int:
        return hash(self._item)


def _show(title: str, path: str, members: Iterable[str], base: type[_Shown] = _Shown) -> Any:
    """Returns a class with these members of what the path leads to."""
    body: dict[str, Any] = {
        name: property(attrgetter(f"{path}.{name}")) for name in members if name
    }
    return type(title, (base,), {"__slots__": (), "_title": title, **body})


@cache
def _item_class(kind: type, title: str, kinds: int) -> type[_ShownItem] | None:
    """Returns the class that shows such an object; None if all of it may be seen."""
    members = {name for name in find_members(kinds) if name.startswith(f"{title}.")}
    shown = {name.partition(".")[2] for name in members}
    if kind is Pod:
        hidden = {name for name in find_members(~0) if name.startswith("pod.")} - members
        if not hidden:
            return None
        free = {name for name in dir(Pod) if not name.startswith("_")} - _VERSIONS
        shown = free - {name.partition(".")[2] for name in hidden}
    elif members == {name for name in find_members(~0) if name.startswith(f"{title}.")}:
        return None
    found: type[_ShownItem] = _show(title, "_item", shown, _ShownItem)
    found._kind = kind
    return found


class _ShownExtended:
    """Extended resources, of which a plugin may read the types that it declares."""

    __slots__ = ("_view",)

    def __init__(self, view: Any) -> None:
        self._view = view

    def __contains__(self, resource_type: str) -> bool:
        return resource_type in self._view._nodes.extended

    def __iter__(self) -> Iterator[str]:
        return iter(self._view._nodes.extended)

    def change(self, resource_type: str) -> Change:
        return self._view._nodes.extended.change(resource_type)

    def columns(self, resource_type: str) -> Any:
        return self._check(resource_type).columns(resource_type)

    def resource(self, resource_type: str, row: int) -> Any:
        return self._check(resource_type).resource(resource_type, row)

    def pool(self, resource_type: str) -> Any:
        return self._check(resource_type).pool(resource_type)

    def _check(self, resource_type: str) -> Any:
        view = self._view
        extended = view._nodes.extended
        if int(extended.change(resource_type)) & ~view._kinds:
            raise refuse(view._plugin, "extended", view._kinds)
        return extended


class _ShownDerived:
    """Values that are kept until labels, taints or nodes change, and are made of nothing else."""

    __slots__ = ("_view",)

    def __init__(self, view: Any) -> None:
        self._view = view

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        view = self._view

        def make_of_derived() -> T:
            shown, own = view.__class__, view.__dict__
            kinds = view._kinds & DERIVED
            view.__class__ = _view_class(kinds, 0)
            view.__dict__ = {"_nodes": view._nodes, "_plugin": view._plugin, "_kinds": kinds}
            try:
                return make()
            finally:
                view.__class__, view.__dict__ = shown, own

        return view._nodes.derived.get(key, make_of_derived)


class _ShownChanges:
    """The log of changes, for reading."""

    __slots__ = ("_log",)

    def __init__(self, log: Any) -> None:
        self._log = log

    generation, newest = (property(attrgetter(f"_log.{name}")) for name in ("generation", "newest"))
    since, gather, unite_since = (
        property(attrgetter(f"_log.{name}")) for name in ("since", "gather", "unite_since")
    )


class _View:
    """The facts that a plugin declares, as members with the names that they have in `Nodes`.

    Rows and names are there for every plugin. Anything else raises `UndeclaredFact`.
    """

    # What shows a row in plain numbers; None if all of it may be seen.
    _row_class: type[_ShownItem] | None = None

    def __init__(self, nodes: Nodes, plugin: str, kinds: int) -> None:
        self._nodes, self._plugin, self._kinds = nodes, plugin, kinds

    def __len__(self) -> int:
        return len(self._nodes)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise refuse(self._plugin, name, self._kinds)


if TYPE_CHECKING:
    # For type checkers a view is the nodes, whose members it shows.
    View = Nodes
else:
    View = _View


class _Kept:
    """Makes a value for a view when it is first read."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, view: Any, owner: type) -> Any:
        made = view.__dict__[self._name] = self._make(view)
        return made


def _make_changes(view: _View) -> _ShownChanges | None:
    log = view._nodes.changes
    return None if log is None else _ShownChanges(log)


def _read_ledger(view: _View, ledger: Ledger[K]) -> Counts[K]:
    _check_ledger(view, "ledger", ledger, ledger.kinds)
    return view._nodes.ledger(ledger)


def _read_nominated(view: _View, ledger: Ledger[K]) -> Counts[K]:
    # A nomination is noted as such, and as a change of the ledgers that it counts in.
    _check_ledger(view, "nominated", ledger, ledger.kinds, int(Change.NOMINATED))
    return view._nodes.nominated(ledger)


def _check_ledger(view: _View, member: str, ledger: Ledger[Any], *kinds: int) -> None:
    """Raises UndeclaredFact unless the plugin declares one of some kinds."""
    if not any(view._kinds & each for each in kinds):
        of = " or ".join(map(name_kinds, kinds))
        raise refuse(view._plugin, f"{member}({type(ledger).__name__})", view._kinds, of)


def _make_node(kinds: int) -> Any:
    shown = _item_class(Node, "node", kinds)
    if shown is None:
        return property(attrgetter("_nodes.node"))
    return lambda view, row: shown(view._nodes.node(row), view._plugin, kinds)


def _make_pods(kinds: int) -> Any:
    shown = _item_class(Pod, "pod", kinds)
    if shown is None:
        return property(attrgetter("_nodes.pods"))

    def pods(view: _View, row: int) -> Mapping[str, Any]:
        there = view._nodes.pods(row).items()
        return {uid: shown(pod, view._plugin, kinds) for uid, pod in there}

    return pods


# Members that are more than a way to those of the nodes, and what makes them for some kinds.
_MADE: Mapping[str, Callable[[int], Any]] = {
    "derived": lambda kinds: _Kept(_ShownDerived),
    "changes": lambda kinds: _Kept(_make_changes),
    "node": _make_node,
    "pods": _make_pods,
    "ledger": lambda kinds: _read_ledger,
    "nominated": lambda kinds: _read_nominated,
}


@cache
def _view_class(kinds: int, writes: int) -> type[_View]:
    """Returns the class of views that show the facts of some kinds of change."""
    body: dict[str, Any] = {"_row_class": _item_class(RowFacts, "row", kinds)}
    for name, rest in top_level(find_members(kinds)).items():
        if name in _MADE:
            body[name] = _MADE[name](kinds)
        elif name not in _ITEMS or "" in rest:
            body[name] = _make_member(name, rest, kinds)
    if kinds & int(Change.EXTENDED):
        body["extended"] = _Kept(_ShownExtended)
    writers = (name for name, kind in WRITERS.items() if writes & int(kind))
    body.update((name, property(attrgetter(f"_nodes.{name}"))) for name in writers)
    return type("View", (_View,), body)


def _make_member(name: str, parts: frozenset[str], kinds: int) -> Any:
    """Returns a member as it is, or some of its own members."""
    if "" in parts:
        return property(attrgetter(f"_nodes.{name}"))
    shown = _show(name, f"_item.{name}", parts)
    return _Kept(lambda view: shown(view._nodes, view._plugin, kinds))


def see(plugin: Reader, nodes: Nodes) -> View:
    """Returns what a plugin sees of the nodes, the same view each time."""
    view = nodes.views.get(plugin)
    if view is None:
        view = nodes.views[plugin] = _make_view(nodes, plugin, int(plugin.reads), 0)
    return view


def see_more(plugin: Reader, nodes: Nodes, more: int = 0, writes: int = 0) -> View:
    """Returns what it sees with more facts, and with what was decided about others, to write it."""
    key = plugin, more, writes
    view = nodes.views.get(key)
    if view is None:
        kinds = int(plugin.reads) | more
        view = nodes.views[key] = _make_view(nodes, plugin, kinds, writes)
    return view


def see_no_rows(plugin: Reader, nodes: Nodes) -> View:
    """Returns what it sees of the cluster as a whole, of which no single row has its own part."""
    key = plugin, OF_CLUSTER
    view = nodes.views.get(key)
    if view is None:
        name = f"{plugin.name}, which has scope ROW, prepares by the pod alone and"
        kinds = int(plugin.reads) & OF_CLUSTER
        view = nodes.views[key] = _with_types(
            _view_class(kinds, 0)(nodes.whole, name, kinds), plugin
        )
    return view


def see_less(plugin: Reader, nodes: Nodes, kinds: int) -> View:
    """Returns a view of some facts only, for tests of what plugins say that they watch."""
    if isinstance(nodes, _View):
        return see_less(plugin, nodes._nodes, kinds & nodes._kinds)
    return _with_types(_make_view(nodes, plugin, kinds, 0), plugin)


def _with_types(view: Any, plugin: Reader) -> View:
    if int(plugin.reads) & int(Change.EXTENDED):
        # Which types there are never changes, and so is nothing to declare.
        view.__dict__["extended"] = _ShownExtended(view)
    return view


def _make_view(nodes: Any, plugin: Reader, kinds: int, writes: int) -> View:
    view: Any = _view_class(int(kinds), int(writes))(nodes.whole, plugin.name, int(kinds))
    return view


def see_row(view: View, row: RowFacts) -> RowFacts:
    """Returns what the plugin of a view sees of a row in plain numbers."""
    shown: Any = view._row_class  # type: ignore[attr-defined]
    return row if shown is None else shown(row, view._plugin, view._kinds)  # type: ignore[attr-defined]


def list_members(kinds: int) -> list[str]:
    """Returns the names that a plugin which declares some kinds can read, writers included."""
    members = (name for name in find_members(kinds) if not name.startswith(("node.", "row.")))
    return sorted(members) + [name for name in WRITERS if hasattr(_view_class(kinds, 0), name)]


__all__ = [
    "View",
    "list_members",
    "see",
    "see_less",
    "see_more",
    "see_no_rows",
    "see_row",
]
