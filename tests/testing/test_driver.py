"""The driver of the test kit, as plugin authors use it."""

from __future__ import annotations

import msgspec

from moorage.cluster import NodeView
from moorage.framework.plugin import NodeFilter
from moorage.objects.pod import Pod
from moorage.testing import drive, node, pod


class OnlyArgs(msgspec.Struct):
    node_name: str = "a"


class Only(NodeFilter):
    """Accepts one node, which its arguments name."""

    name = "Only"
    Args = OnlyArgs

    def __init__(self, args: OnlyArgs) -> None:
        self._name = args.node_name

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return None if node.name == self._name else "another node"


def test_plugins_get_their_arguments() -> None:
    driven = drive(
        node("a"), node("b"), pod("p"), plugins=(Only,), args={"Only": {"node_name": "b"}}
    )
    driven.settle()

    assert driven.node_of("p") == "b"
