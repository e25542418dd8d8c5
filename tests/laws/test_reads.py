"""`reads` and `scope` say all that a plugin's answers depend on."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from mooring.cluster import Change, Cluster, Scope
from mooring.cluster.changes import EVERYWHERE
from mooring.framework.plugin import Plugin
from mooring.objects.pod import Pod
from tests.laws.answers import FILTERS, SCORES, build, everything_said
from tests.strategies import NAMES, clusters, nodes, pod_labels, pods, workloads

KINDS = sorted({*FILTERS, *SCORES}, key=lambda kind: kind.name)
NODE_FIELDS = ("labels", "taints", "unschedulable", "allocatable", "images", "declared_features")


def change(made: Cluster, data: st.DataObject) -> None:
    """Does something to the cluster."""
    doing = [_change_node, _change_node, _add_pod, _remove_pod, _relabel_pod, _nominate]
    doing += [_put_workload, _add_node, _remove_node]
    data.draw(st.sampled_from(doing))(made, data)


def _change_node(made: Cluster, data: st.DataObject) -> None:
    name, other = data.draw(st.sampled_from(NAMES)), data.draw(nodes())
    row = made.nodes.row(name)
    if row is not None:
        field = data.draw(st.sampled_from(NODE_FIELDS))
        changes: dict[str, Any] = {field: getattr(other, field)}
        made.put_node(msgspec.structs.replace(made.nodes.node(row), **changes))


def _add_pod(made: Cluster, data: st.DataObject) -> None:
    on = data.draw(st.sampled_from([*NAMES, "nowhere"]))
    made.put_pod(data.draw(pods("guest", on, terminating=True)))


def _remove_pod(made: Cluster, data: st.DataObject) -> None:
    if made.pods:
        made.remove_pod(data.draw(st.sampled_from(sorted(made.pods))))


def _relabel_pod(made: Cluster, data: st.DataObject) -> None:
    if made.pods:
        known = made.pods[data.draw(st.sampled_from(sorted(made.pods)))]
        made.put_pod(msgspec.structs.replace(known, labels=data.draw(pod_labels)))


def _nominate(made: Cluster, data: st.DataObject) -> None:
    made.nominate(data.draw(pods("nominated")), data.draw(st.sampled_from(NAMES)))


def _put_workload(made: Cluster, data: st.DataObject) -> None:
    made.put_workload(data.draw(workloads))


def _add_node(made: Cluster, data: st.DataObject) -> None:
    made.put_node(data.draw(nodes("new")))


def _remove_node(made: Cluster, data: st.DataObject) -> None:
    made.remove_node(data.draw(st.sampled_from(NAMES)))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@given(made=clusters(least=2), asks=pods(), data=st.data())
@settings(max_examples=60)
def test_what_is_not_read_changes_no_answer(
    kind: type[Plugin], made: Cluster, asks: Pod, data: st.DataObject
) -> None:
    plugin = build(kind)
    before = everything_said(plugin, asks, made.nodes)
    generation = made.changes.generation

    change(made, data)

    noted = made.changes.since(generation)
    assert noted is not None
    after = everything_said(plugin, asks, made.nodes)
    touched = {row for row, kinds in noted.items() if kinds & kind.reads}
    if EVERYWHERE in touched or (touched and kind.scope is not Scope.ROW):
        return
    rows = {name: made.nodes.row(name) for name in before.keys() & after.keys()}
    same = [name for name, row in rows.items() if row not in touched]
    assert {name: after[name] for name in same} == {name: before[name] for name in same}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_plugin_says_what_it_reads(kind: type[Plugin]) -> None:
    """The default is everything everywhere, which is right and useless."""
    assert "reads" in vars(kind)
    assert kind.reads != Change.ALL
    assert "scope" in vars(kind)
