"""`moorage replay`: what it prints, and how it ends."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest

from tests.builders import node_manifest, pod_manifest
from tests.cli.invoking import Moorage
from tests.record.stage import Stage, lines_of, write_lines

CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ONLY_N1 = f"""{CONFIG}
profiles:
- pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions:
            - {{key: kubernetes.io/hostname, operator: In, values: [n1]}}
"""


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Two pods on two nodes, and one that is too large."""
    stage = Stage(tmp_path / "run")
    nodes = [node_manifest(name, cpu=4) for name in ("n0", "n1")]
    pods = [pod_manifest(name, cpu=1) for name in ("a", "b")]
    asyncio.run(
        stage.play(
            (100.0, [partial(stage.apply, *nodes, *pods)]),
            (130.5, [partial(stage.apply, pod_manifest("huge", cpu=64))]),
        )
    )
    stage.recorder.close()
    return tmp_path / "run"


def tampered(recording: Path) -> Path:
    """The same recording, in which a pod has gone elsewhere under a hostile name."""
    lines = lines_of(recording.with_name("run.000001"))
    step = next(line for line in lines if "bindPod" in json.dumps(line))
    bind = next(action for action in step["actions"] if action["do"] == "bindPod")
    bind["node"] = "\x1b[2Jgone\nsame 0"
    return write_lines(recording.with_name("tampered"), lines)


def test_the_same_decisions_are_0(moorage: Moorage, recording: Path) -> None:
    result = moorage("replay", str(recording))

    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[1:] == [
        "events       9: 7 applied, 2 outcomes",
        "decisions    3 in 5 steps, 30.500 s",
        "differences  0",
    ]


def test_a_difference_is_1_and_told_in_plain_text(moorage: Moorage, recording: Path) -> None:
    path = tampered(recording)

    result = moorage("replay", str(path))

    assert result.code == 1
    assert "differences  1" in result.out
    assert "pod default/a" in result.out
    assert r"    recorded  bind to \x1b[2Jgone\nsame 0" in result.out
    assert "    replayed  bind to n0" in result.out
    assert "\x1b" not in result.out


def test_another_configuration(moorage: Moorage, recording: Path, tmp_path: Path) -> None:
    config = tmp_path / "other.yaml"
    config.write_text(ONLY_N1)

    result = moorage("replay", str(recording), "--config", str(config))

    assert result.code == 1
    assert "differences  1 (of bindings and evictions)" in result.out
    assert "    recorded  bind to n0\n    replayed  bind to n1" in result.out


def test_another_version(moorage: Moorage, recording: Path) -> None:
    """Texts differ, which another version does not count as a difference."""
    assert moorage("replay", str(recording), "--emulation-version", "1.37").code == 0
    refused = moorage("replay", str(recording), "--emulation-version", "1.7")
    assert refused.err == '--emulation-version: must be 1.36 or 1.37, got "1.7"\n'


def test_other_gates(moorage: Moorage, recording: Path) -> None:
    """Decisions without kept answers are the same; a gate that does not exist is named."""
    off = "OpportunisticBatching=false,EquivalenceCache=false"
    assert moorage("replay", str(recording), "--feature-gates", off).code == 0
    refused = moorage("replay", str(recording), "--feature-gates", "Unknown=true")
    assert refused.code == 2
    assert "Unknown" in refused.err


def test_the_story_of_a_pod(moorage: Moorage, recording: Path) -> None:
    result = moorage("replay", str(recording), "--pod", "default/a")

    assert result.code == 0
    assert [line.split(" s  ")[-1] for line in result.out.splitlines()[6:]] == [
        "has no node",
        "bind to n0",
        "Bound",
        "runs on n0",
        "event Scheduled: Successfully assigned default/a to n0",
    ]
    nobody = moorage("replay", str(recording), "--pod", "default/x")
    assert "pod default/x: nothing is recorded of it" in nobody.out


def test_the_state_at_a_time(moorage: Moorage, recording: Path) -> None:
    result = moorage("replay", str(recording), "--until", "31s", "--pod", "default/huge")

    assert result.code == 0
    assert "waiting after 30.500 s: 1 pod" in result.out
    assert "    default/huge  unschedulable, 1 attempt, rejected by NodeResourcesFit" in result.out
    assert "waiting after 0.000 s: 0 pods" in moorage("replay", str(recording), "--until", "2").out


def test_as_json(moorage: Moorage, recording: Path) -> None:
    path = tampered(recording)

    result = moorage("replay", str(path), "-o", "json", "--pod", "default/a", "--until", "1h")

    assert result.code == 1
    told = json.loads(result.out)
    assert told["differenceCount"] == 1
    (difference,) = told["differences"]
    assert difference["pod"] == "default/a"
    assert difference["replayed"][0]["node"] == "n0"
    assert told["pod"]["story"][0] == {"seconds": 0.0, "text": "has no node"}
    assert [each["pod"] for each in told["waiting"]] == ["default/huge"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["missing"], "missing: no such file", id="no file"),
        pytest.param(["."], ".: is a directory", id="a folder"),
        pytest.param(["text"], "text: not a recording of Moorage: line 1: ", id="no recording"),
        pytest.param(["run", "--until", "later"], "--until: must be a duration", id="until"),
        pytest.param(["run", "--config", "no.yaml"], "no.yaml: no such file", id="no config"),
        pytest.param(["run", "--config", "text"], "text: ", id="config"),
    ],
)
def test_what_cannot_be_used_is_2(
    moorage: Moorage,
    recording: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    told: str,
) -> None:
    monkeypatch.chdir(recording.parent)
    Path("text").write_text("hello: [\n")

    result = moorage("replay", *arguments)

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(told)
    assert "Traceback" not in result.err


def test_a_file_that_ends_early_is_told(moorage: Moorage, recording: Path) -> None:
    path = recording.with_name("run.000001")
    path.write_bytes(path.read_bytes()[:-30])

    result = moorage("replay", str(path))

    assert result.code == 0
    assert result.err.startswith(f"note: {path} ends early")
