"""`moorage simulate`: exit codes, formats, messages."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from moorage.cli import inputs
from tests.builders import node_manifest, pod_manifest
from tests.cli.invoking import Moorage
from tests.strategies import FIXTURES_MAY_BE_SHARED

DEMO = "examples/demo"
VOLUMES = "examples/volumes"
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(*manifests: dict[str, Any], name: str = "in.json") -> str:
        path = tmp_path / name
        path.write_text("\n".join(map(json.dumps, manifests)))
        return str(path)

    return write


def test_everything_placed_is_0(moorage: Moorage, write: Any) -> None:
    result = moorage("simulate", write(node_manifest(), pod_manifest(cpu=1)))

    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[:2] == ["NAMESPACE   POD   NODE", "default     pod   node"]
    assert result.out.endswith("1 placed, 0 pending, 1 node\n")


def test_something_pending_is_1(moorage: Moorage) -> None:
    result = moorage("simulate", DEMO)

    assert result.code == 1
    assert "1 pod: waiting for scheduling gates: [example.com/approval]" in result.out


def test_bad_input_is_2_and_one_line(moorage: Moorage, write: Any) -> None:
    path = write(pod_manifest(cpu="2x"))

    result = moorage("simulate", path)

    told = 'spec.containers[0].resources.requests.cpu: "2x" is not a quantity'
    assert (result.code, result.out) == (2, "")
    assert result.err == f"{path}: document 1: Pod default/pod: {told}\n"


def test_a_real_process(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("kind: [")

    ended = subprocess.run(
        [sys.executable, "-m", "moorage", "simulate", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"{path}: document 1: broken YAML: line ")
    assert ended.stderr.count("\n") == 1


def test_a_broken_pipe_is_silent() -> None:
    command = f"{sys.executable} -m moorage simulate {DEMO} -o json | true"

    ended = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)

    assert (ended.stdout, ended.stderr) == ("", "")


def test_standard_input(moorage: Moorage, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(node_manifest()).encode()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text)))

    assert moorage("simulate", "-").code == 0


def test_notes_go_to_standard_error(moorage: Moorage, write: Any) -> None:
    path = write(node_manifest(), {"apiVersion": "apps/v1", "kind": "Deployment"})

    result = moorage("simulate", path, "-o", "json")

    assert result.err.startswith("note: ignored 1 Deployment: ")
    assert json.loads(result.out)["placements"] == []


def test_json_and_yaml_say_the_same(moorage: Moorage) -> None:
    as_json = json.loads(moorage("simulate", DEMO, "-o", "json").out)
    as_yaml = yaml.safe_load(moorage("simulate", DEMO, "-o", "yaml").out)

    assert as_json == as_yaml
    assert list(as_json) == ["placements", "pending", "preempted", "volumes", "summary"]


def test_the_structure(moorage: Moorage, write: Any) -> None:
    path = write(
        node_manifest(cpu=2, memory="4Gi"),
        pod_manifest("old", node="node", cpu="500m"),
        pod_manifest("new", cpu=1, spec={"priority": 5}),
        pod_manifest("large", cpu=9),
    )

    told = json.loads(moorage("simulate", path, "-o", "json").out)

    (reuse,) = told["summary"].pop("reuse").values()
    assert (reuse["decisions"], reuse["differences"]) == (2, 0)
    (pending,) = told["pending"]
    assert pending.pop("message").startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert told == {
        "placements": [
            {
                "namespace": "default",
                "pod": "new",
                "node": "node",
                "profile": "default-scheduler",
                "priority": 5,
                "attempts": 1,
            }
        ],
        "pending": [
            {
                "namespace": "default",
                "pod": "large",
                "reason": "Unschedulable",
                "scheduler": "default-scheduler",
                "priority": 0,
                "attempts": 1,
            }
        ],
        "preempted": [],
        "volumes": [],
        "summary": {
            "nodes": 1,
            "placed": 1,
            "pending": 1,
            "preempted": 0,
            "resources": {
                "cpu": {"unit": "millicores", "allocatable": 2000, "before": 500, "after": 1500},
                "memory": {"unit": "bytes", "allocatable": 4 * 2**30, "before": 0, "after": 0},
                "pods": {"unit": "count", "allocatable": 110, "before": 1, "after": 2},
            },
        },
    }


def test_preemption_is_told(moorage: Moorage, write: Any) -> None:
    path = write(
        node_manifest(cpu=1),
        pod_manifest("low", node="node", cpu=1),
        pod_manifest("high", cpu=1, spec={"priority": 10}),
    )

    table = moorage("simulate", path)
    told = json.loads(moorage("simulate", path, "-o", "json").out)

    assert table.code == 0
    assert (
        "NAMESPACE   PREEMPTED   FROM   BY\ndefault     low         node   default/high"
        in table.out
    )
    assert table.out.endswith("1 placed, 0 pending, 1 preempted, 1 node\n")
    low = {"namespace": "default", "pod": "low", "node": "node", "by": "default/high"}
    assert told["preempted"] == [low]


def test_volumes_are_told(moorage: Moorage) -> None:
    table = moorage("simulate", VOLUMES)
    told = json.loads(moorage("simulate", VOLUMES, "-o", "json").out)

    assert "shop        queue-0   pvc-shop/queue-0   provisioned   queue-0" in table.out
    common = {"namespace": "shop"}
    assert told["volumes"] == [
        {**common, "claim": "db-0", "volume": "disk-a1", "provisioned": False, "pod": "db-0"},
        {
            **common,
            "claim": "queue-0",
            "volume": "pvc-shop/queue-0",
            "provisioned": True,
            "pod": "queue-0",
        },
    ]


@pytest.mark.parametrize("folder", [DEMO, VOLUMES])
@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml"])
def test_the_same_input_gives_the_same_bytes(moorage: Moorage, output: str, folder: str) -> None:
    once = moorage("simulate", folder, "-o", output)

    assert moorage("simulate", folder, "-o", output) == once


def test_equal_messages_are_told_once(moorage: Moorage, write: Any) -> None:
    large = [pod_manifest(f"large-{number}", cpu=9) for number in range(7)]
    path = write(node_manifest(), *large)

    out = moorage("simulate", path).out
    wide = moorage("simulate", path, "-o", "wide").out

    assert out.count("7 pods: 0/1 nodes are available") == 1
    assert (
        "    default/large-0, default/large-1, default/large-2, default/large-3 and 3 more" in out
    )
    assert "default/large-6" in wide


@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml"])
def test_names_cannot_play_tricks(moorage: Moorage, write: Any, output: str) -> None:
    names = ["[red]x[/red]", "\x1b[31mx", "a\nb", ":smile:", "\u202ex", "\x9b1m"]
    path = write(
        node_manifest("[/]\x07"),
        *(pod_manifest(name) for name in names),
        *(pod_manifest(name, namespace="\x1b]0;x\x07", cpu=99) for name in names),
    )

    result = moorage("simulate", path, "-o", output)

    assert result.code == 1
    assert "[red]x[/red]" in result.out
    assert ":smile:" in result.out
    assert all(each.isprintable() or each == "\n" for each in result.out)


def test_names_in_messages_cannot_play_tricks(moorage: Moorage, write: Any) -> None:
    result = moorage("simulate", write(pod_manifest("\x1b[31m\n", cpu="2x")))

    assert result.code == 2
    assert result.err.rstrip("\n").isprintable()


def test_a_configuration(moorage: Moorage, write: Any, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"{CONFIG}profiles: [{{schedulerName: mine}}]\n")
    path = write(node_manifest(), pod_manifest(spec={"schedulerName": "mine"}))

    result = moorage("simulate", path, "--config", str(config), "-o", "wide")

    assert result.code == 0
    assert "mine" in result.out


def test_a_bad_configuration_tells_every_problem(
    moorage: Moorage, write: Any, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"{CONFIG}parallelism: 0\nlunch: 12\n")

    result = moorage("simulate", write(node_manifest()), "--config", str(config))

    assert result.code == 2
    assert sorted(result.err.splitlines()) == [
        f"{config}: lunch: unknown field",
        f"{config}: parallelism: must be greater than 0, got 0",
    ]


def test_a_missing_configuration(moorage: Moorage, tmp_path: Path) -> None:
    config = tmp_path / "none.yaml"

    result = moorage("simulate", DEMO, "--config", str(config))

    assert (result.code, result.err) == (2, f"{config}: no such file or directory\n")


@pytest.mark.parametrize(
    ("gates", "told"),
    [
        ("NoSuchGate=true", "--feature-gates: NoSuchGate: unknown feature gate\n"),
        (
            "DRADerivedAttributes=true",
            "--feature-gates: DRADerivedAttributes: not supported by Moorage yet\n",
        ),
        (
            "PodLevelResources=false",
            "--feature-gates: PodLevelResources: cannot be switched off in Moorage\n",
        ),
    ],
)
def test_bad_feature_gates(moorage: Moorage, gates: str, told: str) -> None:
    result = moorage("simulate", DEMO, "--feature-gates", gates)

    assert (result.code, result.err) == (2, told)


def test_feature_gates(moorage: Moorage) -> None:
    switched = "EquivalenceCache=false,OpportunisticBatching=false"

    alone = json.loads(moorage("simulate", DEMO, "-o", "json", "--feature-gates", switched).out)
    shared = json.loads(moorage("simulate", DEMO, "-o", "json").out)

    assert alone["summary"].pop("reuse")["default-scheduler"]["reused"] == 0
    assert shared["summary"].pop("reuse")["default-scheduler"]["reused"] > 0
    assert alone == shared


def test_the_number_of_classes_is_bounded(moorage: Moorage) -> None:
    few = json.loads(moorage("simulate", DEMO, "-o", "json", "--most-classes", "1").out)
    many = json.loads(moorage("simulate", DEMO, "-o", "json").out)

    (reuse,) = few["summary"].pop("reuse").values()
    assert reuse["flushes"]["cache_full"] > 0
    del many["summary"]["reuse"]
    assert few == many


def test_a_share_of_decisions_is_verified(moorage: Moorage) -> None:
    told = moorage("simulate", DEMO, "--verify-sample", "1").out
    assert "16 verified, 0 differed" in told


@pytest.mark.parametrize("arguments", [("-o", "xml", DEMO), ("--no-such-option", DEMO)])
def test_bad_usage_is_2(moorage: Moorage, arguments: tuple[str, ...]) -> None:
    result = moorage("simulate", *arguments)

    assert result.code == 2
    assert "Usage: moorage simulate" in result.err


@pytest.mark.parametrize("debug", [False, True])
def test_an_internal_error(moorage: Moorage, monkeypatch: pytest.MonkeyPatch, debug: bool) -> None:
    def break_down(*given: object) -> None:
        raise RuntimeError("oh\x1b no")

    monkeypatch.setattr(inputs, "load_manifests", break_down)

    result = moorage(*(["--debug"] if debug else []), "simulate", DEMO)

    assert result.code == 70
    assert "moorage: internal error: RuntimeError: oh\\x1b no" in result.err
    assert ("Traceback" in result.err) is debug
    assert ("MOORAGE_DEBUG=1" in result.err) is not debug


def test_an_interrupt_is_130(moorage: Moorage, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(inputs, "load_manifests", interrupt)

    result = moorage("simulate", DEMO)

    assert (result.code, result.err) == (130, "")


def test_the_version(moorage: Moorage) -> None:
    result = moorage("--version")

    assert (result.code, result.out) == (0, "moorage 0.1.0\n")


@settings(
    max_examples=40,
    suppress_health_check=FIXTURES_MAY_BE_SHARED,
)
@given(
    st.lists(
        st.sampled_from(
            [
                "---\n",
                "apiVersion: v1\n",
                "kind: Pod\n",
                "kind: Node\n",
                "metadata: {name: a}\n",
                "metadata: {name: a, labels: {b: 1}}\n",
                "spec: {containers: [{}]}\n",
                "spec: {containers: [{resources: {requests: {cpu: 1e9}}}]}\n",
                "spec: {unschedulable: true}\n",
                "status: {capacity: {cpu: 4, memory: 8Gi, pods: 9}}\n",
                "status: [\n",
                "- x\n",
                ": \n",
                "\x00",
            ]
        ),
        max_size=12,
    ).map("".join)
)
def test_any_text_ends_with_0_1_or_2(moorage: Moorage, tmp_path: Path, text: str) -> None:
    path = tmp_path / "any.yaml"
    path.write_text(text)

    result = moorage("simulate", str(path))

    assert result.code in (0, 1, 2)
    assert "Traceback" not in result.err
