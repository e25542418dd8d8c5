"""Every operation does on the engine what scheduler_perf's does on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.bench.cases import WorkloadError
from moorage.bench.harness import Result, RunOutcome
from tests.bench.workloads import LARGE_POD, MEASURED, NODES, Runs, case, job

LARGE = {"opcode": "createPods", "podTemplatePath": "large.yaml"}
BACKGROUND = {"skipWaitToCompletion": True}
START = {"opcode": "startCollectingMetrics", "namespaces": ["ns"]}
STOP = {"opcode": "stopCollectingMetrics"}

TAINTED_NODE = """
apiVersion: v1
kind: Node
metadata: {name: "tainted-{{.Index}}"}
spec: {taints: [{key: away, effect: NoSchedule}]}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "10"}}
"""
PLAIN_NODE = TAINTED_NODE.replace("spec: {taints: [{key: away, effect: NoSchedule}]}", "")
SERVICE = "{apiVersion: v1, kind: Service, metadata: {generateName: s-}, spec: {selector: {a: b}}}"
NAMESPACE = "{apiVersion: v1, kind: Namespace, metadata: {labels: {team: a}}}"
VOLUME = (
    "{apiVersion: v1, kind: PersistentVolume, spec: {csi: {driver: d}, capacity: {storage: 1Gi}}}"
)
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {annotations: {pv.kubernetes.io/bind-completed: "true"}}
spec: {accessModes: [ReadOnlyMany], resources: {requests: {storage: 1Gi}}}
"""
FINAL_POD = LARGE_POD.replace("  generateName: large-", "  generateName: f-\n  finalizers: [a/b]")
STATIC_POD = LARGE_POD.replace("{{.Index}}", "none")
URGENT_POD = LARGE_POD.replace("large-", "urgent-").replace("spec:", "spec:\n  priority: 10")
GATED_POD = LARGE_POD.replace("spec:", "spec:\n  schedulingGates: [{name: hold}]")


class Bench(Runs):
    """Runs operations in a folder with the templates of this file."""

    def __init__(self, folder: Path) -> None:
        super().__init__(tick=1e-4)
        self._folder = folder

    def of(self, *operations: dict[str, Any], **more: Any) -> Result:
        return self(
            job(
                self._folder,
                case(*operations, **more),
                large=LARGE_POD,
                important=URGENT_POD,
                tainted=TAINTED_NODE,
                plain=PLAIN_NODE,
                service=SERVICE,
                namespace=NAMESPACE,
                volume=VOLUME,
                claim=CLAIM,
                final=FINAL_POD,
                gated=GATED_POD,
                static=STATIC_POD,
            )
        )

    @property
    def pods(self) -> dict[str, str]:
        """The placed pods and their nodes, in order."""
        return {pod.name: pod.node_name for pod in self.target.engine.cluster.pods.values()}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_pods_are_placed_and_those_that_count_are_measured(bench: Bench) -> None:
    result = bench.of(NODES, {"opcode": "createPods", "count": 2}, MEASURED)

    (measured,) = result.measured
    assert result.outcome is RunOutcome.MEASURED
    assert (measured.name, measured.placed, measured.decisions) == ("namespace-2", 4, 4)
    assert len(bench.pods) == 6


def test_nodes_have_their_name_as_label_and_others_in_turn(bench: Bench) -> None:
    in_turn = {"labelKey": "zone", "labelValues": ["a", "b"]}
    bench.of({**NODES, "labelNodePrepareStrategy": in_turn}, MEASURED)

    nodes = bench.target.engine.cluster.nodes
    found = [nodes.node(row) for row in nodes.rows.tolist()]
    assert [node.labels["zone"] for node in found] == ["a", "b", "a"]
    assert all(node.labels["kubernetes.io/hostname"] == node.name for node in found)


def test_nodes_have_more_to_allocate_and_csi_drivers(bench: Bench) -> None:
    strategy = {
        "nodeAllocatable": {"example.com/disk": "3"},
        "csiNodeAllocatable": {"d": {"count": 1}},
    }
    volumes = {
        "persistentVolumeTemplatePath": "volume.yaml",
        "persistentVolumeClaimTemplatePath": "claim.yaml",
    }
    limited = {**NODES, "nodeAllocatableStrategy": strategy}
    assert bench.of(limited, {**MEASURED, **volumes, "count": 3}).outcome is RunOutcome.MEASURED
    assert len(set(bench.pods.values())) == 3
    row = bench.target.engine.cluster.nodes.node(0)
    assert dict(row.allocatable)["example.com/disk"] == 3

    # Every node takes one volume, so the fourth pod has no place.
    failed = bench.of(limited, {**MEASURED, **volumes, "count": 4})
    assert failed.outcome is RunOutcome.FAILED
    assert "exceed max volume count" in failed.why


def test_a_pod_that_stays_pending_fails_the_run(bench: Bench) -> None:
    result = bench.of(NODES, {**MEASURED, **LARGE, "count": 7})

    assert (result.outcome, result.measured) == (RunOutcome.FAILED, ())
    assert result.why == (
        "1 pods stay pending, such as namespace-1/large-00009: 0/3 nodes are available: 3 "
        "Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available: 3 No "
        "preemption victims found for incoming pod."
    )


def test_a_pod_that_is_evicted_is_gone_and_counts_as_placed(bench: Bench) -> None:
    low = {**LARGE, "namespace": "ns", "count": 6}
    urgent = {**MEASURED, "namespace": "ns", "podTemplatePath": "important.yaml"}
    result = bench.of(NODES, low, urgent)

    assert result.measured[0].placed == 4
    names = [pod.partition("-")[0] for pod in bench.pods]
    assert sorted(names) == ["large"] * 2 + ["urgent"] * 4
    ledger, cluster = bench.target.ledger, bench.target.engine.cluster
    assert (ledger.entries.keys(), ledger.placed_count) == (cluster.pods.keys(), 10)
    assert {each.uid for each in bench.target._pods.values()} == cluster.pods.keys()


def test_a_barrier_waits_for_pods_that_were_left(bench: Bench) -> None:
    pods = {**LARGE, "count": 6, "namespace": "ns", **BACKGROUND}
    result = bench.of(NODES, START, pods, {"opcode": "barrier", "namespaces": ["ns"]}, STOP)
    assert result.measured[0].placed == 6


def test_without_a_barrier_nobody_waits(bench: Bench) -> None:
    result = bench.of(NODES, {**LARGE, "count": 60, **BACKGROUND}, {**MEASURED, "count": 0})
    assert result.outcome is RunOutcome.MEASURED


def test_a_barrier_for_attempts_is_content_with_failures_and_gates(bench: Bench) -> None:
    tried = {"opcode": "barrier", "stageRequirement": "Attempted"}
    gated = {"opcode": "createPods", "podTemplatePath": "gated.yaml", "count": 2, **BACKGROUND}
    pods = {**LARGE, "count": 9, "namespace": "ns", **BACKGROUND}
    result = bench.of(NODES, START, pods, gated, tried, STOP)

    measured = result.measured[0]
    assert (result.outcome, measured.placed) == (RunOutcome.MEASURED, 6)
    assert len(measured.latencies["unschedulable"]) >= 3


def test_a_barrier_looks_at_labels(bench: Bench) -> None:
    pods = {**LARGE, "count": 9, "namespace": "ns", **BACKGROUND}
    first = {"opcode": "barrier", "labelSelector": {"index": "0"}}
    assert bench.of(NODES, START, pods, first, STOP).outcome is RunOutcome.MEASURED
    last = {"opcode": "barrier", "labelSelector": {"index": "8"}}
    assert bench.of(NODES, START, pods, last, STOP).outcome is RunOutcome.FAILED


def test_a_barrier_of_an_unknown_namespace_is_a_mistake(bench: Bench) -> None:
    with pytest.raises(WorkloadError, match="Case/Only: op 0: namespaces: 'x' is not known"):
        bench.of({"opcode": "barrier", "namespaces": ["x"]}, MEASURED)


@pytest.mark.parametrize("more", [{}, {"deletePodsPerSecond": 2}])
def test_deleted_pods_make_room(bench: Bench, more: dict[str, Any]) -> None:
    first = {**LARGE, "count": 6, "namespace": "ns"}
    deleted = {"opcode": "deletePods", "namespace": "ns", "labelSelector": {"index": "3"}, **more}
    bench.of(NODES, first, deleted, {**MEASURED, **LARGE, "count": 1})
    assert len(bench.pods) == 6


def test_pods_are_deleted_in_the_background_while_others_wait_for_room(bench: Bench) -> None:
    first = {**LARGE, "count": 6, "namespace": "ns"}
    deleted = {"opcode": "deletePods", "namespace": "ns", "deletePodsPerSecond": 1, **BACKGROUND}
    result = bench.of(NODES, first, deleted, {**MEASURED, **LARGE, "count": 6})

    # It took six seconds to have room for all, of which next to nothing was spent on deciding.
    assert result.outcome is RunOutcome.MEASURED
    assert bench.target.now > 6.0 > 1.0 > result.measured[0].seconds


def test_a_pod_with_finalizers_stays_and_terminates(bench: Bench) -> None:
    final = {"opcode": "createPods", "podTemplatePath": "final.yaml", "count": 1}
    deleted = {"opcode": "deletePods", "namespace": "ns"}
    bench.of(NODES, {**final, "namespace": "ns"}, deleted, {**MEASURED, "count": 0})
    (pod,) = bench.target.engine.cluster.pods.values()
    assert pod.terminating


def test_updates_replace_nodes(bench: Bench) -> None:
    tainted = {"opcode": "createNodes", "count": 2, "nodeTemplatePath": "tainted.yaml"}
    pods = {**LARGE, "count": 4, "namespace": "ns", **BACKGROUND}
    update = {"opcode": "updateAny", "templatePath": "plain.yaml", "count": 2, "updatePerSecond": 1}
    tried = {"opcode": "barrier", "stageRequirement": "Attempted"}
    result = bench.of(tainted, START, pods, tried, update, {"opcode": "barrier"}, STOP)
    assert result.measured[0].placed == 4


def test_updates_of_what_is_not_there_are_a_mistake(bench: Bench) -> None:
    with pytest.raises(WorkloadError, match="Node tainted-0: not found"):
        bench.of({"opcode": "updateAny", "templatePath": "plain.yaml"}, MEASURED)


def test_anything_is_created_in_a_namespace_if_its_kind_has_one(bench: Bench) -> None:
    service = {"opcode": "createAny", "templatePath": "service.yaml"}
    assert bench.of(NODES, {**service, "namespace": "x", "count": 2}, MEASURED).measured
    with pytest.raises(WorkloadError, match="namespace: is required for a Service"):
        bench.of(service, MEASURED)
    with pytest.raises(WorkloadError, match="namespace: must be empty for a Node"):
        bench.of({"opcode": "createAny", "templatePath": "plain.yaml", "namespace": "x"}, MEASURED)


def test_a_priority_class_that_nobody_defines_is_a_mistake(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "urgent.yaml").write_text(
        STATIC_POD.replace("spec:", "spec:\n  priorityClassName: urgent")
    )
    urgent = {**MEASURED, "podTemplatePath": "urgent.yaml"}
    with pytest.raises(WorkloadError, match=r"large-\d+: spec.priorityClassName: urgent is not"):
        bench.of(NODES, urgent)


def test_namespaces_have_the_labels_of_their_template(bench: Bench) -> None:
    made = {"opcode": "createNamespaces", "prefix": "n", "count": 2}
    bench.of(made | {"namespaceTemplatePath": "namespace.yaml"}, NODES, MEASURED)
    workloads = bench.target.engine.cluster.nodes.workloads
    assert {name: dict(workloads.namespace_labels(name)) for name in ("n-0", "n-1")} == {
        "n-0": {"team": "a"},
        "n-1": {"team": "a"},
    }


@pytest.mark.parametrize("interval", [{}, {"intervalMilliseconds": 0}])
def test_churn_creates_up_to_a_number(bench: Bench, interval: dict[str, int]) -> None:
    churn = {"opcode": "churn", "mode": "create", "templatePaths": ["static.yaml"], "number": 2}
    churn |= interval
    bench.of(NODES, churn, {"opcode": "sleep", "duration": "10s"}, {**MEASURED, "count": 1})
    assert len(bench.pods) == 3


def test_churn_recreates_in_turn(bench: Bench) -> None:
    churn = {
        "opcode": "churn",
        "mode": "recreate",
        "templatePaths": ["static.yaml"],
        "number": 2,
        "intervalMilliseconds": 1000,
    }

    def after(duration: str) -> int:
        bench.of(NODES, churn, {"opcode": "sleep", "duration": duration}, {**MEASURED, "count": 0})
        return len(bench.pods)

    assert [after(each) for each in ("1500ms", "2500ms", "3500ms", "4500ms")] == [1, 2, 1, 0]


def test_a_steady_state_replaces_the_pods_for_as_long_as_is_said(bench: Bench) -> None:
    steady = {**MEASURED, **LARGE, "count": 6, "steadyState": True, "duration": "100ms"}
    (measured,) = bench.of(NODES, steady).measured
    assert measured.placed > 12
    assert measured.placed % 6 == 0
    assert len(bench.pods) == 6


def test_pods_of_a_batch_share_a_label(bench: Bench) -> None:
    bench.of(NODES, {**MEASURED, "signatureBatchSize": 2})
    labels = [dict(pod.labels) for pod in bench.target.engine.cluster.pods.values()]
    assert labels == [{"signature": f"signature-label-{number}"} for number in (0, 0, 1, 1)]


def test_measurements_may_not_overlap(bench: Bench) -> None:
    with pytest.raises(WorkloadError, match="op 1: a measurement is under way already"):
        bench.of(START, START, STOP)
    with pytest.raises(WorkloadError, match="op 0: no measurement was started"):
        bench.of(STOP)


def test_a_gate_that_is_missing_is_named(bench: Bench) -> None:
    result = bench.of(NODES, MEASURED, featureGates={"CompositePodGroup": True})
    told = "CompositePodGroup: not supported by Moorage yet"
    assert (result.outcome, result.why) == (RunOutcome.NOT_SUPPORTED, told)


def test_go_reads_fields_whose_first_letter_is_large(bench: Bench, tmp_path: Path) -> None:
    """scheduler_perf has a template that depends on it."""
    spread = """
apiVersion: v1
kind: Pod
metadata: {generateName: p-, labels: {Foo: bar}}
spec:
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: DoNotSchedule
      NodeTaintsPolicy: Honor
      labelSelector: {matchLabels: {Foo: bar}}
"""
    (tmp_path / "spread.yaml").write_text(spread)
    tainted = {"opcode": "createNodes", "count": 1, "nodeTemplatePath": "tainted.yaml"}
    result = bench.of(NODES, tainted, {**MEASURED, "count": 6, "podTemplatePath": "spread.yaml"})
    assert result.outcome is RunOutcome.MEASURED


def test_nodes_declare_as_many_features_as_a_parameter_says(bench: Bench) -> None:
    workloads = [{"name": "Only", "params": {"numNodeDeclaredFeatures": 2}}]
    bench.of(NODES, MEASURED, workloads=workloads)
    node = bench.target.engine.cluster.nodes.node(0)
    assert node.declared_features == {"Feature1", "Feature2"}
