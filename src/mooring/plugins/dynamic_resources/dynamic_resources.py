"""DynamicResources: refuses pods with resource claims, which would miss their devices."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from mooring.cluster import Change, Nodes, RowFacts, Rows, Scope
from mooring.framework.attempt import Failed
from mooring.framework.plugin import (
    TEMPLATE,
    UNSIGNABLE,
    NoRemedy,
    PostFilter,
    PreFilter,
    Reduction,
    Rescore,
    Score,
    Scores,
    Sign,
)
from mooring.framework.profile import Profile
from mooring.framework.status import Code, Rejected, unresolvable
from mooring.objects.pod import Pod


class DynamicResources(PreFilter[None], PostFilter, Score[Pod], Sign):
    """Says that resource claims are not supported; has nothing for or against any other pod."""

    name = "DynamicResources"
    reads = Change.NONE
    scope = Scope.ROW
    signs = TEMPLATE
    reduces = Reduction.NOTHING

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return UNSIGNABLE if pod.spec.resource_claims else None

    def pre_filter(self, pod: Pod, nodes: Nodes) -> Rejected | None:
        if pod.spec.resource_claims:
            return unresolvable("pod uses resource claims, which Mooring does not support yet")
        return None

    def post_filter(self, pod: Pod, failed: Failed, nodes: Nodes, profile: Profile) -> NoRemedy:
        # kube-scheduler's words, also where it misses its own state because a plugin before it
        # ended the pre-filters; then no further remedy is sought.
        if not failed.pre_filtered.ran(self.name):
            return NoRemedy(Code.ERROR, ("not found",))
        return NoRemedy(Code.UNSCHEDULABLE, ("no new claims to deallocate",))

    def score(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Scores:
        return np.zeros(nodes.count(rows), np.int64)

    def rescore(self, prepared: Pod, nodes: Nodes, row: RowFacts, scores: Scores) -> Rescore:
        return Rescore.UPDATED
