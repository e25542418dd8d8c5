"""Workloads through an embedded API server: placed by processes, cleaned up, told when it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.bench.cases import RunFailed, WorkloadError
from moorage.bench.harness import RunOutcome
from moorage.bench.live.object_writer import group_by_pod
from moorage.bench.live.processes import SchedulerProcess, fill_placeholders
from moorage.cli.bench import EMBEDDED, Batching
from tests.bench.servers import patience, run_through, script
from tests.bench.workloads import LARGE_POD, MEASURED, NODES, case, job

VOLUME = """
apiVersion: v1
kind: PersistentVolume
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  csi: {driver: disks.example, fsType: ext4}
  persistentVolumeReclaimPolicy: Retain
"""
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {annotations: {pv.kubernetes.io/bind-completed: "true"}}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
"""
FINALIZED_POD = LARGE_POD.replace("generateName: large-", "generateName: f-\n  finalizers: [a/b]")


def test_workloads_follow_each_other_on_one_server(tmp_path: Path) -> None:
    with_volumes = job(
        tmp_path,
        case(
            NODES,
            {
                **MEASURED,
                "persistentVolumeTemplatePath": "volume.yaml",
                "persistentVolumeClaimTemplatePath": "claim.yaml",
            },
        ),
        volume=VOLUME,
        claim=CLAIM,
    )
    (tmp_path / "deleting").mkdir()
    deleting = job(
        tmp_path / "deleting",
        case(
            NODES,
            {"opcode": "createPods", "count": 6, "namespace": "a", "podTemplatePath": "pod.yaml"},
            {
                "opcode": "createPods",
                "count": 2,
                "namespace": "b",
                "podTemplatePath": "final.yaml",
                "skipWaitToCompletion": True,
            },
            {"opcode": "deletePods", "namespace": "b"},
            {"opcode": "deletePods", "namespace": "a"},
            {**MEASURED, "podTemplatePath": "pod.yaml"},
        ),
        pod=LARGE_POD,
        final=FINALIZED_POD,
    )

    # Each runs twice, with the same names again: what is left of a run is in the next one's way.
    results = run_through(EMBEDDED, with_volumes, deleting, batching=Batching.BOTH)

    assert [(result.outcome, result.why) for result in results] == [(RunOutcome.MEASURED, "")] * 4
    assert [result.by for result in results[:2]] == [
        "moorage, batching as the case says",
        "moorage, default gates",
    ]
    for result in results:
        (measured,) = result.measured
        assert measured.placed == 4
        assert measured.pods_per_second > 0
        assert max(measured.memory_bytes) > 2**20
        assert {item.labels["scheduler"] for item in result.items} == {result.by}


def test_what_cannot_be_measured_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full: dict[str, Any] = {**MEASURED, "count": 7, "podTemplatePath": "pod.yaml"}
    overfull = job(tmp_path, case(NODES, full), pod=LARGE_POD)
    (tmp_path / "invalid").mkdir()
    invalid = job(
        tmp_path / "invalid",
        case(NODES, {**MEASURED, "podTemplatePath": "pod.yaml"}),
        pod=LARGE_POD.replace("name: pause", "name: NOT_A_NAME"),
    )
    # A busy machine may need longer than two seconds to place those that have a place.
    for seconds in (2.0, 20.0, 200.0):
        patience(monkeypatch, seconds)
        pending, refused = run_through(EMBEDDED, overfull, invalid)
        if "Insufficient cpu" in pending.why and pending.why.startswith("1 pods"):
            break

    assert pending.outcome is refused.outcome is RunOutcome.FAILED
    assert pending.why.startswith("1 pods stay pending, such as namespace-1/large-")
    assert "3 Insufficient cpu" in pending.why
    assert refused.why.startswith("Pod namespace-1/large-")
    assert "the API server refused it: " in refused.why
    assert "spec.containers[0].name" in refused.why


def test_a_scheduler_that_ends_is_told_with_its_log(tmp_path: Path) -> None:
    gone = script(tmp_path, 'echo "no such flag: $1"; exit 3')
    small = job(tmp_path, case(NODES, MEASURED))
    (result,) = run_through(EMBEDDED, small, schedulers=(f"{gone} --config={{config}}",))

    assert result.outcome is RunOutcome.FAILED
    assert result.by == "fake-scheduler"
    assert "fake-scheduler ended with code 3; the end of its log:" in result.why
    assert "no such flag: --config=" in result.why


def test_a_cluster_in_use_is_refused(tmp_path: Path) -> None:
    from moorage.bench.live.control_plane import open_control_plane
    from moorage.bench.live.object_writer import ObjectWriter
    from moorage.bench.live.processes import embedded_server

    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "somebody's"}}
    with embedded_server(tmp_path) as kubeconfig:
        with open_control_plane(kubeconfig) as plane:
            with pytest.raises(RunFailed, match="Node somebody's: the API server refused"):
                plane.run(ObjectWriter(plane.api, plane.custom).create(node))
            plane.run(
                ObjectWriter(plane.api, plane.custom).create(
                    {**node, "metadata": {"name": "theirs"}}
                )
            )
        with (
            pytest.raises(WorkloadError, match="has nodes already"),
            open_control_plane(kubeconfig),
        ):
            pass


def test_placeholders_are_replaced_anywhere_in_a_word() -> None:
    command = ["a", "--b={config}", "{kubeconfig}", "{other}"]
    values = {"config": "c", "kubeconfig": "k k"}
    assert fill_placeholders(command, values) == ["a", "--b=c", "k k", "{other}"]


def test_processes_are_measured_from_outside(tmp_path: Path) -> None:
    busy = script(tmp_path, "echo begun; while :; do :; done")
    process = SchedulerProcess("busy", [busy], tmp_path / "log")
    try:
        while process.processor_seconds < 0.05 or "begun" not in process.log:
            process.check()
        assert process.peak_bytes > 2**16
    finally:
        process.stop()
    with pytest.raises(RunFailed, match="busy ended with code -15"):
        process.check()
    with pytest.raises(WorkloadError, match="--scheduler: /no/such: no such file"):
        SchedulerProcess("missing", ["/no/such"], tmp_path / "log")


def test_a_pod_comes_after_its_volumes() -> None:
    kinds = ("Node", "PersistentVolumeClaim", "PersistentVolume", "Pod", "Pod", "PersistentVolume")
    groups = [
        [raw["kind"] for raw in group] for group in group_by_pod({"kind": kind} for kind in kinds)
    ]
    assert groups == [
        ["Node"],
        ["PersistentVolumeClaim", "PersistentVolume", "Pod"],
        ["Pod"],
        ["PersistentVolume"],
    ]


def test_what_a_scheduler_did_is_checked_and_claims_are_bound(tmp_path: Path) -> None:
    from moorage.bench.live.cluster_view import bind_claim, check_nodes
    from moorage.bench.live.control_plane import open_control_plane
    from moorage.bench.live.object_writer import ObjectKey, ObjectWriter
    from moorage.bench.live.processes import embedded_server

    room = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "600m"}}}
    claim = ObjectKey("PersistentVolumeClaim", "default", "mine")
    objects: list[dict[str, Any]] = [
        {"kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": room}},
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "mine", "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
        *(
            {
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"nodeName": "n", "containers": [container]},
            }
            for name in ("one", "two")
        ),
    ]
    with embedded_server(tmp_path) as kubeconfig, open_control_plane(kubeconfig) as plane:
        writer = ObjectWriter(plane.api, plane.custom)
        plane.run(writer.create_all({"apiVersion": "v1", **each} for each in objects[:-1]))
        plane.run(check_nodes(plane.api))
        plane.run(writer.create({"apiVersion": "v1", **objects[-1]}))
        with pytest.raises(AssertionError, match="Node n: its pods ask for more cpu"):
            plane.run(check_nodes(plane.api))
        plane.run(bind_claim(plane.api, "disk", claim))
        plane.run(bind_claim(plane.api, "another", claim))
        bound = plane.run(plane.api.get(claim.path))
        assert b'"volumeName":"disk"' in bound
        assert b'"phase":"Bound"' in bound
        plane.run(bind_claim(plane.api, "disk", ObjectKey(claim.kind, "default", "gone")))
