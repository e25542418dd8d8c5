"""Checks the invariant for storage, devices and extended resources."""

from __future__ import annotations

from collections import Counter
from typing import Any

from moorage.cluster.devices.device_use import DeviceUse
from moorage.cluster.devices.devices import Devices
from moorage.cluster.devices.groups import RowGroups
from moorage.cluster.extended.contract import POOL
from moorage.cluster.extended.resources import ExtendedResources, ExtendedTable
from moorage.cluster.ledger import Counts
from moorage.cluster.nodes import Nodes
from moorage.cluster.state import State
from moorage.cluster.storage.indexes import VolumeIndex
from moorage.cluster.storage.objects import Storage


def resources_again(kept: ExtendedResources, rebuilt: ExtendedResources) -> None:
    """Sets the resources of a cluster, without pods, in another cluster."""
    for resource_type, node_name, resource in kept.empties():
        rebuilt.set(resource_type, node_name, resource)


def check_extended(state: State, rebuilt: State) -> None:
    """Raises AssertionError unless counting all pods anew finds the same figures."""
    for table, other in zip(state.extended.tables(), rebuilt.extended.tables(), strict=True):
        found, expected = _collect_figures(table, state), _collect_figures(other, rebuilt)
        what = f"extended resource {table.resource_type}"
        assert found == expected, f"{what}: kept {found}, from objects {expected}"
        _check_columns(what, table, state)


def _collect_figures(table: ExtendedTable, state: State) -> dict[str, Any]:
    """Returns for each node its figures and the uids of the pods that are counted."""
    there = {row for name, row in state.rows.items() if name in table.by_node}
    assert table.by_row.keys() == there, f"{table.resource_type} is on rows {[*table.by_row]}"
    for name, row in state.rows.items():
        assert table.by_row.get(row) is table.by_node.get(name), f"row of {name} has another's"
    held = dict(table.by_node)
    if table.pool is not None:
        held[POOL] = table.pool
    return {
        name: (dict(counted.resource.figures()), sorted(counted.pods))
        for name, counted in held.items()
    }


def _check_columns(what: str, table: ExtendedTable, state: State) -> None:
    for row in range(state.columns.capacity):
        counted = table.by_row.get(row)
        kept = table.columns.at(row)
        expected = None
        if counted is not None:
            expected = [counted.figures[name] for name in table.columns.names]
        assert kept == expected, f"{what} in row {row}: kept {kept}, counted {expected}"
        if counted is None:
            left = [int(table.columns[name][row]) for name in table.columns.names]
            assert not any(left), f"{what} in row {row} without it: {left}"


def check_storage(state: State, rebuilt: State) -> None:
    """Raises AssertionError naming the first value that differs from the rebuilt cluster's."""
    for name, row in state.rows.items():
        kept = _row(state, row)
        other = _row(rebuilt, rebuilt.rows[name])
        assert kept == other, f"volumes of node {name}: kept {kept}, from objects {other}"
    _check_dead_rows(state)
    _check_objects(state.storage)


def _row(state: State, row: int) -> dict[str, Any]:
    use = state.volume_use
    counts: tuple[Counts[Any], ...] = use.volumes, use.attachments, use.attached
    kept = [
        {key: rows[row] for key, rows in each.by_key().items() if row in rows} for each in counts
    ]
    names = "volumes", "attachments", "attached"
    return {**dict(zip(names, kept, strict=True)), "CSINode": state.csi_nodes.describe_row(row)}


def _check_dead_rows(state: State) -> None:
    for row, node in enumerate(state.nodes):
        if node is None:
            of_node = (left := _row(state, row)).pop("CSINode")
            assert not any((*of_node, *left.values())), f"row {row} without node: {left}"


def _check_objects(storage: Storage) -> None:
    index = VolumeIndex()
    claims_on: dict[str, set[str]] = {}
    for volume in storage._volumes:
        index.add(storage._volumes.get(volume.name) or volume)
    for claim in storage._claims:
        if claim.volume_name:
            claims_on.setdefault(claim.volume_name, set()).add(claim.key)
    assert storage._index == index, "the volumes by class or claim are not those there are"
    kept = {name: set(keys) for name, keys in storage._claims_on.items()}
    assert kept == claims_on, f"claims by volume: kept {kept}, from objects {claims_on}"
    for objects in (storage._volumes, storage._claims):
        names = objects.assumed.keys()
        assert names == objects.owners.keys(), "an assumption that nobody relies on"
        assert all(objects.known(name) is not None for name in names), "assumed but not known"


def check_devices(state: State, kept: Nodes, rebuilt: Nodes) -> None:
    """Raises AssertionError unless use and views of devices follow from the objects."""
    _check_use(state.devices)
    groups, others = kept.device_groups, rebuilt.device_groups
    for name, row in state.rows.items():
        other = rebuilt.row(name)
        assert other is not None, f"node {name} is not among the objects"
        found = _collect_views(groups, name, row)
        expected = _collect_views(others, name, other)
        assert found == expected, f"devices of node {name}: kept {found}, from objects {expected}"
    counts = Counter(groups.local[list(state.rows.values())].tolist())
    for number, count in counts.items():
        rows = groups.group(number).rows
        assert not number or rows == count, f"group {number} has {count} rows, kept {rows}"


def _check_use(devices: Devices) -> None:
    again = DeviceUse()
    for allocation in devices.claims.held():
        again.count(allocation.results, 1)
    assert devices.use == again, "devices are in use that no claim holds, or the other way round"


def _collect_views(groups: RowGroups, name: str, row: int) -> list[Any]:
    """Returns what a row sees: the views with its own names, and the pools of its group."""
    local = groups.group(int(groups.local[row]))
    pattern = groups.pattern(int(groups.patterns[row]))
    own = [(view.key, view.status, view.names) for view in groups.views(name, row)]
    alike = [(view.status, len(view.names), state) for view, state in groups.pools(local, pattern)]
    return [own, alike]
