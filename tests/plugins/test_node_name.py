"""NodeName."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.framework.status import Code
from moorage.framework.wakeups import Action, Resource
from moorage.objects.pod import Pod
from moorage.plugins.node_name import NodeName
from tests.builders import (
    EMPTY,
    cluster,
    node,
    pod,
)
from tests.plugins.asking import codes, listens, rejections, wakes

PLUGIN = NodeName()
REASON = ("node(s) didn't match the requested node name",)


@pytest.mark.parametrize(
    ("asks", "rejected"),
    [
        pytest.param(pod(), None, id="any node will do"),
        pytest.param(pod(node="a"), {"b": REASON}, id="that one only"),
        pytest.param(pod(node="c"), {"a": REASON, "b": REASON}, id="a node that is not there"),
    ],
)
def test_filter(asks: Pod, rejected: dict[str, Any] | None) -> None:
    assert rejections(PLUGIN, asks, cluster(node("a"), node("b"))) == rejected


def test_evicting_pods_does_not_help() -> None:
    asked = codes(PLUGIN, pod(node="a"), cluster(node("a"), node("b")))

    assert asked == {"b": Code.UNRESOLVABLE}


def test_the_name_is_signed() -> None:
    assert PLUGIN.sign(pod(), EMPTY) == PLUGIN.sign(pod("other"), EMPTY)
    assert PLUGIN.sign(pod(), EMPTY) != PLUGIN.sign(pod(node="a"), EMPTY)


def test_every_new_node_wakes() -> None:
    assert listens(PLUGIN) == {(Resource.NODE, Action.ADD)}
    assert wakes(PLUGIN, Resource.NODE, Action.ADD, pod=pod(node="a"), new=node("b"))
