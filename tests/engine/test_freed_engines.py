"""An engine that nobody uses is freed with its nodes, also while templates of its pods stay."""

from __future__ import annotations

import gc
import weakref

from moorage.cluster import Nodes
from moorage.testing import drive
from tests.builders import node, pod


def _place_pods() -> weakref.ref[Nodes]:
    run = drive()
    run.apply(node("one", cpu=4))
    run.apply(pod("placed", cpu=1), pod("waiting", cpu=8, spec={"priority": 5}))
    run.settle()
    assert run.node_of("placed") == "one"
    return weakref.ref(run.engine.cluster.nodes)


def test_nodes_are_freed_with_their_engine() -> None:
    template = pod("placed", cpu=1).spec
    nodes = _place_pods()
    gc.collect()

    assert nodes() is None
    assert template is pod("placed", cpu=1).spec
