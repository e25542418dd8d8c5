"""One pod to explain: the nodes as they are without it, and with edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Nodes, WhatIf
from moorage.framework.attempt import PreFiltered
from moorage.framework.edits import (
    AddToleration,
    Edit,
    EvictPods,
    PodAt,
    RecoverNodes,
    Uncordon,
    apply_edits,
)
from moorage.framework.nominated import filter_with_nominated, without_pod
from moorage.framework.observe import UNOBSERVED
from moorage.framework.points import pre_filter
from moorage.framework.profile import Profile
from moorage.framework.status import PluginError
from moorage.objects.placement_rules import CORDONED
from moorage.objects.pod import Pod

RowNumbers = NDArray[np.intp]

NO_ROWS: RowNumbers = np.zeros(0, np.intp)


@dataclass(frozen=True)
class Case:
    """A pod, its profile and the cluster, with some pods assumed to be gone."""

    profile: Profile
    pod: Pod
    #: The cluster as it is.
    actual: Nodes
    #: Pods that do not count, with their rows: the pod itself where it runs.
    gone: tuple[tuple[Pod, int], ...] = ()
    #: Tells how often the cluster has changed.
    generation: Callable[[], int] = lambda: 0
    #: What it told when this was made.
    made_at: int = 0

    @classmethod
    def of(
        cls,
        profile: Profile,
        pod: Pod,
        nodes: Nodes,
        gone: Iterable[tuple[Pod, int]],
        generation: Callable[[], int] = lambda: 0,
    ) -> Case:
        # Metrics count decisions, not questions.
        quiet = replace(profile, observer=UNOBSERVED)
        return cls(quiet, pod, nodes, tuple(gone), generation, generation())

    def latest(self) -> Case:
        """Returns the same case as of now, prepared again if the cluster has changed."""
        now = self.generation()
        return self if now == self.made_at else replace(self, made_at=now)

    @cached_property
    def nodes(self) -> Nodes:
        """The rows without the pods that are gone."""
        if not self.gone:
            return self.actual
        what_if = WhatIf(self.actual)
        for pod, row in self.gone:
            what_if.remove_pod(pod, row)
        return what_if

    @cached_property
    def prepared(self) -> PreFiltered:
        """The result of the pre-filters; raises PluginError if one fails."""
        outcome = pre_filter(self.profile, self.pod, self.actual)
        values = outcome.prepared
        for pod, row in self.gone:
            values = without_pod(self.profile, values, self.actual, pod, row)
        return (
            outcome
            if values is outcome.prepared
            else msgspec.structs.replace(outcome, prepared=values)
        )

    @cached_property
    def alive(self) -> RowNumbers:
        """All rows that have a node."""
        return self.actual.rows

    def feasible(self, among: RowNumbers) -> RowNumbers:
        """Returns those of the rows that take the pod."""
        try:
            prepared = self.prepared
            if prepared.rejected is not None:
                return NO_ROWS
            rows = among
            if prepared.node_names is not None:
                rows = among[np.isin(among, self._rows(prepared.node_names))]
            if not len(rows):
                return NO_ROWS
            found = filter_with_nominated(self.profile, self.pod, prepared, self.nodes, rows)
        except PluginError:
            return NO_ROWS
        return found.feasible_rows

    def after(self, edits: tuple[Edit, ...]) -> Case:
        """Returns the case with some edits made.

        For a node, losing a taint means the same as having it tolerated.
        """
        pod = apply_edits(self.pod, edits)
        gone = self.gone
        for edit in edits:
            if isinstance(edit, EvictPods):
                gone = (*gone, *(self._locate(each) for each in edit.pods))
            elif isinstance(edit, Uncordon):
                pod = AddToleration.of(CORDONED).apply(pod)
            elif isinstance(edit, RecoverNodes):
                pod = AddToleration(edit.key, edit.value, edit.effect).apply(pod)
        return replace(self, pod=pod, gone=gone)

    def helped(self, edits: tuple[Edit, ...], among: RowNumbers) -> RowNumbers:
        """Returns those of the rows that take the pod once the edits are made."""
        for edit in edits:
            if isinstance(edit, Uncordon | RecoverNodes):
                among = among[np.isin(among, self._rows(edit.nodes))]
        return self.after(edits).feasible(among)

    def row(self, name: str) -> RowNumbers:
        """Returns the row of an existing node."""
        return np.array(self._rows((name,)), np.intp)

    def _rows(self, names: Iterable[str]) -> list[int]:
        known = (self.actual.row(name) for name in names)
        return [row for row in known if row is not None]

    def _locate(self, at: PodAt) -> tuple[Pod, int]:
        row = self.actual.row(at.node)
        pod = None if row is None else self.actual.pods(row).get(at.uid)
        if row is None or pod is None:
            raise LookupError(f"there is no pod {at.pod} on node {at.node}")
        return pod, row
