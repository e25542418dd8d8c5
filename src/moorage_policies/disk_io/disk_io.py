"""DiskIO: a node must have disk bandwidth left for the pod; the more, the better it is."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from moorage.plugin import (
    Action,
    Advice,
    Advise,
    Change,
    Code,
    ConfigError,
    CustomObject,
    DecodeError,
    Filter,
    HandleRegistry,
    Node,
    Pod,
    PreFilter,
    PreScore,
    Problem,
    Reason,
    Reduction,
    Rejected,
    Rescore,
    Resource,
    RowFacts,
    Rows,
    Scope,
    Score,
    Scores,
    Sign,
    Topics,
    Verdict,
    View,
    Wakeup,
    Wire,
    child,
    if_changed,
    item,
    on,
    unresolvable,
)
from moorage_policies.amounts import share, shares

from .disk_io_advice import advise_on_disks
from .disk_io_resource import (
    BLOCK_SIZES,
    DISK_IO,
    KIND,
    READ_CAPACITY,
    READ_USED,
    WRITE_CAPACITY,
    WRITE_USED,
    Bandwidth,
    BlockSize,
    DiskIOHandle,
    asks,
    capacity,
    estimate,
)

_UNKNOWN = Reason("node(s) without disk IO status", Code.UNRESOLVABLE)

# One reason for what is taken, and one for what was never there: evicting helps with the first.
_SHORT = (
    Reason("Insufficient disk read bandwidth"),
    Reason("Insufficient disk read bandwidth", Code.UNRESOLVABLE),
    Reason("Insufficient disk write bandwidth"),
    Reason("Insufficient disk write bandwidth", Code.UNRESOLVABLE),
)
NOTHING = Bandwidth(0, 0)
_COLUMNS = (READ_CAPACITY, READ_USED), (WRITE_CAPACITY, WRITE_USED)


class DiskIOArgs(Wire, frozen=True):
    """What small blocks cost, and which nodes are preferred."""

    #: By size, the smallest first; larger blocks cost what is asked for.
    block_sizes: tuple[BlockSize, ...] = BLOCK_SIZES
    scoring_strategy: Literal["LeastAllocated", "MostAllocated"] = "LeastAllocated"

    def problems(self) -> Iterator[tuple[str, str]]:
        before = 0
        for at, each in enumerate(self.block_sizes):
            where = item("blockSizes", at)
            if each.up_to_bytes <= before:
                yield child(where, "upToBytes"), f"must be greater than {before}"
            if each.percent < 1:
                yield child(where, "percent"), "must be 1 or greater"
            before = each.up_to_bytes


class DiskIO(
    PreFilter[Bandwidth],
    Filter[Bandwidth],
    PreScore[Bandwidth],
    Score[Bandwidth],
    Sign,
    Advise[Bandwidth],
):
    """Compares the annotations of a pod with what the disks of a node have left."""

    name = "DiskIO"
    Args = DiskIOArgs
    reads = Change.EXTENDED
    scope = Scope.ROW
    reduces = Reduction.NOTHING

    def __init__(
        self, args: DiskIOArgs | None = None, handles: HandleRegistry | None = None
    ) -> None:
        self._args = args = args or DiskIOArgs()
        handles = handles or HandleRegistry()
        handle = handles.register(DISK_IO, lambda: DiskIOHandle(args.block_sizes))
        assert isinstance(handle, DiskIOHandle), f"{DISK_IO} belongs to another plugin"
        if handle.block_sizes != args.block_sizes:
            problem = "must be the same in all profiles: what is in use is counted once"
            raise ConfigError((Problem(f"pluginConfig[{self.name}].args.blockSizes", problem),))
        self._handle = handle
        self._packs = args.scoring_strategy == "MostAllocated"

    @classmethod
    def create_sharing(cls, args: Any, gates: Mapping[str, bool], handles: HandleRegistry) -> Self:
        return cls(args, handles)

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        try:
            return self._estimate(pod)
        except DecodeError as error:
            return str(error)

    def watch(self, pod: Pod, nodes: View) -> Change:
        return Change.NONE if self._readable(pod) is None else nodes.extended.change(DISK_IO)

    # Filtering

    def pre_filter(self, pod: Pod, nodes: View) -> Bandwidth | Rejected | None:
        try:
            return self._estimate(pod)
        except DecodeError as error:
            return unresolvable(str(error))

    def filter(self, prepared: Bandwidth, nodes: View, rows: Rows) -> Verdict:
        columns = nodes.extended.columns(DISK_IO)
        if columns is None:
            return Verdict.rejecting(~nodes.nothing(rows), _UNKNOWN)
        present = columns.present[rows]
        failed = np.zeros((1 + len(_SHORT), nodes.count(rows)), np.bool_)
        np.logical_not(present, out=failed[0])
        for at, (amount, (has, uses)) in enumerate(zip(prepared, _COLUMNS, strict=True)):
            if amount:
                can = columns[has][rows]
                failed[1 + 2 * at] = present & (can - columns[uses][rows] < amount)
                failed[2 + 2 * at] = present & (can < amount)
        return Verdict((_UNKNOWN, *_SHORT), failed)

    def recheck(self, prepared: Bandwidth, nodes: View, row: RowFacts) -> Rescore:
        figures = _figures(nodes, row.number)
        if figures is None:
            return Rescore.INFEASIBLE
        for at, amount in enumerate(prepared):
            if amount and figures[2 * at] - figures[2 * at + 1] < amount:
                return Rescore.INFEASIBLE
        return Rescore.UPDATED

    # Scoring

    def advise(
        self, pod: Pod, prepared: Bandwidth | None, nodes: View, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        return advise_on_disks(pod, prepared, nodes, rows)

    def pre_score(self, pod: Pod, nodes: View, rows: NDArray[np.intp]) -> Bandwidth | None:
        return self._readable(pod)

    def score(self, prepared: Bandwidth, nodes: View, rows: Rows) -> Scores:
        columns = nodes.extended.columns(DISK_IO)
        totals: Scores = np.zeros(nodes.count(rows), np.int64)
        if columns is None:
            return totals
        asked = [pair for pair in zip(prepared, _COLUMNS, strict=True) if pair[0]]
        for amount, (has, uses) in asked:
            used = columns[uses][rows] + amount
            totals += shares(columns[has][rows], used, packs=self._packs)
        return totals // len(asked)

    def rescore(self, prepared: Bandwidth, nodes: View, row: RowFacts, scores: Scores) -> Rescore:
        figures = _figures(nodes, row.number)
        total = asked = 0
        for at, amount in enumerate(prepared):
            if amount:
                asked += 1
                if figures is not None:
                    used = figures[2 * at + 1] + amount
                    total += share(figures[2 * at], used, packs=self._packs)
        scores[row.number] = total // asked
        return Rescore.UPDATED

    # Waking

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (
            on(
                KIND.resource,
                Action.ALL,
                self._after_status,
                reads=self._readable,
                topics=if_changed(_describe),
            ),
            on(Resource.NODE, Action.ADD, self._after_node, alike=True),
            on(Resource.POD, Action.DELETE, self._after_pod_is_gone, alike=True),
            on(
                Resource.POD,
                Action.UPDATE,
                self._after_pod_change,
                alike=True,
                topics=Topics(self._changed_use),
            ),
        )

    def _after_status(self, pod: Pod, old: CustomObject | None, new: CustomObject | None) -> bool:
        asked = self._readable(pod)
        if asked is None:
            return False
        if new is None:
            # Another object may describe the node from now on.
            return True
        has, had = _read(new), NOTHING if old is None else _read(old)
        if old is not None and old.fields.get("spec") != new.fields.get("spec"):
            # It may describe another node now.
            had = NOTHING
        enough = has.read >= asked.read and has.write >= asked.write
        return enough and (has.read > had.read or has.write > had.write)

    def _after_node(self, pod: Pod, old: None, new: Node) -> bool:
        # The object that describes a node may have come before it.
        return self._handle.get(new.name) is not None

    def _after_pod_is_gone(self, pod: Pod, old: Pod, new: None) -> bool:
        return old.has_place and asks(old)

    def _after_pod_change(self, pod: Pod, old: Pod, new: Pod) -> bool:
        if self._handle.counts_alike(old, new):
            return False
        return new.uid == pod.uid or new.has_place

    def _changed_use(self, old: Pod, new: Pod) -> tuple[()] | None:
        return () if self._handle.counts_alike(old, new) else None

    def _estimate(self, pod: Pod) -> Bandwidth | None:
        """Returns what a pod is estimated to use, None if it says nothing; raises DecodeError."""
        if not asks(pod):
            return None
        use = estimate(pod, self._args.block_sizes)
        return None if use.is_none else use

    def _readable(self, pod: Pod) -> Bandwidth | None:
        try:
            return self._estimate(pod)
        except DecodeError:
            return None


def _figures(nodes: View, row: int) -> list[int] | None:
    columns = nodes.extended.columns(DISK_IO)
    return None if columns is None else columns.at(row)


def _describe(item: CustomObject) -> tuple[Any, Bandwidth]:
    """Returns the node that an object describes, and what it says of it."""
    return item.fields.get("spec"), _read(item)


def _read(item: CustomObject) -> Bandwidth:
    try:
        return capacity(item)
    except DecodeError:
        return NOTHING
