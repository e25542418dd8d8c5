"""Keeps all that the cluster knows about devices; all changes of it are made here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from moorage.cel import compile_device_expression
from moorage.cluster.changes import EVERYWHERE, Change
from moorage.objects.device import DeviceClass, DeviceTaintRule, ResourceSlice, TaintSelector
from moorage.objects.resource_claim import Allocation, DeviceObject, ResourceClaim

from .claims import ClaimsWriter, Decision, ResourceClaims
from .device_classes import DeviceClasses
from .device_use import DeviceUse
from .groups import MatchNodes, RowGroups
from .pools import DEFAULT_READING, Pool, PoolKey, SliceReading
from .taint_rules import TaintRules

Note = Callable[[int, Change], None]


class KnownDevices:
    """Claims, classes, pools and the devices in use, whether written or only decided."""

    def __init__(
        self, rows: Mapping[str, int], note: Note, reading: SliceReading = DEFAULT_READING
    ) -> None:
        self.reading = reading
        self._rows = rows
        #: Called with every row that a change concerns, and the kind of change.
        self.note = note
        self._claims = ClaimsWriter()
        self.claims: ResourceClaims = self._claims
        #: Ends the decision for a pod that is on its node; its claims keep their devices.
        self.end_decision = self._claims.end_decision
        self.classes = DeviceClasses()
        self.taint_rules = TaintRules(are_followed=reading.follows_taint_rules)
        self._slices: dict[str, ResourceSlice] = {}
        self.pools: dict[PoolKey, Pool] = {}
        self.use = DeviceUse()
        self._groups = RowGroups(self.pools, self.use, rows)
        #: The extended resources by whose devices in use nodes are scored.
        self.scored_resources: set[str] = set()
        #: The time in seconds since the epoch; None if it was never set.
        self.today: float | None = None

    def groups(self, match: MatchNodes) -> RowGroups:
        """Returns the groups of rows by the devices that they see, up to date."""
        if self._groups.is_stale:
            self._groups.refresh(match)
        return self._groups

    @property
    def slices(self) -> Mapping[str, ResourceSlice]:
        return self._slices

    def find(self, item: DeviceObject) -> DeviceObject | None:
        """Returns the known object of the same kind and name as the given one."""
        if isinstance(item, ResourceClaim):
            return self.claims.get(item.key)
        if isinstance(item, DeviceClass):
            return self.classes.get(item.name)
        if isinstance(item, DeviceTaintRule):
            return self.taint_rules.get(item.name)
        return self._slices.get(item.name)

    def __iter__(self) -> Iterator[DeviceObject]:
        """Yields all objects as they were last seen."""
        yield from self.classes
        yield from self.taint_rules
        yield from self._slices.values()
        yield from self.claims


class DeviceDecisions(KnownDevices):
    """Adds the decisions about claims that are not seen yet. Plugins may write nothing else."""

    def decide(self, pod_uid: str, decision: Decision) -> None:
        """Counts the devices of a decision as in use, before any claim shows them."""
        for allocation in self._claims.decide(pod_uid, decision):
            self._count(allocation, 1)

    def ask(self, pod_uid: str) -> None:
        """Notes that the decision for a pod is being written from now on."""
        self._claims.ask(pod_uid)

    def release(self, pod_uid: str) -> None:
        """Takes back the decision for a pod; devices that are being written stay in use."""
        for allocation in self._claims.release(pod_uid):
            self._count(allocation, -1)

    def add_scored_resources(self, resources: Iterable[str]) -> None:
        """Notes that nodes are scored by how many devices they have for these resources."""
        self.scored_resources |= set(resources)

    def _count(self, allocation: Allocation, amount: int) -> None:
        results = allocation.results
        self.use.count(results, amount)
        for result in results:
            self._note_use((result.driver, result.pool), result.device)

    def _note_use(self, key: PoolKey, device: str) -> None:
        nodes = self._groups.change_use(key, device)
        if nodes is None:
            self.note(EVERYWHERE, Change.CLAIMS)
            return
        for name in nodes:
            row = self._rows.get(name)
            if row is not None:
                self.note(row, Change.CLAIMS)


class Devices(DeviceDecisions):
    """The devices with the methods that change them, which only the cluster calls."""

    def __init__(
        self, rows: Mapping[str, int], note: Note, reading: SliceReading = DEFAULT_READING
    ) -> None:
        super().__init__(rows, note, reading)
        #: Decided allocations that turned out to be free, until `take_freed` returns them.
        self._freed: list[Allocation] = []

    def take_freed(self) -> list[Allocation]:
        """Returns, once, the decided allocations that are free because no claim got them."""
        freed, self._freed = self._freed, []
        return freed

    def put(self, item: DeviceObject) -> DeviceObject | None:
        """Adds or updates an object; returns its previous form."""
        if isinstance(item, ResourceClaim):
            return self._put_claim(item)
        if isinstance(item, DeviceClass):
            before = self.classes.put(item)
            if before != item:
                self.note(EVERYWHERE, Change.CLASSES)
                _compile_selectors(item)
            return before
        if isinstance(item, DeviceTaintRule):
            known = self.taint_rules.get(item.name)
            self._note_taints(self.taint_rules.put(item))
            return known
        return self._put_slice(item)

    def remove(self, item: DeviceObject) -> None:
        if isinstance(item, ResourceClaim):
            self._remove_claim(item)
        elif isinstance(item, DeviceClass):
            self.classes.drop(item.name)
            self.note(EVERYWHERE, Change.CLASSES)
        elif isinstance(item, DeviceTaintRule):
            self._note_taints(self.taint_rules.drop(item.name))
        else:
            self._remove_slice(item.name)

    def revoke(self, pod_uid: str) -> None:
        """Notes that a decision was taken back while it was being written; `end_doubt` follows."""
        self._claims.revoke(pod_uid)

    def end_doubt(self, pod_uid: str, held: Mapping[str, str]) -> None:
        """Takes in which claims of a pod were read with devices, by uid and version."""
        landed = self._claims.end_doubt(pod_uid, held)
        self._move(landed, ())
        self._freed += landed

    def join(self, name: str) -> None:
        """Takes in a node that got a row."""
        self._groups.change_node(name)

    def leave(self, row: int) -> None:
        """Takes in that a node loses its row."""
        self._groups.leave_row(row)

    def relabel(self) -> None:
        """Takes in that the labels of a node have changed."""
        self._groups.change_labels()

    def grow(self, capacity: int) -> None:
        self._groups.grow(capacity)

    def decide_as(self, other: Devices) -> None:
        """Copies the decisions, the time and the scored resources of another."""
        for allocation in self._claims.adopt(other._claims):
            self._count(allocation, 1)
        self.today = other.today
        self.scored_resources = other.scored_resources

    def _put_claim(self, claim: ResourceClaim) -> ResourceClaim | None:
        before = self.claims.get(claim.key)
        if before == claim:
            return before
        landed = self._claims.put(claim)
        if (
            len(landed) == 1
            and not _allocations_of(before)
            and landed[0].gives_as(claim.allocation)
        ):
            # The claim has the decided devices, which are counted already.
            return before
        self._move([*_allocations_of(before), *landed], _allocations_of(claim))
        self._freed += [each for each in landed if not each.has_same_devices(claim.allocation)]
        return before

    def _remove_claim(self, claim: ResourceClaim) -> None:
        before = self.claims.get(claim.key)
        landed = self._claims.drop(before or claim)
        self._move([*_allocations_of(before), *landed], ())
        self._freed += landed

    def _move(self, before: Iterable[Allocation], after: Iterable[Allocation]) -> None:
        for allocation in before:
            self._count(allocation, -1)
        for allocation in after:
            self._count(allocation, 1)

    def _put_slice(self, item: ResourceSlice) -> ResourceSlice | None:
        before = self._slices.get(item.name)
        if before == item:
            return before
        keys = {(each.driver, each.pool) for each in (before, item) if each is not None}
        self._note_pools(keys)
        if before is not None:
            self._take_slice(before)
        self._slices[item.name] = item
        key = item.driver, item.pool
        pool = self.pools.setdefault(key, Pool(key, self.taint_rules, self.reading))
        pool.put(item, self._groups.models)
        self._note_pools(keys)
        self._groups.take_in(key)
        return before

    def _remove_slice(self, name: str) -> None:
        before = self._slices.pop(name, None)
        if before is not None:
            keys = {(before.driver, before.pool)}
            self._note_pools(keys)
            self._take_slice(before)
            self._note_pools(keys)

    def _take_slice(self, item: ResourceSlice) -> None:
        key = item.driver, item.pool
        pool = self.pools[key]
        pool.drop(item.name)
        if not pool.slices:
            del self.pools[key]

    def _note_taints(self, selectors: Iterable[TaintSelector]) -> None:
        """Notes that devices may have other taints now."""
        for driver, pool, _ in selectors:
            if driver is not None and pool is not None:
                self._note_pools([(driver, pool)])
            else:
                self._groups.change_pools(driver, pool)
                self.note(EVERYWHERE, Change.SLICES)

    def _note_pools(self, keys: Iterable[PoolKey]) -> None:
        for key in keys:
            self._groups.change_pool(key)
            pool = self.pools.get(key)
            if pool is None:
                continue
            if not pool.only_node and (pool.is_wide or len(pool.nodes) > 1):
                self.note(EVERYWHERE, Change.SLICES)
                continue
            for name in pool.nodes:
                row = self._rows.get(name)
                if row is not None:
                    self.note(row, Change.SLICES)


def _compile_selectors(item: DeviceClass) -> None:
    """Compiles the expressions of a class, so that the first decision need not wait for it."""
    for each in item.selectors:
        if each.cel is not None:
            compile_device_expression(each.cel.expression)


def _allocations_of(claim: ResourceClaim | None) -> tuple[Allocation, ...]:
    return () if claim is None or claim.allocation is None else (claim.allocation,)
