"""Pods that wait for devices are tried again when a claim is gone that had some."""

from __future__ import annotations

from mooring.framework.wakeups import Action, Resource, on
from mooring.plugins.dynamic_resources.dynamic_resources import DynamicResources
from tests.builders import pod
from tests.device_builders import claim, holding, result


def test_a_claim_that_is_gone() -> None:
    gone = on(Resource.RESOURCE_CLAIM, Action.DELETE).event
    (wakeup,) = [each for each in DynamicResources().wakeups() if each.event == gone]

    assert wakeup.hint is not None
    assert wakeup.hint(pod("p"), holding("c", result("n", "gpu-0")), None)
    assert not wakeup.hint(pod("p"), claim("c"), None)
