"""SchedulingGates."""

from __future__ import annotations

import pytest

from moorage.framework.status import unresolvable
from moorage.framework.wakeups import Action, Resource
from moorage.plugins.scheduling_gates import SchedulingGates
from tests.builders import pod
from tests.plugins.asking import listens, wakes

PLUGIN = SchedulingGates()


@pytest.mark.parametrize(
    ("gates", "told"),
    [
        pytest.param([], None, id="no gates"),
        pytest.param(["a"], "waiting for scheduling gates: [a]", id="one gate"),
        pytest.param(["b", "a"], "waiting for scheduling gates: [b a]", id="in the order written"),
    ],
)
def test_a_pod_waits_for_its_gates(gates: list[str], told: str | None) -> None:
    gated = pod(spec={"schedulingGates": [{"name": gate} for gate in gates]})

    assert PLUGIN.pre_enqueue(gated) == (told and unresolvable(told))


@pytest.mark.parametrize(
    ("changed", "woken"),
    [
        pytest.param("pod", True, id="the pod itself"),
        pytest.param("other", False, id="another pod"),
    ],
)
def test_losing_the_last_gate_wakes(changed: str, woken: bool) -> None:
    action = Action.UPDATE_POD_GATES_ELIMINATED

    assert listens(PLUGIN) == {(Resource.POD, action)}
    assert woken == wakes(
        PLUGIN, Resource.UNSCHEDULED_POD, action, pod=pod(), old=pod(changed), new=pod(changed)
    )
