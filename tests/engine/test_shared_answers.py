"""Classes share answers. An answer that one class updates is current for the others, too."""

from __future__ import annotations

from moorage.objects.pod import Pod
from tests.builders import node, pod
from tests.engine.driver import bindings, driver
from tests.exactness.honest_plugins import Freeze

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": {"app": "web"}},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}


def web(name: str, cpu: int) -> Pod:
    """A pod of one of two classes, which differ in what they request."""
    return pod(name, labels={"app": "web"}, cpu=cpu)


def test_a_plugin_that_began_to_have_a_say_for_one_class_is_asked_for_another() -> None:
    """A class without a feasible node looks for reasons, with what its plugins have prepared."""
    waiting = pod(
        "waiting",
        cpu=1,
        status={"nominatedNodeName": "full"},
        spec={"schedulingGates": [{"name": "later"}]},
    )
    run = driver(
        node("old", labels={"old": "yes"}, cpu=32),
        node("full", cpu=0),
        waiting,
        plugins=(Freeze,),
    )
    run.apply(web("small", 1), web("large", 2))
    assert bindings(run.step(2)) == {"small": "old", "large": "old"}

    run.apply(node("full", labels={"freeze": "yes"}, cpu=0))
    run.apply(web("large-again", 2), web("small-again", 1))

    assert bindings(run.step(2)) == {}


def test_affinity_terms_that_came_for_one_class_keep_pods_of_another_away() -> None:
    run = driver(node("best", cpu=32), node("other", cpu=8))
    alone = pod("alone", node="best", spec={"affinity": APART})
    run.apply(alone, web("first", 1), web("second", 2))
    assert bindings(run.step(2)) == {"first": "other", "second": "other"}
    run.remove(alone)
    run.apply(web("third", 1), web("fourth", 2))
    assert bindings(run.step(2)) == {"third": "best", "fourth": "best"}

    run.apply(alone)
    run.apply(web("fifth", 2), web("sixth", 1))

    assert bindings(run.step(2)) == {"fifth": "other", "sixth": "other"}
