"""Counting extended resources anew, for the invariant."""

from __future__ import annotations

from typing import Any

from .extended_resources import ExtendedResources, ExtendedTable
from .nodes import State


def resources_again(kept: ExtendedResources, rebuilt: ExtendedResources) -> None:
    """Sets the same resources, without pods, in another cluster."""
    for resource_type, node_name, resource in kept.empties():
        rebuilt.set(resource_type, node_name, resource)


def check_extended(state: State, rebuilt: State) -> None:
    """Raises AssertionError unless everything counted is what counting anew finds."""
    for table, other in zip(state.extended.tables(), rebuilt.extended.tables(), strict=True):
        found, expected = _said(table, state), _said(other, rebuilt)
        what = f"extended resource {table.resource_type}"
        assert found == expected, f"{what}: kept {found}, from objects {expected}"
        _check_columns(what, table, state)


def _said(table: ExtendedTable, state: State) -> dict[str, Any]:
    """Per node the figures, and which pods are counted."""
    there = {row for name, row in state.rows.items() if name in table.by_node}
    assert table.by_row.keys() == there, f"{table.resource_type} is on rows {[*table.by_row]}"
    for name, row in state.rows.items():
        assert table.by_row.get(row) is table.by_node.get(name), f"row of {name} has another's"
    return {
        name: (dict(counted.resource.figures()), sorted(counted.pods))
        for name, counted in table.by_node.items()
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
