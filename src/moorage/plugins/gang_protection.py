"""GangProtection: the free room of a gang that has waited for long is kept for it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, RowFacts, Rows, Scope, View
from moorage.cluster.kept_room import KeptRoom
from moorage.framework.gang_points import ROOM_RELEASED, ProtectGangs
from moorage.framework.plugin import Filter, Rescore, Sign
from moorage.framework.status import Code, Reason
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Wakeup, on
from moorage.objects.daemons import is_daemonset_pod
from moorage.objects.meta import Wire
from moorage.objects.pod import Pod


class GangProtectionArgs(Wire, frozen=True):
    """How long a gang waits until room is kept for it."""

    after_seconds: int = 300

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.after_seconds < 0:
            yield "afterSeconds", f"must be 0 or greater, got {self.after_seconds}"


class GangProtection(Filter[Pod], Sign, ProtectGangs):
    """Keeps others off the nodes that a starving gang waits for. The engine chooses the nodes."""

    name = "GangProtection"
    Args = GangProtectionArgs
    reads = Change.KEPT_ROOM
    scope = Scope.ROW

    def __init__(self, args: GangProtectionArgs) -> None:
        self.after_seconds = args.after_seconds

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return pod.priority, nodes.groups.key_of(pod), is_daemonset_pod(pod)

    def filter(self, prepared: Pod, nodes: View, rows: Rows) -> Verdict:
        kept = nodes.kept_room
        count = nodes.count(rows)
        if kept is None or not kept.refuses(prepared, nodes.groups.key_of(prepared)):
            return Verdict.accepting(count)
        return Verdict.rejecting(_mark(kept, nodes)[rows], _reason(kept))

    def recheck(self, prepared: Pod, nodes: View, row: RowFacts) -> Rescore:
        kept = nodes.kept_room
        if kept is None or not kept.refuses(prepared, nodes.groups.key_of(prepared)):
            return Rescore.UPDATED
        return Rescore.INFEASIBLE if _mark(kept, nodes)[row.number] else Rescore.UPDATED

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (on(ROOM_RELEASED.resource, Action.DELETE),)


def _mark(kept: KeptRoom, nodes: View) -> NDArray[np.bool_]:
    """Returns the rows of the nodes whose room is kept, for all rows."""

    def make() -> NDArray[np.bool_]:
        marked = np.zeros(len(nodes.alive), np.bool_)
        rows = map(nodes.row, kept.nodes)
        marked[[row for row in rows if row is not None]] = True
        return marked

    return nodes.derived.get((GangProtection.name, kept), make)


def _reason(kept: KeptRoom) -> Reason:
    return Reason(f"node(s) had room kept for pod group {kept.group[1]}", Code.UNRESOLVABLE)
