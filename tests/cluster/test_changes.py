"""The change log: which rows changed since when, and how."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from moorage.cluster import Change, ChangeLog
from moorage.cluster.changes import EVERYWHERE
from moorage.framework.coexist_ledgers import ALL, EXCLUSIVE_PODS, HOLDERS, ORDINARY_PODS
from moorage.objects.coexist import DAEMONSET_AND_STATIC_PODS
from moorage.objects.workload import Namespace, PodDisruptionBudget, Service
from tests.builders import cluster, node, pod
from tests.coexisting import ANNOTATED, DAEMON, MIRRORED

PORT: dict[str, Any] = {"containers": [{"name": "main", "ports": [{"hostPort": 80}]}]}
ALONE = {"coexistPolicy": DAEMONSET_AND_STATIC_PODS}
CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]}

#: What every pod changes that is neither a daemonset's nor static.
PLAIN = Change.REQUESTED | Change.PODS | ORDINARY_PODS.change
ALONE_CHANGE = EXCLUSIVE_PODS.change | HOLDERS.change


@pytest.mark.parametrize(
    ("update", "kinds"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"cpu": 8}, Change.ALLOCATABLE, id="allocatable"),
        pytest.param({"labels": {"a": "b"}}, Change.LABELS, id="labels"),
        pytest.param({"spec": {"unschedulable": True}}, Change.UNSCHEDULABLE, id="cordoned"),
        pytest.param(
            {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}, Change.TAINTS, id="taints"
        ),
        pytest.param({"status": {"declaredFeatures": ["X"]}}, Change.FEATURES, id="features"),
        pytest.param({"status": {"images": [{"names": ["a:1"]}]}}, Change.IMAGES, id="images"),
        pytest.param(
            {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            Change.CONDITIONS,
            id="conditions",
        ),
        pytest.param(
            {"cpu": 8, "labels": {"a": "b"}}, Change.ALLOCATABLE | Change.LABELS, id="two at once"
        ),
    ],
)
def test_updates_of_a_node(update: dict[str, Any], kinds: Change | None) -> None:
    made = cluster(node("other"), node("one"))
    before = made.changes.generation
    made.put_node(node("one", **update))

    assert made.changes.since(before) == ({} if kinds is None else {1: kinds})


@pytest.mark.parametrize(
    ("spec", "kinds"),
    [
        pytest.param({}, PLAIN, id="plain"),
        pytest.param(PORT, PLAIN | Change.PORTS, id="ports"),
        pytest.param(CLAIM, PLAIN | Change.VOLUMES, id="volumes"),
        pytest.param(ALONE, PLAIN | ALONE_CHANGE, id="exclusive"),
    ],
)
def test_pods_that_come_and_go(spec: dict[str, Any], kinds: Change) -> None:
    made = cluster(node("one"), node("two"))
    before = made.changes.generation
    made.put_pod(pod("p", node="one", spec=spec))
    come = made.changes.generation
    made.put_pod(pod("p", node="two", spec=spec))
    moved = made.changes.generation
    made.remove_pod("default/p")

    assert made.changes.since(before) == {0: kinds, 1: kinds}
    assert made.changes.since(come) == {0: kinds, 1: kinds}
    assert made.changes.since(moved) == {1: kinds}
    assert made.changes.since(made.changes.generation) == {}


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        pytest.param({}, Change.NONE, id="neither counts as ordinary"),
        pytest.param({"spec": ALONE}, ALONE_CHANGE, id="but both can be exclusive"),
    ],
)
@pytest.mark.parametrize("exempt", [DAEMON, MIRRORED], ids=["daemonset", "static"])
def test_daemonset_and_static_pods(
    given: dict[str, Any], kinds: Change, exempt: dict[str, Any]
) -> None:
    made = cluster(node("one"))
    before = made.changes.generation
    made.put_pod(pod("p", node="one", metadata=exempt, **given))

    assert made.changes.since(before) == {0: Change.REQUESTED | Change.PODS | kinds}


def test_a_running_pod_that_changes_its_policy_counts_for_something_else() -> None:
    made = cluster(node("one"), pod("p", node="one"))
    before = made.changes.generation
    made.put_pod(pod("p", node="one", metadata=ANNOTATED))

    assert made.changes.since(before) == {0: PLAIN | ALONE_CHANGE}
    for ledger in (EXCLUSIVE_PODS, ORDINARY_PODS):
        assert made.nodes.ledger(ledger).by_key() == {ALL: {0: 1}}


def test_a_place_that_is_kept_for_an_exclusive_pod_is_told_as_such() -> None:
    made = cluster(node("one"))
    made.nodes.nominated(EXCLUSIVE_PODS)
    before = made.changes.generation
    made.nominate(pod("p"), "one")
    plain = made.changes.generation
    made.nominate(pod("q", spec=ALONE), "one")

    assert made.changes.since(before) == {0: Change.NOMINATED | EXCLUSIVE_PODS.change}
    assert made.changes.since(plain) == {0: Change.NOMINATED | EXCLUSIVE_PODS.change}
    assert not made.nodes.ledger(EXCLUSIVE_PODS).of(ALL)


def test_what_was_assumed_and_is_confirmed_changes_nothing() -> None:
    made = cluster(node("one"))
    waiting = pod("p", cpu=1)
    made.assume(waiting, "one")
    before = made.changes.generation
    made.put_pod(waiting.on("one"))

    assert made.changes.since(before) == {}


def test_a_reused_row_has_changed_in_every_way() -> None:
    made = cluster(node("one"))
    before = made.changes.generation
    made.remove_node("one")
    gone = made.changes.generation
    made.put_node(node("two"))

    for generation in (before, gone):
        assert made.changes.since(generation) == {0: Change.ALL, EVERYWHERE: Change.MEMBERSHIP}


OWNED = {"ownerReferences": [{"kind": "Job", "name": "batch", "controller": True}]}


@pytest.mark.parametrize(
    ("update", "kinds"),
    [
        pytest.param({}, Change.NONE, id="nothing"),
        pytest.param({"metadata": {"annotations": {"a": "b"}}}, Change.POD_ANNOTATIONS, id="notes"),
        pytest.param({"status": {"phase": "Running"}}, Change.POD_STATUS, id="status"),
        pytest.param({"metadata": OWNED}, PLAIN, id="owner"),
        pytest.param({"labels": {"a": "b"}}, PLAIN, id="labels"),
    ],
)
def test_updates_of_a_running_pod(update: dict[str, Any], kinds: Change) -> None:
    made = cluster(node("one"), pod("p", node="one"))
    before = made.changes.generation
    made.put_pod(pod("p", node="one", **update))

    assert made.changes.since(before) == ({0: kinds} if kinds else {})


def test_what_nobody_reads_is_not_noted() -> None:
    made = cluster(node("one"), pod("p", node="one"))
    made.changes.limit_to(Change.LABELS | Change.POD_STATUS)
    before = made.changes.generation
    made.put_pod(pod("p", node="one", metadata={"annotations": {"a": "b"}}))
    made.put_node(node("one", status={"conditions": [{"type": "Ready", "status": "False"}]}))
    assert made.changes.generation == before
    made.put_pod(pod("p", node="one", status={"phase": "Running"}))
    made.put_node(node("one", spec={"unschedulable": True}))

    assert made.changes.since(before) == {
        0: Change.POD_STATUS | Change.POD_ANNOTATIONS | Change.UNSCHEDULABLE | Change.CONDITIONS
    }


def test_another_node_of_the_same_name_changes_everything_there() -> None:
    made = cluster(node("one"))
    before = made.changes.generation
    made.put_node(msgspec.structs.replace(node("one"), uid="other"))

    assert made.changes.since(before) == {0: Change.ALL}


def test_budgets_are_no_services() -> None:
    made = cluster(node("one"))
    before = made.changes.generation
    budget = PodDisruptionBudget(namespace="shop", name="web")
    made.put_workload(budget)
    assert made.changes.since(before) == {EVERYWHERE: Change.BUDGETS}
    put = made.changes.generation
    made.remove_workload(budget)
    assert made.changes.since(put) == {EVERYWHERE: Change.BUDGETS}


def test_what_is_not_on_a_row_changes_everywhere() -> None:
    made = cluster(node("one"))
    before = made.changes.generation
    made.put_workload(Namespace(name="shop"))
    made.put_workload(Namespace(name="shop"))
    named = made.changes.generation
    made.put_workload(Service(namespace="shop", name="web"))

    assert named == before + 1
    assert made.changes.since(before) == {EVERYWHERE: Change.NAMESPACES | Change.SERVICES}


def test_the_log_grows_with_the_cluster() -> None:
    made = cluster()
    made.changes.keep = 50
    for number in range(100):
        made.put_node(node(f"n{number}"))

    assert made.changes.keep >= 100


def test_the_last_change_before_a_restart_is_not_the_newest() -> None:
    log = ChangeLog()
    log.note(1, 2)
    log.restart()

    assert log.newest is None
    assert log.since(1) is None


def test_a_trimmed_log_says_that_it_no_longer_knows() -> None:
    log = ChangeLog(keep=4)
    for row in range(9):
        log.note(row, Change.PODS)

    assert log.generation == 9
    assert log.since(4) is None
    assert log.since(5) == {row: Change.PODS for row in range(5, 9)}
    log.note(1, Change.PODS)
    assert log.since(5) is not None


@given(
    st.lists(st.tuples(st.integers(-1, 3), st.sampled_from(list(Change))), max_size=30),
    st.integers(0, 30),
    st.integers(1, 8),
)
def test_since_adds_up_what_came_after(
    notes: list[tuple[int, Change]], generation: int, keep: int
) -> None:
    log = ChangeLog(keep)
    for row, kinds in notes:
        log.note(row, kinds)

    assert log.generation == len(notes)
    found = log.since(min(generation, len(notes)))
    if found is None:
        assert len(notes) - generation > keep
        return
    expected: dict[int, Change] = {}
    for row, kinds in notes[generation:]:
        expected[row] = expected.get(row, Change.NONE) | kinds
    assert found == expected
