"""What spreading keeps of nodes between pods is never older than the nodes."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, strategies as st

from moorage.cluster import Cluster, check
from moorage.objects.node import ZONE, Node
from moorage.objects.pod import Pod
from moorage.plugins.topology_spread.pod_topology_spread import (
    PodTopologySpread,
    PodTopologySpreadArgs,
)
from tests.builders import cluster, node, pod
from tests.plugins.asking import rejections, scores

PLUGIN = PodTopologySpread(PodTopologySpreadArgs())

TAINT = {"key": "k", "effect": "NoSchedule"}


def spreading(soft: bool, **given: Any) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway" if soft else "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **given,
    }


def web(name: str = "web", on: str = "", **spec: Any) -> Pod:
    return pod(name, labels={"app": "web"}, node=on, spec=spec)


HONOR = {"nodeTaintsPolicy": "Honor"}
ASKING = [
    web(topologySpreadConstraints=[spreading(soft, **policy)], **wants)
    for soft in (False, True)
    for policy, wants in (
        ({}, {}),
        (HONOR, {}),
        (HONOR, {"tolerations": [{"key": "k", "operator": "Exists"}]}),
        ({}, {"nodeSelector": {}}),
        ({}, {"nodeSelector": {"disk": "ssd"}}),
        ({"nodeAffinityPolicy": "Ignore"}, {"nodeSelector": {"disk": "ssd"}}),
    )
]

NODES = st.builds(
    lambda name, zone, disk, taints: node(
        name, labels={**zone, **disk}, spec={"taints": taints} if taints else {}
    ),
    st.sampled_from(["n0", "n1", "n2"]),
    st.sampled_from([{}, {ZONE: "a"}, {ZONE: "b"}]),
    st.sampled_from([{}, {"disk": "ssd"}]),
    st.sampled_from([[], [TAINT]]),
)
RUNNING = st.builds(web, st.sampled_from("abcd"), st.sampled_from(["n0", "n1", "n2"]))
STEPS = st.lists(NODES | RUNNING | st.sampled_from(["n0", "n1", "n2", "default/a"]), max_size=12)


def apply(made: Cluster, step: Node | Pod | str) -> None:
    if isinstance(step, Node):
        made.put_node(step)
    elif isinstance(step, Pod):
        made.remove_pod(step.uid)
        made.put_pod(step)
    elif made.pod(step) is not None:
        made.remove_pod(step)
    else:
        made.remove_node(step)


def said(made: Cluster, asks: Pod) -> tuple[Any, Any]:
    return rejections(PLUGIN, asks, made), scores(PLUGIN, asks, made)


@given(STEPS)
@example([node("n2", labels={ZONE: "a"}), web("a", "n2")])
def test_answers_are_those_of_a_cluster_that_is_asked_first(
    steps: list[Node | Pod | str],
) -> None:
    made = cluster(node("n0", labels={ZONE: "a"}), node("n1", labels={ZONE: "b", "disk": "ssd"}))
    for step in steps:
        for asks in ASKING:
            said(made, asks)
        apply(made, step)

        known = (made.nodes.node(row) for row in made.nodes.rows.tolist())
        fresh = cluster(*known, *made.pods.values())
        assert [said(made, asks) for asks in ASKING] == [said(fresh, asks) for asks in ASKING]
        check(made)
