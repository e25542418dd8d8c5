"""CoexistPolicy from end to end, along the test plan of the proposal."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.documents.errors import ConfigError
from moorage.engine.actions import BindPod
from moorage.engine.classes.statistics import DecisionPath
from moorage.framework.coexist_ledgers import ALL, EXCLUSIVE_PODS
from moorage.objects.coexist import DAEMONSET_AND_STATIC_PODS, PLACED, admit
from moorage.objects.kinds import Object
from tests.builders import node, pod
from tests.coexisting import (
    ANNOTATED,
    annotated,
    bound_around,
    daemon,
    exclusive,
    exclusive_daemon,
    namespace,
    static,
)
from tests.engine.driver import Driver, conditions, driver, evictions, nominations, notes, only

OFF = {"CoexistPolicy": False}
HERE = {"nodeSelector": {"kubernetes.io/hostname": "n"}}


def settled(*objects: Object, **config: Any) -> Driver:
    run = driver(*objects, **config)
    run.settle()
    return run


def places(run: Driver, *names: str) -> list[str]:
    return [run.node_of(name) for name in names]


# The test plan


@pytest.mark.parametrize("alone", [exclusive, annotated], ids=["field", "annotation"])
def test_a_single_pod_is_assigned_to_a_node_while_allowing_daemonset_and_static_pods(
    alone: Any,
) -> None:
    run = settled(
        node("n"),
        node("m"),
        daemon("agent", "n"),
        static("proxy", "n"),
        pod("web", node="m"),
        *(alone(f"e{at}", cpu="10m") for at in range(2)),
    )

    assert sorted(places(run, "e0", "e1")) == ["", "n"]


def test_scheduler_does_not_schedule_new_pods_to_a_node_with_an_exclusive_pod() -> None:
    run = settled(node("n"), exclusive("db", "n"), pod("web"), exclusive("db-2"))

    assert places(run, "web", "db-2") == ["", ""]
    told = "0/1 nodes are available: 1 node(s) failed CoexistPolicy: an exclusive pod runs there."
    for name in ("web", "db-2"):
        assert conditions(run.story)[name].message.startswith(told)
        assert conditions(run.story)[name].reason == "Unschedulable"
    assert all("failed CoexistPolicy" in note for note in notes(run.story))


def test_an_exclusive_pod_is_not_scheduled_to_a_node_in_use() -> None:
    run = settled(node("n"), pod("web", node="n"), exclusive("db"))

    assert run.node_of("db") == ""
    told = (
        "0/1 nodes are available: 1 node(s) failed CoexistPolicy: "
        "the pod is exclusive and other pods run there."
    )
    assert conditions(run.story)["db"].message.startswith(told)


def test_daemonset_and_static_pods_can_be_scheduled_to_a_node_with_an_exclusive_pod() -> None:
    run = settled(node("n"), exclusive("db", "n"), daemon("agent"), static("proxy"))
    assert places(run, "agent", "proxy") == ["n", "n"]


def test_an_exclusive_daemonset_pod_is_bound_by_its_own_policy() -> None:
    run = settled(node("n"), node("m"), pod("web", node="m"), exclusive_daemon("agent"))
    assert run.node_of("agent") == "n"
    run.apply(pod("late", spec=HERE), daemon("other", spec=HERE))
    run.settle()
    assert places(run, "late", "other") == ["", "n"]


@pytest.mark.parametrize("alone", [exclusive, annotated], ids=["field", "annotation"])
def test_the_api_is_no_op_if_the_feature_gate_is_turned_off(alone: Any) -> None:
    unknown = pod("odd", spec={"coexistPolicy": "Alone"})
    objects = node("n"), alone("db", "n"), pod("web"), alone("db-2"), unknown
    run = settled(*objects, gates=OFF)

    assert places(run, "web", "db-2", "odd") == ["n", "n", "n"]
    assert "CoexistPolicy" not in run.engine.profiles["default-scheduler"].plugins
    assert admit(alone("db-3"), run.engine.cluster.pods.values(), enabled=False) is None


def test_a_profile_that_names_the_plugin_needs_the_gate() -> None:
    named = {"plugins": {"multiPoint": {"enabled": [{"name": "CoexistPolicy"}]}}}
    with pytest.raises(ConfigError, match="the feature gate of that name is off"):
        driver(profiles=[named], gates=OFF)


def test_its_place_among_the_filters() -> None:
    """After what evicting cannot change, before the room for which it can."""
    names = [plugin.name for plugin in driver().engine.profiles["default-scheduler"].filter]
    at = names.index("CoexistPolicy")
    assert names[at - 1 : at + 2] == ["NodePorts", "CoexistPolicy", "NodeResourcesFit"]
    off = driver(gates=OFF).engine.profiles["default-scheduler"].filter
    assert [plugin.name for plugin in off] == names[:at] + names[at + 1 :]


# Upgrade, downgrade, upgrade


def restarted(run: Driver, *more: Object, gates: dict[str, bool] | None = None) -> Driver:
    """Another scheduler in the same cluster."""
    nodes = run.engine.cluster.nodes
    kept = [nodes.node(row) for row in nodes.rows.tolist()]
    new = driver(*kept, *run.engine.cluster.pods.values(), *more, gates=gates)
    new.settle()
    return new


def test_enabling_disabling_and_enabling_again() -> None:
    """A node that is shared meanwhile stays shared until it is drained; nobody is evicted."""
    on = settled(node("n"), exclusive("db", spec={"priority": 9}))
    assert on.node_of("db") == "n"

    off = restarted(on, pod("web"), gates=OFF)
    assert off.node_of("web") == "n"
    # The value is kept: it has no effect.
    assert off.pods["default/db"].spec.coexist_policy == "DaemonsetAndStaticPods"

    again = restarted(off, pod("late"), exclusive("db-2"))
    assert places(again, "db", "web") == ["n", "n"]
    assert places(again, "late", "db-2") == ["", ""]
    assert evictions(again.story) == []

    # Drained, the node is as good as new.
    again.remove(again.pods["default/db"], again.pods["default/web"], again.pods["default/late"])
    again.now += 60
    again.settle()
    assert again.node_of("db-2") == "n"


def test_not_using_it_maintains_the_old_behaviour() -> None:
    objects: list[Object] = [node("n"), node("m")]
    objects += [pod(f"p{at}", cpu="100m") for at in range(6)]
    with_gate, without = settled(*objects), settled(*objects, gates=OFF)

    assert with_gate.story == without.story


# Preemption


def important(priority: int = 9) -> dict[str, Any]:
    return {"priority": priority}


def test_lesser_pods_are_evicted_for_an_exclusive_pod() -> None:
    run = driver(
        node("n"),
        pod("web", node="n"),
        pod("api", node="n"),
        daemon("agent", "n"),
        static("proxy", "n"),
        exclusive("db", spec=important()),
    )
    run.settle()

    assert sorted(evictions(run.story)) == ["api", "web"]
    assert nominations(run.story)["db"] == "n"
    run.now += 20
    run.settle()
    assert run.node_of("db") == "n"


def test_an_exclusive_pod_is_evicted_for_a_more_important_ordinary_one() -> None:
    run = driver(node("n"), exclusive("db", "n"), daemon("agent", "n"))
    run.apply(pod("web", spec=important()))
    run.settle()
    run.now += 20
    run.settle()

    assert evictions(run.story) == ["db"]
    assert run.node_of("web") == "n"


def test_as_few_as_needed_are_evicted() -> None:
    """A node with one ordinary pod is better than one with two."""
    run = driver(
        node("n"),
        node("m"),
        *(pod(f"p{at}", node="n") for at in range(2)),
        pod("q", node="m"),
        exclusive("db", spec=important()),
    )
    run.settle()

    assert evictions(run.story) == ["q"]


def test_nobody_is_evicted_where_a_pod_of_equal_importance_stays() -> None:
    run = settled(
        node("n"),
        pod("equal", node="n", spec=important()),
        pod("less", node="n"),
        exclusive("db", spec=important()),
    )

    assert evictions(run.story) == []
    assert "failed CoexistPolicy" in conditions(run.story)["db"].message


def test_a_node_is_kept_for_an_exclusive_pod_while_its_victims_leave() -> None:
    """Lesser pods must not slip in, though nobody on any node is exclusive yet."""
    run = driver(node("n"), pod("web", node="n"), exclusive("db", spec=important()))
    taken = run.step()
    assert evictions(taken) == ["web"]
    run.evict(taken)
    run.apply(pod("quick"))

    run.settle()
    assert run.node_of("quick") == ""
    assert "failed CoexistPolicy" in conditions(run.story)["quick"].message
    run.now += 20
    run.settle()
    assert places(run, "db", "quick") == ["n", ""]


def test_a_node_is_not_kept_from_daemonset_pods_nor_from_greater_ones() -> None:
    run = driver(node("n"), pod("web", node="n"), exclusive("db", spec=important()))
    run.evict(run.step())
    run.apply(daemon("agent"), pod("greater", spec=important(20)))

    run.settle()
    assert places(run, "agent", "greater") == ["n", "n"]


def test_a_place_kept_for_an_ordinary_pod_is_none_for_a_lesser_exclusive_one() -> None:
    waiting = pod(
        "waiting",
        spec={**important(), "schedulingGates": [{"name": "wait"}]},
        status={"nominatedNodeName": "n"},
    )
    run = settled(node("n"), waiting, exclusive("db"))

    assert run.node_of("db") == ""


# Waking


def test_an_exclusive_pod_waits_until_the_last_ordinary_pod_is_gone() -> None:
    web, api = pod("web", node="n"), pod("api", node="n")
    run = settled(node("n"), web, api, daemon("agent", "n"), exclusive("db"))
    assert run.place("db") == "unschedulable"
    run.now += 30
    run.remove(web)
    run.settle()
    assert run.node_of("db") == ""
    run.now += 30
    run.remove(api)
    run.settle()
    assert run.node_of("db") == "n"


def test_an_ordinary_pod_waits_until_the_exclusive_one_is_gone() -> None:
    db = exclusive("db", "n")
    run = settled(node("n"), db, daemon("agent", "n"), pod("web"))
    run.now += 30
    run.remove(run.pods["default/agent"])
    assert run.place("web") == "unschedulable"
    run.remove(db)
    run.settle()
    assert run.node_of("web") == "n"


def test_a_new_node_wakes() -> None:
    run = settled(node("n"), exclusive("db", "n"), exclusive("db-2"))
    run.now += 30
    run.apply(node("m"))
    run.settle()
    assert run.node_of("db-2") == "m"


def test_a_pod_with_an_unknown_policy_waits_for_a_right_one() -> None:
    odd = pod("odd", metadata={"annotations": {"scheduling.moorage.dev/coexist-policy": "Alone"}})
    run = settled(node("n"), odd)

    told = conditions(run.story)["odd"]
    assert told.reason == "Unschedulable"
    assert told.message.startswith(
        "0/1 nodes are available: pod failed CoexistPolicy: "
        "annotation scheduling.moorage.dev/coexist-policy must be "
        'Any or DaemonsetAndStaticPods, got "Alone".'
    )
    run.now += 30
    run.apply(annotated("odd"))
    run.settle()
    assert run.node_of("odd") == "n"


def test_a_running_pod_that_gives_up_its_policy_lets_others_in() -> None:
    run = settled(node("n"), annotated("db", "n"), pod("web"))
    assert run.place("web") == "unschedulable"
    run.now += 30
    run.apply(pod("db", node="n"))
    run.settle()
    assert run.node_of("web") == "n"


# Speed


def test_exclusive_pods_are_taken_from_the_ranking_of_their_class() -> None:
    run = driver(*(node(f"n{at}") for at in range(8)))
    run.apply(*(exclusive(f"e{at}", cpu="10m") for at in range(8)))
    run.settle()

    assert sorted(places(run, *(f"e{at}" for at in range(8)))) == [f"n{at}" for at in range(8)]
    ways = run.engine.classes["default-scheduler"].statistics.paths
    assert ways == {DecisionPath.FIRST: 1, DecisionPath.BATCH: 7}


def test_ordinary_pods_stay_ranked_beside_exclusive_ones() -> None:
    """Exclusive pods that come concern only their own rows."""
    run = driver(*(node(f"n{at}") for at in range(6)))
    for at in range(3):
        run.apply(pod(f"p{at}", cpu="10m"), exclusive(f"e{at}", cpu="10m"))
        run.settle()

    statistics = run.engine.classes["default-scheduler"].statistics
    assert statistics.paths == {DecisionPath.FIRST: 2, DecisionPath.BATCH: 4}
    assert not statistics.flushes
    alone, together = places(run, "e0", "e1", "e2"), places(run, "p0", "p1", "p2")
    assert len(set(alone)) == 3
    assert not set(alone) & {"", *together}


# Pods bound around the scheduler


def test_an_exclusive_pod_with_its_node_in_the_manifest_takes_no_node_away() -> None:
    run = settled(node("n"), bound_around("squatter", "n"), pod("web"))

    assert run.node_of("web") == "n"
    assert not run.engine.cluster.nodes.ledger(EXCLUSIVE_PODS).of(ALL)


def test_nor_does_one_that_says_it_was_placed() -> None:
    squatter = pod(
        "squatter",
        node="n",
        metadata={
            "annotations": {**ANNOTATED["annotations"], PLACED: "default/squatter"},
            "uid": "7",
        },
    )
    run = settled(node("n"), squatter, pod("web"))

    assert run.node_of("web") == "n"


def test_in_a_trusted_namespace_it_counts_as_exclusive() -> None:
    run = settled(node("n"), namespace(), bound_around("db", "n"), pod("web"))

    assert run.node_of("web") == ""


def test_a_namespace_that_becomes_trusted_or_loses_it_is_heard_of() -> None:
    run = settled(node("n"), bound_around("db", "n"))
    run.apply(namespace())
    run.apply(pod("web"))
    run.settle()
    assert run.node_of("web") == ""

    run.apply(namespace(trusted=False))
    run.now += 60.0
    run.settle()
    assert run.node_of("web") == "n"

    run.apply(namespace())
    run.remove(namespace())
    assert not run.engine.cluster.nodes.ledger(EXCLUSIVE_PODS).of(ALL)


def test_what_the_scheduler_placed_is_exclusive_after_a_restart() -> None:
    first = settled(node("n"), exclusive("db"))
    (bind,) = only(first.story, BindPod)
    assert bind.annotations == {PLACED: "default/db"}

    # The objects are all that the next leader sees.
    again = settled(node("n"), exclusive("db", "n"), pod("web"))
    assert again.node_of("web") == ""


def test_what_was_placed_stays_so_though_the_api_server_drops_the_annotation() -> None:
    run = driver(node("n"), exclusive("db"))
    run.step()
    run.apply(pod("db", node="n", spec={"coexistPolicy": DAEMONSET_AND_STATIC_PODS}))
    run.apply(pod("web"))
    run.settle()

    assert run.node_of("web") == ""


def test_bindings_of_other_pods_have_no_annotations() -> None:
    (bind,) = only(settled(node("n"), pod("web")).story, BindPod)

    assert bind.annotations == {}
