"""Pods with claims of their own wait together, until something about their claims changes."""

from __future__ import annotations

import pytest

from moorage.framework.plugin import UNSIGNABLE
from moorage.objects.node import ZONE
from moorage.plugins.node_name import NodeName
from moorage.testing import Driver
from tests.builders import node, pod
from tests.engine.driver import driver
from tests.storage_builders import claiming, csi_node, pv, pvc

NAMES = tuple(f"p{at}" for at in range(6))
#: Longer than every backoff, and too short for a flush.
BACKOFFS_END = 12.0


def crowd() -> Driver:
    """A node to which one volume can be attached, which is there; six pods wait with one each."""
    run = driver(node("one", cpu=8, labels={ZONE: "a"}), csi_node("one", csi=1))
    for name in ("first", *NAMES):
        run.apply(pv(f"pv-{name}", claim=name), pvc(name, volume=f"pv-{name}"))
        run.apply(claiming(name, name=name, cpu=1))
        run.settle(10)
    run.now += BACKOFFS_END
    return run


def count_attempts(run: Driver) -> int:
    return sum(queued.attempts for queued in run.engine.queue)


def test_one_is_tried_for_all() -> None:
    run = crowd()
    before = count_attempts(run)
    run.remove(claiming("first", name="first", cpu=1))
    run.settle(20)
    # One was placed, which had been tried once, and one was tried for nothing.
    assert (len(run.engine.queue), count_attempts(run)) == (5, before - 1 + 1)


def test_pods_whose_volume_is_elsewhere_wait_for_themselves() -> None:
    run = crowd()
    run.apply(pv("pv-p3", claim="p3", labels={ZONE: "b"}))
    # Of the others one is tried for all.
    tried = count_attempts(run)
    run.apply(pod("gone", node="one", spec={"volumes": claiming_volume("none")}))
    run.remove(pod("gone", node="one", spec={"volumes": claiming_volume("none")}))
    run.settle(20)
    assert count_attempts(run) == tried + 2


def claiming_volume(name: str) -> list[dict[str, object]]:
    return [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]


def test_a_pod_whose_volume_is_in_use_now_is_tried_by_itself() -> None:
    """Where its volume is attached already, it needs no place for it."""
    run = crowd()
    run.apply(node("two", cpu=8), csi_node("two", csi=1))
    run.settle(20)
    placed = {name for name in NAMES if run.node_of(name) == "two"}
    assert len(placed) == 1
    run.now += BACKOFFS_END
    # Somebody places a pod with the claim of one that waits, beyond what the node can attach.
    run.apply(claiming("p4", name="around", node="two", cpu=1))
    run.settle(20)
    run.now += BACKOFFS_END
    # The event wakes all. The first of them fails for the others, but not for the one in question.
    run.apply(csi_node("one", csi=1), csi_node("two", csi=2))
    run.settle(40)
    run.now += BACKOFFS_END
    run.settle(40)
    assert run.node_of("p4") == "two"


@pytest.mark.parametrize("deleted", [True, False])
def test_nothing_is_followed_of_pods_that_wait_no_more(deleted: bool) -> None:
    run = crowd()
    followed = run.engine.cluster.nodes.storage.followed
    assert len(followed) == len(NAMES)
    for name in NAMES:
        if deleted:
            run.remove(claiming(name, name=name, cpu=1))
        else:
            run.apply(claiming(name, name=name, node="one", cpu=1))
    run.settle(20)
    assert len(followed) == 0


def test_a_claim_that_keeps_changing_parts_its_pods_once() -> None:
    """However often it changes, nothing more is done until the pods are tried again."""
    run = driver(node("one", cpu=8), csi_node("one", csi=0))
    run.apply(pv("pv-c", claim="c"), pvc("c", volume="pv-c"))
    for at in range(20):
        run.apply(claiming("c", name=f"p{at}", cpu=1))
    run.settle(40)
    followed = run.engine.cluster.nodes.storage.followed
    assert len(followed) == 20
    tried = count_attempts(run)
    for version in range(5):
        run.apply(pvc("c", volume="pv-c", metadata={"labels": {"version": str(version)}}))
        run.apply(pv("pv-c", claim="c", labels={"version": str(version)}))
        assert len(followed) == 0
    run.settle(40)
    assert count_attempts(run) == tried, "no plugin that rejected them listens to that"


@pytest.mark.parametrize("signs", [True, False])
def test_pods_that_some_plugin_cannot_sign_wait_for_themselves(
    monkeypatch: pytest.MonkeyPatch, signs: bool
) -> None:
    """Also where it reads no volumes."""
    if not signs:
        monkeypatch.setattr(NodeName, "sign", lambda *_: UNSIGNABLE)
    run = crowd()
    alike = {queued.alike for queued in run.engine.queue}
    assert len(alike) == 1
    assert (alike == {None}) is not signs


def test_pods_with_volumes_in_different_zones_do_not_fail_together() -> None:
    run = crowd()
    run.apply(pv("pv-far", claim="far", labels={ZONE: "b"}), pvc("far", volume="pv-far"))
    run.apply(claiming("far", name="far", cpu=1))
    run.settle(10)
    alike = {queued.pod.name: queued.alike for queued in run.engine.queue}
    assert alike["far"] is not None
    assert alike["far"] != alike["p0"] == alike["p1"]
