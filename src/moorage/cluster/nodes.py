"""What decisions see of the cluster: read-only columns and values derived from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.objects.coexist import GROUP, group_of
from moorage.objects.device import NodeChoice
from moorage.objects.node import Node
from moorage.objects.node_selector import Malformed, NodeRequirement, NodeTerm
from moorage.objects.placement_rules import Taint
from moorage.objects.pod import Pod
from moorage.objects.selector import Labels

from .arrays import facet, freeze
from .changes import ChangeLog
from .columns import RowFacts
from .devices.devices import DeviceDecisions, KnownDevices
from .devices.groups import RowGroups
from .extended.contract import ExtendedResource
from .extended.resources import ExtendedView
from .inventory import Image
from .labels import ABSENT, LabelColumn, Vocabulary, find_codes
from .ledger import Counts, K, Ledger, LedgerLayer, Ledgers
from .pod_groups import KnownGroups
from .pods import LesserPods, NominatedPods, PodTable
from .standing_terms import StandingTerm, TermKind
from .state import State
from .storage.objects import KnownStorage, Reservations
from .storage.use import AttachLimits
from .tally import PodMatch, Tally
from .usage import Usage
from .workloads import KnownWorkloads

#: Rows to look at: a slice of all rows, or row numbers.
Rows = slice | NDArray[np.intp]
Mask = NDArray[np.bool_]


class Nodes:
    """The rows, read-only. An array is indexed by row; `rows` in a call says which ones."""

    def __init__(self, state: State, changes: ChangeLog | None = None) -> None:
        #: What changed when. Rows that only would be have no log.
        self.changes = changes
        #: What plugins see of these rows; see `view`.
        self.views: dict[Any, Any] = {}
        self.show(state)

    def show(self, state: State) -> None:
        """Shows this state from now on."""
        self._state = state
        self.nominations = facet(state.nominations, NominatedPods)
        #: Namespaces, services and controllers.
        self.workloads = facet(state.workloads, KnownWorkloads)
        #: Pods that are placed together.
        self.groups = facet(state.groups, KnownGroups)
        #: Volumes, claims and what surrounds them.
        self.storage = facet(state.storage, KnownStorage)
        #: What was decided about claims. A plugin that reserves may write here, and nowhere else.
        self.reservations = facet(state.storage, Reservations)
        #: Claims to devices, their classes and pools.
        self.devices = facet(state.devices, KnownDevices)
        #: What was decided about these claims. A plugin that reserves may write here.
        self.device_decisions = facet(state.devices, DeviceDecisions)
        #: Attach limits, and the plugins that migrated to CSI drivers.
        self.csi_nodes = facet(state.csi_nodes, AttachLimits)
        #: What plugins worked out from labels and taints alone.
        self.derived = state.derived
        #: The rows of which the plain numbers are known.
        self.known_facts: Mapping[int, RowFacts] = state.facts
        self.refresh()

    def refresh(self) -> None:
        """Takes the views of arrays anew; the cluster calls it when it replaced some."""
        columns = self._state.columns
        self._requested, self._nonzero = columns.requested, columns.nonzero_requested
        self.alive = freeze(columns.alive)
        self.unschedulable = freeze(columns.unschedulable)
        self.taint_sets = freeze(columns.taint_sets)
        self.feature_sets = freeze(columns.feature_sets)
        self.resource_sets = freeze(columns.resource_sets)
        #: The place of each resource in `allocatable` and `requested`, by name.
        self.resources: Mapping[str, int] = MappingProxyType(columns.resources)
        #: Changes whenever a resource gets or loses its place.
        self.resources_version = columns.version
        #: int64[resource, row]
        self.allocatable = freeze(columns.allocatable)
        self.requested = freeze(columns.requested.array)
        #: int64[cpu or memory, row]
        self.nonzero_requested = freeze(columns.nonzero_requested.array)
        self._ledgers: Ledgers | LedgerLayer = columns.ledgers
        self.volume_use = self._state.volume_use
        #: What plugins keep of nodes: extended resources by type.
        self.extended: ExtendedView = self._state.extended

    @property
    def whole(self) -> Nodes:
        """All of it, to those who see only some facts and may run the filters of others."""
        return self

    # Rows and names

    def __len__(self) -> int:
        """Returns the number of nodes."""
        return len(self._state.rows)

    @property
    def everything(self) -> slice:
        """All rows, those without a node (`alive` is False) among them."""
        return slice(0, len(self._state.nodes))

    @property
    def rows(self) -> NDArray[np.intp]:
        """The numbers of the rows that have a node, the same array until one comes or goes."""
        return self.derived.get(Nodes, lambda: freeze(np.flatnonzero(self.alive[self.everything])))

    @property
    def order(self) -> NDArray[np.intp]:
        """The row numbers in the order in which nodes are visited."""
        return self._state.order.rows()

    @property
    def ranks(self) -> NDArray[np.intp]:
        """Per row its place in that order."""
        return self._state.order.ranks(len(self.alive))

    def row(self, name: str) -> int | None:
        return self._state.rows.get(name)

    def find_rows(self, names: Sequence[str]) -> NDArray[np.intp]:
        """Returns the rows of many names, -1 for unknown ones."""
        known = self._state.rows
        return np.fromiter(map(known.get, names, repeat(-1)), np.intp, len(names))

    def name(self, row: int) -> str:
        node = self._state.nodes[row]
        return self.node(row).name if node is None else node.name

    def names(self, rows: Iterable[int]) -> list[str]:
        return [self.node(row).name for row in rows]

    def numbers(self, rows: Rows) -> list[int]:
        """Returns the row numbers that `rows` means."""
        if isinstance(rows, slice):
            return list(range(*rows.indices(len(self._state.nodes))))
        return rows.tolist()

    def count(self, rows: Rows) -> int:
        """Returns how many rows `rows` means."""
        if isinstance(rows, slice):
            if rows.start == 0 and rows.stop == len(self._state.nodes) and rows.step is None:
                return len(self._state.nodes)
            return len(range(*rows.indices(len(self._state.nodes))))
        return len(rows)

    def positions(self, rows: Rows, row: int) -> Mask:
        """Returns which positions of `rows` are that row."""
        numbers = np.arange(len(self._state.nodes))[rows] if isinstance(rows, slice) else rows
        return numbers == row

    def nothing(self, rows: Rows) -> Mask:
        """Returns a mask over `rows` that is False everywhere."""
        return np.zeros(self.count(rows), np.bool_)

    # Objects

    def node(self, row: int) -> Node:
        node = self._state.nodes[row]
        if node is None:
            raise LookupError(f"row {row} has no node")
        return node

    def pods(self, row: int) -> Mapping[str, Pod]:
        """Returns the pods on a row, by uid."""
        return MappingProxyType(self._state.pods[row])

    def facts(self, row: int) -> RowFacts:
        """Returns a row in plain numbers."""
        facts = self._state.facts.get(row)
        if facts is None:
            used = self._state.columns.places
            facts = self._state.facts[row] = RowFacts(
                row,
                self.allocatable[:used, row].tolist(),
                self.requested[:used, row].tolist(),
                self.nonzero_requested[:, row].tolist(),
            )
        return facts

    def labels_that_matter(self, pod: Pod) -> tuple[tuple[str, str], ...]:
        """Returns the labels of a pod that a selector in use, or one of its own, reads."""
        read, own = self._state.label_keys.uses, pod.spec.own_label_keys
        labels = pod.labels
        if GROUP in pod.annotations:
            # What its coexist group is named after may be a label that no selector reads.
            own |= {GROUP}
            labels = {**labels, GROUP: group_of(pod) or ""}
        elif not labels or not (own or read):
            return ()
        return tuple(
            sorted([label for label in labels.items() if label[0] in read or label[0] in own])
        )

    @property
    def labels_version(self) -> int:
        """A number that changes when `labels_that_matter` may change."""
        return self._state.label_keys.version

    def lesser_pods(self, priority: int, rows: NDArray[np.intp]) -> LesserPods:
        """Returns the pods of a lower priority on some rows."""
        return self.pod_table().below(priority, rows, self._state.pods)

    def pod_table(self) -> PodTable:
        """Returns the placed pods as columns."""
        state = self._state
        if state.pod_table is None:
            state.pod_table = PodTable(state.columns, state.pods)
        state.pod_table.is_asked = True
        return state.pod_table

    def nominated_weight(self, pod: Pod) -> Usage | None:
        """Returns per row what other nominated pods of at least its priority will take.

        None if there are none.
        """
        nominations, columns = self._state.nominations, self._state.columns
        weight = nominations.weight(pod.priority, columns)
        row = self.row(nominations.node_of(pod))
        if weight is None or row is None:
            return weight
        own = nominations.on(self.name(row))[pod.uid]
        weight = weight.copy()
        weight.count(own, row, -1, columns)
        return weight

    def view(self, row: int) -> NodeView:
        return NodeView(self, row)

    # Columns

    def resource(self, name: str) -> int | None:
        """Returns the position of a resource in `allocatable` and `requested`; None if absent."""
        return self.resources.get(name)

    def label(self, key: str) -> LabelColumn:
        """Returns the column of a label key: a code per row, ABSENT where a node lacks it."""
        return self._state.labels.column(key, lambda row: self.node(row).labels)

    @property
    def taints(self) -> Vocabulary[tuple[Taint, ...]]:
        """The distinct taint lists, by the codes in `taint_sets`."""
        return self._state.taints

    @property
    def features(self) -> Vocabulary[frozenset[str]]:
        """The distinct sets of declared features, by the codes in `feature_sets`."""
        return self._state.features

    @property
    def resource_names(self) -> Vocabulary[frozenset[str]]:
        """The distinct sets of resources that nodes list, even as 0, by `resource_sets`."""
        return self._state.resource_names

    def image(self, name: str) -> tuple[Image, Mask] | None:
        """Returns an image and the rows that have it."""
        image = self._state.images.get(name)
        if image is None:
            return None
        return image, image.present(self._state.columns.capacity)

    # Counts of pods

    def ledger(self, ledger: Ledger[K]) -> Counts[K]:
        """Returns what the pods of each row count for in a ledger."""
        return self._ledgers.of(ledger)

    def nominated(self, ledger: Ledger[K]) -> Counts[K]:
        """Returns what the pods that are nominated to each row count for in a ledger."""
        return self._state.columns.nominated.of(ledger)

    def tally(self, match: PodMatch) -> Tally:
        """Returns the running count of the pods that match."""
        return self._state.tallies.tally(match)

    def matching_pods(self, match: PodMatch) -> NDArray[np.int32]:
        """Per row how many pods match."""
        return self.tally(match).by_row

    def standing(self, kind: TermKind, pod: Pod) -> Iterable[StandingTerm]:
        """Returns the terms of running pods that concern a pod."""
        if not self._state.standing.has(kind):
            return ()
        namespace_labels = self.workloads.namespace_labels(pod.namespace)
        return self._state.standing.concerning(kind, pod, namespace_labels)

    # Devices

    @property
    def device_groups(self) -> RowGroups:
        """What rows see of devices."""
        return self.devices.groups(self.choose)

    def choose(self, choice: NodeChoice) -> Mask:
        """Returns the rows that a pool or a device is for."""
        rows = self.everything
        if isinstance(choice, str):
            return self.named(choice, rows)
        if isinstance(choice, tuple):
            return self.satisfying_any(choice, rows)
        return np.full(self.count(rows), bool(choice))

    # Label rules over rows

    def matching(self, requirement: NodeRequirement, rows: Rows) -> Mask:
        """Returns where a node label requirement holds."""
        if requirement.key not in self._state.labels:
            lacking = requirement.operator in ("NotIn", "DoesNotExist")
            return np.full(self.count(rows), lacking, np.bool_)
        column = self.label(requirement.key)
        codes = column.codes[rows]
        match requirement.operator:
            case "In":
                return _among(codes, column, requirement.values)
            case "NotIn":
                return ~_among(codes, column, requirement.values)
            case "Exists":
                return codes != ABSENT
            case "DoesNotExist":
                return codes == ABSENT
            case "Gt" | "Lt":
                numbers, numeric = column.numbers()
                beyond = (
                    numbers > requirement.bound
                    if requirement.operator == "Gt"
                    else numbers < requirement.bound
                )
                return (numeric & beyond)[codes]

    def satisfying(self, term: NodeTerm, rows: Rows) -> Mask:
        """Returns where a node selector term holds."""
        holds = np.ones(self.count(rows), np.bool_)
        for requirement in term.requirements:
            if requirement.key in self._state.labels:
                holds &= self.matching(requirement, rows)
            elif requirement.operator not in ("NotIn", "DoesNotExist"):
                return self.nothing(rows)
        for name in term.names:
            holds &= self.named(name, rows)
        for name in term.other_names:
            holds &= ~self.named(name, rows)
        return holds

    def satisfying_any(self, terms: Sequence[NodeTerm | Malformed | None], rows: Rows) -> Mask:
        """Returns where one of the terms holds; empty and malformed ones hold nowhere."""
        holds = self.nothing(rows)
        for term in terms:
            if isinstance(term, NodeTerm):
                holds |= self.satisfying(term, rows)
        return holds

    def selected(self, selector: Labels, rows: Rows) -> Mask:
        """Returns where a node has exactly these label values."""
        holds = np.ones(self.count(rows), np.bool_)
        for key, value in selector.items():
            if key not in self._state.labels:
                return self.nothing(rows)
            column = self.label(key)
            code = column.vocabulary.code(value)
            if code == ABSENT:
                return self.nothing(rows)
            holds &= column.codes[rows] == code
        return holds

    def named(self, name: str, rows: Rows) -> Mask:
        """Returns where the node has that name."""
        row = self.row(name)
        return self.nothing(rows) if row is None else self.positions(rows, row)


class NodeView:
    """One node in plain Python, for plugins that are asked node by node."""

    __slots__ = ("_nodes", "row")

    def __init__(self, nodes: Nodes, row: int) -> None:
        self._nodes = nodes
        self.row = row

    @property
    def node(self) -> Node:
        return self._nodes.node(self.row)

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def labels(self) -> Labels:
        return self.node.labels

    @property
    def pods(self) -> list[Pod]:
        return list(self._nodes.pods(self.row).values())

    def allocatable(self, resource: str) -> int:
        at = self._nodes.resource(resource)
        return 0 if at is None else int(self._nodes.allocatable[at, self.row])

    def requested(self, resource: str) -> int:
        at = self._nodes.resource(resource)
        return 0 if at is None else int(self._nodes.requested[at, self.row])

    def extended(self, resource_type: str) -> ExtendedResource | None:
        """Returns what the node has of an extended resource, with its pods counted."""
        return self._nodes.extended.resource(resource_type, self.row)


def _among(codes: NDArray[np.intp], column: LabelColumn, values: Sequence[str]) -> Mask:
    wanted = [column.vocabulary.code(value) for value in values]
    return find_codes(codes, [code for code in wanted if code != ABSENT], len(column.vocabulary))
