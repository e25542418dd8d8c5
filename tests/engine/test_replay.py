"""The same events give the same actions, byte for byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from moorage.engine.events import Applied, Removed
from tests.engine import replaying
from tests.engine.replaying import Moment, actions_of, rush, stream
from tests.strategies import NAMES, nodes, pods, workloads


def applied(item: Any) -> Applied:
    return Applied(item)


@st.composite
def moments(draw: st.DrawFn) -> list[Moment]:
    """Random events over random objects, with steps in between."""
    events = st.one_of(
        nodes().map(Applied),
        st.sampled_from([f"p{at}" for at in range(12)]).flatmap(pods).map(Applied),
        st.tuples(st.sampled_from([f"q{at}" for at in range(6)]), st.sampled_from(NAMES))
        .flatmap(lambda where: pods(*where))
        .map(Applied),
        workloads.map(applied),
        nodes().map(Removed),
        st.none(),
        st.none(),
    )
    now = 0.0
    stream: list[Moment] = [(0.0, Applied(draw(nodes(name)))) for name in NAMES[:2]]
    for event in draw(st.lists(events, min_size=5, max_size=25)):
        now += draw(st.sampled_from([0.0, 0.3, 5.0, 60.0]))
        stream.append((now, event))
    return [*stream, (now + 1, None), (now + 30, None)]


@given(moments())
@settings(max_examples=40)
def test_a_stream_replays_to_the_same_actions(events: list[Moment]) -> None:
    assert actions_of(events) == actions_of(events)


def test_a_long_stream_does_something_and_replays() -> None:
    told = actions_of(stream(1))

    for word in (b"bindPod", b"patchPodStatus", b"recordEvent", b"evictPod"):
        assert word in told
    assert actions_of(stream(1)) == told
    assert actions_of(stream(2)) != told
    assert actions_of(rush()).count(b"evictPod") == 8


def test_the_seed_of_hashes_makes_no_difference() -> None:
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), str(root / "src")])
    digests = {
        subprocess.run(
            [sys.executable, str(replaying.__file__)],
            env={"PYTHONPATH": path, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }

    assert len(digests) == 1
    assert len(digests.pop()) == 64
