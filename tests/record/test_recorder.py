"""What is recorded replays to the same decisions, from files that rotate and survive a crash."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from moorage.client.mirror import Mirror
from moorage.engine import Engine
from moorage.engine.actions import Action, BindPod
from moorage.engine.events import Applied, BindingFailed, Removed
from moorage.objects.decode import reader
from moorage.record.reader import open_recording
from moorage.record.segments import RecordSettings, SegmentWriter, find_segments
from moorage.record.whole_replay import replay
from tests.builders import node_manifest, pod, pod_manifest
from tests.strategies import (
    NAMES,
    NAMESPACES,
    capacities,
    metadata,
    node_labels,
    pod_labels,
    pod_specs,
    taints,
)

from .stage import Manifest, Stage, lines_of

SECRET = "hunter2"

SERVICE: Manifest = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default", "uid": "s"},
    "spec": {"selector": {"app": "web"}},
}
LATE: Manifest = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "late"},
    "provisioner": "csi.example.com",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CLAIM: Manifest = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "late", "namespace": "default", "uid": "c"},
    "spec": {"storageClassName": "late", "resources": {"requests": {"storage": "1Gi"}}},
}


@st.composite
def node_manifests(draw: st.DrawFn) -> Manifest:
    return node_manifest(
        draw(st.sampled_from(NAMES)),
        labels=draw(node_labels),
        spec={"taints": draw(taints)},
        **draw(capacities),
    )


@st.composite
def pod_manifests(draw: st.DrawFn) -> Manifest:
    return pod_manifest(
        f"p{draw(st.integers(0, 11))}",
        namespace=draw(st.sampled_from(NAMESPACES)),
        labels=draw(pod_labels),
        spec=draw(pod_specs()),
        metadata=draw(metadata),
    )


Call = tuple[str, Manifest]
calls: st.SearchStrategy[Call] = st.one_of(
    st.tuples(st.just("apply"), node_manifests()),
    st.tuples(st.just("apply"), pod_manifests()),
    st.tuples(st.just("apply"), pod_manifests()),
    st.tuples(st.just("apply"), st.sampled_from([SERVICE, LATE, CLAIM])),
    st.tuples(st.just("remove"), pod_manifests()),
    st.tuples(st.just("remove"), node_manifests()),
)
days = st.lists(
    st.tuples(st.sampled_from([0.0, 0.3, 5.0, 70.0]), st.lists(calls, max_size=5)),
    min_size=3,
    max_size=12,
)


def play(stage: Stage, day: list[tuple[float, list[Call]]]) -> None:
    """A cluster's day, and what comes of it later."""
    now, moments = stage.now, []
    for wait, happens in day:
        now += wait
        moments.append((now, [partial(getattr(stage, what), item) for what, item in happens]))
    asyncio.run(stage.play(*moments, (now + 20.0, ()), (now + 400.0, ())))


@given(days, st.sets(st.integers(0, 11), max_size=2))
@settings(max_examples=40)
def test_what_is_recorded_replays_to_the_same_decisions(
    day: list[tuple[float, list[Call]]], stubborn: set[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "day"
        stage = Stage(path)
        stage.stubborn = {f"p{number}" for number in stubborn}
        play(stage, [(0.0, [("apply", node_manifest("n0"))]), *day])
        stage.recorder.close()

        done = replay([path])

        assert done.counts.differences == []
        assert done.counts.end
        assert done.notes == []
        recorded = [
            each for line in lines_of(find_segments(path)[0]) for each in line.get("actions", ())
        ]
        assert recorded == stage.told()


def busy(stage: Stage, rounds: int = 30) -> None:
    """Pods come and go, and some are too large."""
    nodes = [node_manifest(f"n{at}", cpu=4) for at in range(5)]
    moments: list[Any] = [(1000.0, [partial(stage.apply, *nodes, SERVICE)])]
    for at in range(rounds):
        pods = [pod_manifest(f"p{at}-{each}", cpu="500m") for each in range(3)]
        big = pod_manifest(f"big{at}", cpu=3, spec={"priority": at % 3})
        happens = [partial(stage.apply, *pods, big)]
        if at > 3:
            gone = [f"p{at - 3}-{each}" for each in range(3)]
            happens.append(partial(leave, stage, *gone, f"big{at - 3}"))
        moments.append((1000.0 + 7 * at, happens))
    asyncio.run(stage.play(*moments, (1000.0 + 7 * rounds + 20, ())))


def leave(stage: Stage, *names: str) -> None:
    known = [stage.pods.get(f"default/{name}") for name in names]
    stage.remove(*(each for each in known if each is not None))


def test_all_segments_of_a_run_replay_exactly(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "run", settings=RecordSettings(most_bytes=96_000, most_files=64))
    busy(stage)
    stage.recorder.close()
    files = find_segments(tmp_path / "run")

    assert len(files) > 5
    whole = replay([tmp_path / "run"])
    assert (whole.counts.difference_count, whole.placements_only) == (0, False)
    assert whole.counts.steps > 60
    # Who has read the segments before knows what a later one begins with.
    assert whole.counts.events["known"] == 0
    assert replay([*files[3:], *files[:3]]).counts == whole.counts
    # A beginning is as good as the whole.
    assert replay(files[:4]).counts.difference_count == 0


def test_a_later_segment_begins_with_what_is_known(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "run", settings=RecordSettings(most_bytes=96_000, most_files=64))
    busy(stage)
    stage.recorder.close()
    late = find_segments(tmp_path / "run")[4]
    header, *lines = lines_of(late)

    assert header["segment"] == 4
    known = [
        (line["apply"], line["object"]["metadata"]["name"]) for line in lines[: header["objects"]]
    ]
    assert ("Node", "n0") in known
    assert ("Service", "web") in known
    assert len(known) == len(set(known))
    assert all("at" in line for line in lines[header["objects"] :])
    done = replay([late])
    assert done.placements_only
    assert done.counts.difference_count == 0
    assert "begins in the middle of a run (segment 4)" in done.notes[0]
    assert done.counts.events["known"] == header["objects"]


def test_pods_on_their_way_are_not_decided_about_again_in_a_later_segment(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "run", settings=RecordSettings(most_bytes=1, most_files=2))
    stage.obeys = False
    apply = partial(stage.apply, node_manifest("n0", cpu=1), pod_manifest("a", cpu=1))
    asyncio.run(stage.play((1000.0, [apply]), (1001.0, ())))
    stage.recorder.close()
    late = find_segments(tmp_path / "run")[-1]

    assert lines_of(late)[0]["assumed"] == {"default/a": "n0"}
    assert [each.pod.name for each in stage.actions if isinstance(each, BindPod)] == ["a"]
    assert replay([late]).counts.difference_count == 0


@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param(RecordSettings(most_bytes=8_000, most_files=4), id="by number"),
        pytest.param(RecordSettings(most_bytes=20_000, most_files=20), id="by size"),
    ],
)
def test_the_oldest_segments_make_way(tmp_path: Path, bounds: RecordSettings) -> None:
    stage = Stage(tmp_path / "run", settings=bounds)
    busy(stage)
    stage.recorder.close()
    files = find_segments(tmp_path / "run")

    assert 1 < len(files) <= bounds.most_files
    # A segment is found to be full when it is: the last lines of each come on top.
    assert sum(each.stat().st_size for each in files) < bounds.most_bytes * 3
    assert open_recording(files[:1])[0].header.segment > 0
    assert sorted(tmp_path.iterdir()) == files


def test_the_next_run_goes_on_with_the_files_and_is_the_one_replayed(tmp_path: Path) -> None:
    for count in (1, 2):
        stage = Stage(tmp_path / "run")
        pods = [pod_manifest(f"p{at}") for at in range(count)]
        asyncio.run(stage.play((1000.0, [partial(stage.apply, node_manifest("n0"), *pods)])))
        stage.recorder.close()

    assert [each.name for each in find_segments(tmp_path / "run")] == ["run.000001", "run.000002"]
    assert replay([tmp_path / "run"]).decisions == 2
    assert replay([tmp_path / "run.000001"]).decisions == 1


def test_what_was_flushed_survives_a_crash(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "run")
    apply = partial(stage.apply, node_manifest("n0"), pod_manifest("a"))
    asyncio.run(stage.play((1000.0, [apply])))

    # Nothing was closed, as if the process had been killed.
    done = replay([tmp_path / "run"])
    assert done.decisions == 1
    assert done.counts.difference_count == 0
    assert "ends early" in done.notes[0]
    stage.recorder.close()
    assert replay([tmp_path / "run"]).notes == []


def test_a_file_can_be_cut_off_anywhere(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "run")
    busy(stage, rounds=4)
    stage.recorder.close()
    whole = find_segments(tmp_path / "run")[0].read_bytes()
    first = next(at for at in range(1, len(whole)) if _readable(tmp_path, whole[:at]))

    for length in range(first, len(whole), 97):
        cut = tmp_path / "cut"
        cut.write_bytes(whole[:length])
        done = replay([cut])
        assert done.counts.difference_count == 0
        assert "ends early" in done.notes[0]


def _readable(folder: Path, content: bytes) -> bool:
    (folder / "cut").write_bytes(content)
    try:
        open_recording([folder / "cut"])
    except Exception:  # noqa: BLE001 - the first line is not there yet
        return False
    return True


def test_a_file_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Stage(tmp_path / "missing" / "run")


def test_a_recording_is_for_its_owner_only(tmp_path: Path) -> None:
    Stage(tmp_path / "run").recorder.close()

    assert (tmp_path / "run.000001").stat().st_mode & 0o777 == 0o600


def test_scheduling_goes_on_when_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(self: SegmentWriter, packed: bytes) -> None:
        raise OSError(28, "No space left on device")

    stage = Stage(tmp_path / "run")
    monkeypatch.setattr(SegmentWriter, "_save", full)
    with caplog.at_level(logging.ERROR):
        moments = [(1000.0 + at, [partial(stage.apply, pod_manifest(f"p{at}"))]) for at in range(3)]
        asyncio.run(stage.play((999.0, [partial(stage.apply, node_manifest("n0"))]), *moments))
        stage.recorder.close()

    assert sum(isinstance(each, BindPod) for each in stage.actions) == 3
    assert stage.recorder.problem.endswith("run: No space left on device")
    assert "Nothing is recorded any more" in caplog.text


@pytest.mark.parametrize(
    ("happens", "told"),
    [
        pytest.param(
            lambda stage: stage.feed.applied(pod("bare"), b""),
            "an object came without its JSON",
            id="a reflector that does not keep it",
        ),
        pytest.param(
            lambda stage: stage.scheduler.tell(Applied(pod("bare"))),
            "an object came without its JSON",
            id="an object past the feed",
        ),
        pytest.param(
            lambda stage: stage.scheduler.tell(Removed(pod("bare"))),
            "an object is gone that was never seen",
            id="a removal past the feed",
        ),
        pytest.param(
            lambda stage: stage.scheduler.tell(BindingFailed("x", "\ud800")),
            "UnicodeEncodeError",
            id="a text that no file can hold",
        ),
    ],
)
def test_what_cannot_be_written_ends_the_recording_and_nothing_else(
    tmp_path: Path, happens: Callable[[Stage], None], told: str
) -> None:
    stage = Stage(tmp_path / "run")
    moments: list[Any] = [(1000.0, [partial(stage.apply, node_manifest("n0"))])]
    moments.append((1001.0, [partial(happens, stage)]))
    moments.append((1002.0, [partial(stage.apply, pod_manifest("a"))]))
    asyncio.run(stage.play(*moments))
    stage.recorder.close()

    assert "a" in {each.pod.name for each in stage.actions if isinstance(each, BindPod)}
    assert told in stage.recorder.problem
    assert lines_of(tmp_path / "run.000001")[-1]["end"] == stage.recorder.problem


def test_a_step_that_fails_is_in_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Engine, now: float, budget: int = 1) -> list[Action]:
        raise ZeroDivisionError("by zero")

    stage = Stage(tmp_path / "run")
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "step", broken)
        asyncio.run(stage.play((1000.0, [partial(stage.apply, node_manifest("n0"))])))
        stage.recorder.close()
        assert replay([tmp_path / "run"]).counts.difference_count == 0

    (found,) = replay([tmp_path / "run"]).counts.differences
    assert (found.recorded_error, found.replayed_error) == ("ZeroDivisionError: by zero", "")


def test_from_the_wire_to_the_file(tmp_path: Path) -> None:
    """What reflectors deliver is recorded without secrets, and replays."""
    stage = Stage(tmp_path / "run")
    mirrors = {
        kind: Mirror(kind, reader(kind), stage.feed, keep_raw=True) for kind in ("Node", "Pod")
    }
    private = pod_manifest("a", cpu=1, metadata={"resourceVersion": "1"})
    private["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": SECRET}]
    node = node_manifest("n0", cpu=4)
    stage.pods["default/a"] = private
    watched = [
        ("Node", "ADDED", _version(node, 1)),
        ("Pod", "ADDED", private),
        ("Pod", "DELETED", _version(private, 3)),
        ("Node", "DELETED", _version(node, 4)),
    ]
    moments = [
        (1000.0 + at, [partial(mirrors[kind].take_line, _line(change, item))])
        for at, (kind, change, item) in enumerate(watched)
    ]
    asyncio.run(stage.play(*moments))
    stage.recorder.close()

    file = tmp_path / "run.000001"
    assert SECRET not in str(lines_of(file))
    removed = [line["key"] for line in lines_of(file) if "remove" in line]
    assert removed == ["default/a", "n0"]
    done = replay([file])
    assert (done.decisions, done.counts.difference_count) == (1, 0)


def _version(manifest: Manifest, version: int) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": str(version)}}


def _line(change: str, item: Manifest) -> bytes:
    return json.dumps({"type": change, "object": item}).encode()
