"""Edits of a pod's standing: who schedules it, when, and how important it is."""

from __future__ import annotations

from mooring.objects.pod import Pod

from .edit import Edit, with_spec


class RemoveGates(Edit, frozen=True):
    """All scheduling gates are taken off the pod."""

    gates: tuple[str, ...]

    @property
    def told(self) -> str:
        named = ", ".join(self.gates)
        return f"its scheduling gate{'s' if len(self.gates) > 1 else ''} {named} were removed"

    def applied(self, pod: Pod) -> Pod:
        return with_spec(pod, scheduling_gates=None)


class SetScheduler(Edit, frozen=True):
    """The pod asks for another scheduler."""

    name: str

    @property
    def told(self) -> str:
        return f"its scheduler name were {self.name}"

    def applied(self, pod: Pod) -> Pod:
        return with_spec(pod, scheduler_name=self.name)


class RaisePriority(Edit, frozen=True):
    """The pod is more important."""

    to: int

    @property
    def told(self) -> str:
        return f"its priority were {self.to}"

    def applied(self, pod: Pod) -> Pod:
        return with_spec(pod, priority=self.to, preemption_policy="PreemptLowerPriority")
