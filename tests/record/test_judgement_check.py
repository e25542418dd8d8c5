"""Recordings made beside another scheduler: its placements are judged again, and compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.app.scheduler import Feed
from moorage.app.shadow_follower import ShadowFollower
from moorage.config import FeatureGates
from moorage.documents.errors import InputError
from moorage.objects.decode import from_builtins
from moorage.record.format import Setup
from moorage.record.recorder import Recorder
from moorage.record.report import describe, to_builtins
from moorage.record.segments import RecordSettings
from moorage.record.whole_replay import OtherSettings, ReplayLimit, replay
from moorage.world.shadow_judge import Shadow
from tests.builders import node_manifest, pod_manifest
from tests.explain.building import engine
from tests.record.stage import lines_of, write_lines
from tests.record.test_replay import MOST_ALLOCATED, Lines

Manifest = dict[str, Any]


def record(path: Path, settings: RecordSettings | None = None) -> Path:
    """Another scheduler places ten pods, some where Moorage would not, and one of them goes."""
    setup = Setup(feature_gates=dict(FeatureGates()), is_beside=True)
    recorder = Recorder(path, setup, settings)
    times = iter(range(1000, 9000))
    shadow = Shadow(engine(), lambda: 0.0)
    follower = ShadowFollower(shadow, recorder, lambda: float(next(times)))
    feed = Feed(follower.take_in, recorder)

    def apply(manifest: Manifest) -> None:
        raw = msgspec.Raw(msgspec.json.encode(manifest))
        feed.applied(from_builtins(manifest["kind"], manifest), raw)
        # So that whether a segment is full is not a matter of luck.
        recorder.flush()

    for manifest in (node_manifest("large", cpu=16), node_manifest("small", cpu=8)):
        apply(manifest)
    for at in range(10):
        waiting = pod_manifest(f"p{at}", cpu=1)
        apply(waiting)
        name = "small" if at % 3 else "large"
        apply({**waiting, "spec": {**waiting["spec"], "nodeName": name}})
    feed.removed(from_builtins("Pod", pod_manifest("p3", cpu=1)))
    recorder.close()
    return path


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    path = record(tmp_path_factory.mktemp("recording") / "run")
    return lines_of(path.with_name("run.000001"))


def test_it_replays_and_tells_how_they_agree(tmp_path: Path, lines: Lines) -> None:
    done = replay([write_lines(tmp_path / "run", lines)], pod="default/p1")

    assert done.counts.difference_count == 0
    assert done.beside is not None
    assert done.decisions == done.beside.placed == 10
    assert done.beside.by_agreement["a node that scores less"] > 0
    assert done.story[-1].text == "runs on small"
    text = "\n".join(describe(done))
    assert "placements   10 by another scheduler in" in text
    assert to_builtins(done)["beside"]["placed"] == 10


def test_another_configuration_places_elsewhere(tmp_path: Path, lines: Lines) -> None:
    config = tmp_path / "packed.yaml"
    config.write_text(MOST_ALLOCATED)
    done = replay([write_lines(tmp_path / "run", lines)], other=OtherSettings(config))

    first = done.counts.differences[0]
    assert first.pod == "default/p0"
    text = "\n".join(describe(done))
    assert "recorded  place on large" in text
    assert "replayed  place on small" in text


def test_what_was_judged_otherwise_is_a_difference(tmp_path: Path, lines: Lines) -> None:
    changed: Lines = json.loads(json.dumps(lines))
    judged = [line for line in changed if "judged" in line]
    judged[2]["judged"]["ours"] = "elsewhere"
    changed.remove(judged[5])
    done = replay([write_lines(tmp_path / "run", changed)])

    assert [each.pod for each in done.counts.differences] == ["default/p2", "default/p5"]
    assert done.counts.differences[1].recorded == ()


def test_it_stops_after_so_many_placements(tmp_path: Path, lines: Lines) -> None:
    done = replay([write_lines(tmp_path / "run", lines)], limit=ReplayLimit(decisions=4))

    assert (done.decisions, done.counts.difference_count) == (4, 0)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(
            lambda lines: lines[0]["setup"].pop("isBeside"),
            "judged: the first line says that no other scheduler decided",
            id="nobody beside",
        ),
        pytest.param(
            lambda lines: lines.insert(2, next(line for line in lines if "judged" in line)),
            "judged: pod 'default/p0' was not placed just before",
            id="not placed",
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, lines: Lines, change: Any, problem: str) -> None:
    broken: Lines = json.loads(json.dumps(lines))
    change(broken)

    with pytest.raises(InputError, match=problem):
        replay([write_lines(tmp_path / "run", broken)])


def test_a_later_segment_replays_by_itself(tmp_path: Path) -> None:
    path = record(tmp_path / "run", RecordSettings(most_bytes=8 * 700))
    files = sorted(tmp_path.glob("run.*"))

    assert len(files) > 1
    assert replay([path]).counts.difference_count == 0
    assert replay([files[-1]]).counts.difference_count == 0
