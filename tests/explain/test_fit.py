"""What would fit: how many, where, what runs out, and that asking changes nothing."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from moorage.engine import Engine
from moorage.objects.kinds import Object
from moorage.objects.pod import Pod
from moorage.simulate.pod_fit import KindShare, Question, RunsOut, compare, fit, fit_waiting
from moorage.world import DrainError, Scene
from tests.builders import node, pod
from tests.coexisting import daemon
from tests.explain.building import configuration, engine


def placed(asked: Engine) -> dict[str, str]:
    return {each.key: each.node_name for each in asked.cluster.pods.values()}


def test_copies_fill_what_there_is() -> None:
    scene = Scene.of([node("a", cpu=4), node("b", cpu=2), pod("there", node="a", cpu=1)])
    asked = engine()

    outcome = fit(asked, scene, Question(pod("copy", cpu=1), 10))

    assert (outcome.asked, outcome.placed) == (10, 5)
    assert {each.node: each.count for each in outcome.nodes} == {"a": 3, "b": 2}
    assert [(each.count, each.message) for each in outcome.left] == [
        (5, "0/2 nodes are available: 2 Insufficient cpu.")
    ]
    assert outcome.why is not None
    assert outcome.why.pod == "default/copy-6"


def test_a_drain_of_an_empty_node_places_nobody() -> None:
    scene = Scene.of([node("a"), node("b"), pod("waits", cpu=1)])

    assert fit(engine(), scene.drain(["a"]), Question()).asked == 0


def test_nodes_are_also_told_by_kind() -> None:
    large = {"node.kubernetes.io/instance-type": "large"}
    scene = Scene.of(
        [
            node("a", cpu=2, labels=large),
            node("b", cpu=2, memory="9Gi", labels=large),
            node("c", cpu=1, memory="1536Mi"),
            node("d", cpu="100m"),
        ]
    )

    outcome = fit(engine(), scene, Question(pod("copy", cpu=1), 5))

    assert outcome.kinds == (
        KindShare("large", node_count=2, used=2, count=4),
        KindShare("1 cpu, 1.5Gi memory", node_count=1, used=1, count=1),
    )


def test_what_runs_out_is_told_of_nodes_that_had_it() -> None:
    full = pod("there", node="full", cpu=4)
    objects: list[Object] = [node("a", cpu=1), node("b", memory="1Gi"), node("full"), full]
    scene = Scene.of(objects)

    outcome = fit(engine(), scene, Question(pod("copy", cpu="500m", memory="1Gi"), 9))

    assert set(outcome.runs_out) == {
        RunsOut(("Insufficient cpu",), 1, ("a",)),
        RunsOut(("Insufficient memory",), 1, ("b",)),
    }


def test_a_drain_moves_what_is_no_daemon() -> None:
    objects: list[Object] = [
        node("a"),
        node("b"),
        pod("web", node="a", cpu=1),
        daemon("agent", "a"),
    ]
    asked = engine()

    outcome = fit(asked, Scene.of(objects).drain(["a"]), Question())

    assert [(each.pod, each.before, each.after) for each in outcome.moves] == [
        ("default/web", "a", "b")
    ]
    assert placed(asked) == {"default/agent": "a", "default/web": "b"}


def test_the_important_ones_of_a_drain_go_first() -> None:
    objects: list[Object] = [
        node("a"),
        node("b", cpu=1),
        pod("idle", node="a", cpu=1),
        pod("vital", node="a", cpu=1, spec={"priority": 9}),
    ]

    outcome = fit(engine(), Scene.of(objects).drain(["a"]), Question())

    assert [(each.pod, each.after) for each in outcome.moves] == [
        ("default/vital", "b"),
        ("default/idle", ""),
    ]


def test_a_node_that_is_not_there_cannot_be_drained() -> None:
    with pytest.raises(DrainError, match="ghost"):
        Scene.of([node("a")]).drain(["a", "ghost"])


def test_added_nodes_have_names_of_their_own() -> None:
    scene = Scene.of([node("big-1")]).extend(node("big"), 2)

    assert [each.name for each in scene.nodes] == ["big-1", "big-2", "big-3"]
    assert [each.labels["kubernetes.io/hostname"] for each in scene.nodes] == [
        "big-1",
        "big-2",
        "big-3",
    ]


def test_more_nodes_take_more() -> None:
    scene, question = Scene.of([node("a", cpu=1)]), Question(pod("copy", cpu=1), 3)
    before = fit(engine(), scene, question)

    compared = compare(before, fit(engine(), scene.extend(node("a", cpu=1), 1), question))

    assert (compared.before.placed, compared.after.placed) == (1, 2)


def test_another_configuration_makes_a_difference_to_pods_that_wait() -> None:
    scene = Scene.of([node("a", **{"nvidia.com/gpu": 1}), pod("web")])
    before = fit_waiting(engine, scene)

    compared = compare(before, fit_waiting(lambda: engine(config=configuration("GPUAware")), scene))

    assert [(each.pod, each.before, each.after) for each in compared.changed] == [
        ("default/web", "a", "")
    ]


def test_nobody_is_evicted() -> None:
    lesser = pod("lesser", node="a", cpu=4)
    asked = engine()

    outcome = fit(asked, Scene.of([node("a"), lesser]), Question(pod(cpu=4, spec={"priority": 9})))

    assert outcome.placed == 0
    assert placed(asked) == {lesser.key: "a"}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (pod(spec={"schedulerName": "other"}), "no profile serves scheduler other"),
        (pod(spec={"schedulingGates": [{"name": "g"}]}), "waiting for scheduling gates: [g]"),
    ],
)
def test_what_is_not_decided_about_is_left(wanted: Pod, message: str) -> None:
    outcome = fit(engine(), Scene.of([node("a")]), Question(wanted, 2))

    assert [(each.message, each.count) for each in outcome.left] == [(message, 2)]


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=5),
    st.lists(st.integers(1, 4), max_size=6),
    st.integers(1, 4),
)
def test_as_many_fit_as_there_is_room_for(sizes: list[int], taken: list[int], cpu: int) -> None:
    nodes = [node(f"n{at}", cpu=size) for at, size in enumerate(sizes)]
    running = [pod(f"r{at}", node=f"n{at % len(sizes)}", cpu=use) for at, use in enumerate(taken)]
    free = {each.name: size for each, size in zip(nodes, sizes, strict=True)}
    for at, use in enumerate(taken):
        free[f"n{at % len(sizes)}"] -= use

    outcome = fit(engine(), Scene.of([*nodes, *running]), Question(pod("copy", cpu=cpu), 99))

    room = {name: left // cpu for name, left in free.items() if left >= cpu}
    assert {each.node: each.count for each in outcome.nodes} == room


def test_an_outcome_is_json() -> None:
    outcome = fit(engine(), Scene.of([node("a", cpu=1)]), Question(pod(cpu=1), 2))

    assert msgspec.json.decode(msgspec.json.encode(outcome))["runsOut"] == [
        {"reasons": ["Insufficient cpu"], "count": 1, "nodes": ["a"]}
    ]
