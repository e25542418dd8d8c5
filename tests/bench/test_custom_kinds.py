"""Workloads that define kinds of their own, and a plugin that reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.bench.cases import Job, WorkloadError, read_jobs
from moorage.bench.custom_kinds import custom_kind
from moorage.bench.engine_target import EngineTarget
from moorage.bench.harness import RunOutcome, run
from moorage.bench.live.control_plane import open_control_plane
from moorage.bench.live.processes import embedded_server
from moorage.cli.bench import EMBEDDED
from moorage.cli.bench_targets import engine_targets
from moorage.cluster.extended.resources import extended_figures
from moorage.objects.custom import CustomKind
from moorage_policies.disk_io.disk_io_resource import DISK_IO, KIND
from tests.bench.servers import run_through
from tests.bench.workloads import MEASURED, NODES, Runs, case, job

ROOT = Path(__file__).parents[2]
EXTENDED = ROOT / "benchmarks" / "extended"
CRD = (ROOT / "deploy" / "disk-io" / "nodediskiostatuses.yaml").read_text()
STATUS = "{apiVersion: diskio.moorage.dev/v1alpha1, kind: NodeDiskIOStatus, metadata: {name: a}}"


def small(name: str) -> Job:
    (found,) = [each for each in read_jobs(EXTENDED) if each.name == f"{name}/10Nodes"]
    return found


def definition(**changes: Any) -> dict[str, Any]:
    raw = yaml.safe_load(CRD)
    return {**raw, "spec": {**raw["spec"], **changes}}


@pytest.mark.parametrize(
    ("name", "megabytes"),
    # 40 MiB/s each in blocks that cost half as much again.
    [("WithDiskIO", 20 * 60), ("WithoutDiskIO", 0)],
)
def test_objects_reach_the_plugin_that_reads_them(name: str, megabytes: int) -> None:
    made = engine_targets("", lambda placed: None)
    targets: list[EngineTarget] = []

    def kept(job: Job) -> EngineTarget:
        target = made(job)
        assert isinstance(target, EngineTarget)
        targets.append(target)
        return target

    result = run(small(name), kept)

    assert (result.outcome, result.why) == (RunOutcome.MEASURED, "")
    nodes = extended_figures(targets[0].engine.cluster.extended).get(DISK_IO, {})
    assert sum(each["read_used"] for each in nodes.values()) == megabytes * 2**20


def test_a_definition_names_the_kind_in_the_version_that_is_kept() -> None:
    assert custom_kind(yaml.safe_load(CRD)) == KIND.whole
    versions = [{"name": "v1"}, {"name": "v2", "storage": True}]
    defined = custom_kind(definition(scope="Namespaced", versions=versions))
    assert defined == CustomKind(KIND.group, "v2", KIND.kind, KIND.plural, namespaced=True)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"versions": [{"name": "v1"}]}, "spec.versions: none has storage: true"),
        ({"scope": "Galaxy"}, "Invalid enum value 'Galaxy' - at `$.spec.scope`"),
        ({"group": None}, "Expected `str`, got `null` - at `$.spec.group`"),
    ],
)
def test_a_definition_that_cannot_be_used_is_told_with_its_name(
    changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(WorkloadError) as refused:
        custom_kind(definition(**changes))
    assert str(refused.value) == (
        f"CustomResourceDefinition nodediskiostatuses.diskio.moorage.dev: {told}"
    )


def test_a_kind_that_nobody_defines_is_named(tmp_path: Path) -> None:
    made = {"opcode": "createAny", "templatePath": "status.yaml"}
    result = Runs()(job(tmp_path, case(NODES, made, MEASURED), status=STATUS))
    assert (result.outcome, result.why) == (
        RunOutcome.NOT_SUPPORTED,
        "objects of kind NodeDiskIOStatus",
    )


def test_a_kind_without_namespaces_is_refused_in_one(tmp_path: Path) -> None:
    defined = {"opcode": "createAny", "templatePath": "crd.yaml"}
    made = {"opcode": "createAny", "templatePath": "status.yaml", "namespace": "x"}
    workload = job(tmp_path, case(NODES, defined, made, MEASURED), crd=CRD, status=STATUS)
    with pytest.raises(WorkloadError, match="namespace: must be empty for a NodeDiskIOStatus"):
        Runs()(workload)


def test_custom_objects_are_updated_and_churned(tmp_path: Path) -> None:
    defined = {"opcode": "createAny", "templatePath": "crd.yaml"}
    made = {"opcode": "createAny", "templatePath": "status.yaml"}
    updated = {"opcode": "updateAny", "templatePath": "status.yaml"}
    churn = {
        "opcode": "churn",
        "mode": "recreate",
        "number": 1,
        "templatePaths": ["churned.yaml"],
    }
    slept = {"opcode": "sleep", "duration": "2s"}
    operations = (NODES, defined, made, updated, churn, slept, MEASURED)
    workload = job(
        tmp_path,
        case(*operations),
        crd=CRD,
        status=STATUS,
        churned=STATUS.replace("name: a", "generateName: b-"),
    )
    assert Runs()(workload).outcome is RunOutcome.MEASURED


def test_kinds_are_defined_on_an_api_server_before_the_scheduler_starts() -> None:
    results = run_through(EMBEDDED, small("WithDiskIO"), small("WithoutDiskIO"))
    assert [(each.outcome, each.why) for each in results] == [(RunOutcome.MEASURED, "")] * 2


def test_an_api_server_is_left_without_kinds_that_it_did_not_have(tmp_path: Path) -> None:
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    with embedded_server(tmp_path) as kubeconfig:
        with open_control_plane(kubeconfig) as plane:
            # Twice, because every workload that needs a kind defines it.
            plane.define([yaml.safe_load(CRD)])
            plane.define([yaml.safe_load(CRD)])
            assert plane.custom[KIND.kind].plural == KIND.plural
            assert KIND.plural.encode() in plane.run(plane.api.get(crds))
        with open_control_plane(kubeconfig) as plane:
            assert KIND.plural.encode() not in plane.run(plane.api.get(crds))
