"""Everything that the cluster keeps, and how it begins, grows and is swept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field

from moorage.objects.node import Node
from moorage.objects.placement_rules import Taint
from moorage.objects.pod import Pod
from moorage.objects.pod_group import GroupLinks

from .changes import EVERYWHERE
from .columns import Columns, RowFacts
from .derived import NodeDerived
from .devices.devices import Devices
from .devices.pools import SliceReading
from .extended.contract import HandleRegistry
from .extended.resources import ExtendedResources
from .host_ports import HOST_PORTS
from .inventory import Images, VisitOrder
from .label_index import LabelKeys
from .labels import LabelColumns, Vocabulary
from .ledger import K, Ledger
from .pod_groups import PodGroups
from .pods import Nominations, PodTable
from .standing_terms import StandingTerms
from .storage.objects import Storage
from .storage.use import USED_STORAGE, CSINodeColumns, VolumeUse
from .storage.writer import OBJECT_CHANGE
from .tally import Tallies
from .workloads import Workloads


@dataclass(slots=True)
class State:
    """Everything that the cluster keeps. `Cluster` writes it, `Nodes` reads it."""

    columns: Columns
    rows: dict[str, int]
    nodes: list[Node | None]
    pods: list[dict[str, Pod]]
    labels: LabelColumns
    taints: Vocabulary[tuple[Taint, ...]]
    features: Vocabulary[frozenset[str]]
    resource_names: Vocabulary[frozenset[str]]
    images: Images
    tallies: Tallies
    standing: StandingTerms
    nominations: Nominations
    workloads: Workloads
    groups: PodGroups
    label_keys: LabelKeys
    storage: Storage
    volume_use: VolumeUse
    csi_nodes: CSINodeColumns
    order: VisitOrder
    extended: ExtendedResources
    devices: Devices
    derived: NodeDerived = field(default_factory=NodeDerived)
    #: Made when first asked for, kept up to date from then on.
    pod_table: PodTable | None = None
    #: Made when asked for, dropped when the row changes.
    facts: dict[int, RowFacts] = field(default_factory=dict)

    @property
    def placed(self) -> Iterator[tuple[int, Pod]]:
        """Every pod that runs on a node, with its row."""
        for row, pods in enumerate(self.pods):
            for pod in pods.values():
                yield row, pod

    @property
    def nominated(self) -> Iterator[tuple[int, Pod]]:
        """Every pod that is nominated to a node, with its row."""
        for name, pods in self.nominations:
            row = self.rows.get(name)
            if row is not None:
                for pod in pods.values():
                    yield row, pod

    def find_pods(self, ledger: Ledger[K], keys: Set[K]) -> list[tuple[Pod, int]]:
        """Returns the pods that count for any of some keys, each with its row."""
        counts = self.columns.ledgers.of(ledger)
        return [
            (pod, row)
            for row in {row: None for key in keys for row in counts.of(key)}
            for pod in self.pods[row].values()
            if any(key in keys for key, _ in ledger.entries(pod))
        ]

    def widen(self) -> None:
        """Counts again what has a place per resource and column, because there are others now."""
        self.pod_table = None
        self.nominations.recount(self.nominated, self.columns)

    def grow(self) -> None:
        """Makes room for as many rows as the columns have."""
        capacity = self.columns.capacity
        self.labels.grow(capacity)
        self.tallies.grow(capacity)
        self.volume_use.grow(capacity)
        self.csi_nodes.grow(capacity)
        self.extended.grow(capacity)
        self.devices.grow(capacity)

    def sweep(self) -> None:
        """Drops derived values that were not asked for since the last sweep."""
        self.labels.sweep()
        self.tallies.sweep()
        self.derived.sweep()
        self.workloads.sweep()
        self.storage.facts.sweep()
        if self.pod_table is not None and not self.pod_table.sweep():
            self.pod_table = None
        for vocabulary in (self.taints, self.features, self.resource_names):
            vocabulary.sweep()


def make_state(
    handles: HandleRegistry,
    links: GroupLinks,
    reading: SliceReading,
    note: Callable[[int, int], None],
) -> State:
    """Makes the state of a cluster without nodes; `note` is told which row changed, and how."""
    columns = Columns(lambda: state.placed, lambda: state.nominated, lambda: state.widen())
    label_keys = LabelKeys()
    capacity = columns.capacity
    rows: dict[str, int] = {}
    pods: list[dict[str, Pod]] = []
    storage = Storage(lambda: note(EVERYWHERE, OBJECT_CHANGE))
    state = State(
        columns=columns,
        rows=rows,
        nodes=[],
        pods=pods,
        labels=LabelColumns(capacity),
        taints=Vocabulary(),
        features=Vocabulary(),
        resource_names=Vocabulary(),
        images=Images(),
        tallies=Tallies(lambda: state.placed, capacity),
        standing=StandingTerms(label_keys),
        nominations=Nominations(),
        workloads=Workloads(label_keys),
        groups=PodGroups(links),
        label_keys=label_keys,
        storage=storage,
        volume_use=VolumeUse(storage, capacity),
        csi_nodes=CSINodeColumns(capacity),
        order=VisitOrder(),
        extended=ExtendedResources(handles, rows, pods, note, capacity),
        devices=Devices(rows, note, reading),
    )
    state.devices.grow(capacity)
    columns.ledgers.of(HOST_PORTS)
    columns.ledgers.of(USED_STORAGE)
    # Code 0 stands for no taints, features and resources as long as the cluster exists: rows that
    # have no node have it, too.
    state.taints.acquire(())
    state.features.acquire(frozenset())
    state.resource_names.acquire(frozenset())
    return state
