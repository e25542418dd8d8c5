"""Plugins whose declarations are false. Each breaks one promise, for pods with its name as a label.

`moorage up --plugins` takes this file, too.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import count
from typing import Any

import numpy as np

from moorage.plugin import (
    Change,
    Filter,
    Pod,
    PreFilter,
    Reason,
    Rows,
    Scope,
    Score,
    Scores,
    Sign,
    Verdict,
    View,
)

_CALLS = count()


class _False(Sign):
    """Signs whether a pod is meant."""

    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return self.is_meant(pod)

    def is_meant(self, pod: Pod) -> bool:
        return pod.labels.get("false") == self.name


class _FalseFilter(_False, Filter[Pod]):
    """Reads something of the nodes, and rejects none of them."""

    reads = Change.TAINTS

    def filter(self, prepared: Pod, nodes: View, rows: Rows) -> Verdict:
        if self.is_meant(prepared):
            self.read(nodes)
        return Verdict.accepting(nodes.count(rows))

    def read(self, nodes: View) -> None:
        """Breaks the promise."""


class TaintsOnly(Filter[Pod], Sign):
    """Declares taints and reads labels."""

    name = "TaintsOnly"
    reads = Change.TAINTS
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return None if pod.labels.get("false", self.name) != self.name else self.name

    def filter(self, prepared: Pod, nodes: View, rows: Rows) -> Verdict:
        if prepared.labels.get("false", self.name) != self.name:
            return Verdict.accepting(nodes.count(rows))
        return Verdict.rejecting(nodes.selected({"closed": "yes"}, rows), Reason("closed"))


class RequestsUndeclared(_False, Score[Pod]):
    """Declares what nodes offer, and scores by what is requested."""

    name = "RequestsUndeclared"
    reads = Change.ALLOCATABLE

    def score(self, prepared: Pod, nodes: View, rows: Rows) -> Scores:
        if self.is_meant(prepared):
            return nodes.requested[0][rows]
        return np.zeros(nodes.count(rows), np.int64)


class OtherRows(_False, PreFilter[Pod], Filter[Pod]):
    """Says that a row depends on itself alone, and prepares by all rows."""

    name = "OtherRows"
    reads = Change.LABELS

    def pre_filter(self, pod: Pod, nodes: View) -> Pod | None:
        return pod if self.is_meant(pod) and nodes.label("closed").filled else None

    def filter(self, prepared: Pod, nodes: View, rows: Rows) -> Verdict:
        return Verdict.accepting(nodes.count(rows))


class Unstable(_FalseFilter):
    """Signs a pod differently each time."""

    name = "Unstable"

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return next(_CALLS) if self.is_meant(pod) else None


class Unhashable(_FalseFilter):
    """Signs with a list."""

    name = "Unhashable"

    def sign(self, pod: Pod, nodes: View) -> Any:
        return [pod.name] if self.is_meant(pod) else None


class WritesColumns(_FalseFilter):
    """Takes room by itself."""

    name = "WritesColumns"
    reads = Change.REQUESTED

    def read(self, nodes: View) -> None:
        nodes.requested[0, 0] = 1_000


class WritesReservations(_FalseFilter):
    """Reserves volumes without saying that it does."""

    name = "WritesReservations"
    reads = Change.ALL

    def read(self, nodes: View) -> None:
        nodes.reservations.take("default/claim", "volume")  # type: ignore[attr-defined]


class AnnotationsUndeclared(_FalseFilter):
    """Declares the pods of a node, and reads their annotations."""

    name = "AnnotationsUndeclared"
    reads = Change.PODS

    def read(self, nodes: View) -> None:
        for row in nodes.rows.tolist():
            for pod in nodes.pods(row).values():
                pod.annotations.get("any")


class ServicesUndeclared(_FalseFilter):
    """Reads services, which it does not declare."""

    name = "ServicesUndeclared"

    def read(self, nodes: View) -> None:
        nodes.workloads.siblings(Pod(name="any"))  # type: ignore[call-arg]


class LogReading(_FalseFilter):
    """Follows the changes of the cluster by itself."""

    name = "LogReading"

    def read(self, nodes: View) -> None:
        nodes.changes.since(0)  # type: ignore[union-attr]
