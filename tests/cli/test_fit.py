"""`moorage fit`: exit codes, formats, messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import node_manifest, pod_manifest
from tests.cli.invoking import Moorage

DEMO = "examples/demo"


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(name: str, *manifests: dict[str, Any]) -> str:
        path = tmp_path / name
        path.write_text("\n".join(map(json.dumps, manifests)))
        return str(path)

    return write


def test_copies_that_all_fit_are_0(moorage: Moorage, write: Any) -> None:
    copy = write("pod.json", pod_manifest("copy", cpu=1))

    result = moorage("fit", "-f", copy, "--count", "3", DEMO)

    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("3 of 3 pods fit, on ")


def test_copies_that_do_not_all_fit_are_1(moorage: Moorage, write: Any) -> None:
    copy = write("pod.json", pod_manifest("copy", cpu=1))

    result = moorage("fit", "-f", copy, "--count", "500", DEMO)

    assert result.code == 1
    assert result.out.startswith("11 of 500 pods fit, on 3 of 6 nodes\n")
    assert "cpu runs out           3       a1, b1, c1" in result.out


def test_a_drain_and_more_nodes_are_compared(moorage: Moorage, write: Any) -> None:
    copy = write("pod.json", pod_manifest("copy", cpu=1))
    shape = write("node.json", node_manifest("new", cpu=4))
    changes = ("--drain", "b1", "--add-nodes", f"{shape}=20")

    result = moorage("fit", "-f", copy, "--count", "50", *changes, DEMO)

    assert result.code == 0
    assert result.out.splitlines()[:3] == [
        "           NODES   PODS   PLACED   LEFT",
        "as it is       6     50       11     39",
        "what if       26     51       51      0",
    ]
    kinds = result.out.partition("KIND OF NODE")[2].splitlines()
    assert kinds[1].split() == ["4", "cpu,", "8Gi", "memory", "20", "20", "46"]


def test_a_drain_alone_tells_where_its_pods_go(moorage: Moorage) -> None:
    result = moorage("fit", "--drain", "b1", DEMO)

    assert result.code == 0
    assert result.out.splitlines() == [
        "1 of 1 pod fits, on 1 of 6 nodes",
        "1 pod without a controller is not created again: shop/cache-0",
        "",
        "POD            FROM   TO",
        "shop/cache-0   b1     c1",
    ]


def test_another_configuration_is_compared(moorage: Moorage) -> None:
    config = "examples/gpu/scheduler.yaml"

    result = moorage("fit", "--config", config, "-o", "json", "examples/gpu/cluster.yaml")

    told = json.loads(result.out)
    assert told["changed"]
    assert told["before"]["asked"] == told["after"]["asked"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--drain", "ghost", DEMO), "--drain: there is no node ghost\n"),
        (
            ("--add-nodes", "node.json", DEMO),
            "--add-nodes: node.json: write FILE=COUNT, with a count of 1 or more\n",
        ),
        (
            ("-f", f"{DEMO}/nodes.yaml", DEMO),
            f"{DEMO}/nodes.yaml: nothing to place: neither workloads nor pods\n",
        ),
    ],
)
def test_bad_input_is_2(moorage: Moorage, arguments: tuple[str, ...], error: str) -> None:
    result = moorage("fit", *arguments)

    assert (result.code, result.out, result.err) == (2, "", error)
