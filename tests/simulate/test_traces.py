"""Traces in virtual time: who waits how long, who comes again, and what is counted."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moorage.documents.errors import InputError
from moorage.objects.pod import Pod
from moorage.simulate.traces import read_trace
from moorage.simulate.traces.arrivals import Arrival, ArrivalTrace
from moorage.simulate.traces.csv_trace import read_csv_trace
from moorage.simulate.traces.figures import TraceFigures, run_trace
from moorage.simulate.traces.virtual_run import VirtualRun
from tests.builders import node, node_manifest, pod, pod_manifest
from tests.explain.building import engine
from tests.record.stage import Stage

GPU = "nvidia.com/gpu"


def come(at: float, made: Pod, seconds: float | None = None) -> Arrival:
    return Arrival(at, made, seconds)


def run(arrivals: list[Arrival], *nodes: Any) -> TraceFigures:
    return run_trace("it", engine(), ArrivalTrace("t", tuple(arrivals), nodes))


def test_a_pod_waits_until_another_has_run() -> None:
    arrivals = [
        come(0.0, pod("a", cpu=3), 3600.0),
        come(10.0, pod("b", cpu=3), 60.0),
        come(20.0, pod("c", cpu=3), 60.0),
        come(30.0, pod("never", cpu=5)),
    ]
    found = run(arrivals, node("n", cpu=4))

    assert (found.placed, found.left_waiting, found.preemptions) == (3, 1, 0)
    # b takes the place of a, and c that of b.
    assert found.waiting_seconds["max"] == 3640.0
    assert found.waiting_seconds["p50"] == 3590.0
    assert found.waiting_seconds["mean"] == pytest.approx((0 + 3590 + 3640) / 3)
    assert found.seconds == 3720.0


def test_the_course_is_told_between_the_first_and_the_last_arrival() -> None:
    arrivals = [come(1000.0, pod("a", cpu=2), 120.0), come(1240.0, pod("b", cpu=1), 1e6)]
    found = run(arrivals, node("n", cpu=4))

    samples = found.samples
    assert (len(samples), samples[0].at, samples[-1].at) == (240, 1001.0, 1240.0)
    assert [each.use["cpu"] for each in samples] == [50.0] * 119 + [0.0] * 120 + [25.0]
    assert found.mean_use["cpu"] == pytest.approx((50 * 119 + 25) / 240)


def test_a_victim_comes_again_and_runs_for_its_whole_time() -> None:
    arrivals = [
        come(0.0, pod("low", cpu=3), 100.0),
        come(50.0, pod("high", cpu=3, spec={"priority": 5}), 30.0),
    ]
    made = VirtualRun(engine(), ArrivalTrace("t", tuple(arrivals), (node("n", cpu=4),)))
    made.run()

    assert (made.preemptions, made.waiting) == (1, 0)
    assert made.waits == [0.0, 0.0, 30.0]
    assert made.now == 180.0
    assert not made.world.pods


def test_gpus_are_stranded_where_no_gpu_pod_has_cores() -> None:
    arrivals = [
        come(0.0, pod("cpu", cpu=7)),
        come(5.0, pod("gpu", cpu=2, **{GPU: 1})),
        come(10.0, pod("small", cpu="100m")),
    ]
    found = run(arrivals, node("n", cpu=8, **{GPU: 4}))

    assert found.most_stranded_gpus == 4
    assert found.left_waiting == 1


CSV = """\
arrival,duration,count,namespace,name,priority,node_selector,template,cpu,memory,nvidia.com/gpu
30,,1,lab,train,7,disk=ssd;zone=a,,8,64Gi,4
12.5,60,2,,batch,,,pod.yaml,500m,1Gi,0
"""


def test_a_csv_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(CSV)
    (tmp_path / "pod.yaml").write_text(
        "kind: Pod\nmetadata: {labels: {app: x}}\n"
        "spec: {schedulerName: other, containers: [{name: x, image: y}]}\n"
    )
    trace = read_csv_trace(tmp_path / "t.csv")
    first, second, train = trace.arrivals

    assert [(each.at, each.seconds, each.pod.key) for each in trace.arrivals] == [
        (12.5, 60.0, "default/batch-0"),
        (12.5, 60.0, "default/batch-1"),
        (30.0, None, "lab/train"),
    ]
    assert dict(train.pod.requests) == {"cpu": 8000, "memory": 64 * 2**30, GPU: 4}
    assert (train.pod.priority, train.pod.spec.node_selector) == (
        7,
        {"disk": "ssd", "zone": "a"},
    )
    assert dict(first.pod.requests) == {"cpu": 500, "memory": 2**30}
    assert (first.pod.labels["app"], first.pod.spec.scheduler_name) == ("x", "other")
    assert first.pod.uid != second.pod.uid


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("arrival,cpu\nsoon,1\n", r"line 2: arrival: not a number of seconds: 'soon'"),
        ("arrival,cpu\n-1,1\n", "line 2: arrival: not a number of seconds"),
        ("arrival,duration\n1,nan\n", "line 2: duration: not a number of seconds"),
        ("arrival,count\n1,0\n", "line 2: count: must be from 1 to"),
        ("cpu\n1\n", "there is no column 'arrival'"),
        ("arrival,cpu\n1,much\n", "line 2: .*much"),
        ("arrival,priority\n1,high\n", "line 2: priority: not a whole number"),
        ("arrival,node_selector\n1,ssd\n", "line 2: node_selector: must be label=value"),
        ("arrival,template\n1,gone.yaml\n", "line 2: template: .*No such file"),
    ],
)
def test_what_is_wrong_with_a_csv_file_is_named(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "t.csv").write_text(text)

    with pytest.raises(InputError, match=rf"t\.csv.*{problem}"):
        read_trace(tmp_path / "t.csv")


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return record_story(tmp_path / "run")


def record_story(path: Path) -> Path:
    """A pod that runs for 50 s, one that is deleted while it waits, and one that was there."""
    stage = Stage(path)
    small, huge = pod_manifest("small", cpu=1), pod_manifest("huge", cpu=64)
    old = pod_manifest("old", cpu=1, node="n0")
    asyncio.run(
        stage.play(
            (1000.0, [partial(stage.apply, node_manifest("n0", cpu=4), old)]),
            (1010.0, [partial(stage.apply, small, huge)]),
            (1060.0, [partial(stage.remove, small)]),
            (1070.0, [partial(stage.remove, huge, old)]),
        )
    )
    stage.recorder.close()
    return path


def test_a_recording(recording: Path) -> None:
    trace = read_trace(recording)

    assert [(each.pod.name, each.at, each.seconds) for each in trace.arrivals] == [
        ("small", 10.0, 50.0),
        ("huge", 10.0, None),
    ]
    made = VirtualRun(engine(), trace)
    made.run()
    assert (made.waits, made.waiting, made.now) == ([0.0], 0, 70.0)
    assert not made.world.pods
