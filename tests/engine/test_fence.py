"""What one object, outcome or attempt raises leaves out that one, and stops nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moorage.cluster import Cluster, check
from moorage.cluster.inventory import Images, VisitOrder
from moorage.cluster.labels import LabelColumns
from moorage.cluster.ledger import Ledgers
from moorage.cluster.pods import PodTable
from moorage.cluster.standing_terms import StandingTerms
from moorage.cluster.storage.objects import Storage
from moorage.cluster.storage.use import VolumeUse
from moorage.cluster.tally import Tallies
from moorage.engine.actions import Report
from moorage.engine.attempts import Attempts
from moorage.engine.classes.classes import Classes
from moorage.engine.events import BindingFailed, Bound
from moorage.objects.decode import from_builtins
from moorage.objects.node import HOSTNAME
from moorage.objects.pod import Pod
from moorage.queue import Queue
from tests.builders import node, pod
from tests.engine.driver import Driver, bindings, conditions, driver, engines, only
from tests.storage_builders import pv, pvc, storage_class

TERM = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOSTNAME}
#: Reaches everything that is counted of pods.
RICH: dict[str, Any] = {
    "priority": 3,
    "containers": [{"name": "main", "ports": [{"hostPort": 80}]}],
    "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}],
    "affinity": {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]},
    },
}


class Failpoint:
    """Raises in a method when a certain object is behind it, before or after its work is done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, method: str) -> None:
        self._patch, self._owner, self._method = monkeypatch, owner, method

    def __call__(self, when: Callable[..., bool], *, after: bool = False) -> None:
        real = getattr(self._owner, self._method)

        def failing(*args: Any, **named: Any) -> Any:
            if not after and when(*args):
                raise OverflowError("a failpoint")
            answer = real(*args, **named)
            if after and when(*args):
                raise OverflowError("a failpoint")
            return answer

        self._patch.setattr(self._owner, self._method, failing)


def is_rich(*args: Any) -> bool:
    """Whether it is about the pod that fails."""
    return any(isinstance(each, Pod) and each.name == "rich" for each in args)


def rich(node_name: str = "") -> Pod:
    return pod("rich", node=node_name, labels={"app": "web"}, spec=RICH)


def busy() -> Driver:
    """An engine that counts everything there is to count."""
    run = driver(node("one"), node("two"), pv("v", claim="data"), pvc("data", volume="v"))
    run.apply(pod("old", node="one", labels={"app": "web"}, cpu=1))
    cluster = run.engine.cluster
    cluster.nodes.lesser_pods(9, cluster.nodes.rows)
    spread = {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": HOSTNAME,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    }
    run.apply(pod("spread", labels={"app": "web"}, spec=spread))
    run.settle()
    assert cluster._state.tallies.are_there
    return run


def expect_caught(run: Driver, **caught: int) -> None:
    """Exactly these exceptions were caught, told in reports, and the engine is sound."""
    assert run.engine.caught == caught
    engines.remove(run.engine)
    check(run.engine.cluster)
    run.engine.queue.check()
    told = only(run.engine.step(run.now, 0), Report)
    assert len(told) == sum(caught.values())
    assert all("a failpoint" in each.message for each in told), told


POD_PARTS = [
    (Ledgers, "count"),
    (VolumeUse, "count"),
    (StandingTerms, "count"),
    (Tallies, "count"),
    (PodTable, "add"),
]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("owner", "method"), POD_PARTS, ids=lambda of: getattr(of, "__name__", of))
def test_a_pod_that_is_counted_in_part_is_left_out(
    owner: type, method: str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = busy()
    before = run.engine.cluster.nodes.requested[:, 0].tolist()
    Failpoint(monkeypatch, owner, method)(is_rich, after=after)

    run.apply(rich("one"))

    assert run.engine.cluster.pod("default/rich") is None
    assert run.engine.cluster.nodes.requested[:, 0].tolist() == before
    expect_caught(run, Pod=1)
    monkeypatch.undo()
    run.apply(rich("one"), pod("next", cpu=1))
    assert run.node_of("rich") == "one"
    assert bindings(run.step(8)) == {"next": "two"}


@pytest.mark.parametrize(
    ("owner", "method"), POD_PARTS[1:], ids=lambda of: getattr(of, "__name__", of)
)
def test_a_pod_whose_leaving_fails_is_gone(
    owner: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = busy()
    run.apply(rich("one"))
    Failpoint(monkeypatch, owner, "remove" if owner is PodTable else method)(is_rich)

    run.remove(rich("one"))

    assert run.engine.cluster.pod("default/rich") is None
    expect_caught(run, Pod=1)


@pytest.mark.parametrize(
    ("owner", "method"), [(Images, "put"), (VisitOrder, "add"), (LabelColumns, "set_row")]
)
def test_a_node_that_comes_in_part_is_left_out(
    owner: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = busy()
    run.apply(rich("three"))
    Failpoint(monkeypatch, owner, method)(lambda *args: True)

    run.apply(node("three"))

    assert run.engine.cluster.nodes.row("three") is None
    assert run.engine.caught["Node"] >= 1
    monkeypatch.undo()
    run.apply(node("one"), node("two"), node("three"))
    engines.remove(run.engine)
    check(run.engine.cluster)
    assert run.node_of("rich") == "three"
    assert run.engine.cluster.nodes.pods(run.engine.cluster.nodes.row("three") or 0)


@pytest.mark.parametrize(
    ("item", "owner", "method"),
    [
        (pv("w"), Storage, "put"),
        (pvc("data", volume="v", size="2Gi"), VolumeUse, "count"),
    ],
    ids=["volume", "claim"],
)
def test_a_storage_object_is_left_out(
    item: Any, owner: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = busy()
    run.apply(rich("one"))
    fails = 1

    def once(*args: Any) -> bool:
        nonlocal fails
        fails -= 1
        return fails >= 0

    Failpoint(monkeypatch, owner, method)(once)

    run.apply(item)

    assert run.engine.cluster.nodes.storage.find(item) is None
    expect_caught(run, **{type(item).__name__: 1})


def test_a_pod_that_cannot_be_queued_is_left_out_until_it_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = driver(node("one"))
    Failpoint(monkeypatch, Queue, "add")(is_rich)
    asks = pod("rich", metadata={"resourceVersion": "1"})
    run.apply(asks, pod("other"))

    assert bindings(run.step(8)) == {"other": "one"}
    assert not run.engine.pending_pods.keys() & {asks.uid}
    assert run.engine.caught == {"Pod": 1}
    engines.remove(run.engine)
    monkeypatch.undo()
    run.apply(pod("rich", metadata={"resourceVersion": "2"}))
    assert bindings(run.step(8)) == {"rich": "one"}


def test_workloads_are_kept_when_all_is_counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    run = driver(node("one"))
    service = from_builtins(
        "Service",
        {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "web"}}},
    )
    run.apply(service, pod("waits", spec={"schedulingGates": [{"name": "g"}]}))
    run.engine.cluster.nominate(pod("waits"), "one")
    Failpoint(monkeypatch, Cluster, "_place")(is_rich)

    run.apply(pod("rich", node="one"))

    assert [*run.engine.cluster.nodes.workloads] == [service]
    assert run.nominated("waits") == "one"
    expect_caught(run, Pod=1)


def test_an_attempt_that_raises_fails_its_pod_only(monkeypatch: pytest.MonkeyPatch) -> None:
    run = driver(node("one"), pod("rich", cpu=1), pod("other", cpu=1))
    Failpoint(monkeypatch, Classes, "decide")(is_rich)

    taken = run.step(8)

    assert bindings(taken) == {"other": "one"}
    assert conditions(taken)["rich"].reason == "SchedulerError"
    assert "a failpoint" in conditions(taken)["rich"].message
    assert run.engine.caught == {"attempt": 1}
    engines.remove(run.engine)
    assert run.place("rich") == "error backoff"


def test_an_attempt_that_raises_after_the_pod_was_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = driver(node("one"), pod("rich", cpu=1))
    Failpoint(monkeypatch, type(run.engine._attempts), "_bind")(lambda *args: True)

    taken = run.step(8)

    assert conditions(taken)["rich"].reason == "SchedulerError"
    assert (run.node_of("rich"), run.place("rich")) == ("", "error backoff")
    assert run.engine.caught == {"attempt": 1}
    engines.remove(run.engine)


def test_not_even_the_fence_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    run = driver(node("one"))
    for method in ("add", "delete", "done"):
        Failpoint(monkeypatch, Queue, method)(lambda *args: True)

    run.apply(rich())

    assert run.engine.caught == {"Pod": 1}
    engines.remove(run.engine)


@pytest.mark.parametrize("outcome", [Bound("default/rich"), BindingFailed("default/rich", "no")])
def test_an_outcome_that_raises(outcome: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = driver(node("one"), pod("rich", cpu=1))
    run.step()
    placements = type(run.engine._attempts)
    method = "bound" if isinstance(outcome, Bound) else "binding_failed"
    Failpoint(monkeypatch, placements, method)(lambda *args: True)

    run.tell(outcome)

    expect_caught(run, **{type(outcome).__name__: 1})
    if isinstance(outcome, Bound):
        assert run.node_of("rich") == "one"
    else:
        assert run.node_of("rich") == ""
        assert bindings(run.step()) == {"rich": "one"}


def test_volumes_that_are_decided_upon_stay_so(monkeypatch: pytest.MonkeyPatch) -> None:
    wants = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
    run = driver(node("one"), storage_class("late"), pv("v"), pvc("data"), pod("p", spec=wants))
    run.step()
    before = run.engine.cluster.nodes.storage.reservation("default/p")
    Failpoint(monkeypatch, Cluster, "_place")(is_rich)

    run.apply(pod("rich", node="one"))

    assert run.engine.cluster.nodes.storage.reservation("default/p") == before
    assert run.engine.cluster.is_assumed("default/p")
    expect_caught(run, Pod=1)


@pytest.mark.parametrize("error", [OverflowError("a failpoint"), SystemExit(3)])
def test_what_an_attempt_reused_is_forgotten_when_it_raises(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = driver(node("one", cpu=4), *(pod(name, cpu=1) for name in "abc"))
    run.step(3)
    (classes,) = run.engine.classes.values()
    assert len(classes) == 1

    def conclude(*asked: object) -> None:
        raise error

    monkeypatch.setattr(Attempts, "conclude", conclude)
    run.apply(pod("d", cpu=1))
    taken = run.step()

    assert len(classes) == 0
    assert run.engine.caught == {"attempt": 1}
    assert type(error).__name__ in conditions(taken)["d"].message
    monkeypatch.undo()
    run.apply(pod("e", cpu=1))
    assert bindings(run.step()) == {"e": "one"}
    engines.remove(run.engine)
