"""Replaying recordings: what differs is found, and what is broken is told."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moorage.config.kubernetes_versions import read_version
from moorage.documents import files
from moorage.documents.errors import ConfigError, InputError
from moorage.engine.actions import BindPod, EvictPod
from moorage.record.whole_replay import OtherSettings, ReplayLimit, parse_limit, replay
from tests.builders import node_manifest, pod_manifest
from tests.record.stage import Stage, lines_of, write_lines

Lines = list[dict[str, Any]]

MOST_ALLOCATED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 1}]
"""


def record(path: Path, config: str | None = None) -> Path:
    """Four pods on two nodes, one too large, and one for which others have to go."""
    stage = Stage(path, config=config)
    nodes = [node_manifest(name, cpu=4) for name in ("n0", "n1")]
    pods = [pod_manifest(f"p{at}", cpu=1) for at in range(4)]
    huge = pod_manifest("huge", cpu=64)
    urgent = pod_manifest("urgent", cpu=4, spec={"priority": 7})
    asyncio.run(
        stage.play(
            (1000.0, [partial(stage.apply, *nodes, *pods)]),
            (1005.5, [partial(stage.apply, huge)]),
            (1020.0, [partial(stage.apply, urgent)]),
            (1040.0, [partial(stage.apply, pod_manifest("last", cpu=1))]),
        )
    )
    stage.recorder.close()
    return path.with_name(f"{path.name}.000001")


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    return lines_of(record(tmp_path_factory.mktemp("recording") / "run"))


def copied(lines: Lines) -> Lines:
    made: Lines = json.loads(json.dumps(lines))
    return made


def step_with(lines: Lines, word: str) -> dict[str, Any]:
    return next(line for line in lines if word in json.dumps(line.get("actions", ())))


def test_a_recording_replays(tmp_path: Path, lines: Lines) -> None:
    done = replay([write_lines(tmp_path / "run", lines)])

    assert done.counts.difference_count == 0
    assert done.seconds == 40.0
    words = json.dumps(lines)
    assert all(word in words for word in ("bindPod", "evictPod", "patchPodStatus", "recordEvent"))


def test_a_changed_decision_is_found_and_does_not_spread(tmp_path: Path, lines: Lines) -> None:
    changed = copied(lines)
    step = step_with(changed, "bindPod")
    bind = next(action for action in step["actions"] if action["do"] == "bindPod")
    there, bind["node"] = bind["node"], "elsewhere"

    done = replay([write_lines(tmp_path / "run", changed)])

    (found,) = done.counts.differences
    assert found.pod == "default/p0"
    assert found.where == f"{tmp_path / 'run'}: line {changed.index(step) + 1}"
    assert [each.node for each in found.recorded if isinstance(each, BindPod)] == ["elsewhere"]
    assert [each.node for each in found.replayed if isinstance(each, BindPod)] == [there]


def test_a_decision_that_was_not_recorded_is_taken_back(tmp_path: Path, lines: Lines) -> None:
    """As if another scheduler had been at work: what it did and did not do is what happens."""
    changed = copied(lines)
    step = step_with(changed, '"name": "last"')
    step["actions"] = []
    at = changed.index(step)
    changed[at + 1 :] = [changed[-1]]

    done = replay(
        [write_lines(tmp_path / "run", changed)],
        limit=ReplayLimit(seconds=1000),
        pod="default/last",
    )

    (found,) = done.counts.differences
    assert (found.pod, found.recorded) == ("default/last", ())
    assert "bind to" in done.story[1].text
    assert [each.pod for each in done.waiting or ()] == ["default/huge", "default/last"]


def test_an_eviction_that_was_not_recorded_is_taken_back(tmp_path: Path, lines: Lines) -> None:
    changed = copied(lines)
    step = step_with(changed, "evictPod")
    at = changed.index(step)
    step["actions"] = [each for each in step["actions"] if each["do"] != "evictPod"]
    changed[at + 1 :] = [changed[-1]]

    done = replay([write_lines(tmp_path / "run", changed)], limit=ReplayLimit(seconds=1000))

    evicted = [a for each in done.counts.differences for a in each.replayed]
    assert any(isinstance(each, EvictPod) for each in evicted)
    (urgent,) = [each for each in done.waiting or () if each.pod == "default/urgent"]
    assert urgent.place == "active"


def test_the_order_of_actions_counts(tmp_path: Path, lines: Lines) -> None:
    changed = copied(lines)
    step = step_with(changed, "bindPod")
    step["actions"].reverse()

    (found,) = replay([write_lines(tmp_path / "run", changed)]).counts.differences

    assert found.pod == ""
    assert found.recorded == found.replayed[::-1]


def test_another_configuration_shows_who_goes_elsewhere(tmp_path: Path, lines: Lines) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(MOST_ALLOCATED)
    path = write_lines(tmp_path / "run", lines)

    done = replay([path], other=OtherSettings(other))

    assert done.placements_only
    where = {
        each.pod: tuple(a.node for a in (*each.recorded, *each.replayed) if isinstance(a, BindPod))
        for each in done.counts.differences
    }
    assert where
    assert all(one != another for one, another in where.values() if (one, another))
    assert {name for nodes in where.values() for name in nodes} == {"n0", "n1"}


def test_the_recorded_configuration_is_in_force(tmp_path: Path) -> None:
    record(tmp_path / "most", MOST_ALLOCATED)

    assert replay([tmp_path / "most"]).counts.difference_count == 0
    other = tmp_path / "least.yaml"
    other.write_text("\n".join(MOST_ALLOCATED.splitlines()[:3]))
    assert replay([tmp_path / "most"], other=OtherSettings(other)).counts.difference_count > 0


def test_the_recorded_version_of_kube_scheduler_is_in_force(tmp_path: Path, lines: Lines) -> None:
    changed = copied(lines)
    changed[0].setdefault("setup", {})["emulationVersion"] = "1.37"
    # That decides what is on by default.
    changed[0]["setup"].pop("featureGates", None)
    path = write_lines(tmp_path / "run", changed)

    done = replay([path])

    assert "found a potential placement for pod on node" in str(done.counts.differences)
    assert (
        replay([path], other=OtherSettings(version=read_version("1.36"))).counts.difference_count
        == 0
    )


def test_another_version_is_told(tmp_path: Path, lines: Lines) -> None:
    changed = copied(lines)
    changed[0]["version"] = "0.0.7"

    done = replay([write_lines(tmp_path / "run", changed)])

    assert "was made by Moorage 0.0.7" in done.notes[0]


@pytest.mark.parametrize(
    ("text", "stop"),
    [
        pytest.param("", ReplayLimit(), id="not at all"),
        pytest.param("12", ReplayLimit(decisions=12), id="decisions"),
        pytest.param("1m30s", ReplayLimit(seconds=90.0), id="time"),
    ],
)
def test_where_to_stop(text: str, stop: ReplayLimit) -> None:
    assert parse_limit(text) == stop


def test_a_place_to_stop_that_is_none() -> None:
    with pytest.raises(InputError, match="--until: must be a duration"):
        parse_limit("soon")


def test_the_state_where_a_replay_stops(tmp_path: Path, lines: Lines) -> None:
    path = write_lines(tmp_path / "run", lines)

    after = replay([path], limit=parse_limit("6s"))
    assert after.waiting is not None
    (huge,) = after.waiting
    assert (huge.pod, huge.place, huge.attempts) == ("default/huge", "unschedulable", 1)
    assert huge.rejectors == ("NodeResourcesFit",)
    assert huge.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert after.notes == []
    assert replay([path], limit=parse_limit("4")).decisions == 4
    assert replay([path]).waiting is None


def test_the_story_of_a_pod(tmp_path: Path, lines: Lines) -> None:
    done = replay([write_lines(tmp_path / "run", lines)], pod="default/huge")

    assert [each.at for each in done.story[:2]] == [1005.5, 1005.5]
    assert done.story[0].text == "has no node"
    assert done.story[1].text.startswith("event FailedScheduling: 0/2 nodes are available")
    assert done.story[1].text.endswith("(attempt 1, rejected by NodeResourcesFit)")


# Broken input


def changing(index: int, /, **fields: Any) -> Callable[[Lines], None]:
    def change(lines: Lines) -> None:
        merged = {**lines[index], **fields}
        lines[index] = {name: value for name, value in merged.items() if value is not ...}

    return change


def adding(line: dict[str, Any]) -> Callable[[Lines], None]:
    return lambda lines: lines.insert(1, line)


NODE = {"metadata": {"name": "n"}}
BROKEN = [
    pytest.param(
        changing(0, moorageRecording=2), "line 1: moorageRecording: has format 2", id="format"
    ),
    pytest.param(
        changing(0, moorageRecording=...), "not a recording of Moorage: line 1:", id="other"
    ),
    pytest.param(changing(0, objects="x"), r"line 1: .*\$\.objects", id="header"),
    pytest.param(changing(0, objects=99), "must be one of 99 objects that are known", id="head"),
    pytest.param(changing(1, at="x"), r"line 2: .*\$\.at", id="time"),
    pytest.param(changing(1, at=...), "line 2: at: is required", id="no time"),
    pytest.param(changing(1, extra=1), "line 2: .*`extra`", id="field"),
    pytest.param(changing(1, step=1), "line 2: must have one of .*, has apply and step", id="two"),
    pytest.param(adding({"at": 1.0}), "line 2: must have one of .*, has none", id="nothing"),
    pytest.param(changing(1, apply="Cat"), "line 2: apply: kind 'Cat' is not known", id="kind"),
    pytest.param(
        changing(1, apply="Cat", apiVersion="x/v1", object={"metadata": 7}),
        "Cat: object: ",
        id="custom",
    ),
    pytest.param(changing(1, object=...), "line 2: object: is required", id="no object"),
    pytest.param(
        changing(1, object={"metadata": 3}), r"line 2: Node: object: .*\$\.metadata", id="object"
    ),
    pytest.param(adding({"at": 1.0, "told": "Hit", "about": {}}), "told: 'Hit' is not", id="told"),
    pytest.param(adding({"at": 1.0, "told": "Bound"}), "line 2: about: ", id="no outcome"),
    pytest.param(adding({"at": 1.0, "told": "Bound", "about": {}}), "about: .*`uid`", id="outcome"),
    pytest.param(
        adding({"at": 1.0, "remove": "Pod", "key": "a/b"}), "no Pod 'a/b' to remove", id="remove"
    ),
    pytest.param(adding({"at": 1.0, "step": 10**9}), r"line 2: .*\$\.step", id="endless"),
    pytest.param(
        adding({"at": 1.0, "step": 1, "actions": [{"do": "dance"}]}),
        r"line 2: actions\[0\]: .*dance",
        id="action",
    ),
    pytest.param(changing(0, setup={"config": "kind: Cat"}), "apiVersion", id="config"),
    pytest.param(changing(0, setup={"featureGates": {"Cat": True}}), "Cat", id="gate"),
    pytest.param(
        changing(0, setup={"emulationVersion": "9"}),
        'emulationVersion: must be .*, got "9"',
        id="9",
    ),
]


@pytest.mark.parametrize(("change", "told"), BROKEN)
def test_a_broken_recording_is_refused(
    tmp_path: Path, lines: Lines, change: Callable[[Lines], None], told: str
) -> None:
    changed = copied(lines)
    change(changed)
    with pytest.raises((InputError, ConfigError), match=told) as raised:
        replay([write_lines(tmp_path / "run", changed)])
    assert isinstance(raised.value, ConfigError) or str(tmp_path / "run") in str(raised.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(b"", "not a recording of Moorage: line 1", id="empty"),
        pytest.param(b"\x00\x01\n", "not a recording of Moorage", id="binary"),
        pytest.param(b"[" * 100_000 + b"\n", "not a recording of Moorage", id="deep"),
        pytest.param(gzip.compress(b"hello\n"), "not a recording of Moorage", id="other gzip"),
        pytest.param(b"\x1f\x8bnot gzip at all", "broken: ", id="broken gzip"),
    ],
)
def test_a_file_that_is_no_recording(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "run"
    path.write_bytes(content)

    with pytest.raises(InputError, match=told):
        replay([path])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file, and no segments of that name"):
        replay([tmp_path / "run"])


def test_a_small_file_does_not_fill_the_memory(
    tmp_path: Path, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    packer = zlib.compressobj(wbits=31)
    bomb = packer.compress(json.dumps(lines[0]).encode() + b"\n" + b" " * (1 << 26))
    (tmp_path / "run").write_bytes(bomb + packer.flush())

    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="a line is longer than 1048576 bytes"):
            replay([tmp_path / "run"])
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_a_missing_segment_is_told(tmp_path: Path, lines: Lines) -> None:
    later = copied(lines[:1])
    later[0]["segment"] = 2
    paths = [write_lines(tmp_path / "a", lines), write_lines(tmp_path / "b", later)]

    with pytest.raises(InputError, match=r"does not follow .*a: segment 2 after segment 0"):
        replay(paths)


def test_a_segment_in_the_middle_that_was_cut(tmp_path: Path, lines: Lines) -> None:
    later = copied(lines[:1])
    later[0]["segment"] = 1
    first = write_lines(tmp_path / "a", lines)
    first.write_bytes(first.read_bytes()[:-5])

    with pytest.raises(InputError, match="a: ends early, but is not the last segment"):
        replay([first, write_lines(tmp_path / "b", later)])
