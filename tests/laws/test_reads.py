"""`reads`, `watch` and `scope` say all that a plugin's answers depend on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from mooring.cluster import Change, Cluster, Scope
from mooring.cluster.changes import EVERYWHERE
from mooring.framework.plugin import Plugin
from tests.laws.answers import EITHER, build, everything_said
from tests.strategies import (
    NAMES,
    about_volumes,
    clusters,
    nodes,
    pod_labels,
    pods,
    storage,
    workloads,
)

NODE_FIELDS = ("labels", "taints", "unschedulable", "allocatable", "images", "declared_features")
OTHER = ("add pod", "remove pod", "relabel pod", "nominate", "workload", "add node", "remove node")


def change(made: Cluster, data: st.DataObject, focus: str) -> None:
    """Does one thing to the cluster."""
    volumes = ("storage", "storage gone") if about_volumes(focus) else ()
    what = data.draw(st.sampled_from((*NODE_FIELDS, *OTHER, *volumes)))
    if what in NODE_FIELDS:
        _change_node(made, data, what)
        return
    match what:
        case "add pod":
            on = data.draw(st.sampled_from(NAMES[:4]))
            made.put_pod(data.draw(pods("guest", on, terminating=True, focus=focus)))
        case "nominate":
            made.nominate(data.draw(pods("nominated", focus=focus)), "n0")
        case "workload":
            made.put_workload(data.draw(workloads))
        case "add node":
            made.put_node(data.draw(nodes("new")))
        case "remove node":
            made.remove_node(data.draw(st.sampled_from(NAMES[:4])))
        case "storage":
            made.put_storage(data.draw(storage))
        case "storage gone":
            made.remove_storage(data.draw(storage))
        case _:
            _change_pod(made, data, what)


def _change_node(made: Cluster, data: st.DataObject, field: str) -> None:
    row = int(data.draw(st.sampled_from([*made.nodes.rows.tolist(), -1])))
    if row >= 0:
        changes: dict[str, Any] = {field: getattr(data.draw(nodes("other")), field)}
        made.put_node(msgspec.structs.replace(made.nodes.node(row), **changes))


def _change_pod(made: Cluster, data: st.DataObject, what: str) -> None:
    if made.pods:
        known = made.pods[data.draw(st.sampled_from(sorted(made.pods)))]
        if what == "remove pod":
            made.remove_pod(known.uid)
        else:
            made.put_pod(msgspec.structs.replace(known, labels=data.draw(pod_labels)))


def untouched(
    made: Cluster, noted: Mapping[int, int], depends: int, scope: Scope, names: set[str]
) -> list[str]:
    """The nodes for which the answer must be what it was."""
    touched = {row for row, kinds in noted.items() if kinds & depends}
    if EVERYWHERE in touched or (touched and scope is not Scope.ROW):
        return []
    return sorted(name for name in names if made.nodes.row(name) not in touched)


@pytest.mark.parametrize("kind", EITHER, ids=lambda kind: kind.name)
@given(data=st.data())
@settings(max_examples=40)
def test_what_is_not_read_changes_no_answer(kind: type[Plugin], data: st.DataObject) -> None:
    plugin = build(kind)
    made = data.draw(clusters(least=2, focus=kind.name))
    asks = data.draw(pods(focus=kind.name))
    after = everything_said(plugin, asks, made.nodes)
    for _ in range(5):
        before, generation = after, made.changes.generation
        watched, epoch = plugin.watch(asks, made.nodes), made.nodes.epoch
        assert watched | kind.reads == kind.reads

        change(made, data, kind.name)

        noted = made.changes.since(generation)
        assert noted is not None
        after = everything_said(plugin, asks, made.nodes)
        names = before.keys() & after.keys()
        same = untouched(made, noted, kind.reads, kind.scope, names)
        if made.nodes.epoch == epoch:
            same += untouched(made, noted, watched, kind.scope, names)
        assert {name: after[name] for name in same} == {name: before[name] for name in same}


@pytest.mark.parametrize("kind", EITHER, ids=lambda kind: kind.name)
def test_every_plugin_says_what_it_reads(kind: type[Plugin]) -> None:
    """The default is everything everywhere, which is right and useless."""
    assert "reads" in vars(kind)
    assert kind.reads != Change.ALL
    assert "scope" in vars(kind)
