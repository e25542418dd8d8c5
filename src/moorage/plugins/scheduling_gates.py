"""SchedulingGates: a pod waits until all of its gates are taken off."""

from __future__ import annotations

from collections.abc import Hashable

from moorage.cluster import Change, Scope, View
from moorage.framework.plugin import PreEnqueue, Sign
from moorage.framework.status import Rejected, unresolvable
from moorage.framework.wakeups import ITSELF, Action, Resource, Wakeup, on
from moorage.objects.pod import Pod


class SchedulingGates(PreEnqueue, Sign):
    """Holds back pods that name a scheduling gate."""

    name = "SchedulingGates"
    reads = Change.NONE
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return pod.spec.scheduling_gates or None

    def pre_enqueue(self, pod: Pod) -> Rejected | None:
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        names = " ".join(gate.name for gate in gates)
        return unresolvable(f"waiting for scheduling gates: [{names}]")

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (
            on(
                Resource.POD,
                Action.UPDATE_POD_GATES_ELIMINATED,
                self._after_pod_change,
                alike=True,
                topics=ITSELF,
            ),
        )

    def _after_pod_change(self, pod: Pod, old: Pod | None, new: Pod) -> bool:
        return new.uid == pod.uid
