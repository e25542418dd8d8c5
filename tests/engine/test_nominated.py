"""Pods that carry a nomination: tried there first, kept or cleared."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.objects.node import HOSTNAME
from moorage.objects.pod import Pod
from tests.builders import node, pod
from tests.engine.driver import bindings, driver, nominations

TAINTED = {"taints": [{"key": "k", "effect": "NoSchedule"}]}


def to(node_name: str, name: str = "p", **given: Any) -> Pod:
    return pod(name, status={"nominatedNodeName": node_name}, **given)


@pytest.mark.parametrize("nominated", ["one", "two", "three"])
def test_the_nominated_node_is_taken_without_comparing(nominated: str) -> None:
    names = ("one", "two", "three")
    run = driver(*(node(name) for name in names), pod("load", node=nominated, cpu=3))
    run.apply(to(nominated, cpu="500m"))

    assert bindings(run.step()) == {"p": nominated}
    assert run.nominated("p") == ""


def test_a_nominated_node_that_does_not_suit_is_passed_over() -> None:
    run = driver(node("one", spec=TAINTED), node("two"), to("one"))

    assert bindings(run.step()) == {"p": "two"}


def test_a_nominated_node_that_is_gone_is_passed_over() -> None:
    run = driver(node("one"), to("gone"))

    assert bindings(run.step()) == {"p": "one"}


def test_a_nomination_that_helps_no_more_is_cleared() -> None:
    run = driver(node("one", cpu=1), to("one", cpu=2))
    taken = run.step()

    assert nominations(taken) == {"p": ""}
    assert run.nominated("p") == ""


def test_a_nomination_is_cleared_where_no_plugin_seeks_remedies() -> None:
    nobody = {"postFilter": {"disabled": [{"name": "*"}]}}
    run = driver(node("one", cpu=1), to("one", cpu=2), profiles=[{"plugins": nobody}])

    assert nominations(run.step()) == {"p": ""}


def test_a_nomination_keeps_the_place_from_pods_of_no_higher_priority() -> None:
    run = driver(node("one", cpu=1), to("one", "first", cpu=1, spec={"priority": 5}))
    run.apply(pod("same", cpu=1, spec={"priority": 5}), pod("top", cpu=1, spec={"priority": 9}))
    taken = run.step(1)

    assert bindings(taken) == {"top": "one"}


def test_equal_priority_does_not_get_past_a_nomination() -> None:
    gated = to("one", "first", cpu=1, spec={"priority": 5, "schedulingGates": [{"name": "g"}]})
    run = driver(node("one", cpu=1), gated, pod("same", cpu=1, spec={"priority": 5}))
    assert bindings(run.step(2)) == {}

    run.apply(pod("top", cpu=1, spec={"priority": 9}))
    assert bindings(run.step(2)) == {"top": "one"}


def test_a_nomination_that_ends_wakes_those_it_outranked() -> None:
    gate = {"schedulingGates": [{"name": "g"}]}
    run = driver(node("one", cpu=1), to("one", "first", cpu=1, spec={"priority": 5, **gate}))
    run.apply(pod("same", cpu=1, spec={"priority": 5}))
    run.step(2)
    assert run.place("same") == "unschedulable"

    run.apply(to("", "first", cpu=1, spec={"priority": 5, **gate}))
    assert run.nominated("first") == ""
    run.now += 2
    assert bindings(run.step(2)) == {"same": "one"}


def test_a_nominated_pod_that_is_deleted_makes_room() -> None:
    gate = {"schedulingGates": [{"name": "g"}]}
    held = to("one", "first", cpu=1, spec={"priority": 5, **gate})
    run = driver(node("one", cpu=1), held, pod("same", cpu=1, spec={"priority": 5}))
    run.step(2)
    run.remove(held)
    run.now += 2

    assert bindings(run.step(2)) == {"same": "one"}


def test_ports_of_nominated_pods_are_taken_too() -> None:
    listening = {"containers": [{"name": "main", "ports": [{"hostPort": 80}]}]}
    held = {**listening, "priority": 5, "schedulingGates": [{"name": "g"}]}
    run = driver(node("one"), node("two"), to("one", "first", spec=held))
    run.apply(pod("p", spec=listening))

    assert bindings(run.step(2)) == {"p": "two"}


def test_a_nomination_that_only_memory_knows_wakes_others_when_its_pod_goes_elsewhere() -> None:
    gated = {"priority": 5, "schedulingGates": [{"name": "g"}]}
    run = driver(node("one", cpu=1), node("two", cpu=1, spec=TAINTED), pod("low", cpu=1))
    run.apply(pod("first", cpu=1, spec=gated))
    run.engine.cluster.nominate(run.pods["default/first"], "one")
    assert bindings(run.step(2)) == {}
    run.now += 60

    run.apply(pod("first", node="two", cpu=1, spec=gated))
    assert bindings(run.step(2)) == {"low": "one"}


@pytest.mark.parametrize("end", ["deleted", "cleared", "failed"])
def test_whoever_waits_because_of_a_nomination_is_tried_when_it_ends(end: str) -> None:
    gate = {"schedulingGates": [{"name": "g"}]} if end != "failed" else {}
    first = to("one", "first", cpu=1, spec={"priority": 5, **gate})
    run = driver(node("one", cpu=1, labels={"disk": "ssd"}), first)
    if end == "failed":
        run.engine.queue.delete(first)
    run.apply(pod("low", cpu=1))
    assert bindings(run.step(2)) == {}
    run.now += 60

    if end == "deleted":
        run.remove(first)
    elif end == "cleared":
        run.apply(pod("first", cpu=1, spec={"priority": 5, **gate}))
    else:
        wants = {"priority": 5, "nodeSelector": {"disk": "hdd"}}
        run.engine.queue.add(to("one", "first", cpu=1, spec=wants), run.now)
        run.step(1)
    assert bindings(run.step(2)) == {"low": "one"}


def away_from(**labels: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOSTNAME}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_pods_differ_by_labels_that_only_a_nominated_pod_reads() -> None:
    waits = {
        "priority": 9,
        "schedulingGates": [{"name": "later"}],
        "affinity": away_from(app="web"),
    }
    run = driver(node("one"), to("one", "nominated", spec=waits))
    # Terms of nominated pods count for pods that have terms of their own.
    like = {"affinity": away_from(team="red")}
    names = ("web-1", "db-1", "web-2", "db-2")
    run.apply(*(pod(name, labels={"app": name[:-2]}, spec=like) for name in names))

    assert bindings(run.step(10)) == {"db-1": "one", "db-2": "one"}
