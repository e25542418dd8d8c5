"""Pods that are not decided about: no profile serves them, or a plugin holds them back."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mooring.framework.advice import Advice
from mooring.framework.calls import ask_pre_enqueue
from mooring.framework.edits import RemoveGates, SetScheduler
from mooring.framework.status import Rejected

from .case import Case
from .data import Explanation, Rejection, Suggestion
from .suggesting import suggestion

replace = msgspec.structs.replace


def told_foreign(base: Explanation, profiles: Mapping[str, Case]) -> Explanation:
    """A pod that no profile serves; as each of them would have it."""
    problem = f"no profile serves scheduler {base.scheduler}"
    told = tuple(
        suggestion(
            case,
            (),
            Advice(problem, (SetScheduler(name),), kind="scheduler"),
            case.feasible(case.alive),
        )
        for name, case in profiles.items()
    )
    return replace(base, state="foreign", message=problem, suggestions=told)


def held_back(case: Case) -> tuple[str, Rejected] | None:
    """The plugin that does not let the pod into the queue, if one does not."""
    for plugin in case.profile.pre_enqueue:
        refused = ask_pre_enqueue(plugin, case.pod)
        if refused is not None:
            return plugin.name, refused
    return None


def told_gated(case: Case, base: Explanation, plugin: str, refused: Rejected) -> Explanation:
    """A pod that a plugin holds back; without its gates, if it has any."""
    why = Rejection(plugin, refused.code, refused.reasons, base.node_count)
    told: tuple[Suggestion, ...] = ()
    gates = tuple(gate.name for gate in case.pod.spec.scheduling_gates or ())
    if gates:
        advice = Advice(refused.message, (RemoveGates(gates),), kind="gates")
        told = (suggestion(case, (plugin,), advice, case.helped(advice.edits, case.alive)),)
    return replace(
        base, state="gated", message=refused.message, rejections=(why,), suggestions=told
    )
