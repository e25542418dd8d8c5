"""What /metrics tells of groups of pods."""

from __future__ import annotations

from itertools import count
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from moorage.app.metrics import Metrics
from moorage.app.observations import Observations
from moorage.config import FeatureGates, load_mapping
from moorage.engine import Engine
from moorage.framework.profile import known_plugins
from moorage.objects.decode import from_builtins
from moorage.plugins import REGISTRY
from moorage.testing.builders import node, pod
from moorage.testing.driver import Driver
from tests.engine.gangs import GATES, gang, members

PROFILE = "default-scheduler"


class Scene:
    """An engine that knows groups, observed by a clock that moves on by a millisecond per look."""

    def __init__(self, *objects: Any) -> None:
        ticks = count()
        raw = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
        }
        gates = FeatureGates.parse(GATES)
        configuration = load_mapping(raw, known=known_plugins(REGISTRY), gates=gates)
        observations = Observations(lambda: next(ticks) / 1000)
        engine = Engine(configuration, REGISTRY, None, observations)
        self.driver = Driver(engine)
        self.driver.apply(*objects)
        self._metrics = Metrics(engine, observations)

    async def values(self) -> dict[tuple[str, frozenset[str]], float]:
        """Every sample that is not 0 by name and label values, without buckets."""
        text = (await self._metrics.text()).decode()
        return {
            (sample.name, frozenset(sample.labels.values())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.value and "le" not in sample.labels
        }


def racks(count: int) -> list[Any]:
    return [node(f"n{at}", cpu=2, labels={"rack": f"r{at // 2}"}) for at in range(2 * count)]


def key(name: str, *labels: str) -> tuple[str, frozenset[str]]:
    return name, frozenset(labels)


async def test_domains_are_counted_and_the_best_one_is_told() -> None:
    scene = Scene(*racks(3), pod("x", cpu=2, node="n0"), gang("g", 4, topology_key="rack"))
    scene.driver.apply(*members("g", 4, cpu=1))
    scene.driver.settle()

    found = await scene.values()

    assert found[key("scheduler_generated_placements_total", PROFILE)] == 3
    evaluated = "scheduler_placement_evaluations_total"
    assert found[key(evaluated, "feasible", PROFILE)] == 2
    assert found[key(evaluated, "infeasible", PROFILE)] == 1
    assert found[key("scheduler_podgroup_scheduling_algorithm_duration_seconds_count")] == 1
    points = "scheduler_framework_extension_point_duration_seconds_count"
    assert found[key(points, "PlacementGenerate", "Success", PROFILE)] == 1


async def test_groups_are_entries_of_the_queue_and_their_members_are_pods() -> None:
    scene = Scene(*racks(1), gang("g", 3), *members("g", 2, cpu=1), pod("alone", cpu=9))
    scene.driver.settle()

    found = await scene.values()

    assert found[key("scheduler_queued_entities", "gated", "podgroup")] == 1
    assert found[key("scheduler_queued_entities", "unschedulable", "pod")] == 1
    assert found[key("scheduler_pending_pods", "gated")] == 2
    incoming = "scheduler_queue_incoming_entities_total"
    assert found[key(incoming, "active", "UnschedulablePodAdd", "pod")] == 1
    assert key(incoming, "active", "UnschedulablePodAdd", "podgroup") not in found

    scene.driver.apply(*members("g", 1, start=2, cpu=1))
    scene.driver.settle()

    found = await scene.values()
    assert found[key(incoming, "active", "UnschedulablePodAdd", "podgroup")] == 1
    assert found[key("scheduler_queue_incoming_pods_total", "active", "UnschedulablePodAdd")] == 4


async def test_victims_of_groups_are_told_apart_from_those_of_pods() -> None:
    high = {"priority": 10}
    budget = from_builtins(
        "PodDisruptionBudget",
        {
            "metadata": {"name": "b"},
            "spec": {"selector": {"matchLabels": {"app": "low"}}},
            "status": {"disruptionsAllowed": 1},
        },
    )
    low = [pod(f"low-{at}", cpu=1, node=f"n{at % 2}", labels={"app": "low"}) for at in range(4)]
    scene = Scene(*racks(1), budget, *low, gang("g", 3, priority=10))
    scene.driver.apply(*members("g", 3, cpu=1, spec=high))
    scene.driver.step()
    scene.driver.now += 2
    scene.driver.evict(scene.driver.story)

    found = await scene.values()

    assert found[key("scheduler_workload_preemption_attempts_total", "Success")] == 1
    assert found[key("scheduler_workload_preemption_victims_sum")] == 3
    assert key("scheduler_preemption_victims_sum") not in found
    assert found[key("scheduler_preemption_pdb_violations_total", "podgroup")] == 2
    executed = "scheduler_preemption_execution_duration_seconds_sum"
    assert found[key(executed, "podgroup", "success")] == 2
    evaluated = "scheduler_preemption_evaluation_duration_seconds_count"
    assert found[key(evaluated, "podgroup", "Success")] == 1


async def test_a_pod_that_evicts_a_whole_group_tells_so() -> None:
    whole = gang("w", 2, is_evicted_whole=True)
    scene = Scene(*racks(1), whole, *members("w", 2, cpu=2, node="n0"))
    scene.driver.remove(*(scene.driver.pods[f"default/w-{at}"] for at in range(2)))
    scene.driver.apply(*(members("w", 1, at, cpu=2, node=f"n{at}")[0] for at in range(2)))
    scene.driver.apply(pod("high", cpu=1, spec={"priority": 10}))
    scene.driver.step()

    found = await scene.values()

    assert found[key("scheduler_preemption_victims_sum")] == 2
    assert found[key("scheduler_preemption_workload_disruptions_sum", "pod")] == 1
    evaluated = "scheduler_preemption_evaluation_duration_seconds_count"
    assert found[key(evaluated, "pod", "Success")] == 1
