"""How old an object is decides; a segment that begins in the middle knows it, too."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from moorage.engine.actions import BindPod
from moorage.objects.custom import CustomKind
from moorage.objects.decode import from_builtins
from moorage.record.segments import RecordSettings, find_segments
from moorage.record.whole_replay import replay
from tests.builders import node_manifest, pod_manifest
from tests.record.stage import Stage

KIND = CustomKind("example.com", "v1", "NodeSlots", "nodeslots")
TOLD = {
    "apiVersion": "example.com/v1",
    "kind": "NodeSlots",
    "plural": "nodeslots",
    "node": "metadata.name",
    "amount": "spec.slots",
    "maxAge": "60s",
}
SLOTS = {"name": "slots", "capacity": {"object": TOLD}, "podAnnotation": "slots"}
CONFIG = json.dumps(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"multiPoint": {"enabled": [{"name": "CountedResources"}]}},
                "pluginConfig": [{"name": "CountedResources", "args": {"resources": [SLOTS]}}],
            }
        ],
    }
)


def test_a_later_segment_knows_how_old_objects_are(tmp_path: Path) -> None:
    stage = Stage(
        tmp_path / "run", config=CONFIG, settings=RecordSettings(most_bytes=1, most_files=9)
    )

    def tell(slots: int) -> None:
        raw: dict[str, Any] = {"metadata": {"name": "n"}, "spec": {"slots": slots}}
        written = {"apiVersion": KIND.api_version, "kind": KIND.kind, **raw}
        stage.feed.applied(from_builtins(KIND, written), msgspec.Raw(msgspec.json.encode(written)))

    def asking(name: str) -> dict[str, Any]:
        return pod_manifest(name, metadata={"annotations": {"slots": "1"}})

    asyncio.run(
        stage.play(
            (100.0, [partial(stage.apply, node_manifest("n", cpu=4)), partial(tell, 9)]),
            (150.0, [partial(stage.apply, asking("in-time"))]),
            # Heard of 70 s ago, by when a segment has begun that is younger.
            (170.0, [partial(stage.apply, asking("too-late"))]),
        )
    )
    stage.recorder.close()

    placed = [each.pod.name for each in stage.actions if isinstance(each, BindPod)]
    assert placed == ["in-time"]
    late = find_segments(tmp_path / "run")[-1]
    assert replay([late]).counts.difference_count == 0
