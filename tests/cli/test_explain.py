"""`moorage explain`: exit codes, formats, messages."""

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
    def write(*manifests: dict[str, Any]) -> str:
        path = tmp_path / "in.json"
        path.write_text("\n".join(map(json.dumps, manifests)))
        return str(path)

    return write


def test_a_pod_that_fits_is_0(moorage: Moorage) -> None:
    result = moorage("explain", "shop/db-0", DEMO)

    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("pod shop/db-0 would go to a2: 3 of 6 nodes take it\n")
    assert "b1               it did not select disk=ssd" in result.out


def test_a_pod_that_does_not_is_1(moorage: Moorage) -> None:
    result = moorage("explain", "-n", "lab", "report", DEMO)

    assert result.code == 1
    assert result.out.startswith("pod lab/report fits no node of 6\n0/6 nodes are available: ")
    assert "b1          it asked for 10.75 less cpu" in result.out
    assert "because node b1 was 10.75 cpu short" in result.out
    assert "\n\nno node is this large: add one with at least 12 cpu\n\n" in result.out
    assert result.err == "note: 16 other waiting pods are placed first, as the scheduler would\n"


def test_a_running_pod_is_0_wherever_it_would_go(moorage: Moorage) -> None:
    result = moorage("explain", "shop/cache-0", DEMO)

    assert result.code == 0
    assert result.out.startswith(
        "pod shop/cache-0 runs on b1, one of 3 equally good nodes: 3 of 6 "
    )


def test_one_node(moorage: Moorage) -> None:
    result = moorage("explain", "shop/db-0", DEMO, "--node", "b2")

    assert result.code == 0
    assert result.out.splitlines()[1:4] == [
        "node b2 does not take it:",
        "    NodeUnschedulable: node(s) were unschedulable",
        "    NodeAffinity: node(s) didn't match Pod's node affinity/selector",
    ]


def test_json_has_everything(moorage: Moorage) -> None:
    result = moorage("explain", "lab/report", DEMO, "-o", "json")

    told = json.loads(result.out)
    assert (result.code, told["state"], told["feasibleCount"]) == (1, "pending", 0)
    assert {each["kind"] for each in told["suggestions"]} == {"node-size", "resources", "several"}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("shop/ghost", DEMO), "pod shop/ghost: not found among 21 pods\n"),
        (("shop/db-0", DEMO, "--node", "ghost"), "node ghost: there is no such node\n"),
        (
            ("shop/db-0", DEMO, "--kubeconfig", "file"),
            "examples/demo: give either manifests or a cluster, not both\n",
        ),
        (("shop/db-0", "missing"), "missing: no such file or directory\n"),
    ],
)
def test_bad_input_is_2(moorage: Moorage, arguments: tuple[str, ...], error: str) -> None:
    result = moorage("explain", *arguments)

    assert (result.code, result.out, result.err) == (2, "", error)


def test_a_cluster_that_does_not_answer_is_2(moorage: Moorage) -> None:
    result = moorage("explain", "shop/db-0", "--master", "http://127.0.0.1:1")

    assert (result.code, result.out) == (2, "")
    assert "127.0.0.1" in result.err


def test_names_reach_the_terminal_as_text(moorage: Moorage, write: Any) -> None:
    evil = "\x1b[31mred"
    selector = {"nodeSelector": {"disk": evil}}
    path = write(node_manifest("a"), pod_manifest("p", spec=selector))

    result = moorage("explain", "p", path)

    assert "\x1b" not in result.out
    assert "\\x1b[31mred" in result.out


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        pytest.param("0/1 nodes are available: 1 Insufficient cpu.", False, id="the same"),
        pytest.param("0/1 nodes are available: 1 too far away.", True, id="something else"),
    ],
)
def test_another_answer_of_the_running_scheduler_is_noted(
    said: str, noted: bool, moorage: Moorage, write: Any
) -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": said}
    waiting = pod_manifest("p", cpu=9, status={"conditions": [condition]})

    err = moorage("explain", "p", write(node_manifest("a"), waiting)).err

    assert (f"its scheduler said otherwise: {said}" in err) is noted


def test_h_is_help(moorage: Moorage) -> None:
    assert "what would change" in moorage("explain", "-h").out
