"""Facts: what a plugin can read of the cluster, and the kinds of change that tell of each.

A plugin that reads a fact must declare one of its kinds: `DeclaredNodes` raises if it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from moorage.cluster import Change, Nodes, NodeView, RowFacts

Kinds = tuple[Change, ...]


class UndeclaredFact(AssertionError):
    """A plugin reads a fact of none of whose kinds of change it says that it reads."""


#: A node that comes or goes changes its row in every way, so that everyone may read these.
_FREE: Kinds = (Change.NONE,)
_OF_RESOURCES = (Change.ALLOCATABLE, Change.REQUESTED)
_OF_STORAGE = (Change.STORAGE, Change.VOLUMES)
_OF_DEVICES = (Change.SLICES, Change.CLAIMS)
_OF_FACTS = (Change.ALLOCATABLE | Change.REQUESTED,)

#: The public members of `Nodes`. Each of the kinds is enough. Members that are not listed belong to
#: no kind of change: only points that decide anew for each pod may read them.
NODES: Mapping[str, Kinds] = {
    **dict.fromkeys(
        ("alive", "everything", "rows", "order", "ranks", "row", "find_rows", "name", "names"),
        _FREE,
    ),
    **dict.fromkeys(("numbers", "count", "positions", "nothing", "named", "changes"), _FREE),
    **dict.fromkeys(("labels_that_matter", "labels_version"), _FREE),
    **dict.fromkeys(("resources", "resources_version", "resource"), _OF_RESOURCES),
    **dict.fromkeys(("allocatable", "resource_sets", "resource_names"), (Change.ALLOCATABLE,)),
    **dict.fromkeys(("requested", "nonzero_requested"), (Change.REQUESTED,)),
    "unschedulable": (Change.UNSCHEDULABLE,),
    **dict.fromkeys(("taint_sets", "taints"), (Change.TAINTS,)),
    **dict.fromkeys(("feature_sets", "features"), (Change.FEATURES,)),
    **dict.fromkeys(
        ("label", "matching", "satisfying", "satisfying_any", "selected", "choose"),
        (Change.LABELS,),
    ),
    "image": (Change.IMAGES,),
    **dict.fromkeys(("ports", "port_conflicts"), (Change.PORTS,)),
    "volume_use": (Change.VOLUMES,),
    "exclusive_pods": (Change.EXCLUSIVE,),
    **dict.fromkeys(("exclusive_rows", "exclusive_namespaces"), (Change.EXCLUSIVE,)),
    "ordinary_pods": (Change.ORDINARY,),
    "coexist_group": (Change.EXCLUSIVE, Change.ORDINARY),
    **dict.fromkeys(("pods", "tally", "matching_pods", "lesser_pods", "pod_table"), (Change.PODS,)),
    "standing": (Change.TERMS,),
    "nominated_weight": (Change.NOMINATED,),
    "kept_room": (Change.KEPT_ROOM,),
    "device_groups": _OF_DEVICES,
}

#: The members of its facets, and of what it returns for a row. "" stands for all others.
FACETS: Mapping[str, Mapping[str, Kinds]] = {
    "nominations": {
        "exclusive_count": (Change.NOMINATED, Change.EXCLUSIVE),
        "": (Change.NOMINATED,),
    },
    "workloads": {
        **dict.fromkeys(
            ("namespace_labels", "namespaces_matching", "namespaces"), (Change.NAMESPACES,)
        ),
        "siblings": (Change.SERVICES,),
        "budgets": (Change.BUDGETS,),
        "": (Change.NAMESPACES | Change.SERVICES | Change.BUDGETS,),
    },
    # Read only of pods whose claims have devices in flight, which are decided one by one.
    "groups": {"": (Change.CLAIMS,)},
    "storage": {"": _OF_STORAGE},
    "csi_nodes": {"": (Change.ATTACH_LIMITS, *_OF_STORAGE)},
    "devices": {
        "classes": (Change.CLASSES,),
        "claims": (Change.CLAIMS,),
        # Counts of devices are kept for all readers, with those in use.
        "use": _OF_DEVICES,
        **dict.fromkeys(("slices", "pools"), (Change.SLICES,)),
        **dict.fromkeys(("log", "scored_resources", "today"), _FREE),
        "": _OF_DEVICES,
    },
}
#: The fact that `SignedParts.siblings` is about, and one that is about a pod's own claims: those
#: are signed by plugins that sign every pod.
SIBLINGS, OWN_CLAIMS = "nodes.workloads.siblings", "nodes.devices.claims"
_NODE: Mapping[str, Kinds] = {
    **dict.fromkeys(("name", "uid"), _FREE),
    **dict.fromkeys(("labels", "zone"), (Change.LABELS,)),
    "annotations": (Change.ANNOTATIONS,),
    "unschedulable": (Change.UNSCHEDULABLE,),
    "taints": (Change.TAINTS,),
    **dict.fromkeys(("allocatable", "resources"), (Change.ALLOCATABLE,)),
    "conditions": (Change.CONDITIONS,),
    "images": (Change.IMAGES,),
    "declared_features": (Change.FEATURES,),
}
_POD: Mapping[str, Kinds] = {
    "annotations": (Change.POD_ANNOTATIONS,),
    **dict.fromkeys(("status", "started", "nominated_node_name"), (Change.POD_STATUS,)),
    # They change whenever anything does, and nothing tells of it.
    **dict.fromkeys(("resource_version", "generation"), ()),
    "": _FREE,
}
_ROW: Mapping[str, Kinds] = {
    "number": _FREE,
    "derived": _FREE,
    "allocatable": (Change.ALLOCATABLE,),
    **dict.fromkeys(("requested", "nonzero_requested"), (Change.REQUESTED,)),
    "": _OF_FACTS,
}

#: What `Nodes.derived` may be made of: it is forgotten when one of these changes.
_DERIVED = Change.LABELS | Change.TAINTS | Change.MEMBERSHIP


@dataclass
class Eyes:
    """What a plugin may read while it is asked, and what it has read beyond that."""

    plugin: str
    kinds: Change
    undeclared: list[str] = field(default_factory=list)
    #: What pods that the plugin signs alike have in common.
    signed: frozenset[str] = frozenset()

    def look(self, what: str, kinds: Kinds | None) -> None:
        """Raises UndeclaredFact, which an engine may catch, so that it is noted as well."""
        if kinds is not None and any(each & ~self.kinds == 0 for each in kinds):
            return
        if what in self.signed:
            return
        wants = " or ".join(map(_name_kinds, kinds or ())) or "no kind of change"
        text = f"{self.plugin} reads {what}, which belongs to {wants}: it declares "
        self.undeclared.append(text + _name_kinds(self.kinds))
        raise UndeclaredFact(self.undeclared[-1])

    def narrowed(self, kinds: Change) -> Eyes:
        return replace(self, kinds=self.kinds & kinds)


def _name_kinds(kinds: Change) -> str:
    names = [each.name or "" for each in Change if each in kinds]
    if kinds & Change.EXTENDED:
        names.append("EXTENDED")
    return "|".join(names) or "nothing"


class Declared:
    """Stands for an object of which a plugin may read some attributes."""

    __slots__ = ("_eyes", "_item", "_kinds", "_what")

    def __init__(self, item: Any, eyes: Eyes, what: str, kinds: Mapping[str, Kinds]) -> None:
        self._item, self._eyes, self._what, self._kinds = item, eyes, what, kinds

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._item)

    def _look(self, name: str) -> None:
        self._eyes.look(f"{self._what}.{name}", self._kinds.get(name, self._kinds.get("")))

    def __getattr__(self, name: str) -> Any:
        self._look(name)
        return getattr(self._item, name)

    def __iter__(self) -> Iterator[Any]:
        self._look("")
        return iter(self._item)

    def __bool__(self) -> bool:
        self._look("")
        return bool(self._item)

    def __eq__(self, other: object) -> bool:
        return bool(self._item == (other._item if type(other) is Declared else other))

    def __hash__(self) -> int:
        return hash(self._item)


class _DeclaredExtended:
    """Extended resources, of which a plugin may read the types that it declares."""

    def __init__(self, nodes: Nodes, eyes: Eyes) -> None:
        self._view, self._eyes = nodes.extended, eyes

    def __contains__(self, resource_type: str) -> bool:
        return resource_type in self._view

    def __iter__(self) -> Iterator[str]:
        return iter(self._view)

    def change(self, resource_type: str) -> Change:
        return self._view.change(resource_type)

    def __getattr__(self, name: str) -> Any:
        read = getattr(self._view, name)

        def look(resource_type: str, *arguments: Any) -> Any:
            self._eyes.look(f"nodes.extended.{name}", (self._view.change(resource_type),))
            return read(resource_type, *arguments)

        return look


class DeclaredNodes:
    """`Nodes` of which a plugin can read what it declares; anything else raises."""

    def __init__(self, nodes: Nodes, eyes: Eyes) -> None:
        self._nodes, self._eyes = nodes, eyes

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __getattr__(self, name: str) -> Any:
        if name in FACETS:
            return Declared(getattr(self._nodes, name), self._eyes, f"nodes.{name}", FACETS[name])
        self._eyes.look(f"nodes.{name}", NODES.get(name))
        return getattr(self._nodes, name)

    @property
    def extended(self) -> _DeclaredExtended:
        return _DeclaredExtended(self._nodes, self._eyes)

    @property
    def derived(self) -> _DeclaredDerived:
        return _DeclaredDerived(self)

    def view(self, row: int) -> NodeView:
        return NodeView(cast(Nodes, self), row)

    def node(self, row: int) -> Any:
        return Declared(self._nodes.node(row), self._eyes, "node", _NODE)

    def pods(self, row: int) -> Mapping[str, Any]:
        self._eyes.look("nodes.pods", NODES["pods"])
        pods = self._nodes.pods(row).items()
        return {uid: Declared(pod, self._eyes, "a pod's", _POD) for uid, pod in pods}

    def facts(self, row: int) -> Any:
        return declare_row(self._nodes.facts(row), self._eyes)

    @property
    def known_facts(self) -> Mapping[int, Any]:
        known = self._nodes.known_facts.items()
        return {row: declare_row(facts, self._eyes) for row, facts in known}


class _DeclaredDerived:
    """Values that are kept until labels, taints or the nodes change, made of nothing else."""

    def __init__(self, nodes: DeclaredNodes) -> None:
        self._nodes = nodes

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        nodes = self._nodes
        before = nodes._eyes
        nodes._eyes = before.narrowed(_DERIVED)
        try:
            return nodes._nodes.derived.get(key, make)
        finally:
            nodes._eyes = before


def declare_row(facts: RowFacts, eyes: Eyes) -> RowFacts:
    """Returns the plain numbers of a row as a plugin may read them."""
    return cast(RowFacts, Declared(facts, eyes, "row", _ROW))
