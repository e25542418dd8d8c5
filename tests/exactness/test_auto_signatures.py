"""The exactness law for plugins in plain Python that are signed by what they read of pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar
from zlib import crc32

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moorage.cluster import NodeView
from moorage.engine.classes.statistics import DecisionPath
from moorage.framework.plugin import NodeFilter, NodeScore, Registry
from moorage.framework.pod_trace import PodReads
from moorage.objects.pod import Pod
from tests.exactness.four_ways import ON_AND_OFF, Differs, configuration, profile, run
from tests.exactness.test_four_ways import SEEDS, trying
from tests.registered import REGISTRY

#: Parts of a pod that streams change or tell pods apart by.
PARTS: tuple[Callable[[Pod], Any], ...] = (
    lambda pod: pod.labels.get("app"),
    lambda pod: pod.labels.get("index"),
    lambda pod: pod.labels.get("tier", "none"),
    lambda pod: pod.priority,
    lambda pod: pod.namespace,
    lambda pod: sorted(pod.annotations),
    lambda pod: pod.spec.requests,
    lambda pod: pod.spec.node_selector,
    lambda pod: len(pod.labels),
)


class Reader(NodeFilter, NodeScore):
    """What it reads of a pod depends on the node, and on what it has read before."""

    name: ClassVar[str] = "Reader"
    chosen: ClassVar[int] = 0

    def filter_node(self, pod: Pod, node: NodeView) -> str | None:
        return "unlucky" if self._draw(pod, node) % 7 == 0 else None

    def score_node(self, pod: Pod, node: NodeView) -> int:
        return self._draw(pod, node) % 100

    def _draw(self, pod: Pod, node: NodeView) -> int:
        state = _mix(self.chosen, node.name)
        for _ in range(state % 3):
            state = _mix(state, PARTS[state % len(PARTS)](pod))
        return _mix(state, len(node.pods))


def _mix(*parts: Any) -> int:
    return crc32(repr(parts).encode())


WITH_READER: Registry = {**REGISTRY, Reader.name: Reader}
TRACING = configuration(
    profile(plugins={"multiPoint": {"enabled": [{"name": "Reader", "weight": 3}]}}),
    WITH_READER,
    AutoSignatures=True,
)


def decide(seed: int, chosen: int) -> Counter[DecisionPath]:
    Reader.chosen = chosen
    return run(seed, TRACING, registry=WITH_READER, ways=ON_AND_OFF, recounts=False)


@given(SEEDS, st.integers(0, 1000))
@trying(0.03)
def test_every_way_decides_the_same(seed: int, chosen: int) -> None:
    decide(seed, chosen)


def test_answers_of_the_other_plugins_are_shared() -> None:
    paths = sum((decide(seed, 1) for seed in range(1)), Counter[DecisionPath]())

    assert paths[DecisionPath.OFF] == 0
    assert paths[DecisionPath.COLUMNS] > 10


def test_a_read_that_is_not_noted_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    note = PodReads.note

    def forget_labels(self: PodReads, path: tuple[str, ...]) -> None:
        if path[:1] not in (("labels",), ("spec",), ("priority",)):
            note(self, path)

    monkeypatch.setattr(PodReads, "note", forget_labels)
    with pytest.raises(Differs):
        run_many()


def run_many() -> None:
    for seed in (16, 32):
        decide(seed, seed)
