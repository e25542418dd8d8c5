"""Groups rows by the devices that they see: a claim gets equal devices on all rows of a group.

Each row has two numbers. One stands for its *local* pools, which only nodes see that their slices
name. The other stands for the *wide* pools, which other nodes see, too. Rows with equal numbers see
equal pools, in the same order, with the same devices in use; only the names differ.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from moorage.cluster.arrays import grow_to
from moorage.objects.device import NodeChoice, ResourceSlice

from .device_use import DeviceUse, PoolState
from .models import Models
from .pools import Pool, PoolKey, PoolStatus, PoolView

#: Returns, for each row, whether a choice of nodes includes it.
MatchNodes = Callable[[NodeChoice], NDArray[np.bool_]]

#: At most so many slices and devices of wide pools are read for the views of all rows, in about
#: half a second. Rows beyond that see the pools as invalid.
MOST_SEEN = 200_000

#: Matching a choice of nodes with so many rows takes as long as reading one slice or device.
_ROWS_PER_SEEN = 200

#: At most so many groups are kept that have no rows.
_MOST_IDLE = 256

#: A pool as a row sees it, and which of its devices are in use.
SeenPool = tuple[PoolView, PoolState]


class LocalGroup:
    """Rows that see equal local pools, with the same devices in use."""

    __slots__ = ("key", "number", "pools", "rows")

    def __init__(self, key: object, number: int, pools: tuple[SeenPool, ...]) -> None:
        self.key = key
        self.number = number
        #: The local pools of the row for which the group was made.
        self.pools = pools
        #: The number of rows in the group.
        self.rows = 0


class WidePattern:
    """What some rows see of the wide pools."""

    __slots__ = ("views",)

    def __init__(self, views: tuple[PoolView, ...]) -> None:
        self.views = views


class RowGroups:
    """The two numbers of every row. A row gets new ones after a change that concerns it."""

    def __init__(
        self, pools: Mapping[PoolKey, Pool], use: DeviceUse, rows: Mapping[str, int]
    ) -> None:
        self._pools = pools
        self._use = use
        self._rows = rows
        self.models = Models()
        self._pools_on: dict[str, dict[PoolKey, None]] = {}
        self._nodes_of: dict[PoolKey, tuple[str, ...]] = {}
        #: What each node sees of its local pools, until one of these changes.
        self._views_on: dict[str, tuple[PoolView, ...]] = {}
        #: The keys of the wide pools in order.
        self._wide: list[PoolKey] = []
        self._nothing = LocalGroup((), 0, ())
        self._by_key: dict[object, LocalGroup] = {(): self._nothing}
        self._by_number: list[LocalGroup] = [self._nothing]
        self._free: list[int] = []
        #: Groups without rows, the oldest first. They are kept because another node that fills up
        #: passes through the same groups.
        self._idle: dict[LocalGroup, None] = {}
        #: For each number, the value of `given` when its group got a first row. It tells groups
        #: apart that have the same number one after the other.
        self.births: NDArray[np.int64] = np.zeros(1, np.int64)
        #: How many times a group without rows has got a row.
        self.given = 0
        #: Per row the number of its local group.
        self.local: NDArray[np.int64] = np.zeros(0, np.int64)
        #: Per row the number of its pattern of wide pools.
        self.patterns: NDArray[np.int64] = np.zeros(0, np.int64)
        self._patterns: list[WidePattern] = [WidePattern(())]
        self._stale_nodes: dict[str, None] = {}
        self._stale_pools: dict[PoolKey, None] = {}
        #: The drivers and the names of more pools that are stale; None stands for all.
        self._stale_choices: dict[tuple[str | None, str | None], None] = {}
        self._stale_patterns = True
        #: Changes when a wide pool changes, its devices in use, or what nodes see of it.
        self.wide_version = 0

    # Changes

    def change_pool(self, key: PoolKey) -> None:
        """Notes that slices of a pool came, went or changed."""
        self._stale_pools[key] = None

    def change_pools(self, driver: str | None, pool: str | None) -> None:
        """Notes that devices of all pools of a driver and a name changed; None stands for all."""
        self._stale_choices[driver, pool] = None

    def take_in(self, key: PoolKey) -> None:
        """Groups the node of a changed pool at once if it is one slice for one node, as most are.

        So each slice takes a little time, and the first decision finds the groups made.
        """
        pool = self._pools[key]
        if not pool.only_node or self._is_wide(key):
            return
        del self._stale_pools[key]
        self._unlink(key)
        self._link(key, pool)
        self._refresh_node(pool.only_node)

    def change_use(self, key: PoolKey, device: str) -> tuple[str, ...] | None:
        """Notes that a device was taken or given back.

        Returns the nodes that see it; None if its pool is wide.
        """
        pool = self._pools.get(key)
        if pool is None:
            return ()
        if pool.only_node:
            self._stale_nodes[pool.only_node] = None
            return pool.nodes
        if pool.is_wide:
            self.wide_version += 1
            return None
        by_device = pool.nodes_of_device
        nodes = pool.nodes if by_device is None else by_device.get(device, ())
        for name in nodes:
            self._stale_nodes[name] = None
        return nodes

    def change_node(self, name: str) -> None:
        """Takes in a node that got its row."""
        if name in self._pools_on:
            self._refresh_node(name)
        self._stale_patterns = True

    def leave_row(self, row: int) -> None:
        """Takes in that a node lost its row."""
        self._set_row(row, self._nothing)
        self._stale_patterns = True

    def change_labels(self) -> None:
        self._stale_patterns = True

    def grow(self, capacity: int) -> None:
        self.local = grow_to(self.local, capacity)
        self.patterns = grow_to(self.patterns, capacity)

    # Reading

    @property
    def is_stale(self) -> bool:
        return bool(
            self._stale_nodes or self._stale_pools or self._stale_choices or self._stale_patterns
        )

    @property
    def count(self) -> int:
        """Returns how many numbers of local groups there are."""
        return len(self._by_number)

    @property
    def pattern_count(self) -> int:
        return len(self._patterns)

    def group(self, number: int) -> LocalGroup:
        return self._by_number[number]

    def pattern(self, number: int) -> WidePattern:
        return self._patterns[number]

    def pools(self, local: LocalGroup, pattern: WidePattern) -> tuple[SeenPool, ...]:
        """Returns the pools of a group, in the order in which devices are taken from them."""
        wide = [(view, self._use.state(view)) for view in pattern.views]
        return tuple(sorted((*local.pools, *wide), key=_search_order))

    def views(self, node_name: str, row: int) -> tuple[PoolView, ...]:
        """Returns the pools of one row in that order, with the names of its own devices."""
        wide = self._patterns[self.patterns[row]].views
        local = self._local_views(node_name)
        return tuple(sorted((*local, *wide), key=lambda view: _search_order((view, None))))

    @property
    def named_nodes(self) -> Iterable[str]:
        """The node names that appear in local pools. Such a node may not exist yet."""
        return self._pools_on.keys()

    def slices_on(self, node_name: str) -> Iterator[ResourceSlice]:
        """Yields the slices of local pools that name a node."""
        for key in self._pools_on.get(node_name, ()):
            for each in self._pools[key].slices.values():
                if each.nodes == node_name:
                    yield each

    def wide_slices(self) -> Iterator[ResourceSlice]:
        """Yields the slices of wide pools."""
        for key in self._wide:
            yield from self._pools[key].slices.values()

    # Refreshing

    def refresh(self, match: MatchNodes) -> None:
        """Brings the numbers of all rows up to date."""
        if self._stale_choices:
            self._choose_stale_pools()
        if self._stale_pools:
            self._refresh_pools()
        for name in [*self._stale_nodes]:
            self._refresh_node(name)
        if self._stale_patterns:
            self._stale_patterns = False
            self._refresh_patterns(match)

    def _choose_stale_pools(self) -> None:
        chosen = self._stale_choices
        for key in self._pools:
            driver, pool = key
            if any(each in chosen for each in ((None, None), (driver, None), (None, pool), key)):
                self._stale_pools[key] = None
        chosen.clear()

    def _refresh_pools(self) -> None:
        wide = dict.fromkeys(self._wide)
        for key in self._stale_pools:
            self._unlink(key)
            was_wide = key in wide
            wide.pop(key, None)
            pool = self._pools.get(key)
            if pool is not None and pool.is_wide:
                wide[key] = None
            elif pool is not None:
                self._link(key, pool)
            self._stale_patterns |= was_wide or key in wide
        self._stale_pools.clear()
        if sorted(wide) != self._wide:
            self._wide = sorted(wide)
            # The order of local pools among the wide ones has changed, and may differ between the
            # rows of a group: each row gets a new group.
            self._by_key = {(): self._nothing}
            self._stale_nodes.update(dict.fromkeys(self._pools_on))

    def _is_wide(self, key: PoolKey) -> bool:
        at = bisect_left(self._wide, key)
        return self._wide[at : at + 1] == [key]

    def _link(self, key: PoolKey, pool: Pool) -> None:
        """Assigns a pool to the nodes that it names."""
        self._nodes_of[key] = pool.nodes
        for name in pool.nodes:
            self._pools_on.setdefault(name, {})[key] = None
            self._forget_node(name)

    def _unlink(self, key: PoolKey) -> None:
        """Removes a pool from its nodes."""
        for name in self._nodes_of.pop(key, ()):
            del self._pools_on[name][key]
            self._forget_node(name)

    def _forget_node(self, name: str) -> None:
        self._views_on.pop(name, None)
        self._stale_nodes[name] = None

    def _local_views(self, name: str) -> tuple[PoolView, ...]:
        known = self._views_on.get(name)
        if known is None:
            # A pool may be gone that `_refresh_pools` has not removed from this node yet.
            keys = [key for key in sorted(self._pools_on.get(name, ())) if key in self._pools]
            views = [self._pools[key].view(name.__eq__, self.models) for key in keys]
            known = tuple([view for view in views if view is not None and view.matters])
            self._views_on[name] = known
        return known

    def _refresh_node(self, name: str) -> None:
        """Moves the row of a node to the group for what it sees now."""
        self._stale_nodes.pop(name, None)
        row = self._rows.get(name)
        if row is None:
            return
        find_state, wide = self._use.state, self._wide
        pools = tuple([(view, find_state(view)) for view in self._local_views(name)])
        key = tuple([(*view.look, state, bisect_left(wide, view.key)) for view, state in pools])
        self._set_row(row, self._by_key.get(key) or self._make_group(key, pools))

    def _make_group(self, key: object, pools: tuple[SeenPool, ...]) -> LocalGroup:
        number = self._free.pop() if self._free else len(self._by_number)
        group = self._by_key[key] = LocalGroup(key, number, pools)
        self._by_number[number : number + 1] = [group]
        self.births = grow_to(self.births, number + 1)
        self._idle[group] = None
        return group

    def _set_row(self, row: int, group: LocalGroup) -> None:
        before = self._by_number[self.local[row]]
        if before is group:
            return
        self.local[row] = group.number
        if group in self._idle:
            del self._idle[group]
            self.given += 1
            self.births[group.number] = self.given
        group.rows += 1
        before.rows -= 1
        if not before.rows and before is not self._nothing:
            self._idle[before] = None
            if len(self._idle) > _MOST_IDLE:
                self._drop_group(next(iter(self._idle)))

    def _drop_group(self, group: LocalGroup) -> None:
        del self._idle[group]
        if self._by_key.get(group.key) is group:
            del self._by_key[group.key]
        self._free.append(group.number)

    def _refresh_patterns(self, match: MatchNodes) -> None:
        self.wide_version += 1
        self.patterns[:] = 0
        self._patterns = [WidePattern(())]
        if not self._wide:
            return
        seen: dict[tuple[PoolView, ...], int] = {(): 0}
        wide = _WidePools([self._pools[key] for key in self._wide], self.models)
        for rows, mark in wide.distinguish(match, np.fromiter(self._rows.values(), np.intp)):
            views = wide.look(mark)
            number = seen.get(views)
            if number is None:
                number = seen[views] = len(self._patterns)
                self._patterns.append(WidePattern(views))
            self.patterns[rows] = number


class _WidePools:
    """The wide pools, and what rows see of them: rows in the same choices have equal views."""

    def __init__(self, pools: Sequence[Pool], models: Models) -> None:
        self._pools = pools
        self._models = models
        self._choices = list(dict.fromkeys(each for pool in pools for each in pool.choices))
        #: How many slices and devices are read for one view of all pools, at least.
        self._least = sum(pool.look_size for pool in pools)
        self._left = MOST_SEEN

    def distinguish(
        self, match: MatchNodes, rows: NDArray[np.intp]
    ) -> Iterable[tuple[NDArray[np.intp], frozenset[NodeChoice] | None]]:
        """Yields rows that are in the same choices, with these; None if there are too many."""
        if not len(rows):
            return
        if len(self._choices) * len(rows) > MOST_SEEN * _ROWS_PER_SEEN:
            yield rows, None
            return
        meant = np.stack([match(choice)[rows] for choice in self._choices])
        packed = np.packbits(meant, axis=0)
        _, firsts, inverse = np.unique(packed, axis=1, return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
        for at, first in enumerate(firsts.tolist()):
            mark = None
            if self._left > 0:
                chosen = np.flatnonzero(meant[:, first]).tolist()
                mark = frozenset(self._choices[each] for each in chosen)
            yield rows[inverse == at], mark

    def look(self, mark: frozenset[NodeChoice] | None) -> tuple[PoolView, ...]:
        """Returns what rows in these choices see; for None, all pools as invalid."""
        if mark is None:
            return self._unseen
        views = (pool.view(mark.__contains__, self._models) for pool in self._pools)
        seen = tuple(view for view in views if view is not None and view.matters)
        self._left -= self._least + sum(len(view.names) for view in seen)
        return seen

    @cached_property
    def _unseen(self) -> tuple[PoolView, ...]:
        shape = self._models.shape((), ())
        return tuple(
            PoolView(pool.key, PoolStatus.INVALID, shape, (), pool) for pool in self._pools
        )


def _search_order(pool: tuple[PoolView, object]) -> tuple[bool, PoolKey]:
    view = pool[0]
    return view.shape.binds, view.key
