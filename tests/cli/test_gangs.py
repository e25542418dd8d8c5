"""`moorage explain podgroup/…` and `moorage fit --gang`: answers, exit codes, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import node_manifest, pod_manifest
from tests.cli.invoking import Moorage

GROUP = {
    "apiVersion": "scheduling.k8s.io/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "train", "namespace": "lab"},
    "spec": {
        "schedulingPolicy": {"gang": {"minCount": 6}},
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
    },
}
MEMBERS = [
    pod_manifest(
        f"train-{number}",
        namespace="lab",
        cpu=1,
        spec={"schedulingGroup": {"podGroupName": "train"}},
    )
    for number in range(6)
]
NODES = [
    node_manifest(f"n{number}", cpu=2, labels={"rack": f"r{number // 2}"}) for number in range(4)
]


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(name: str, *manifests: dict[str, Any]) -> str:
        path = tmp_path / name
        path.write_text("\n".join(map(json.dumps, manifests)))
        return str(path)

    return write


def test_a_gang_that_does_not_fit_is_1_and_says_what_it_lacks(moorage: Moorage, write: Any) -> None:
    cluster = write("in.json", *NODES, GROUP, *MEMBERS)

    result = moorage("explain", "podgroup/lab/train", cluster)

    assert result.code == 1
    lines = result.out.splitlines()
    assert lines[0] == "gang lab/train does not fit: 6 pods wait"
    assert lines[2] == (
        "6 x 1 cpu: 6 wait, 0 have a node, minCount is 6. In one rack: best is r0 with room for 4, "
        "2 short. It fits over 2 of them: r0, r1. Anywhere: room for 8."
    )
    assert lines[4:6] == ["RACK   NODES   ROOM   SHORT", "r0         2      4       2"]


def test_a_gang_is_explained_as_json_and_by_its_short_name(moorage: Moorage, write: Any) -> None:
    more = [node_manifest(f"m{number}", cpu=2, labels={"rack": "r1"}) for number in range(1)]
    cluster = write("in.json", *NODES, *more, GROUP, *MEMBERS)

    result = moorage("explain", "-n", "lab", "pg/train", cluster, "-o", "json")

    assert result.code == 0
    found = json.loads(result.out)
    assert (found["state"], found["domain"], len(found["nodes"])) == ("fits", "r1", 6)


def test_a_gang_that_is_not_there_is_2(moorage: Moorage, write: Any) -> None:
    cluster = write("in.json", *NODES, GROUP, *MEMBERS)

    result = moorage("explain", "podgroup/train", cluster)

    assert result.code == 2
    assert "did you mean lab/train?" in result.err


def test_how_many_gangs_fit_and_what_the_next_one_lacks(moorage: Moorage, write: Any) -> None:
    copy, cluster = write("pod.json", pod_manifest("w", cpu=1)), write("in.json", *NODES)

    result = moorage(
        "fit", "--gang", "3", "--topology", "rack", "--count", "5", "-f", copy, cluster
    )

    assert result.code == 1
    assert result.out.startswith("2 of 5 gangs of 3 fit on 4 nodes\n")
    assert "1      r0     2       n0 (2), n1 (1)" in result.out
    assert "best is r0 with room for 1, 2 short." in result.out


def test_more_nodes_are_compared_for_gangs(moorage: Moorage, write: Any) -> None:
    copy, cluster = write("pod.json", pod_manifest("w", cpu=1)), write("in.json", *NODES)
    shape = write("node.json", node_manifest("new", cpu=2, labels={"rack": "r1"}))

    result = moorage(
        "fit", "--gang", "5", "--topology", "rack", "--add-nodes", f"{shape}=1", "-f", copy, cluster
    )

    assert result.code == 0
    assert result.out.splitlines()[1:3] == [
        "as it is       4       1        0      1",
        "what if        5       1        1      0",
    ]


@pytest.mark.parametrize(
    ("flags", "wrong"),
    [
        (("--topology", "rack"), "--topology: only with --gang"),
        (("--gang", "2", "--reschedule"), "--gang: is made of copies"),
        (("--gang", "2"), "--gang: is made of copies"),
    ],
)
def test_flags_that_do_not_go_together_are_2(
    moorage: Moorage, write: Any, flags: tuple[str, ...], wrong: str
) -> None:
    result = moorage("fit", *flags, write("in.json", *NODES))

    assert result.code == 2
    assert wrong in result.err
