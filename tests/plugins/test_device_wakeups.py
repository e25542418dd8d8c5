"""When pods that wait for devices are tried again."""

from __future__ import annotations

import pytest

from moorage.cluster import Cluster
from moorage.framework.wakeups import Action, Resource, on
from moorage.objects.node import Node
from moorage.plugins.dynamic_resources.dynamic_resources import DynamicResources
from moorage.plugins.node_resources_fit import NodeResourcesFit
from tests.builders import node, pod
from tests.device_builders import claim, device_class, holding, result


def test_a_claim_that_is_gone() -> None:
    gone = on(Resource.RESOURCE_CLAIM, Action.DELETE).event
    (wakeup,) = [each for each in DynamicResources().wakeups() if each.event == gone]

    assert wakeup.hint is not None
    assert wakeup.hint(pod("p"), holding("c", result("n", "gpu-0")), None)
    assert not wakeup.hint(pod("p"), claim("c"), None)


CARD = "example.com/card"
WITH, WITHOUT = node("n", **{CARD: 4}), node("n", **{CARD: 0})


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        pytest.param(None, WITHOUT, True, id="devices may serve a new node"),
        pytest.param(WITH, WITHOUT, True, id="from now on devices may serve the node"),
        pytest.param(None, WITH, False, id="a new node has too few of its own"),
    ],
)
def test_a_resource_that_devices_serve(old: Node | None, new: Node, wakes: bool) -> None:
    cluster = Cluster()
    cluster.put_device(device_class("card", extendedResourceName=CARD))
    fit = NodeResourcesFit()
    fit.see_cluster(cluster.nodes)
    event = on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE).event
    (wakeup,) = [each for each in fit.wakeups() if each.event == event]
    waiting = pod("p", **{CARD: 7})

    assert wakeup.hint is not None
    assert wakeup.hint(waiting, old, new) is wakes
    assert wakeup.topics is not None
    assert wakeup.topics.of_pod is not None
    topics = set(wakeup.topics.of_event(old, new) or ())
    assert not wakes or topics & set(wakeup.topics.of_pod(waiting) or ())
