"""Checks the invariant behind every test: a cluster equals one rebuilt from its objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cluster import Cluster
from .extended.contract import POOL
from .extended.resources import ExtendedTable
from .ledger import Ledgers
from .nodes import Nodes
from .recount import fill
from .state import State
from .storage.objects import Storage
from .tally import DomainCounts, Tally

# What is kept by row is compared by the name of the node, because row numbers and codes differ.
_ByNode = dict[str, Any]


def check(cluster: Cluster) -> None:
    """Raises AssertionError naming the first value that differs from the rebuilt cluster's."""
    state = cluster._state
    _check_rows(cluster, state)
    rebuilt = cluster.make_empty()
    broken = fill(rebuilt, cluster)
    assert broken is None, f"an object cannot be put in again: {broken}"
    keys = [column.key for column in state.labels.columns]
    found, expected = (_describe(each, state, keys) for each in (cluster, rebuilt))
    for what, value in found.items():
        _compare(what, value, expected[what])
    _check_facts(cluster.nodes, state)
    for tally in state.tallies:
        _check_tally(tally, state)


def _compare(what: str, kept: Any, rebuilt: Any) -> None:
    if isinstance(kept, dict) and isinstance(rebuilt, dict):
        for key in kept | rebuilt:
            _compare(f"{what}: {key}", kept.get(key), rebuilt.get(key))
    else:
        assert kept == rebuilt, f"{what}: kept {kept}, from objects {rebuilt}"


# What has to agree within the cluster


def _check_rows(cluster: Cluster, state: State) -> None:
    listed = {node.name: row for row, node in enumerate(state.nodes) if node is not None}
    _compare("rows", state.rows, listed)
    _compare("visited rows", sorted(state.order.rows().tolist()), sorted(listed.values()))
    on_rows = {uid: row for row, pods in enumerate(state.pods) for uid in pods}
    at_home = {uid: state.rows.get(pod.node_name) for uid, pod in cluster.pods.items()}
    _compare("rows of pods", on_rows, {uid: row for uid, row in at_home.items() if row is not None})
    nodeless = {uid for pods in cluster._on_unknown_nodes.values() for uid in pods}
    lost = {uid for uid, row in at_home.items() if row is None}
    _compare("pods without a node", nodeless, lost)
    assert cluster._assumed <= cluster.pods.keys(), "an assumed pod is not placed"
    columns = state.columns
    for array in (columns.allocatable, columns.requested.array, columns.nonzero_requested.array):
        assert not array[..., ~columns.alive].any(), "numbers of rows without a node are not zero"


def _check_facts(nodes: Nodes, state: State) -> None:
    kept = dict(state.facts)
    state.facts.clear()
    for row, facts in kept.items():
        found = nodes.facts(row)
        for name in ("allocatable", "requested", "nonzero_requested", "figures"):
            _compare(f"facts of row {row}: {name}", getattr(facts, name), getattr(found, name))
    state.facts.update(kept)


def _check_tally(tally: Tally, state: State) -> None:
    counted = Counter(row for row, pod in state.placed if tally.match.matches(pod))
    by_row = {row: int(tally.by_row[row]) for row in np.flatnonzero(tally.by_row).tolist()}
    _compare(f"tally {tally.match}", by_row, dict(counted))
    highest = max(counted.values(), default=0)
    assert tally.highest >= highest, f"highest of {tally.match}: {highest} is more"
    for kept in (*tally.domains.values(), *tally.parts):
        anew = DomainCounts.of(tally.by_row, kept.column, kept.among)
        what = f"domains of {tally.match}"
        _compare(what, kept.counts().tolist(), anew.counts().tolist())
        _compare(f"total of {what}", kept.total, anew.total)


# What has to follow from the objects


def _describe(cluster: Cluster, kept: State, keys: Iterable[str]) -> dict[str, Any]:
    """Returns what a cluster keeps, in plain values: labels of these keys, counts as in `kept`."""
    nodes, state = cluster.nodes, cluster._state
    names = {row: name for name, row in state.rows.items()}

    def by_node(rows: Mapping[int, Any]) -> _ByNode:
        return {names.get(row, f"row {row}"): value for row, value in rows.items()}

    def by_filled(column: Iterable[Any], nothing: Any = 0) -> _ByNode:
        return by_node({row: value for row, value in enumerate(column) if value != nothing})

    def by_key(ledgers: Ledgers, wanted: Ledgers) -> dict[str, Any]:
        counts = {each: ledgers.of(each).by_key() for each in wanted}
        return {
            type(ledger).__name__: {key: by_node(rows) for key, rows in found.items()}
            for ledger, found in counts.items()
        }

    columns, use, groups = state.columns, state.volume_use, state.groups
    columns_of = {each.key: each for each in state.labels.columns}
    labels = {key: columns_of.get(key) or nodes.label(key) for key in keys}
    rows = range(len(state.nodes))
    return {
        "node": {name: _describe_row(nodes, row) for name, row in state.rows.items()},
        "taints": set(state.taints.in_use()),
        "features": set(state.features.in_use()),
        "resources": set(state.resource_names.in_use()),
        "rows by label": {
            key: by_node(dict.fromkeys(rows)) for key, rows in state.labels.rows.items()
        },
        "label": {key: by_filled(map(each.value, rows), None) for key, each in labels.items()},
        "rows with label": {key: column.filled for key, column in labels.items()},
        "image": {name: by_node(dict.fromkeys(each.rows)) for name, each in state.images},
        "column of image": {
            name: by_filled(each.present(columns.capacity)) for name, each in state.images
        },
        "terms of running pods": _describe_terms(state),
        "ledger": by_key(columns.ledgers, kept.columns.ledgers),
        "ledger of nominations": by_key(columns.nominated, kept.columns.nominated),
        "nominations": {
            name: {uid: state.nominations.node_of(pod) for uid, pod in pods.items()}
            for name, pods in state.nominations
        },
        "pods of rows": None if kept.pod_table is None else by_node(_describe_pods(nodes, state)),
        "members of groups": groups.all_placed(),
        "waiting members of groups": {pod.uid for pod in groups.all_waiting()},
        "volumes": {key: by_node(rows) for key, rows in use.volumes.by_key().items()},
        "attachments": {key: by_node(rows) for key, rows in use.attachments.by_key().items()},
        "attached": {key: by_node(rows) for key, rows in use.attached.by_key().items()},
        "CSINode": by_filled(map(state.csi_nodes.describe_row, rows), ({}, set(), set())),
        "storage": _describe_storage(state.storage),
        "extended resource": {
            table.resource_type: {
                "nodes": _describe_resources(table),
                "rows": by_node({row: each.figures for row, each in table.by_row.items()}),
                "figures": by_filled(map(table.columns.at, range(columns.capacity)), None),
                **{name: by_filled(table.columns[name].tolist()) for name in table.columns.names},
            }
            for table in state.extended.tables()
        },
        "devices in use": state.devices.use,
        "devices": {name: _describe_devices(nodes, name, row) for name, row in state.rows.items()},
    }


def _describe_row(nodes: Nodes, row: int) -> dict[str, Any]:
    return {
        "allocatable": _amounts(nodes, nodes.allocatable[:, row]),
        "requested": _amounts(nodes, nodes.requested[:, row]),
        "unoffered": nodes._state.columns.unoffered.get(row, {}),
        "nonzero_requested": nodes.nonzero_requested[:, row].tolist(),
        "unschedulable": bool(nodes.unschedulable[row]),
        "taints": nodes.taints.values[int(nodes.taint_sets[row])],
        "features": nodes.features.values[int(nodes.feature_sets[row])],
        "resources": nodes.resource_names.values[int(nodes.resource_sets[row])],
        "pods": sorted(nodes.pods(row)),
        "alive": bool(nodes.alive[row]),
    }


def _amounts(nodes: Nodes, column: NDArray[np.int64]) -> dict[str, int]:
    return {name: int(column[at]) for name, at in nodes.resources.items() if column[at]}


def _describe_terms(state: State) -> dict[Any, Any]:
    """Returns for each term the numbers of its pods: of all, per domain, and in any domain."""
    terms = {}
    for key, standing in state.standing:
        values = standing.domains.column.vocabulary.values
        counts = standing.domains.counts()
        by_value = {values[code]: int(counts[code]) for code in np.flatnonzero(counts)}
        terms[key] = standing.pods, by_value, standing.domains.total
    return terms


def _describe_pods(nodes: Nodes, state: State) -> dict[int, Any]:
    """Returns for each row what the table of pods says of its pods."""
    lesser = nodes.lesser_pods(2**40, np.arange(len(state.nodes)))
    requests, counts = lesser.usage.requests.array, lesser.usage.counts
    return {
        row: {
            pod.uid: (_amounts(nodes, requests[:, at]), counts[:, at].tolist())
            for at, pod in enumerate(lesser.pods(place), int(lesser.begins[place]))
        }
        for place, row in enumerate(lesser.rows.tolist())
    }


def _describe_storage(storage: Storage) -> dict[str, Any]:
    return {
        "volumes by class or claim": storage._index,
        "claims by volume": {name: set(keys) for name, keys in storage._claims_on.items()},
        **{
            f"assumed {what}": {
                name: (item, objects.owners[name]) for name, item in objects.assumed.items()
            }
            for what, objects in (("volumes", storage._volumes), ("claims", storage._claims))
        },
    }


def _describe_resources(table: ExtendedTable) -> dict[str, Any]:
    """Returns for each node, and the pool, the figures and the pods that are counted."""
    held = table.by_node if table.pool is None else {**table.by_node, POOL: table.pool}
    return {name: (dict(each.resource.figures()), sorted(each.pods)) for name, each in held.items()}


def _describe_devices(nodes: Nodes, name: str, row: int) -> list[Any]:
    """Returns what a row sees: the views with its own names, and the pools of its group."""
    groups = nodes.device_groups
    number = int(groups.local[row])
    local, pattern = groups.group(number), groups.pattern(int(groups.patterns[row]))
    rows = np.count_nonzero(groups.local[list(nodes._state.rows.values())] == number)
    own = [(view.key, view.status, view.names) for view in groups.views(name, row)]
    alike = [(view.status, len(view.names), state) for view, state in groups.pools(local, pattern)]
    return [own, alike, not number or local.rows == rows]
