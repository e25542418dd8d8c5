"""Facts: what a decision can read of the cluster, and the kind of change that reports each.

A plugin sees the facts whose kinds of change it declares, and nothing else: see `view`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from .changes import Change


@dataclass(frozen=True, slots=True)
class Fact:
    """Members that change together. Several facts may show the same member.

    A member is one of `Nodes`. With a prefix it is one of a part of `Nodes` ("workloads.siblings"),
    of a node ("node.labels"), of a pod on a node ("pod.status") or of `RowFacts` ("row.requested").
    What no fact has of a pod belongs to the pods themselves.
    """

    #: All of these must be declared.
    change: Change
    members: frozenset[str]


def _fact(change: Change, members: str) -> Fact:
    return Fact(change, frozenset(members.split()))


#: What runs the filters of other plugins, on rows that only would be: for post-filters that evict.
WHOLE = Change(1 << 62)

_LEDGERS = tuple(Change(1 << at) for at in range(62) if Change.LEDGERS >> at & 1)

_OF_RESOURCES = "resources resource resources_version"

_OF_DEVICES = """
    device_groups choose changes
    devices.find devices.groups devices.pools devices.reading devices.scored_resources
    devices.slices devices.taint_rules devices.today devices.use
"""

FACTS: tuple[Fact, ...] = (
    # A node that comes or goes changes its row in every way, so that everyone may read these.
    _fact(
        Change.NONE,
        "alive everything rows row numbers count nothing derived node row.number row.derived",
    ),
    # Which node it is, where its figures do not say all.
    _fact(Change.MEMBERSHIP, "name named node.name node.uid"),
    _fact(Change.ALLOCATABLE, f"allocatable {_OF_RESOURCES} row.allocatable"),
    _fact(
        Change.ALLOCATABLE | Change.MEMBERSHIP,
        "resource_sets resource_names node.allocatable node.resources",
    ),
    _fact(
        Change.REQUESTED,
        f"requested nonzero_requested {_OF_RESOURCES} row.requested row.nonzero_requested",
    ),
    _fact(Change.ALLOCATABLE | Change.REQUESTED, "row.figures"),
    _fact(Change.LABELS, "label matching satisfying_any selected node.labels node.zone"),
    _fact(Change.TAINTS, "taint_sets taints node.taints"),
    _fact(Change.UNSCHEDULABLE, "unschedulable node.unschedulable"),
    _fact(Change.IMAGES, "image node.images"),
    # The labels that matter are those that a selector of some pod reads.
    _fact(
        Change.PODS,
        "pods tally matching_pods labels_that_matter labels_version changes",
    ),
    _fact(Change.POD_ANNOTATIONS, "pod.annotations"),
    _fact(Change.POD_STATUS, "pod.status pod.started pod.nominated_node_name changes"),
    _fact(
        Change.VOLUMES,
        """
        storage volume_use.attached volume_use.most_attached volume_use.volumes
        """,
    ),
    _fact(Change.STORAGE, "storage csi_nodes"),
    _fact(Change.ATTACH_LIMITS, "csi_nodes"),
    _fact(Change.FEATURES, "feature_sets features node.declared_features"),
    _fact(Change.NOMINATED, "nominations nominated_weight nominated"),
    _fact(
        Change.NAMESPACES,
        "workloads.namespace_labels workloads.namespaces_matching workloads.namespaces",
    ),
    _fact(Change.SERVICES, "workloads.siblings"),
    _fact(Change.BUDGETS, "workloads.budgets"),
    _fact(Change.MEMBERSHIP, "changes"),
    _fact(Change.TERMS, "standing"),
    _fact(Change.ANNOTATIONS, "node.annotations"),
    _fact(Change.CONDITIONS, "node.conditions"),
    _fact(Change.SLICES, _OF_DEVICES),
    # The groups and the nominations of pods whose claims have devices in flight.
    _fact(Change.CLAIMS, f"{_OF_DEVICES} devices.claims groups nominations.node_of"),
    _fact(Change.CLASSES, "devices.classes"),
    # Each type has a kind of its own, and so has each ledger: views look at it when one is read.
    _fact(Change.EXTENDED, "extended"),
    *(_fact(kind, "ledger nominated") for kind in (Change.PORTS, Change.VOLUMES, *_LEDGERS)),
    _fact(
        WHOLE,
        """
        whole views order ranks find_rows names positions facts view satisfying
        lesser_pods pod_table
        """,
    ),
)

#: What was decided by plugins that reserve, for those that say so in `writes`.
WRITERS = {"reservations": Change.STORAGE, "device_decisions": Change.CLAIMS}

# What is no member of `Nodes` itself.
_ITEMS = ("node.", "pod.", "row.")

#: Facts of the whole cluster. A change of one is noted for all rows, or for those with a claim.
OF_CLUSTER = int(
    Change.NAMESPACES
    | Change.SERVICES
    | Change.BUDGETS
    | Change.CLASSES
    | Change.SLICES
    | Change.CLAIMS
)

#: What may be kept in `derived`: it is forgotten when one of these changes.
DERIVED = int(Change.LABELS | Change.TAINTS | Change.MEMBERSHIP)


class UndeclaredFact(Exception):
    """A plugin reads or writes what it does not declare."""


@cache
def find_members(kinds: int) -> frozenset[str]:
    """Returns the members of the facts that some kinds of change report."""
    shown = (fact.members for fact in FACTS if not int(fact.change) & ~kinds)
    return frozenset[str]().union(*shown)


def refuse(plugin: str, member: str, kinds: int, of: str = "") -> UndeclaredFact:
    """Returns the error of a plugin that declares some kinds and looks for something else.

    `of` names the kinds of the fact that the plugin looks for, where `FACTS` does not.
    """
    writes = WRITERS.get(member)
    if writes is not None:
        declare = f"`writes = Change.{writes.name}` lets `reserve`, `unreserve` and `prepare`"
        return UndeclaredFact(f"{plugin} may not write view.{member}: {declare}")
    what = member if member.startswith(_ITEMS) else f"view.{member}"
    facts = (fact for fact in FACTS if fact.change is not WHOLE and _shows(fact, member))
    of = of or " or ".join(dict.fromkeys(name_kinds(int(fact.change)) for fact in facts))
    if not of:
        return UndeclaredFact(f"{plugin} reads {what}, which is not for plugins")
    said = f"its `reads` are {name_kinds(kinds)}"
    return UndeclaredFact(f"{plugin} reads {what}, a fact of {of}: {said}")


def _shows(fact: Fact, member: str) -> bool:
    """Whether a fact has a member, or something below it."""
    return any(f"{each}.".startswith(f"{member}.") for each in fact.members)


def name_kinds(kinds: int) -> str:
    """Returns the names of kinds of change as authors write them."""
    if kinds & int(Change.ALL) == int(Change.ALL):
        return "Change.ALL"
    names = [f"Change.{each.name}" for each in Change if each & ~kinds == 0]
    if kinds & int(Change.EXTENDED):
        names.append("Change.EXTENDED")
    if kinds & int(Change.LEDGERS):
        names.append("LEDGER.change")
    return " | ".join(names) or "Change.NONE"


def top_level(members: Iterable[str]) -> dict[str, frozenset[str]]:
    """Returns the first part of some names, each with what follows: nothing if it is whole."""
    found: dict[str, set[str]] = {}
    for member in members:
        first, _, rest = member.partition(".")
        found.setdefault(first, set()).add(rest)
    return {name: frozenset(rest) for name, rest in found.items()}
