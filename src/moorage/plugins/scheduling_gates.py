"""SchedulingGates: a pod waits until all of its gates are taken off."""

from __future__ import annotations

from moorage.cluster import Change, Scope
from moorage.framework.plugin import PreEnqueue
from moorage.framework.status import Rejected, unresolvable
from moorage.framework.wakeups import ITSELF, Action, Resource, Wakeup, on
from moorage.objects.pod import Pod


class SchedulingGates(PreEnqueue):
    """Holds back pods that name a scheduling gate."""

    name = "SchedulingGates"
    reads = Change.NONE
    scope = Scope.ROW

    def skips(self, pod: Pod) -> bool:
        return not pod.spec.scheduling_gates

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
