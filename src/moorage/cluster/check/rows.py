"""Checks the invariant behind every test: a cluster equals one rebuilt from its objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.cluster.cluster import Cluster
from moorage.cluster.labels import Vocabulary
from moorage.cluster.nodes import Nodes
from moorage.cluster.pods import LesserPods, start_of
from moorage.cluster.state import State
from moorage.cluster.tally import DomainCounts
from moorage.objects.pod import Pod
from moorage.objects.resources import PODS

from .storage_and_devices import check_devices, check_extended, check_storage, resources_again


def check(cluster: Cluster) -> None:
    """Raises AssertionError naming the first value that differs from the rebuilt cluster's."""
    state = cluster._state
    _check_rows(state)
    _check_codes(state)
    _check_pods(cluster, state)
    rebuilt = _rebuild(cluster)
    for name, row in state.rows.items():
        other = rebuilt._state.rows[name]
        _same(f"node {name}", _row(cluster.nodes, row), _row(rebuilt.nodes, other))
    _check_facts(cluster.nodes, state)
    _check_dead_rows(state)
    _check_labels(state)
    _check_tallies(state)
    _check_standing(cluster, rebuilt)
    _check_ledgers(state)
    _check_images(state)
    _check_nominations(state)
    _check_pod_table(state)
    _same("members of groups", state.groups.all_placed(), rebuilt.groups.all_placed())
    check_storage(state, rebuilt._state)
    check_extended(state, rebuilt._state)
    check_devices(state, cluster.nodes, rebuilt.nodes)


def _check_facts(nodes: Nodes, state: State) -> None:
    kept = dict(state.facts)
    state.facts.clear()
    for row, facts in kept.items():
        found = nodes.facts(row)
        for name in ("allocatable", "requested", "nonzero_requested", "figures"):
            _same(f"facts of row {row}: {name}", getattr(facts, name), getattr(found, name))
    state.facts.update(kept)


def _same(what: str, kept: Any, rebuilt: Any) -> None:
    assert kept == rebuilt, f"{what}: kept {kept}, from objects {rebuilt}"


def _rebuild(cluster: Cluster) -> Cluster:
    rebuilt = cluster.make_empty()
    resources_again(cluster.extended, rebuilt.extended)
    for node in cluster._state.nodes:
        if node is not None:
            rebuilt.put_node(node)
    for item in cluster._state.storage:
        rebuilt.put_storage(item)
    for device in cluster._state.devices:
        rebuilt.put_device(device)
    rebuilt._state.devices.decide_as(cluster._state.devices)
    for pod in cluster.pods.values():
        rebuilt.put_pod(pod)
    return rebuilt


def _row(nodes: Nodes, row: int) -> dict[str, Any]:
    """Returns the values of a row in terms that do not depend on row numbers and codes."""
    return {
        "allocatable": _amounts(nodes, nodes.allocatable[:, row].tolist()),
        "requested": _amounts(nodes, nodes.requested[:, row].tolist()),
        "unoffered": nodes._state.columns.unoffered.get(row, {}),
        "nonzero_requested": nodes.nonzero_requested[:, row].tolist(),
        "unschedulable": bool(nodes.unschedulable[row]),
        "taints": nodes.taints.values[int(nodes.taint_sets[row])],
        "features": nodes.features.values[int(nodes.feature_sets[row])],
        "resources": nodes.resource_names.values[int(nodes.resource_sets[row])],
        "pods": sorted(nodes.pods(row)),
        "alive": bool(nodes.alive[row]),
    }


def _amounts(nodes: Nodes, column: list[int]) -> dict[str, int]:
    return {name: column[at] for name, at in nodes.resources.items() if column[at]}


def _check_rows(state: State) -> None:
    listed = {node.name: row for row, node in enumerate(state.nodes) if node is not None}
    _same("rows", state.rows, listed)
    _same("visited rows", sorted(state.order.rows().tolist()), sorted(listed.values()))


def _check_codes(state: State) -> None:
    columns = state.columns
    _same_codes("taints", state.taints, columns.taint_sets)
    _same_codes("features", state.features, columns.feature_sets)
    _same_codes("resources", state.resource_names, columns.resource_sets)


def _same_codes(what: str, vocabulary: Vocabulary[Any], codes: NDArray[np.intp]) -> None:
    # Code 0 is always in use: rows without a node have it.
    used = {vocabulary.values[code] for code in {0, *codes.tolist()}}
    _same(f"{what} with a code", set(vocabulary.in_use()), used)


def _check_pods(cluster: Cluster, state: State) -> None:
    on_rows = {uid: row for row, pods in enumerate(state.pods) for uid in pods}
    for uid, pod in cluster.pods.items():
        _same(f"row of pod {pod.key}", on_rows.pop(uid, None), state.rows.get(pod.node_name))
        _same(f"uid of pod {pod.key}", pod.uid, uid)
    assert not on_rows, f"pods on rows that nobody placed: {on_rows}"
    nodeless = {uid for pods in cluster._on_unknown_nodes.values() for uid in pods}
    lost = {uid for uid, pod in cluster.pods.items() if pod.node_name not in state.rows}
    _same("pods without a node", nodeless, lost)
    assert cluster._assumed <= cluster.pods.keys(), "an assumed pod is not placed"


def _check_dead_rows(state: State) -> None:
    columns = state.columns
    dead = ~columns.alive
    kept: dict[str, NDArray[Any]] = {
        "allocatable": columns.allocatable,
        "requested": columns.requested.array,
        "nonzero_requested": columns.nonzero_requested.array,
    }
    for name, column in kept.items():
        assert not column[..., dead].any(), f"{name} of rows without a node is not zero"


def _check_labels(state: State) -> None:
    rows: dict[str, set[int]] = {}
    for row, node in enumerate(state.nodes):
        for key in node.labels if node is not None else ():
            rows.setdefault(key, set()).add(row)
    _same("rows by label", state.labels.rows, rows)
    for column in state.labels.columns:
        key = column.key
        kept = {row: column.value(row) for row in range(len(state.nodes))}
        named = {
            row: None if node is None else node.labels.get(key)
            for row, node in enumerate(state.nodes)
        }
        _same(f"label {key}", kept, named)
        _same(f"rows with label {key}", column.filled, len(named) - [*named.values()].count(None))


def _check_tallies(state: State) -> None:
    for tally in state.tallies:
        counted = Counter(row for row, pod in state.placed if tally.match.matches(pod))
        rows = range(len(tally.by_row))
        _same(f"tally {tally.match}", tally.by_row.tolist(), [counted[row] for row in rows])
        highest = max(counted.values(), default=0)
        assert tally.highest >= highest, f"highest of {tally.match}: {highest} is more"
        for domains in (*tally.domains.values(), *tally.parts):
            among = (row for row in counted.elements() if _counts_on(domains, row))
            _check_domains(f"domains of {tally.match}", domains, among)


def _counts_on(domains: DomainCounts, row: int) -> bool:
    return domains.among is None or bool(domains.among[row])


def _check_domains(what: str, domains: DomainCounts, rows: Iterable[int]) -> None:
    """Checks that counts per domain are those of the given rows; a row counts once per mention."""
    codes = domains.column.codes
    expected = Counter(int(codes[row]) for row in rows if codes[row] >= 0)
    counts = domains.counts()
    kept = {int(code): int(counts[code]) for code in np.flatnonzero(counts)}
    _same(what, kept, dict(expected))
    _same(f"total of {what}", domains.total, sum(expected.values()))


def _check_standing(cluster: Cluster, rebuilt: Cluster) -> None:
    kept = _standing(cluster._state)
    _same("terms of running pods", kept, _standing(rebuilt._state))


def _standing(state: State) -> dict[Any, Any]:
    """Returns for each term the numbers of its pods: of all, per domain, and in any domain."""
    terms = {}
    for key, standing in state.standing:
        values = standing.domains.column.vocabulary.values
        counts = standing.domains.counts()
        by_value = {values[code]: int(counts[code]) for code in np.flatnonzero(counts)}
        terms[key] = standing.pods, by_value, standing.domains.total
    return terms


def _check_ledgers(state: State) -> None:
    """Checks that counting all pods finds the same."""
    for ledgers in (state.columns.ledgers, state.columns.nominated):
        for ledger in ledgers:
            name, kept = type(ledger).__name__, ledgers.of(ledger)
            _same(name, kept.by_key(), ledgers.recount(ledger).by_key())


def _check_images(state: State) -> None:
    present: dict[str, set[int]] = {}
    for row, node in enumerate(state.nodes):
        for listed in node.images if node is not None else ():
            for name in listed.names or ():
                present.setdefault(name, set()).add(row)
    _same("images", {name: image.rows for name, image in state.images}, present)
    for name, image in state.images:
        column = image.present(state.columns.capacity)
        _same(f"image {name}", set(np.flatnonzero(column).tolist()), image.rows)


def _check_nominations(state: State) -> None:
    for node_name, pods in state.nominations:
        for pod in pods.values():
            _same(f"nomination of {pod.key}", state.nominations.node_of(pod), node_name)


def _check_pod_table(state: State) -> None:
    if state.pod_table is None:
        return
    rows = np.arange(len(state.nodes))
    lesser = state.pod_table.below(2**40, rows, state.pods)
    kept = {
        int(row): [(pod.uid, held) for pod, held in _with_requests(state, lesser, at)]
        for at, row in enumerate(lesser.rows)
    }
    by_row: dict[int, list[tuple[str, dict[str, int]]]] = {}
    for row, pods in enumerate(state.pods):
        ranked = sorted(pods.values(), key=lambda pod: (-pod.priority, start_of(pod)))
        if ranked:
            by_row[row] = [
                (pod.uid, {**_find_requests(pod, state.columns.resources), PODS: 1})
                for pod in ranked
            ]
    _same(
        "pod table",
        {row: _sort_pods(pods) for row, pods in kept.items()},
        {row: _sort_pods(pods) for row, pods in by_row.items()},
    )


def _with_requests(
    state: State, lesser: LesserPods, at: int
) -> Iterable[tuple[Pod, dict[str, int]]]:
    begin = int(lesser.begins[at])
    for offset, pod in enumerate(lesser.pods(at)):
        taken = lesser.usage.at(np.array([begin + offset]))
        counted = dict(state.columns.ledgers.weigh(pod))
        expected = [counted.get(place, 0) for place in range(len(taken.counts))]
        _same(f"what pod {pod.key} counts for", taken.counts[:, 0].tolist(), expected)
        column = taken.requests.array[:, 0].tolist()
        yield pod, {name: column[i] for name, i in state.columns.resources.items() if column[i]}


def _find_requests(pod: Pod, offered: Container[str]) -> dict[str, int]:
    return {name: amount for name, amount in pod.held.requests if amount and name in offered}


def _sort_pods(pods: Iterable[tuple[str, dict[str, int]]]) -> list[tuple[str, Any]]:
    return sorted((uid, sorted(held.items())) for uid, held in pods)
