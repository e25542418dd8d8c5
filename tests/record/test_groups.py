"""Recordings with groups of pods replay like all others."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

from moorage.config import FeatureGates
from moorage.engine.actions import BindPod, EvictPod, PatchPodGroupStatus, RecordEvent
from moorage.objects.pod_group import COSCHEDULING, GROUP_LABEL, V1BETA1
from moorage.record.segments import RecordSettings
from moorage.record.whole_replay import replay
from tests.builders import node_manifest, pod_manifest
from tests.engine.gangs import GATES
from tests.record.stage import Stage, lines_of, write_lines

Manifest = dict[str, Any]


def group(name: str, least: int, key: str = "") -> Manifest:
    constraints = {"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}
    policy = {"schedulingPolicy": {"gang": {"minCount": least}}}
    metadata = {"name": name, "namespace": "default", "uid": f"pg.{name}"}
    spec = {**policy, **constraints, "priority": 5 if name == "urgent" else 0}
    return {"apiVersion": V1BETA1, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def members(name: str, count: int, start: int = 0) -> list[Manifest]:
    spec = {
        "schedulingGroup": {"podGroupName": name},
        "priority": 5 if name == "urgent" else 0,
    }
    return [pod_manifest(f"{name}-{at}", cpu=1, spec=spec) for at in range(start, start + count)]


def play(path: Path, settings: RecordSettings | None = None) -> Stage:
    """Gangs that are placed, refused, repaired, and that others make way for."""
    stage = Stage(path, settings=settings, gates=FeatureGates(**GATES))
    nodes = [node_manifest(f"n{at}", cpu=2, labels={"rack": f"r{at // 2}"}) for at in range(6)]
    label = {GROUP_LABEL: "old"}
    old = [pod_manifest(f"old-{at}", cpu=1, labels=label) for at in range(2)]
    older = {
        "apiVersion": COSCHEDULING,
        "kind": "PodGroup",
        "metadata": {"name": "old", "namespace": "default", "uid": "pg.old"},
        "spec": {"minMember": 2},
    }
    near = group("near", 3)
    stage.stubborn.add("near-1")
    asyncio.run(
        stage.play(
            (1000.0, [partial(stage.apply, *nodes, near, *members("near", 3))]),
            (1002.0, [stage.stubborn.clear]),
            (1010.0, [partial(stage.apply, older, *old)]),
            (1020.0, [partial(stage.apply, group("rack", 4, key="rack"), *members("rack", 4))]),
            (1030.0, [partial(stage.apply, group("large", 5, key="rack"), *members("large", 5))]),
            (1040.0, [partial(stage.apply, group("late", 4, key="rack"), *members("late", 2))]),
            (1050.0, [partial(stage.apply, *members("late", 2, start=2))]),
            (1100.0, [partial(stage.apply, pod_manifest("small", cpu=1))]),
            (1110.0, [partial(stage.apply, group("urgent", 8), *members("urgent", 8))]),
            (1130.0, [partial(stage.remove, *members("rack", 4))]),
            (1160.0, [partial(stage.apply, pod_manifest("last", cpu=1))]),
        )
    )
    stage.recorder.close()
    return stage


def test_what_was_decided_about_groups_is_decided_again(tmp_path: Path) -> None:
    stage = play(tmp_path / "run")
    kinds = {type(action) for action in stage.actions}
    told = {action.reason for action in stage.actions if isinstance(action, RecordEvent)}
    assert {BindPod, EvictPod, PatchPodGroupStatus} <= kinds
    assert "GangDiagnosis" in told

    done = replay([tmp_path / "run.000001"])

    assert done.counts.difference_count == 0
    assert done.decisions > 20


def test_another_decision_about_a_group_is_a_difference(tmp_path: Path) -> None:
    play(tmp_path / "run")
    text = json.dumps(lines_of(tmp_path / "run.000001"))
    assert '"minCount": 3' in text
    lines = json.loads(text.replace('"minCount": 3', '"minCount": 4'))

    done = replay([write_lines(tmp_path / "changed", lines)])

    assert done.counts.difference_count > 0


def test_a_later_segment_with_groups_replays_by_itself(tmp_path: Path) -> None:
    play(tmp_path / "run", RecordSettings(most_bytes=8 * 2_000))
    segments = sorted(tmp_path.glob("run.*"))
    assert len(segments) > 2

    assert [replay([each]).counts.difference_count for each in segments] == [0] * len(segments)
