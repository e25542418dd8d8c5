"""Everything that the cluster keeps, and how it begins, grows and is swept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set

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


class State:
    """Everything that the cluster keeps. `Cluster` writes it, `Nodes` reads it."""

    def __init__(
        self,
        handles: HandleRegistry,
        links: GroupLinks,
        reading: SliceReading,
        note: Callable[[int, int], None],
    ) -> None:
        """Begins without nodes; `note` is told which row changed, and how."""
        self.rows: dict[str, int] = {}
        self.nodes: list[Node | None] = []
        self.pods: list[dict[str, Pod]] = []
        self.columns = Columns(lambda: self.placed, lambda: self.nominated, lambda: self.widen())
        capacity = self.columns.capacity
        self.label_keys = LabelKeys()
        self.labels = LabelColumns(capacity)
        # Rows that have no node have code 0, which stands for nothing.
        self.taints: Vocabulary[tuple[Taint, ...]] = Vocabulary(())
        self.features: Vocabulary[frozenset[str]] = Vocabulary(frozenset())
        self.resource_names: Vocabulary[frozenset[str]] = Vocabulary(frozenset())
        self.images = Images()
        self.tallies = Tallies(lambda: self.placed, capacity)
        self.standing = StandingTerms(self.label_keys)
        self.nominations = Nominations()
        self.workloads = Workloads(self.label_keys)
        self.groups = PodGroups(links)
        self.storage = Storage(lambda: note(EVERYWHERE, OBJECT_CHANGE))
        self.volume_use = VolumeUse(self.storage, capacity)
        self.csi_nodes = CSINodeColumns(capacity)
        self.order = VisitOrder()
        self.extended = ExtendedResources(handles, self.rows, self.pods, note, capacity)
        self.devices = Devices(self.rows, note, reading)
        self.devices.grow(capacity)
        self.derived = NodeDerived()
        #: Made when first asked for, kept up to date from then on.
        self.pod_table: PodTable | None = None
        #: Made when asked for, dropped when the row changes.
        self.facts: dict[int, RowFacts] = {}
        self.columns.ledgers.of(HOST_PORTS)
        self.columns.ledgers.of(USED_STORAGE)

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
