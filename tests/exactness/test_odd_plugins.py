"""Plugins of others that read odd things by the rules of `docs/writing-a-plugin.md`.

They keep the laws that authors check, and no stream is decided otherwise with reuse than without.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from moorage.cluster import Change, Nodes, Rows, Scope
from moorage.engine.actions import RecordEvent
from moorage.framework.attempt import Failed
from moorage.framework.plugin import (
    Filter,
    NoRemedy,
    Plugin,
    PostFilter,
    PreScore,
    Reduction,
    Registry,
    Remedy,
    Score,
    Scores,
    Sign,
)
from moorage.framework.profile import Profile
from moorage.framework.status import Code, Reason
from moorage.framework.verdict import Verdict
from moorage.objects.node import ZONE
from moorage.objects.pod import Pod
from moorage.testing.laws import check_laws
from tests.builders import node, pod
from tests.exactness.four_ways import ON_AND_OFF, FourWays, configuration, profile, run
from tests.exactness.streams import Shape
from tests.exactness.test_traps import Told
from tests.registered import REGISTRY


class LateStarts(PreScore[int], Score[int], Sign):
    """Prefers some nodes by how many pods start anywhere, and by the pod's last letter.

    Skips itself while none starts. Its numbers are used as they are.
    """

    name: ClassVar[str] = "LateStarts"
    reads = Change.PODS | Change.POD_STATUS | Change.MEMBERSHIP
    scope = Scope.CLUSTER
    reduces = Reduction.NOTHING

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return pod.name[-1] in "13579"

    def pre_score(self, pod: Pod, nodes: Nodes, rows: Any) -> int | None:
        late = sum(
            other.status.phase == "Pending"
            for row in nodes.rows.tolist()
            for other in nodes.pods(row).values()
        )
        return 2 * late + (pod.name[-1] in "13579") if late else None

    def score(self, prepared: int, nodes: Nodes, rows: Rows) -> Scores:
        return (np.array(nodes.numbers(rows), np.int64) * 31 + prepared * 17) % 100


class NoisyZone(Filter[Pod], Sign):
    """Keeps pods out of zones in which a running pod is noisy, by its annotation."""

    name: ClassVar[str] = "NoisyZone"
    reads = Change.PODS | Change.POD_ANNOTATIONS | Change.LABELS
    scope = Scope.DOMAIN

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return None

    def filter(self, prepared: Pod, nodes: Nodes, rows: Rows) -> Verdict:
        noisy = {
            nodes.node(row).labels.get(ZONE)
            for row in nodes.rows.tolist()
            if any(other.annotations.get("noisy") == "yes" for other in nodes.pods(row).values())
        }
        rejected = [
            bool(nodes.alive[row]) and nodes.node(row).labels.get(ZONE) in noisy
            for row in nodes.numbers(rows)
        ]
        return Verdict.rejecting(np.array(rejected, np.bool_), Reason("a zone is noisy"))


class Petition(PostFilter, Sign):
    """Tells the team of a pod that fits nowhere, which it signs, and which nodes are ready."""

    name: ClassVar[str] = "Petition"
    reads = Change.CONDITIONS

    def sign(self, pod: Pod, nodes: Nodes) -> Hashable:
        return pod.annotations.get("team")

    def post_filter(
        self, pod: Pod, failed: Failed, nodes: Nodes, profile: Profile
    ) -> Remedy | NoRemedy:
        told = sum(bool(nodes.node(row).conditions) for row in nodes.rows.tolist())
        return NoRemedy(
            Code.UNSCHEDULABLE, (f"{pod.annotations.get('team')} may ask {told} nodes",)
        )


ODD: tuple[type[Plugin], ...] = (LateStarts, NoisyZone, Petition)
WITH_ODD: Registry = {**REGISTRY, **{plugin.name: plugin for plugin in ODD}}
USING = configuration(
    profile(
        plugins={"multiPoint": {"enabled": [{"name": each.name, "weight": 5} for each in ODD]}}
    ),
    WITH_ODD,
)


class Oddly(Told):
    """Engines with all three."""

    def __init__(self, *objects: Any) -> None:
        self.ways = FourWays(USING, WITH_ODD)
        self.now = 0.0
        self.apply(*objects)


def small(count: int, prefix: str = "p", **given: Any) -> list[Pod]:
    return [pod(f"{prefix}{at}", cpu="100m", **given) for at in range(count)]


@pytest.mark.parametrize("plugin", ODD, ids=lambda each: each.name)
def test_they_keep_the_laws(plugin: type[Plugin]) -> None:
    zones = [node(f"n{at}", labels={ZONE: "ab"[at % 2]}) for at in range(4)]
    starting = pod("starting", node="n0", status={"phase": "Pending"})
    noisy = pod("noisy", node="n1", metadata={"annotations": {"noisy": "yes"}})

    check_laws(plugin(), [*zones, starting, noisy], small(3))


def test_a_score_by_the_status_of_pods_elsewhere() -> None:
    told = Oddly(*(node(name) for name in "abc"))
    one, other = pod("one", node="a"), pod("other", node="b")
    told.apply(one, other)

    told.places(*small(4))
    for at in range(4):
        phase = {"phase": "Pending" if at % 2 == 0 else "Running"}
        told.apply(pod("one", node="a", status=phase))
        told.places(*small(4, f"q{at}-"))
        told.apply(pod("other", node="b", status={"phase": "Pending"}))
        told.places(*small(3, f"r{at}-"))


def test_a_zone_that_becomes_noisy() -> None:
    told = Oddly(*(node(f"n{at}", labels={ZONE: "ab"[at % 2]}) for at in range(4)))
    told.apply(pod("runs", node="n0", cpu="10m"))

    assert "n2" in told.places(*small(5)).values()
    told.apply(pod("runs", node="n0", cpu="10m", metadata={"annotations": {"noisy": "yes"}}))
    assert set(told.places(*small(5, "q")).values()) == {"n1", "n3"}
    told.apply(node("n3", labels={ZONE: "a"}))
    assert set(told.places(*small(3, "r")).values()) == {"n1"}
    told.apply(pod("runs", node="n0", cpu="10m"))
    assert "n2" in told.places(*small(5, "s")).values()


def test_a_post_filter_that_signs_annotations_is_asked_for_each_team_and_after_changes() -> None:
    told = Oddly(node("a", cpu=1))
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}

    def tell(name: str, team: str) -> str:
        told.apply(pod(name, cpu=3, metadata={"annotations": {"team": team}}))
        actions = told.ways.step(told.now, 1)
        (note,) = [each.note for each in actions if isinstance(each, RecordEvent)]
        return note.rpartition(" nodes")[0].rpartition(" may ask ")[0][-1] + note[-8:]

    first = [tell("p0", "a"), tell("p1", "b"), tell("p2", "a")]
    assert [each[0] for each in first] == ["a", "b", "a"]
    told.apply(node("a", cpu=1, status=ready))
    again = [tell("p3", "b"), tell("p4", "a")]
    assert again != [first[1], first[0]]


@pytest.mark.parametrize("seed", range(6))
def test_no_stream_is_decided_otherwise(seed: int) -> None:
    shape = Shape(nodes=(4, 10), turns=25, outsiders=True, burst=4, fleeting=seed % 2 == 0)
    run(seed, USING, shape, registry=WITH_ODD, recounts=False, ways=ON_AND_OFF)


def test_no_wide_stream_is_decided_otherwise() -> None:
    shape = replace(Shape(outsiders=True, burst=4), nodes=(30, 40), turns=15)
    run(7, USING, shape, registry=WITH_ODD, recounts=False, ways=ON_AND_OFF)
