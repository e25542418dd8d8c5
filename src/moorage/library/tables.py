"""Nodes and pods as rows: every row of a table has the same keys, and a key has one type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from moorage.objects.node import REGION, ZONE, Node
from moorage.objects.pod import Pod
from moorage.objects.resources import CPU, MEMORY, PODS

_INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_ROLE = "node-role.kubernetes.io/"

# A notebook shows this many rows; more would make the page slow.
_MOST_ROWS = 20


class Table(list[dict[str, Any]]):
    """Rows with the same keys, for polars.DataFrame, pyarrow.Table.from_pylist or `to_pandas`."""

    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame. Raises ImportError without pandas."""
        import pandas

        return pandas.DataFrame(self)

    def _repr_html_(self) -> str:
        """Returns the first rows, for notebooks."""
        if not self:
            return "<p>no rows</p>"
        shown = html_table(list(self[0]), (each.values() for each in self[:_MOST_ROWS]))
        left = len(self) - _MOST_ROWS
        return f"{shown}<p>{left:,} more</p>" if left > 0 else shown


def html_table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Returns a table as HTML, all cells escaped."""
    body = "".join(f"<tr>{_cells(each, 'td')}</tr>" for each in rows)
    return f"<table><thead><tr>{_cells(header, 'th')}</tr></thead><tbody>{body}</tbody></table>"


def _cells(values: Iterable[object], tag: str) -> str:
    return "".join(f"<{tag}>{escape(str(each))}</{tag}>" for each in values)


def node_rows(nodes: Sequence[Node], pods: Iterable[Pod]) -> Iterator[dict[str, Any]]:
    """Yields a row per node. Pods are those that take room on nodes."""
    held: dict[str, list[Pod]] = {}
    pods = list(pods)
    for pod in pods:
        held.setdefault(pod.node_name, []).append(pod)
    resources = _resources(nodes, pods)
    labels = _label_columns(node.labels for node in nodes)
    for node in nodes:
        here = held.get(node.name, [])
        allocatable, requested = dict(node.allocatable), add_up(each.held.requests for each in here)
        yield {
            "name": node.name,
            "zone": node.labels.get(ZONE, node.zone[1]),
            "region": node.labels.get(REGION, node.zone[0]),
            "instance_type": node.labels.get(_INSTANCE_TYPE, ""),
            "roles": ",".join(
                sorted(key.removeprefix(_ROLE) for key in node.labels if key.startswith(_ROLE))
            ),
            "ready": all(each.status == "True" for each in node.conditions if each.type == "Ready"),
            "unschedulable": node.unschedulable,
            "taints": ",".join(
                f"{each.key}={each.value}:{each.effect}"
                if each.value
                else f"{each.key}:{each.effect}"
                for each in node.taints
            ),
            "pods": len(here),
            **{f"allocatable.{name}": allocatable.get(name, 0) for name in (PODS, *resources)},
            **{f"requested.{name}": requested.get(name, 0) for name in resources},
            **_fill(labels, node.labels),
        }


def pod_rows(nodes: Sequence[Node], pods: Sequence[Pod]) -> Iterator[dict[str, Any]]:
    """Yields a row per pod."""
    zones = {node.name: node.labels.get(ZONE, node.zone[1]) for node in nodes}
    resources = _resources(nodes, pods)
    labels = _label_columns(pod.labels for pod in pods)
    for pod in pods:
        requested = dict(pod.requests)
        yield {
            "namespace": pod.namespace,
            "name": pod.name,
            "phase": phase_of(pod),
            "node": pod.node_name,
            "zone": zones.get(pod.node_name, ""),
            "scheduler": pod.spec.scheduler_name,
            "priority": pod.priority,
            "owner": pod.owner.name if pod.owner is not None else "",
            "owner_kind": pod.owner.kind if pod.owner is not None else "",
            **{name: requested.get(name, 0) for name in resources},
            **_fill(labels, pod.labels),
        }


def phase_of(pod: Pod) -> str:
    """Returns the phase of a pod; for one written without a status, what is most likely."""
    return pod.status.phase or ("Running" if pod.node_name else "Pending")


def add_up(amounts: Iterable[Iterable[tuple[str, int]]]) -> dict[str, int]:
    """Returns the sum of each resource."""
    sums: dict[str, int] = {}
    for each in amounts:
        for name, amount in each:
            sums[name] = sums.get(name, 0) + amount
    return sums


def _resources(nodes: Iterable[Node], pods: Iterable[Pod]) -> list[str]:
    """Returns cpu, memory, and what else any node has or any pod requests."""
    offered = (name for node in nodes for name, _ in node.allocatable)
    asked = (name for pod in pods for name, _ in pod.requests)
    others = {*offered, *asked} - {CPU, MEMORY, PODS}
    return [CPU, MEMORY, *sorted(others)]


def _label_columns(labels: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Returns the columns of the labels that any object has, each with its key."""
    return {f"label.{key}": key for key in sorted({key for each in labels for key in each})}


def _fill(columns: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, str]:
    return {column: labels.get(key, "") for column, key in columns.items()}
