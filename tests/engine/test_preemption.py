"""Preemption from end to end: who must go, how they are told, and what the pod does meanwhile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moorage.cluster import Change, Nodes, Rows
from moorage.engine.actions import EvictPod, PodRef, RecordEvent
from moorage.engine.classes.classes import ClassSettings
from moorage.engine.events import Evicted, EvictionFailed
from moorage.framework.plugin import Filter, Permit, Plugin, Wait
from moorage.framework.verdict import Verdict
from moorage.objects.decode import from_builtins
from moorage.objects.pod import Pod
from moorage.plugins import REGISTRY
from moorage.plugins.preemption import preemption_dry_run
from moorage.plugins.preemption.preemption_dry_run import DryRun
from tests.builders import node, pod
from tests.engine.driver import (
    Driver,
    bindings,
    conditions,
    driver,
    engine,
    evictions,
    nominations,
    notes,
    only,
)

DYING = {"deletionTimestamp": "2024-01-01T00:00:00Z"}
PREEMPTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "PreemptionByScheduler",
}


def ranked(name: str, priority: int, on: str = "", cpu: int | str = 1, **given: Any) -> Pod:
    spec = {"priority": priority, **given.pop("spec", {})}
    return pod(name, node=on, spec=spec, cpu=cpu, **given)


def crowded(*more: Any) -> Driver:
    """One node, full of a pod of low priority, and one that outranks it."""
    return driver(
        node("one", cpu=1), ranked("low", 1, "one"), *more, ranked("high", 5, metadata={"uid": "H"})
    )


HIGH, LOW = PodRef("default", "high", "H"), PodRef("default", "low", "default/low")


def test_the_whole_story() -> None:
    run = crowded()
    taken = run.step()

    message = "default-scheduler: preempting to accommodate a higher priority pod"
    assert only(taken, EvictPod) == [EvictPod(LOW, HIGH, message)]
    assert nominations(taken) == {"high": "one"}
    assert conditions(taken)["high"].message == "0/1 nodes are available: 1 Insufficient cpu."
    assert bindings(taken) == {}

    # Until the call is made, nothing wakes the pod.
    run.now += 20
    assert run.step() == []
    run.tell(Evicted("default/low", "H"))
    told_victim = only(run.step(0), RecordEvent)
    assert told_victim == [
        RecordEvent(
            LOW,
            "Normal",
            "Preempted",
            "Preempting",
            "Preempted by pod H on node one",
            "default-scheduler",
            HIGH,
        )
    ]

    run.remove(ranked("low", 1, "one"))
    run.now += 20
    assert bindings(run.step()) == {"high": "one"}


def test_a_victim_that_is_gone_before_the_call_returns() -> None:
    run = crowded()
    run.step()
    run.remove(ranked("low", 1, "one"))
    run.now += 20
    assert run.step() == []
    held = run.engine.queue.get("H")
    assert held is not None
    assert held.refusal is not None
    assert held.refusal.message == "waiting for the preemption for this pod to be finished"

    run.tell(Evicted("default/low", "H"))
    assert bindings(run.step()) == {"high": "one"}


def test_an_eviction_that_fails_lets_the_pod_try_again_at_once() -> None:
    run = crowded()
    run.step()
    run.tell(EvictionFailed("default/low", "H", "forbidden"))

    assert evictions(run.step()) == ["low"]


def test_all_calls_must_have_been_made() -> None:
    run = driver(
        node("one", cpu=2), ranked("a", 1, "one"), ranked("b", 1, "one"), ranked("high", 5, cpu=2)
    )
    taken = run.step()
    assert sorted(evictions(taken)) == ["a", "b"]

    run.tell(Evicted("default/a", "default/high"))
    run.remove(ranked("a", 1, "one"))
    run.remove(ranked("b", 1, "one"))
    run.now += 20
    assert bindings(run.step()) == {}
    run.tell(Evicted("default/b", "default/high"))
    assert bindings(run.step()) == {"high": "one"}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            {"preemptionPolicy": "Never"},
            "preemption: not eligible due to preemptionPolicy=Never.",
        ),
        (
            {"priority": 1},
            "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
        ),
    ],
)
def test_who_may_not_preempt(spec: dict[str, Any], told: str) -> None:
    run = driver(node("one", cpu=1), ranked("low", 1, "one"), ranked("p", 5, spec=spec))
    taken = run.step()

    assert evictions(taken) == []
    assert conditions(taken)["p"].message.endswith(told)
    assert nominations(taken) == {}


def test_where_preemption_cannot_help_nobody_is_evicted() -> None:
    tainted = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    run = driver(node("one", cpu=1, spec=tainted), ranked("low", 1, "one"), ranked("p", 5))
    taken = run.step()

    assert evictions(taken) == []
    assert conditions(taken)["p"].message.endswith(
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_no_more_go_than_must() -> None:
    run = driver(
        node("one", cpu=4),
        ranked("small", 1, "one", cpu=1),
        ranked("large", 1, "one", cpu=3),
        ranked("high", 5, cpu=1),
    )

    # Of equally important pods, the one that came first is spared first.
    assert evictions(run.step()) == ["large"]


def test_the_least_important_victims_are_chosen() -> None:
    run = driver(
        node("one", cpu=1),
        node("two", cpu=1),
        ranked("mid", 3, "one"),
        ranked("low", 1, "two"),
        ranked("high", 5),
    )
    taken = run.step()

    assert (evictions(taken), nominations(taken)) == (["low"], {"high": "two"})


def test_lower_nominations_to_the_node_are_cleared() -> None:
    gate = {"schedulingGates": [{"name": "g"}]}
    waiting: dict[str, Any] = {"status": {"nominatedNodeName": "one"}, "spec": gate}
    run = driver(node("one", cpu=1), ranked("low", 1, "one"))
    run.apply(ranked("lesser", 3, **waiting), ranked("equal", 5, cpu="0", **waiting))
    run.apply(ranked("high", 5))
    taken = run.step()

    assert nominations(taken) == {"lesser": "", "high": "one"}
    assert (run.nominated("lesser"), run.nominated("equal")) == ("", "one")


def test_victims_on_their_way_out_are_not_evicted_again() -> None:
    leaving = ranked("low", 1, "one", metadata=DYING, status={"conditions": [PREEMPTED]})
    run = driver(node("one", cpu=1), leaving, ranked("high", 5))
    taken = run.step()
    assert (evictions(taken), nominations(taken)) == ([], {"high": "one"})

    # From now on the pod waits for the victim that it was nominated for.
    run.apply(ranked("high", 5, status={"nominatedNodeName": "one"}))
    run.now += 400
    again = run.step()
    assert evictions(again) == []
    assert notes(again)[0].endswith(
        "preemption: not eligible due to a terminating pod on the nominated node."
    )
    assert run.nominated("high") == "one"

    run.remove(leaving)
    run.now += 20
    assert bindings(run.step()) == {"high": "one"}


def test_a_pod_that_waits_for_a_permit_makes_way_in_memory() -> None:
    class Guard(Permit):
        name = "Guard"

        def permit(self, pod: Pod, node_name: str) -> Wait | None:
            return Wait(60) if pod.name == "low" else None

    run = driver(node("one", cpu=1), ranked("low", 1), plugins=(Guard,))
    run.step()
    assert run.node_of("low") == "one"
    run.apply(ranked("high", 5))
    taken = run.step()

    assert evictions(taken) == []
    assert "Preempted by pod default/high on node one (in kube-scheduler memory)." in notes(taken)
    assert run.node_of("low") == ""
    run.now += 2
    assert "high" in bindings(run.step(2))


def test_disruption_budgets_are_respected_where_there_is_a_choice() -> None:
    budget = from_builtins(
        "PodDisruptionBudget",
        {
            "metadata": {"name": "b"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 0},
        },
    )
    run = driver(
        node("one", cpu=1),
        node("two", cpu=1),
        budget,
        ranked("guarded", 1, "one", labels={"app": "web"}),
        ranked("free", 2, "two"),
        ranked("high", 5),
    )

    assert evictions(run.step()) == ["free"]


def test_a_preemptor_that_is_deleted_leaves_no_trace() -> None:
    run = crowded()
    run.step()
    run.remove(ranked("high", 5, metadata={"uid": "H"}))
    run.tell(Evicted("default/low", "H"))

    assert not run.engine.cluster.nodes.nominations
    assert bindings(run.step()) == {}
    assert len(run.engine.queue) == 0


ALONE = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "low"}}}
        ]
    }
}


def spread_out(*more: Any, reuse: ClassSettings | None = None) -> Driver:
    """Twenty nodes of one zone, each with a pod that pods named high must not be near."""
    made = engine()
    run = Driver(type(made)(made.configuration, REGISTRY, reuse or ClassSettings()))
    run.apply(*(node(f"n{at}", cpu=2, labels={"zone": "a"}) for at in range(20)))
    run.apply(*(ranked(f"low{at}", 1, f"n{at}", labels={"app": "low"}) for at in range(20)))
    run.apply(*more)
    return run


def high(name: str) -> Pod:
    return ranked(name, 5, spec={"affinity": ALONE}, metadata={"uid": name})


def test_a_search_that_is_too_much_work_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preemption_dry_run, "_MOST_WORK", 6 * preemption_dry_run._WORK_PER_POD)
    run = spread_out(high("high"))

    (failed,) = notes(run.step())
    assert failed.endswith(
        "preemption: 0/20 nodes are available: 14 node(s) not looked at: too much work for one "
        "attempt, 6 node(s) didn't match pod anti-affinity rules."
    )


def test_of_the_candidates_that_were_found_until_then_the_best_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = driver(*(node(f"n{at}", cpu=1) for at in range(20)))
    port = {"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 1}]}]}
    run.apply(*(ranked(f"low{at}", 1 + at, f"n{at}", spec=port) for at in range(20)))
    monkeypatch.setattr(preemption_dry_run, "_MOST_WORK", 1)
    run.apply(ranked("high", 50, spec=port, metadata={"uid": "H"}))

    # The first that was looked at, although another's pod is less important.
    (victim,) = evictions(run.step())
    assert victim != "low0"


def test_like_pods_look_by_themselves_after_a_search_that_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(preemption_dry_run, "_MOST_WORK", 1)
    looked: list[str] = []
    look = preemption_dry_run.DryRun.candidates

    def looking(self: DryRun, *args: Any) -> Any:
        looked.append(self.pod.name)
        return look(self, *args)

    monkeypatch.setattr(DryRun, "candidates", looking)
    stories = []
    for reuse in (ClassSettings(), ClassSettings(classes=False, batches=False)):
        run = spread_out(high("one"), high("two"), reuse=reuse)
        run.settle()
        stories.append(run.story)

    assert looked == ["one", "two"] * 2
    assert stories[0] == stories[1]


def test_everything_comes_to_rest() -> None:
    run = driver(*(node(f"n{at}", cpu=2) for at in range(3)))
    run.apply(*(ranked(f"low{at}", 1) for at in range(6)))
    run.settle()
    assert len(run.engine.cluster.pods) == 6

    run.apply(*(ranked(f"high{at}", 5) for at in range(4)))
    for _ in range(20):
        run.settle()
        run.now += 15
    names = sorted(placed.name for placed in run.engine.cluster.pods.values())
    assert [name for name in names if name.startswith("high")] == [f"high{at}" for at in range(4)]
    assert len([name for name in names if name.startswith("low")]) == 2


class Breaking(Filter[Pod]):
    """Fails on nodes whose name begins with bad."""

    name = "Breaking"
    reads = Change.MEMBERSHIP

    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        numbers = np.arange(len(nodes.alive))[rows] if isinstance(rows, slice) else rows
        broken = np.array([nodes.name(row).startswith("bad") for row in numbers.tolist()], np.bool_)
        nothing = np.empty((0, len(numbers)), np.bool_)
        return Verdict((), nothing, broken, lambda row: f"broke on {nodes.name(row)}")


class BreakingOneByOne(Breaking):
    """The same, but pods that leave may alter its answer, so that rows are looked at one by one."""

    reads = Change.PODS | Change.MEMBERSHIP


@pytest.mark.parametrize("plugin", [Breaking, BreakingOneByOne])
def test_a_node_on_which_a_filter_fails_is_no_candidate(plugin: type[Plugin]) -> None:
    run = driver(plugins=(plugin,))
    for name in ("bad", "good", "badly"):
        run.apply(node(name, cpu=1), ranked(f"low-{name}", 1, name))
    run.apply(ranked("high", 5))

    assert nominations(run.step()) == {"high": "good"}


@pytest.mark.parametrize("plugin", [Breaking, BreakingOneByOne])
@pytest.mark.parametrize("names", [("bad",), ("bad", "badly")])
def test_errors_are_told_where_no_candidate_is_left(
    names: tuple[str, ...], plugin: type[Plugin]
) -> None:
    run = driver(plugins=(plugin,))
    run.apply(*(node(name, cpu=1) for name in names))
    run.apply(*(ranked(f"low-{name}", 1, name) for name in names))
    run.apply(ranked("high", 5))
    taken = run.step()

    count = len(names)
    told = [f'running "Breaking" filter plugin: broke on {name}' for name in names]
    # The search begins at any node.
    errors = {told[0]} if count == 1 else {f"[{', '.join(each)}]" for each in (told, told[::-1])}
    start = f"0/{count} nodes are available: {count} Insufficient cpu. preemption: "
    assert conditions(taken)["high"].message in {start + each for each in errors}
    assert nominations(taken) == {}
