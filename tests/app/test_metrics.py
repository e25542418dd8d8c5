"""What /metrics tells of an engine at work."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import ClassVar, Self

import pytest
from prometheus_client.parser import text_string_to_metric_families

from moorage import testing
from moorage.app.metric_table import METRICS
from moorage.app.metric_text import pod_resources
from moorage.app.metrics import Metrics
from moorage.app.observations import Observations
from moorage.cluster import HandleRegistry, View
from moorage.config import load_mapping
from moorage.engine import Engine
from moorage.engine.actions import BindPod
from moorage.engine.classes.classes import ClassSettings
from moorage.engine.events import Applied, BindingFailed, PermitRefused, Permitted
from moorage.framework.plugin import Permit, PreEnqueue, Registry, Wait
from moorage.framework.profile import known_plugins
from moorage.framework.sections import ShowFigures
from moorage.framework.series import Series, counter, gauge, histogram
from moorage.framework.status import PluginError
from moorage.objects.coexist import ANNOTATION, DAEMONSET_AND_STATIC_PODS
from moorage.objects.pod import Pod
from moorage.plugins import REGISTRY
from tests.builders import node, pod
from tests.engine.driver import Driver
from tests.extended_fakes import SLOTS, ColumnsHandle, SlotsHandle, status, using
from tests.programs import needs_program

PROFILE = "default-scheduler"


class Patient(Permit):
    """Lets pods wait that say so."""

    name = "Patient"

    def permit(self, pod: Pod, node_name: str) -> Wait | None:
        return Wait(60.0) if pod.labels.get("waits") else None


class Scene:
    """An engine observed by a clock that moves on by a millisecond with every look at it."""

    def __init__(self, *, reuse: bool = True) -> None:
        ticks = count()
        registry: Registry = {**REGISTRY, Patient.name: Patient}
        raw = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Patient"}]}}}],
        }
        configuration = load_mapping(raw, known=known_plugins(registry))
        self.observations = Observations(lambda: next(ticks) / 1000)
        settings = ClassSettings(classes=reuse, batches=reuse)
        self.engine = Engine(configuration, registry, settings, self.observations)
        self.driver = Driver(self.engine)
        self.metrics = Metrics(self.engine, self.observations)

    async def read(self) -> dict[str, dict[str, float]]:
        """By name of the sample, its values by labels as text; buckets are left out."""
        found: dict[str, dict[str, float]] = {}
        for family in text_string_to_metric_families((await self.metrics.text()).decode()):
            for sample in family.samples:
                if "le" not in sample.labels:
                    labels = " ".join(value for _, value in sorted(sample.labels.items()))
                    found.setdefault(sample.name, {})[labels] = sample.value
        return found

    def some_pods(self) -> None:
        """Three of a kind that fit and one that does not."""
        self.driver.apply(node("a"), node("b"))
        self.driver.apply(*(pod(name, cpu=1) for name in "uvw"), pod("big", cpu=100))
        self.driver.settle()


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_every_metric_is_there_from_the_start(scene: Scene) -> None:
    text = (await scene.metrics.text()).decode()

    told = {line for line in text.splitlines() if line.startswith("# TYPE")}
    assert {f"# TYPE {metric.name} {metric.kind}" for metric in METRICS} - told == set()
    assert "# HELP scheduler_pending_pods [STABLE] Waiting pods" in text
    assert "process_cpu_seconds_total" in text


@needs_program("promtool")
async def test_promtool_has_no_complaints(scene: Scene) -> None:
    exclusive = {"annotations": {ANNOTATION: DAEMONSET_AND_STATIC_PODS}}
    scene.some_pods()
    scene.driver.apply(node("c"), pod("mpi", cpu=1, metadata=exclusive))
    scene.driver.settle()
    resources = [part async for part in pod_resources(scene.engine)]

    for text in (await scene.metrics.text(), b"".join(resources)):
        command = ["promtool", "check", "metrics"]
        checked = subprocess.run(command, input=text, capture_output=True, check=False)  # noqa: ASYNC221
        assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")


async def test_attempts_and_what_came_of_them(scene: Scene) -> None:
    scene.some_pods()
    told = await scene.read()

    results = {f"{PROFILE} scheduled": 3, f"{PROFILE} unschedulable": 1}
    assert told["scheduler_schedule_attempts_total"] == results
    assert told["scheduler_scheduling_attempt_duration_seconds_count"] == results
    assert told["scheduler_scheduling_algorithm_duration_seconds_count"] == {"": 4}
    assert told["scheduler_pod_scheduling_attempts_sum"] == {"": 3}
    assert told["scheduler_pod_scheduling_sli_duration_seconds_count"] == {"1": 3}
    assert told["scheduler_preemption_attempts_total"] == {"": 1}
    assert told["scheduler_pending_pods"] == {
        "active": 0,
        "backoff": 0,
        "gated": 0,
        "unschedulable": 1,
    }
    assert told["scheduler_unschedulable_pods"] == {f"NodeResourcesFit {PROFILE}": 1}
    assert told["scheduler_cache_size"] == {"assumed_pods": 0, "nodes": 2, "pods": 3}
    assert told["scheduler_queue_incoming_pods_total"] == {
        "UnschedulablePodAdd active": 4,
        "ScheduleAttemptFailure unschedulable": 1,
    }


async def test_like_pods(scene: Scene) -> None:
    scene.some_pods()
    told = await scene.read()

    assert told["scheduler_batch_attempts_total"] == {
        f"{PROFILE} hint_used": 2,
        f"{PROFILE} no_hint": 2,
    }
    assert told["scheduler_get_node_hint_duration_seconds_count"] == {
        f"hint {PROFILE}": 2,
        f"no_hint {PROFILE}": 2,
    }
    # One for the three pods that are placed, and one for the pod that fits nowhere.
    assert told["scheduler_store_schedule_results_duration_seconds_count"] == {PROFILE: 2}


async def test_extension_points(scene: Scene) -> None:
    scene.some_pods()
    points = (await scene.read())["scheduler_framework_extension_point_duration_seconds_count"]

    assert points[f"PreEnqueue {PROFILE} Success"] == 4
    # In the first of ten attempts.
    assert points[f"Reserve {PROFILE} Success"] == 1
    assert points[f"Permit {PROFILE} Success"] == 3
    # The classes of the small pods and of the big one, and the reasons why the latter fits nowhere.
    assert points[f"Filter {PROFILE} Success"] == 3
    assert points[f"Score {PROFILE} Success"] == 2
    assert points[f"PostFilter {PROFILE} Unschedulable"] == 1


async def test_decisions_that_are_made_in_full() -> None:
    scene = Scene(reuse=False)
    scene.some_pods()
    told = await scene.read()

    points = told["scheduler_framework_extension_point_duration_seconds_count"]
    evaluated = told["scheduler_plugin_evaluation_total"]
    for point, times in {"PreFilter": 4, "Filter": 4, "PreScore": 3, "Score": 3}.items():
        assert points[f"{point} {PROFILE} Success"] == times
        assert evaluated[f"{point} NodeResourcesFit {PROFILE}"] == times
    assert told["scheduler_get_node_hint_duration_seconds_count"] == {f"no_hint {PROFILE}": 4}


async def test_plugins_have_a_say(scene: Scene) -> None:
    scene.some_pods()
    told = (await scene.read())["scheduler_plugin_evaluation_total"]

    # Once for each class, and once more for the reasons of the pod that does not fit.
    assert told[f"Filter NodeResourcesFit {PROFILE}"] == 3
    # It has nothing to say about pods without ports.
    assert f"Filter NodePorts {PROFILE}" not in told


async def test_plugins_are_timed_in_every_tenth_attempt(scene: Scene) -> None:
    scene.driver.apply(node("a"))
    # The first attempt is one of them, the next is the eleventh, and one more would be the 21st.
    scene.driver.apply(*(pod(f"p{number:02}", cpu="1m") for number in range(20)))
    scene.driver.settle()

    plugins = (await scene.read())["scheduler_plugin_execution_duration_seconds_count"]
    assert plugins["Reserve VolumeBinding Success"] == 2
    assert plugins["Filter NodeResourcesFit Success"] == 1
    assert plugins["PreFilter NodePorts Skip"] == 1


async def test_events_and_hints(scene: Scene) -> None:
    scene.some_pods()
    scene.driver.apply(node("c", cpu=200))
    told = await scene.read()

    events = told["scheduler_event_handling_duration_seconds_count"]
    assert (events["NodeAdd"], events["UnschedulablePodAdd"], events["AssignedPodAdd"]) == (3, 4, 3)
    hints = told["scheduler_queueing_hint_execution_duration_seconds_count"]
    assert hints == {"NodeAdd Queue NodeResourcesFit": 1}


async def test_events_are_remembered_for_pods_in_flight(scene: Scene) -> None:
    scene.driver.apply(node("a"), pod("waits", labels={"waits": "yes"}, cpu=1))
    scene.engine.step(scene.driver.now)
    scene.driver.apply(node("b"))

    told = (await scene.read())["scheduler_inflight_events"]
    assert told == {"NodeAdd": 1, "PodPopped": 1}


@pytest.mark.parametrize(
    ("refused", "result"), [(False, "Success"), (True, "Unschedulable")], ids=["given", "refused"]
)
async def test_permits_that_are_waited_for(scene: Scene, refused: bool, result: str) -> None:
    waiting = pod("waits", labels={"waits": "yes"}, cpu=1)
    scene.driver.apply(node("a"), waiting)
    scene.engine.step(1000.0)
    uid = waiting.uid
    answer = PermitRefused(uid, "Patient", "no") if refused else Permitted(uid, "Patient")
    scene.engine.handle(answer, 1007.5)

    told = await scene.read()
    assert told["scheduler_permit_wait_duration_seconds_sum"] == {result: 7.5}


async def test_victims_of_preemption(scene: Scene) -> None:
    running = [pod(f"low{n}", node="a", cpu=2, spec={"priority": 1}) for n in range(2)]
    scene.driver.apply(node("a"), *running, pod("high", cpu=4, spec={"priority": 5}))
    scene.driver.settle()

    told = await scene.read()
    assert told["scheduler_preemption_victims_sum"] == {"": 2}
    assert told["scheduler_preemption_attempts_total"] == {"": 1}


async def test_a_failed_binding_is_an_error(scene: Scene) -> None:
    scene.driver.apply(node("a"), pod("p", cpu=1))
    (bind,) = [each for each in scene.engine.step(1000.0) if isinstance(each, BindPod)]
    scene.engine.handle(BindingFailed(bind.pod.uid, "no"), 1001.0)

    told = await scene.read()
    assert told["scheduler_schedule_attempts_total"] == {f"{PROFILE} error": 1}


async def test_pods_scheduled_after_being_flushed(scene: Scene) -> None:
    scene.driver.apply(node("a"), pod("p", cpu=100))
    scene.driver.settle()
    # A node that is large enough comes in unheard; after five minutes the pod is tried anyway.
    scene.engine.cluster.put_node(node("b", cpu=200))
    scene.driver.now += 400.0
    scene.driver.settle()

    told = await scene.read()
    assert told["scheduler_pod_scheduled_after_flush_total"] == {"": 1}
    assert told["scheduler_pod_scheduling_sli_duration_seconds_count"] == {"2": 1}


async def test_a_flush_counts_only_for_the_attempt_that_follows(scene: Scene) -> None:
    scene.driver.apply(node("a"), pod("p", cpu=100))
    scene.driver.settle()
    scene.driver.now += 400.0
    scene.driver.settle()
    scene.driver.apply(node("b", cpu=200))
    scene.driver.now += 60.0
    scene.driver.settle()

    told = await scene.read()
    assert told["scheduler_pod_scheduling_attempts_sum"] == {"": 3}
    assert told["scheduler_pod_scheduled_after_flush_total"] == {"": 0}


async def test_many_attempts_are_told_together(scene: Scene) -> None:
    for attempts in (14, 15, 40):
        scene.observations.pod_scheduled(PROFILE, 0.0, attempts, 1.0)
    scene.observations.pod_scheduled(PROFILE, 0.0, 1, None)

    told = await scene.read()
    assert told["scheduler_pod_scheduling_sli_duration_seconds_count"] == {"14": 1, "15+": 2}
    assert told["scheduler_pod_scheduling_attempts_count"] == {"": 4}


async def test_what_those_tell_who_act(scene: Scene) -> None:
    scene.metrics.note_leading("kube-scheduler", True)
    scene.metrics.count_request("POST", "api:6443", 201, 0.01)
    scene.metrics.count_request("POST", "api:6443", 201, 0.01)
    scene.metrics.count_request("GET", "api:6443", None, 5.0)

    told = await scene.read()
    assert told["leader_election_master_status"] == {"kube-scheduler": 1}
    assert told["rest_client_requests_total"] == {
        "201 api:6443 POST": 2,
        "<error> api:6443 GET": 1,
    }
    assert told["rest_client_request_duration_seconds_count"] == {
        "api:6443 POST": 2,
        "api:6443 GET": 1,
    }


async def test_gates_and_build(scene: Scene) -> None:
    told = await scene.read()

    gates: Mapping[str, float] = told["kubernetes_feature_enabled"]
    assert gates["OpportunisticBatching "] == 1
    assert gates["GangScheduling "] == 0
    assert list(told["moorage_build_info"].values()) == [1]


async def test_reading_twice_counts_nothing_twice(scene: Scene) -> None:
    scene.some_pods()
    first, again = await scene.read(), await scene.read()

    for name in first.keys() - {name for name in first if name.startswith("process_")}:
        assert first[name] == again[name]


def test_observations_keep_no_more_than_they_must(scene: Scene) -> None:
    """Whoever never reads the metrics does not run out of memory."""
    durations = scene.observations.batch_durations(PROFILE)
    for _ in range(10):
        durations.extend([1.0] * 1_000)
        scene.observations.step_ended()
    assert len(durations) < 5_000
    scene.driver.apply(node("a"))
    scene.engine.handle(Applied(pod("p", cpu=1)), 0.0)


class Unlucky:
    """A worker for whom some things did not go well."""

    absent: ClassVar[list[str]] = ["Thing"]
    left_out: ClassVar[dict[str, int]] = {"Pod": 2}
    dropped_events = 7
    claim_creations: ClassVar[dict[str, int]] = {"failure": 3}
    extender_series = ()


async def test_what_could_not_be_read_or_written_is_counted(scene: Scene) -> None:
    scene.metrics.follow(Unlucky())

    told = await scene.read()

    assert told["moorage_unreadable_objects_total"] == {"Pod": 2}
    assert told["moorage_absent_kind"] == {"Thing": 1}
    assert told["moorage_dropped_events_total"] == {"": 7}
    assert told["scheduler_resourceclaim_creates_total"] == {"failure": 3}


class Counting(PreEnqueue):
    """Counts pods by namespace."""

    name = "Counting"
    metric = "counting_pods_total"
    breaks: ClassVar[bool] = False

    def __init__(self) -> None:
        self._pods = counter(self.metric, "Pods that came by.", "namespace")
        self._sizes = histogram("counting_sizes", "Containers of a pod.", (1.0, 2.0))

    def metrics(self) -> tuple[Series, ...]:
        if self.breaks:
            raise RuntimeError("no")
        return self._pods, self._sizes

    def pre_enqueue(self, pod: Pod) -> None:
        self._pods.add((pod.namespace,))
        self._sizes.observe((), len(pod.spec.containers))


def counting() -> tuple[Driver, Metrics]:
    """Two profiles with a plugin that declares metrics."""
    run = testing.drive(
        node("a"),
        plugins=(Counting,),
        profiles=[
            {
                "schedulerName": name,
                "plugins": {"multiPoint": {"enabled": [{"name": "Counting"}]}},
            }
            for name in ("default-scheduler", "other")
        ],
    )
    return run, Metrics(run.engine, Observations())


async def test_metrics_that_plugins_declare() -> None:
    run, metrics = counting()
    run.apply(pod("p"), pod("q"), pod("r", spec={"schedulerName": "other"}))

    text = (await metrics.text()).decode()

    assert "# HELP counting_pods_total Pods that came by." in text
    assert text.count("# TYPE counting_pods_total counter") == 1
    assert 'counting_pods_total{namespace="default",profile="default-scheduler"} 2.0' in text
    assert 'counting_pods_total{namespace="default",profile="other"} 1.0' in text
    assert 'counting_sizes_bucket{le="1",profile="default-scheduler"} 2.0' in text
    assert 'counting_sizes_count{profile="other"} 1.0' in text


async def test_a_plugin_whose_metrics_break_hides_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, metrics = counting()
    monkeypatch.setattr(Counting, "breaks", True)

    text = (await metrics.text()).decode()

    assert "counting_pods_total" not in text
    assert "scheduler_pending_pods" in text


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("scheduler_pending_pods", "metric scheduler_pending_pods belongs to the scheduler"),
        ("no name", "metric 'no name': not a name that Prometheus takes"),
    ],
)
def test_a_metric_that_cannot_be_told_is_refused_at_the_start(
    name: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Counting, "metric", name)

    with pytest.raises(PluginError, match=problem):
        counting()


def test_labels_are_checked_where_they_are_given() -> None:
    pods = counter("pods_total", "Pods.", "namespace")
    sizes = histogram("sizes", "Sizes.", (1.0,), "namespace")

    with pytest.raises(ValueError, match="expected a text for"):
        pods.add(())
    with pytest.raises(ValueError, match="expected a text for"):
        sizes.observe(("a", "b"), 1.0)


async def test_exclusive_pods_on_nodes_are_counted(scene: Scene) -> None:
    scene.driver.apply(node("a"), node("b"))
    before = (await scene.read())["moorage_exclusive_pods"]
    exclusive = {"annotations": {ANNOTATION: DAEMONSET_AND_STATIC_PODS}}
    scene.driver.apply(pod("web", cpu=1), pod("mpi", cpu=1, metadata=exclusive))
    scene.driver.settle()

    assert before == {"": 0.0}
    told = await scene.read()
    assert told["moorage_exclusive_pods"] == {"": 1.0}
    assert told["moorage_waiting_exclusive_pods"] == {"": 0.0}
    assert told["moorage_exclusive_nodes"] == {"default": 1.0}
    assert told["moorage_exclusive_nodes_unrequested"]["default cpu"] == 3.0


@pytest.mark.parametrize("reuse", [True, False])
async def test_what_could_be_shared_is_counted_whether_anything_is(reuse: bool) -> None:
    scene = Scene(reuse=reuse)
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "1"}
    owned = {"ownerReferences": [{**owner, "controller": True}]}
    scene.driver.apply(node("a", cpu=64))
    scene.driver.apply(*(pod(f"p{at}", cpu=1 + at // 3, metadata=owned) for at in range(6)))
    scene.driver.settle()

    told = await scene.read()
    counts = {key.split()[-1]: count for key, count in told["moorage_like_pods_total"].items()}
    assert counts == {"alike": 4.0, "first": 2.0, "unsigned": 0.0}
    apart = {key.split()[0] for key in told["moorage_pods_told_apart_total"]}
    assert "NodeResourcesFit" in apart
    assert "NodeAffinity" not in apart


async def test_exclusive_pods_that_wait_are_counted(scene: Scene) -> None:
    exclusive = {"annotations": {ANNOTATION: DAEMONSET_AND_STATIC_PODS}}
    scene.driver.apply(node("a"), pod("there", cpu=1, node="a"), pod("ordinary", cpu=64))
    scene.driver.apply(*(pod(f"mpi-{at}", cpu=1, metadata=exclusive) for at in range(5)))
    scene.driver.settle()

    told = await scene.read()
    assert told["moorage_exclusive_pods"] == {"": 0.0}
    assert told["moorage_waiting_exclusive_pods"] == {"": 5.0}


class SlotsPlugin(PreEnqueue):
    """Has a resource of which no figure is kept in a column, and one that keeps them."""

    name = "SlotsPlugin"

    @classmethod
    def create_sharing(
        cls, args: object, gates: Mapping[str, bool], handles: HandleRegistry
    ) -> Self:
        handles.register(SLOTS, SlotsHandle)
        handles.register(f"{SLOTS}-in-columns", ColumnsHandle)
        return cls()

    def pre_enqueue(self, pod: Pod) -> None:
        return None


async def test_figures_of_extended_resources_are_added_up_wherever_they_are_kept() -> None:
    engine = testing.make_engine(SlotsPlugin)
    driver = Driver(engine)
    driver.apply(node("a"), node("b"), status("a", 5), status("b", 3), using("p", 2, "a"))

    text = (await Metrics(engine, Observations(lambda: 0.0)).text()).decode()
    lines = [line for line in text.splitlines() if line.startswith("moorage_extended_resource{")]
    assert lines == [
        f'moorage_extended_resource{{figure="{figure}",resource="{SLOTS}{kept}"}} {value}'
        for kept in ("", "-in-columns")
        for figure, value in (("capacity", "8.0"), ("used", "2.0"))
    ]


class Painted(PreEnqueue, ShowFigures):
    """Shows a figure of its own and one with a name that is taken, and then breaks."""

    name = "Painted"

    def pre_enqueue(self, pod: Pod) -> None:
        return None

    def figures(self, nodes: View, waiting: Iterable[Pod]) -> Iterator[Series | None]:
        painted = gauge("painted", "Nodes that are painted.")
        painted.set((), len(nodes))
        yield painted
        taken = gauge("scheduler_pending_pods", "What the scheduler counts.", "queue")
        taken.set(("all",), 77)
        yield taken
        yield None
        raise KeyError("brush")


async def test_figures_of_plugins_come_once_and_take_no_name_of_the_scheduler() -> None:
    profiles = [
        {"schedulerName": name, "plugins": {"multiPoint": {"enabled": [{"name": "Painted"}]}}}
        for name in ("one", "two")
    ]
    engine = testing.make_engine(Painted, profiles=profiles)
    engine.handle(Applied(node("a")), 0.0)

    text = (await Metrics(engine, Observations()).text()).decode()

    assert re.findall(r"^painted(.*)$", text, re.MULTILINE) == [" 1.0"]
    assert " 77" not in text
    assert "scheduler_pending_pods{" in text
    assert "moorage_exclusive_pods 0.0" in text
