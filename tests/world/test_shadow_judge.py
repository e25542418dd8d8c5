"""Judging another scheduler: each placement by the state in which it was made."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.app.shadow_site import make_metrics, make_page, serve_shadow
from moorage.engine.events import Applied, Removed
from moorage.objects.kinds import Object
from moorage.objects.pod import Pod
from moorage.objects.workload import Namespace
from moorage.simulate.rescheduling import place_anew
from moorage.world.shadow_judge import Shadow, find_enough
from moorage.world.shadow_report import Agreement, describe
from tests.builders import node, pod
from tests.engine.gangs import GATES, gang, members
from tests.explain.building import configuration, engine
from tests.patience import open_session

replace = msgspec.structs.replace

ZONE = "topology.kubernetes.io/zone"


def shadow(*objects: Any) -> Shadow:
    made = Shadow(engine(), lambda: 0.0)
    for item in objects:
        made.handle(Applied(item), 0.0)
    return made


def bind(made: Shadow, waiting: Pod, name: str, now: float = 1.0) -> None:
    made.handle(Applied(replace(waiting, node_name=name)), now)


BIG, SMALL = node("big", cpu=8), node("small", cpu=2)


@pytest.mark.parametrize(
    ("nodes", "theirs", "agreement"),
    [
        pytest.param((BIG, SMALL), "big", Agreement.SAME, id="same"),
        pytest.param((node("a"), node("b")), "b", Agreement.EQUAL, id="equal"),
        pytest.param((BIG, SMALL), "small", Agreement.LOWER, id="lower"),
        pytest.param(
            (BIG, node("x", spec={"unschedulable": True})), "x", Agreement.REFUSED, id="no"
        ),
        pytest.param((node("tiny", cpu="100m"),), "tiny", Agreement.NOWHERE, id="nowhere"),
    ],
)
def test_a_placement(nodes: tuple[Any, ...], theirs: str, agreement: Agreement) -> None:
    waiting = pod("p", cpu=1)
    made = shadow(*nodes, waiting)
    bind(made, waiting, theirs)

    assert made.counts == {agreement: 1}
    assert len(made.differences) == (agreement not in (Agreement.SAME, Agreement.EQUAL))


def test_after_a_difference_the_truth_counts() -> None:
    first, second = pod("first", cpu=1), pod("second", cpu=7)
    made = shadow(BIG, SMALL, first, second)
    bind(made, first, "small")
    bind(made, second, "big", now=60.0)

    assert made.counts == {Agreement.LOWER: 1, Agreement.SAME: 1}


def test_a_pod_that_was_decided_before_another_is_judged_by_that_state() -> None:
    """The other scheduler decides one after the other and binds in any order."""
    first, second = pod("first", cpu=3), pod("second", cpu=3)
    made = shadow(node("a", cpu=8), node("b", cpu=7), first, second)
    bind(made, second, "b")
    bind(made, first, "a")
    counts = made.counts.copy()

    assert counts[Agreement.MOVED] + counts[Agreement.SAME] == 2
    # What was taken off to look back is there again.
    assert {each.key for each in made.engine.cluster.pods.values()} == {
        "default/first",
        "default/second",
    }


def test_a_pod_that_was_decided_before_another_went_is_judged_by_that_state() -> None:
    there = pod("there", cpu=7, node="a")
    waiting = pod("p", cpu=1)
    made = shadow(node("a", cpu=8), node("b", cpu=7), there, waiting)
    made.handle(Removed(there), 1.0)
    bind(made, waiting, "b", now=1.5)

    assert made.counts == {Agreement.MOVED: 1}
    assert {each.key for each in made.engine.cluster.pods.values()} == {"default/p"}


def test_a_pod_that_was_decided_before_a_node_changed_is_judged_by_that_state() -> None:
    waiting = pod("p", cpu=1)
    made = shadow(BIG, SMALL, waiting)
    made.handle(Applied(node("big", cpu=8, spec={"unschedulable": True})), 1.0)
    bind(made, waiting, "big", now=1.5)

    assert made.counts == {Agreement.MOVED: 1}
    assert made.engine.cluster.nodes.unschedulable[made.engine.cluster.nodes.row("big")]


def test_a_node_whose_change_is_seen_late_explains_a_placement() -> None:
    waiting = pod("p", cpu=1)
    closed = node("big", cpu=8, spec={"unschedulable": True})
    made = shadow(closed, SMALL, waiting)
    bind(made, waiting, "big", now=20.0)
    assert made.counts[Agreement.REFUSED] == 1
    made.handle(Applied(BIG), 20.1)

    assert made.report().differences[-1].reason == "after 1 changes (Node big)"
    assert (made.counts[Agreement.REFUSED], made.counts[Agreement.MOVED]) == (0, 1)


def test_pods_that_went_and_later_ones_that_came_explain_a_placement_together() -> None:
    """Of the pods that went, the other had heard of the first."""
    first, second = pod("first", cpu=6, node="b"), pod("second", cpu=7, node="a")
    judged, later = pod("judged", cpu=1), pod("later", cpu=3)
    made = shadow(
        node("a", cpu=8), node("b", cpu=7), node("c", cpu=5), first, second, judged, later
    )
    made.handle(Removed(first), 20.0)
    made.handle(Removed(second), 20.1)
    bind(made, later, "b", now=20.2)
    bind(made, judged, "b", now=20.3)

    assert made.differences[-1].agreement == Agreement.MOVED
    assert {each.key for each in made.engine.cluster.pods.values()} == {
        judged.key,
        later.key,
    }


def test_a_pod_that_was_decided_before_many_others_is_judged_by_that_state() -> None:
    first, others = pod("first", cpu=1), [pod(f"p{at}", cpu=1) for at in range(100)]
    made = shadow(node("a", cpu=200), node("b", cpu=198), first, *others)
    for each in others:
        bind(made, each, "a", now=20.0)
    bind(made, first, "a", now=21.0)

    (found,) = (each for each in made.differences if each.pod == first.key)
    assert found.agreement == Agreement.MOVED
    assert found.reason.startswith("without 100 pods that were decided later (default/p0, ")
    assert made.counts.total() == 101


def test_a_pod_that_was_decided_before_another_ended_is_judged_by_that_state() -> None:
    """One that ends is there until it is gone, but pods are not spread by it."""
    app = {"app": "a"}
    constraint = {
        "labelSelector": {"matchLabels": app},
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
    }
    waiting = pod("p", labels=app, spec={"topologySpreadConstraints": [constraint]})
    there = pod("there", labels=app, node="a")
    nodes = [node(name, labels={ZONE: name}) for name in ("a", "b")]
    made = shadow(*nodes, there, pod("other", labels=app, node="b"), waiting)
    ends = replace(there, terminating=True)
    made.handle(Applied(ends), 1.0)
    made.handle(Removed(ends), 1.1)
    bind(made, waiting, "b", now=1.5)

    assert made.counts == {Agreement.MOVED: 1}
    assert made.differences[-1].reason == "with 1 pods that had gone (default/there)"


def test_a_pod_that_another_scheduler_placed_was_heard_of_or_not() -> None:
    others = pod("x", cpu=6, spec={"schedulerName": "volcano"})
    waiting = pod("p", cpu=1)
    made = shadow(node("a", cpu=8), node("b", cpu=7), others, waiting)
    bind(made, others, "a")
    bind(made, waiting, "a", now=1.5)

    assert made.counts == {Agreement.MOVED: 1}


def test_a_change_of_another_kind_explains_a_placement() -> None:
    term = {
        "topologyKey": ZONE,
        "labelSelector": {},
        "namespaceSelector": {"matchLabels": {"team": "x"}},
    }
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    waiting = pod("p", cpu=1, spec={"affinity": {"podAntiAffinity": apart}})
    nodes = [node("a", cpu=16, labels={ZONE: "a"}), node("b", cpu=2, labels={ZONE: "b"})]
    made = shadow(*nodes, Namespace(name="default"), pod("there", node="a", cpu=1), waiting)
    made.handle(Applied(Namespace(name="default", labels={"team": "x"})), 1.0)
    bind(made, waiting, "a", now=1.5)

    assert made.counts == {Agreement.MOVED: 1}
    assert made.differences[-1].reason == "before 1 changes (Namespace default)"


def test_what_was_there_when_it_began_is_no_change() -> None:
    waiting = pod("p", cpu=1)
    made = shadow(SMALL, BIG, waiting)
    made.begin()
    bind(made, waiting, "small")

    assert made.report().by_agreement[Agreement.LOWER] == 1


def test_what_nothing_explains_says_so_when_it_is_closed() -> None:
    waiting = pod("p", cpu=1)
    made = shadow(BIG, SMALL, waiting)
    bind(made, waiting, "small", now=20.0)
    made.handle(Applied(pod("next", cpu=1)), 60.0)

    assert made.differences[-1].agreement == Agreement.LOWER
    assert made.differences[-1].reason == "best in no state in which it may have been decided"


def test_pods_that_were_decided_earlier_and_bound_later_explain_a_placement() -> None:
    """One of them is bound before, and one that was decided later is, too."""
    earlier = [pod(f"e{at}", cpu=2) for at in range(3)]
    judged, later = pod("judged", cpu=1), pod("later", cpu=5)
    made = shadow(node("a", cpu=16), node("b", cpu=12), *earlier, judged, later)
    bind(made, later, "b")
    bind(made, judged, "b")
    assert made.counts[Agreement.LOWER] == 2
    for each in earlier:
        bind(made, each, "a")

    assert made.counts[Agreement.LOWER] == 0
    assert {each.key for each in made.engine.cluster.pods.values()} == {
        each.key for each in (*earlier, judged, later)
    }


def test_what_happened_long_ago_explains_nothing() -> None:
    there = pod("there", cpu=7, node="a")
    waiting = pod("p", cpu=1)
    made = shadow(node("a", cpu=8), node("b", cpu=7), there, waiting)
    made.handle(Removed(there), 1.0)
    bind(made, waiting, "b", now=60.0)

    assert made.counts == {Agreement.LOWER: 1}


def test_pods_that_wait_there_and_would_be_placed_here() -> None:
    failed = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no"}]}
    waiting, hopeless = pod("p", cpu=1, status=failed), pod("q", cpu=99, status=failed)
    made = shadow(BIG, waiting, hopeless)

    assert made.report().placeable == {"default/p": "big"}
    bind(made, waiting, "big")
    assert made.report().placeable == {}


def test_pods_of_other_profiles_and_pods_that_go_are_left_alone() -> None:
    other = pod("p", cpu=1, spec={"schedulerName": "volcano"})
    gone = pod("g", cpu=1)
    made = shadow(BIG, other, gone)
    bind(made, other, "big")
    made.handle(Removed(gone), 1.0)

    assert made.report().placed == 0


@pytest.mark.parametrize(
    ("percentage", "count", "enough"),
    [
        (100, 5000, 5000),
        (0, 99, 99),
        (0, 1000, 420),
        (0, 5000, 500),
        (0, 20_000, 1000),
        (30, 200, 100),
    ],
)
def test_how_many_nodes_end_the_search(percentage: int, count: int, enough: int) -> None:
    """As kube-scheduler's numFeasibleNodesToFind has it."""
    assert find_enough(percentage, count) == enough


@pytest.mark.parametrize(
    ("percentage", "better", "agreement"),
    [
        pytest.param(0, range(30), Agreement.SAMPLED, id="it may have begun behind them"),
        pytest.param(0, range(0, 180, 60), Agreement.SAMPLED, id="it may have missed a few"),
        pytest.param(0, range(0, 180, 6), Agreement.LOWER, id="they are everywhere"),
        pytest.param(100, range(30), Agreement.LOWER, id="it looks at all"),
        pytest.param(0, range(100), Agreement.LOWER, id="it must have seen one"),
    ],
)
def test_a_search_that_stops_early_explains_a_lower_score(
    percentage: int, better: range, agreement: Agreement
) -> None:
    waiting = pod("p", cpu=1)
    nodes = [node(f"n{at}", cpu=8 if at in better else 4) for at in range(199)]
    made = shadow(*nodes, waiting)
    made.begin()
    made.percentage = percentage
    bind(made, waiting, "n198")

    assert made.counts == {agreement: 1}
    assert made.report().explained == (100.0 if agreement is Agreement.SAMPLED else 0.0)


def test_a_search_that_stops_early_explains_a_placement_in_the_state_it_was_made_in() -> None:
    waiting = pod("p", cpu=1)
    nodes = [node(f"n{at}", cpu=8 if at < 30 else 4) for at in range(199)]
    made = shadow(*nodes, waiting)
    made.percentage = 0
    made.handle(Applied(node("n198", cpu=4, spec={"unschedulable": True})), 20.0)
    bind(made, waiting, "n198", now=20.5)

    assert made.counts == {Agreement.SAMPLED: 1}


GPU = "nvidia.com/gpu"
ALONE = {"scheduling.moorage.dev/coexist-policy": "DaemonsetAndStaticPods"}


def on(name: str, there: str, **rest: Any) -> Pod:
    return pod(name, node=there, **rest)


def test_how_the_cluster_is_used_under_either() -> None:
    """Two pods take what a GPU needs, and one is not alone although it asks to be."""
    gpu = node("gpu", cpu=8, **{GPU: 2})
    plain = [node("n0", cpu=8), node("n1", cpu=8)]
    resources = {"requests": {"cpu": "4", GPU: "1"}, "limits": {GPU: "1"}}
    container = {"name": "main", "image": "app", "resources": resources}
    asks = on("g", "gpu", spec={"containers": [container]})
    others = [on("a", "gpu", cpu=2), on("b", "gpu", cpu=2), on("c", "n0", cpu=1)]
    alone = on("alone", "n0", cpu=2, metadata={"annotations": ALONE}, spec={"priority": 9})
    made = shadow(gpu, *plain, asks, *others, alone, pod("waits", cpu=64))

    there = made.measure_use()
    assert (there.nodes, there.nodes_in_use, there.pods, there.waiting) == (3, 2, 5, 1)
    assert there.use["cpu"] == pytest.approx(100 * 11 / 24)
    assert (there.gpus, there.free_gpus, there.stranded_gpus) == (2, 1, 1)
    assert (there.pods_beside_gpus, there.exclusive_pods_that_share) == (2, 1)

    aware = engine(config=configuration("GPUAware"))
    anew = place_anew("anew", aware, made.objects.values())
    assert (anew.pods, anew.waiting, anew.exclusive_pods) == (5, 1, 1)
    assert (anew.stranded_gpus, anew.pods_beside_gpus) == (0, 0)
    assert anew.exclusive_pods_that_share == 0
    # The shadow's own cluster is as it was.
    assert made.measure_use() == there

    lines = list(describe(replace(made.report(), use=(there, anew))))
    assert lines[-2].split()[-2:] == ["2", "0"]
    assert lines[-1].split()[-6:] == ["1", "of", "1", "0", "of", "1"]


def test_gangs_that_are_placed_in_part() -> None:
    places = ("big", "", "")
    waiting = members("g", 3, cpu=1)
    pods = [replace(each, node_name=name) for each, name in zip(waiting, places, strict=True)]
    made = Shadow(engine(gates=GATES), lambda: 0.0)
    objects: list[Object] = [BIG, gang("g", 3), *pods]
    for item in objects:
        made.handle(Applied(item), 0.0)

    assert (made.measure_use().gangs, made.measure_use().partial_gangs) == (1, 1)
    anew = place_anew("anew", engine(gates=GATES), made.objects.values())
    assert (anew.pods, anew.partial_gangs) == (3, 0)


async def test_it_is_served_live() -> None:
    waiting = pod("p", cpu=1)
    made = shadow(BIG, SMALL, waiting)
    bind(made, waiting, "small")
    async with serve_shadow(made, 0) as address, open_session() as session:
        page = await (await session.get(address)).text()
        metrics = await (await session.get(f"{address}/metrics")).text()
        report = await (await session.get(f"{address}/report.json")).json()

    assert 'http-equiv="refresh"' in page
    assert "<td>default/p<td>a node that scores less" in page
    assert metrics == make_metrics(made.report())
    assert "moorage_shadow_nodes_in_use 1\n" in metrics
    assert "<tr><th>nodes in use<td>1 of 2" in page
    assert 'moorage_shadow_placements_total{agreement="a node that scores less"} 1' in metrics
    assert report["placed"] == 1


def test_the_report_reads_well_and_names_are_text() -> None:
    waiting = pod("p", cpu=1)
    made = shadow(BIG, SMALL, waiting)
    bind(made, waiting, "small")
    lines = list(describe(made.report()))

    assert lines[0] == "1 pods placed by the other scheduler, 0.00% on a node that is best here"
    assert lines[1].split(maxsplit=1) == ["1", "a node that scores less"]
    assert "<td>default/p<td>a node that scores less<td>small" in make_page(made.report())
