"""Plugins whose declarations are false: each of them breaks one promise."""

from __future__ import annotations

from collections.abc import Hashable

from moorage.cluster import Change, Nodes, Rows, Scope
from moorage.framework.plugin import Filter, Sign
from moorage.framework.status import Reason
from moorage.framework.verdict import Verdict
from moorage.objects.pod import Pod


class TaintsOnly(Filter[Pod], Sign):
    """Declares taints and reads labels."""

    name = "TaintsOnly"
    reads = Change.TAINTS
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        return Verdict.rejecting(nodes.selected({"closed": "yes"}, rows), Reason("closed"))
