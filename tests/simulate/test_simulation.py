"""Running the engine in virtual time: what is placed, what is not, and when it ends."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from moorage.cluster import Nodes
from moorage.config import FeatureGates, load_mapping
from moorage.engine import Engine
from moorage.engine.actions import BindPod
from moorage.framework.plugin import Permit, PreBind, Preparation, Registry, Wait
from moorage.framework.profile import known_plugins
from moorage.objects.pod import Pod
from moorage.plugins import REGISTRY
from moorage.simulate.simulation import count_pending, simulate
from tests.builders import node_manifest, pod_manifest
from tests.simulate.inputs import engine, objects, placements, reasons


def test_pending_pods_are_placed_and_running_ones_count() -> None:
    given = objects(
        node_manifest("full", cpu=2),
        node_manifest("free", cpu=2),
        pod_manifest("running", node="full", cpu=2),
        pod_manifest("new", cpu=1),
    )

    transcript = simulate(engine(), given)

    assert placements(transcript) == {"new": "free"}
    assert transcript.pending == ()
    cpu = transcript.use["cpu"]
    assert (cpu.allocatable, cpu.before, cpu.after) == (4000, 2000, 3000)


def test_the_order_of_the_input_does_not_matter_between_kinds() -> None:
    given = objects(pod_manifest("new", cpu=1), node_manifest("late", cpu=2))

    assert placements(simulate(engine(), given)) == {"new": "late"}


def test_higher_priority_goes_first() -> None:
    given = objects(
        node_manifest("only", cpu=1),
        pod_manifest("low", cpu=1),
        pod_manifest("high", cpu=1, spec={"priority": 10}),
    )

    transcript = simulate(engine(), given)

    assert placements(transcript) == {"high": "only"}
    assert reasons(transcript) == {"low": "Unschedulable"}


def test_equal_priority_goes_in_the_order_given() -> None:
    names = ["c", "a", "b"]
    given = objects(node_manifest(), *(pod_manifest(name, cpu=1) for name in names))

    assert list(placements(simulate(engine(), given))) == names


def test_a_pod_that_failed_is_tried_again_after_a_placement_that_helps() -> None:
    friend = {
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {"app": "leader"}},
                    }
                ]
            }
        },
        "priority": 10,
    }
    given = objects(
        node_manifest("a"),
        node_manifest("b"),
        pod_manifest("follower", spec=friend),
        pod_manifest("leader", labels={"app": "leader"}),
    )

    transcript = simulate(engine(), given)

    where = placements(transcript)
    assert list(where) == ["leader", "follower"]
    assert where["leader"] == where["follower"]
    assert [each.attempts for each in transcript.placed] == [1, 2]


def test_it_ends_when_all_have_failed_since_the_last_placement() -> None:
    given = objects(
        node_manifest("only", cpu=4),
        pod_manifest("large", cpu=8, spec={"priority": 10}),
        pod_manifest("small", cpu=1),
    )

    transcript = simulate(engine(), given)

    assert placements(transcript) == {"small": "only"}
    assert [(each.pod.name, each.attempts) for each in transcript.pending] == [("large", 2)]
    assert transcript.pending[0].message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    # The second attempt is that of the periodic flush: minutes later, in no time.
    assert transcript.story[-1][0] >= 300.0


def test_without_pods_there_is_nothing_to_do() -> None:
    transcript = simulate(engine(), objects(node_manifest()))

    assert (transcript.placed, transcript.pending, transcript.story) == ((), (), ())


def test_without_nodes_everything_is_pending() -> None:
    transcript = simulate(engine(), objects(pod_manifest()))

    assert transcript.pending[0].message == "no nodes available to schedule pods"


@pytest.mark.parametrize(
    ("manifest", "reason", "message"),
    [
        pytest.param(
            pod_manifest(spec={"schedulingGates": [{"name": "example.com/wait"}]}),
            "SchedulingGated",
            "waiting for scheduling gates: [example.com/wait]",
            id="gated",
        ),
        pytest.param(
            pod_manifest(spec={"schedulerName": "other"}),
            "OtherScheduler",
            'no profile serves the scheduler name "other"',
            id="not ours",
        ),
        pytest.param(
            pod_manifest(metadata={"deletionTimestamp": "2025-01-31T12:00:00Z"}),
            "Terminating",
            "the pod is being deleted",
            id="being deleted",
        ),
    ],
)
def test_why_a_pod_is_not_tried(manifest: dict[str, Any], reason: str, message: str) -> None:
    other = pod_manifest("other", cpu=1)

    transcript = simulate(engine(), objects(node_manifest(), manifest, other))

    assert [(each.reason, each.message) for each in transcript.pending] == [(reason, message)]
    assert placements(transcript) == {"other": "node"}


def test_finished_pods_take_no_room_and_are_not_pending() -> None:
    done = {"phase": "Succeeded"}
    given = objects(
        node_manifest(cpu=1),
        pod_manifest("done", node="node", cpu=1, status=done),
        pod_manifest("gone", node="other-node", status=done),
        pod_manifest("never-ran", status={"phase": "Failed"}),
        pod_manifest("new", cpu=1),
    )

    assert count_pending(given) == 1
    assert placements(simulate(engine(), given)) == {"new": "node"}


def test_what_a_real_scheduler_has_said_does_not_hide_the_message() -> None:
    message = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate"
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    status = {"conditions": [{**told, "message": message}]}
    given = objects(node_manifest(), pod_manifest(cpu=64, status=status))

    transcript = simulate(engine(), given)

    assert transcript.pending[0].reason == "Unschedulable"
    assert "1 Insufficient cpu" in transcript.pending[0].message


def test_the_story_has_every_action_at_its_time() -> None:
    transcript = simulate(engine(), objects(node_manifest(), pod_manifest()))

    bound = [(at, each.node) for at, each in transcript.story if isinstance(each, BindPod)]
    assert bound == [(0.0, "node")]
    assert [at for at, _ in transcript.story] == sorted(at for at, _ in transcript.story)


def test_progress_is_told() -> None:
    seen: list[int] = []
    given = objects(node_manifest(), *(pod_manifest(f"p{number}") for number in range(3)))

    simulate(engine(), given, seen.append)

    assert seen[-1] == 3
    assert seen == sorted(seen)


class _Waits(Permit):
    """Lets every pod wait for a permit that never comes."""

    name: ClassVar[str] = "Waits"

    def permit(self, pod: Pod, node_name: str) -> Wait:
        return Wait(60.0)


def test_permits_that_never_come_end_in_time() -> None:
    registry: Registry = {**REGISTRY, "Waits": _Waits}
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"permit": {"enabled": [{"name": "Waits"}]}}}],
    }
    configuration = load_mapping(raw, known=known_plugins(registry), gates=FeatureGates())
    given = objects(node_manifest(cpu=1), pod_manifest("a", cpu=1), pod_manifest("b", cpu=1))

    transcript = simulate(Engine(configuration, registry), given)

    assert transcript.placed == ()
    assert reasons(transcript) == {"a": "Unschedulable", "b": "Unschedulable"}


class _NeverReady(PreBind):
    """Prepares every pod for something that never comes true."""

    name: ClassVar[str] = "NeverReady"

    def prepare(self, pod: Pod, nodes: Nodes, node_name: str) -> Preparation:
        return Preparation(timeout_seconds=60.0)

    def is_prepared(self, pod: Pod, nodes: Nodes, node_name: str) -> bool:
        return False


def test_preparations_that_never_come_true_end_in_time() -> None:
    registry: Registry = {**REGISTRY, "NeverReady": _NeverReady}
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"preBind": {"enabled": [{"name": "NeverReady"}]}}}],
    }
    configuration = load_mapping(raw, known=known_plugins(registry), gates=FeatureGates())

    transcript = simulate(
        Engine(configuration, registry), objects(node_manifest(), pod_manifest("a"))
    )

    assert transcript.placed == ()
    assert reasons(transcript) == {"a": "SchedulerError"}
    assert "timed out" in transcript.pending[0].message


def test_a_pod_of_higher_priority_takes_the_place_of_another() -> None:
    given = objects(
        node_manifest(cpu=1),
        pod_manifest("low", node="node", cpu=1),
        pod_manifest("high", cpu=1, spec={"priority": 10}),
    )

    transcript = simulate(engine(), given)

    assert placements(transcript) == {"high": "node"}
    assert [(each.pod.name, each.node, each.by) for each in transcript.preempted] == [
        ("low", "node", "default/high")
    ]
    cpu = transcript.use["cpu"]
    assert (cpu.before, cpu.after) == (1000, 1000)


def test_a_pod_that_was_placed_and_preempted_is_pending() -> None:
    follows = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "leader"}},
                }
            ]
        }
    }
    given = objects(
        node_manifest(cpu=2),
        pod_manifest("follower", cpu=1, spec={"priority": 10, "affinity": follows}),
        pod_manifest("leader", cpu=1, labels={"app": "leader"}, spec={"priority": 10}),
        pod_manifest("filler", cpu=1),
    )

    transcript = simulate(engine(), given)

    assert placements(transcript) == {"leader": "node", "follower": "node"}
    (filler,) = transcript.pending
    assert (filler.pod.name, filler.reason) == ("filler", "Preempted")
    assert filler.message == "placed on node, preempted by default/follower"
