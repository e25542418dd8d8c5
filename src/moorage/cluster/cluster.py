"""The only writer of the cluster: it makes every change of nodes, pods and other objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set as AbstractSet
from functools import partial

from moorage.objects.node import Node
from moorage.objects.pod import NO_STAMP, Pod
from moorage.objects.pod_group import NO_LINKS, GroupLinks, PodGroup
from moorage.objects.resource_claim import Allocation, DeviceObject
from moorage.objects.resources import Amounts
from moorage.objects.storage import StorageObject
from moorage.objects.workload import Namespace, PodDisruptionBudget, SelectingObject

from . import node_rows
from .changes import EVERYWHERE, Change, ChangeLog
from .devices.pools import DEFAULT_READING, SliceReading
from .extended.contract import HandleRegistry
from .nodes import Nodes
from .pod_groups import KnownGroups
from .state import State
from .storage.use import USED_STORAGE
from .storage.writer import OBJECT_CHANGE, StorageWriter
from .usage import RETOLD, counts_alike, find_retold

# The kinds of change that `NodeDerived` depends on.
_DERIVED_FROM = int(Change.LABELS | Change.TAINTS | Change.MEMBERSHIP)

_NOMINATED = int(Change.NOMINATED)


class UnknownNode(LookupError):
    """A pod was to be placed on a node that does not exist."""


class Cluster:
    """Nodes and the pods on them. A pod on an unknown node counts once that node is known."""

    def __init__(
        self,
        handles: HandleRegistry | None = None,
        links: GroupLinks = NO_LINKS,
        reading: SliceReading = DEFAULT_READING,
    ) -> None:
        self._state = State(handles or HandleRegistry(), links, reading, self._note)
        #: The extended resources that plugins keep for nodes, and the objects that define them.
        self.extended = self._state.extended
        #: The groups of pods. `adopt` does not replace this object.
        self.groups: KnownGroups = self._state.groups
        self._free_rows: list[int] = []
        self._pods: dict[str, Pod] = {}
        self._assumed: set[str] = set()
        self._on_unknown_nodes: dict[str, dict[str, Pod]] = {}
        self.changes = ChangeLog()
        self._storage = self._storage_writer()
        self.nodes = Nodes(self._state, self.changes)

    # Nodes

    def put_node(self, node: Node) -> Node | None:
        """Adds or updates a node; returns its previous form."""
        row = self._state.rows.get(node.name)
        before = None if row is None else self.nodes.node(row)
        if row is None or before is None:
            self._add_node(node)
        else:
            self._update_node(row, before, node)
        if self._state.extended.is_used:
            self._state.extended.custom.put_node(node)
        return before

    def remove_node(self, name: str) -> Node | None:
        """Removes a node; its pods stay known and are counted on no row."""
        row = self._state.rows.get(name)
        if row is None:
            return None
        node = self.nodes.node(row)
        pods = dict(self._state.pods[row])
        for pod in pods.values():
            node_rows.detach_pod(self.nodes, self._state, pod, row)
        if pods:
            self._on_unknown_nodes[name] = pods
        for pod in self._state.nominations.on(name).values():
            self._count_nominated(pod, name, -1)
        self._storage.leave(row, name)
        self._state.extended.leave(row)
        self._state.devices.leave(row)
        node_rows.clear_row(self._state, row, node)
        if node_rows.withdraw_resources(self._state, node.allocatable):
            self._refresh_resources()
        self._free_rows.append(row)
        self._note_membership(row)
        self._state.extended.custom.remove_node(node)
        return node

    def _add_node(self, node: Node) -> None:
        row = self._new_row()
        # This is done before the row has a name, so that nominations to it are counted once, at
        # the end.
        self._set_allocatable(row, (), node)
        node_rows.fill_row(self._state, row, node)
        self._storage.join(row, node.name)
        self._state.extended.join(row, node.name)
        self._state.devices.join(node.name)
        self._note_membership(row)
        for pod in self._on_unknown_nodes.pop(node.name, {}).values():
            node_rows.attach_pod(self.nodes, self._state, pod, row)
        for pod in self._state.nominations.on(node.name).values():
            self._count_nominated(pod, node.name, 1)

    def _update_node(self, row: int, before: Node, node: Node) -> None:
        kinds = node_rows.update_row(self._state, row, before, node)
        if node.allocatable != before.allocatable:
            self._set_allocatable(row, before.allocatable, node)
            kinds |= Change.ALLOCATABLE
        kinds |= self._update_labels(row, before, node)
        if kinds:
            self._note(row, kinds)

    def _update_labels(self, row: int, before: Node, node: Node) -> Change:
        if node.labels == before.labels:
            return Change.NONE
        # Pods are counted in the domains of their node: they leave the old ones and enter the new.
        pods = list(self._state.pods[row].values())
        for pod in pods:
            node_rows.detach_pod(self.nodes, self._state, pod, row)
        self._state.labels.set_row(row, before.labels, node.labels)
        for pod in pods:
            node_rows.attach_pod(self.nodes, self._state, pod, row)
        self._state.order.move(row, node.zone)
        self._state.devices.relabel()
        return Change.LABELS

    # Pods

    def pod(self, uid: str) -> Pod | None:
        """Returns a placed or assumed pod."""
        return self._pods.get(uid)

    @property
    def pods(self) -> Mapping[str, Pod]:
        """Returns all placed and assumed pods, by uid."""
        return self._pods

    def newest_pods(self) -> Iterator[Pod]:
        """Returns all placed and assumed pods, the newest first."""
        return reversed(self._pods.values())

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    @property
    def assumed(self) -> AbstractSet[str]:
        """Returns the uids of the assumed pods: no object has them on their nodes yet."""
        return self._assumed

    @property
    def assumed_count(self) -> int:
        return len(self._assumed)

    def assume(self, pod: Pod, node_name: str, stamp: Mapping[str, str] = NO_STAMP) -> Pod:
        """Counts a pod on a node before its binding is confirmed; returns the pod on that node.

        It has the annotations that its binding will add.
        """
        if node_name not in self._state.rows:
            raise UnknownNode(node_name)
        if pod.uid in self._pods:
            raise ValueError(f"pod {pod.key} is placed already")
        placed = pod.on(node_name, stamp)
        self._place(placed)
        self._assumed.add(pod.uid)
        return placed

    def forget(self, uid: str) -> Pod | None:
        """Removes an assumed pod; a confirmed pod stays."""
        if uid not in self._assumed:
            return None
        return self.remove_pod(uid)

    def put_pod(self, pod: Pod) -> Pod | None:
        """Adds, confirms, moves or updates a pod on a node; returns its previous form."""
        state, uid = self._state, pod.uid
        known = self._pods.get(uid)
        self._assumed.discard(uid)
        state.storage.end_reservation(uid)
        if state.devices.claims.decisions:
            state.devices.end_decision(uid)
        if known is not None:
            if counts_alike(known, pod, state.columns):
                self._replace(pod)
                return known
            self._displace(known)
        self._place(pod)
        return known

    def remove_pod(self, uid: str) -> Pod | None:
        """Removes a pod that is gone; returns its last form."""
        pod = self._pods.get(uid)
        if pod is not None:
            self._displace(pod)
            self._assumed.discard(uid)
            self._state.storage.end_reservation(uid)
            if self._state.extended.is_used:
                self._state.extended.forget(pod)
        return pod

    # Nominations

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Notes the node that a pod is nominated to; an empty name ends the nomination."""
        nominations = self._state.nominations
        if not node_name and not nominations:
            return
        before = nominations.node_of(pod)
        known = nominations.drop(pod.uid)
        label_keys = self._state.label_keys
        if known is not None:
            self._state.storage.nominated.drop(pod.uid)
            self._count_nominated(known, before, -1)
            for term in known.terms.anti_affinity:
                label_keys.discard(term.selector)
        if node_name:
            nominations.put(pod, node_name)
            self._state.storage.nominated.put(pod)
            self._count_nominated(pod, node_name, 1)
            # Filters count it as running for other pods, and its terms may reject them.
            for term in pod.terms.anti_affinity:
                label_keys.add(term.selector)

    # Namespaces, services and controllers

    def put_workload(self, item: Namespace | SelectingObject) -> Namespace | SelectingObject | None:
        before = self._state.workloads.find(item)
        if before != item:
            self._state.workloads.put(item)
            self._note(EVERYWHERE, _workload_change(item))
        return before

    def remove_workload(self, item: Namespace | SelectingObject) -> None:
        self._state.workloads.drop(item)
        self._note(EVERYWHERE, _workload_change(item))

    # Pod groups

    def put_group(self, group: PodGroup) -> PodGroup | None:
        """Adds or updates a group of pods; returns its previous form."""
        return self._state.groups.put(group)

    def remove_group(self, group: PodGroup) -> PodGroup | None:
        return self._state.groups.drop(group)

    def expect(self, pod: Pod) -> None:
        """Adds a waiting pod to its group, or updates it there."""
        if self._state.groups.are_used:
            self._state.groups.expect(pod)

    def dismiss(self, pod: Pod) -> None:
        """Removes a pod that waits no more from its group."""
        if self._state.groups.are_used:
            self._state.groups.dismiss(pod)

    # Trials

    def lift(self, uid: str) -> Pod | None:
        """Removes a pod from its node until `put_back`; its reservations stay."""
        pod = self._pods.get(uid)
        if pod is not None:
            self._displace(pod)
        return pod

    def put_back(self, pod: Pod) -> None:
        """Puts a lifted pod back on its node; one that was assumed is assumed again."""
        self._place(pod)

    # Storage

    def put_storage(self, item: StorageObject) -> StorageObject | None:
        """Adds or updates a storage object; returns its previous form."""
        return self._storage.put(item)

    def remove_storage(self, item: StorageObject) -> None:
        self._storage.remove(item)

    # Devices

    def put_device(self, item: DeviceObject) -> DeviceObject | None:
        """Adds or updates what is about devices; returns its previous form."""
        return self._state.devices.put(item)

    def remove_device(self, item: DeviceObject) -> None:
        self._state.devices.remove(item)

    def revoke_claims(self, uid: str) -> None:
        """Notes that a decision about a pod's claims was taken back while it was being written.

        Its devices stay in use until `end_doubt`.
        """
        self._state.devices.revoke(uid)

    def end_doubt(self, uid: str, held: Mapping[str, str]) -> None:
        """Frees the devices of a decision that was taken back, except those that claims have.

        `held` has the uids of these claims, each with the version that was read.
        """
        self._state.devices.end_doubt(uid, held)

    def take_freed_devices(self) -> list[Allocation]:
        """Returns, once, the decided allocations that are free because no claim got them."""
        return self._state.devices.take_freed()

    def tell_time(self, today: float) -> None:
        """Sets the time, in seconds since the epoch."""
        self._state.devices.today = today

    # Counting anew

    def make_empty(self) -> Cluster:
        """Returns a cluster without objects that counts as this one does."""
        made = Cluster(self.extended.handles, self.groups.links, self._state.devices.reading)
        for ledger in self._state.columns.ledgers:
            made.nodes.ledger(ledger)
        return made

    def adopt(self, other: Cluster) -> None:
        """Replaces the objects and counts of this cluster with those of another."""
        # Versions must grow, so that no value derived from an earlier state seems current.
        other._state.label_keys.version += self._state.label_keys.version + 1
        other._state.workloads.version += self._state.workloads.version + 1
        self.extended.adopt(other.extended)
        groups = self._state.groups
        groups.adopt(other._state.groups)
        self._state = other._state
        self._state.extended = self.extended
        self._state.groups = groups
        self._state.storage.noted = lambda: self._note(EVERYWHERE, OBJECT_CHANGE)
        self._state.devices.note = self._note
        self._storage = self._storage_writer()
        self._pods, self._on_unknown_nodes = other._pods, other._on_unknown_nodes
        self._free_rows = other._free_rows
        self._assumed &= self._pods.keys()
        self.nodes.show(self._state)
        self.changes.restart()

    def sweep(self) -> None:
        """Drops derived values that were not asked for since the last sweep. Call it rarely."""
        self._state.sweep()

    # Bookkeeping

    def _storage_writer(self) -> StorageWriter:
        state = self._state
        return StorageWriter(
            state.storage,
            state.volume_use,
            state.csi_nodes,
            state.rows,
            partial(state.find_pods, USED_STORAGE),
            self._note,
        )

    def _place(self, pod: Pod) -> None:
        self._pods[pod.uid] = pod
        if self._state.groups.are_used:
            self._state.groups.place(pod)
        row = self._state.rows.get(pod.node_name)
        if row is None:
            self._on_unknown_nodes.setdefault(pod.node_name, {})[pod.uid] = pod
        else:
            self._note_pod(pod, row, node_rows.attach_pod(self.nodes, self._state, pod, row))

    def _displace(self, pod: Pod) -> None:
        del self._pods[pod.uid]
        if self._state.groups.are_used:
            self._state.groups.displace(pod)
        row = self._state.rows.get(pod.node_name)
        if row is None:
            self._drop_from_unknown(pod)
        else:
            self._note_pod(pod, row, node_rows.detach_pod(self.nodes, self._state, pod, row))

    def _note_pod(self, pod: Pod, row: int, kinds: int) -> None:
        """Notes what a pod that came or went changes on its row."""
        extended = self._state.extended
        self.changes.note(row, kinds | extended.kinds(pod) if extended.is_used else kinds)

    def _replace(self, pod: Pod) -> None:
        state = self._state
        known = self._pods[pod.uid]
        self._pods[pod.uid] = pod
        if state.groups.are_used:
            state.groups.replace(known, pod)
        row = state.rows.get(pod.node_name)
        if row is None:
            self._on_unknown_nodes[pod.node_name][pod.uid] = pod
            return
        if self.changes.noted_kinds & RETOLD:
            kinds = find_retold(known, pod)
            if kinds:
                self.changes.note(row, kinds)
        node_rows.replace_pod(state, known, pod, row)

    def _drop_from_unknown(self, pod: Pod) -> None:
        waiting = self._on_unknown_nodes[pod.node_name]
        del waiting[pod.uid]
        if not waiting:
            del self._on_unknown_nodes[pod.node_name]

    def _set_allocatable(self, row: int, before: Amounts, node: Node) -> None:
        if node_rows.set_allocatable(self._state, row, before, node.allocatable):
            self._refresh_resources()

    def _refresh_resources(self) -> None:
        """Rebuilds what is kept by the position of a resource, because positions have changed."""
        state = self._state
        state.facts.clear()
        state.widen()
        self.nodes.refresh()
        self._note(EVERYWHERE, Change.ALLOCATABLE | Change.REQUESTED)

    def _new_row(self) -> int:
        if self._free_rows:
            return self._free_rows.pop()
        row = len(self._state.nodes)
        self._state.nodes.append(None)
        self._state.pods.append({})
        if self._state.columns.reserve(row + 1):
            self.changes.grow(self._state.columns.capacity)
            self._state.grow()
            self.nodes.refresh()
        return row

    def _note(self, row: int, kinds: int) -> None:
        # Plain integers are used, because combining flags of an enum takes many times as long.
        kinds = int(kinds)
        self._state.facts.pop(row, None)
        if kinds & _DERIVED_FROM:
            self._state.derived.forget()
            self._state.tallies.forget_parts()
        self.changes.note(row, kinds)

    def _note_membership(self, row: int) -> None:
        self._note(row, Change.ALL)
        self._note(EVERYWHERE, Change.MEMBERSHIP)

    def _count_nominated(self, pod: Pod, node_name: str, amount: int) -> None:
        row = self._state.rows.get(node_name)
        if row is not None:
            self._state.nominations.count(pod, row, amount, self._state.columns)
            kinds = self._state.columns.nominated.count(pod, row, amount)
            # It changes no sum of the row, so the facts of the row stay valid.
            self.changes.note(row, _NOMINATED | kinds)


def _workload_change(item: Namespace | SelectingObject) -> Change:
    if isinstance(item, Namespace):
        return Change.NAMESPACES
    return Change.BUDGETS if isinstance(item, PodDisruptionBudget) else Change.SERVICES
