"""Devices and claims of workloads."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from moorage.bench.cases import NotPlaced
from moorage.bench.device_claims import publish
from moorage.bench.harness import Result, RunOutcome
from moorage.bench.live.claim_allocation import allocate_claims
from moorage.bench.live.control_plane import open_control_plane
from moorage.bench.live.object_writer import ObjectKey, ObjectWriter, clean
from moorage.bench.live.processes import embedded_server
from moorage.bench.operations import CreateResourceDriver
from moorage.cli.bench import EMBEDDED
from moorage.client import Api
from moorage.client.listing import list_kinds
from moorage.objects.resource_claim import FINALIZER
from tests.bench.servers import run_through
from tests.bench.workloads import MEASURED, NODES, Runs, case, job

DEVICES = {"apiVersion": "resource.k8s.io/v1"}
ONE_GPU = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
CLASS = {**DEVICES, "kind": "DeviceClass", "metadata": {"name": "gpu"}}
CLAIM = {**DEVICES, "kind": "ResourceClaim", "metadata": {"name": "c-{{.Index}}"}, "spec": ONE_GPU}
TEMPLATE = {
    **DEVICES,
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one"},
    "spec": {"spec": ONE_GPU},
}
CLAIMING = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "claiming-"},
    "spec": {
        "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10.1"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}],
    },
}
DRIVER = {"opcode": "createResourceDriver", "driverName": "d", "maxClaimsPerNode": 2}


class DeviceRuns(Runs):
    """Runs operations in a folder with the templates of this file."""

    def __init__(self, folder: Path) -> None:
        super().__init__(tick=1e-4)
        self._folder = folder

    def of(self, *operations: dict[str, Any]) -> Result:
        manifests = {"class": CLASS, "claim": CLAIM, "template": TEMPLATE, "pod": CLAIMING}
        texts = {name: yaml.safe_dump(each) for name, each in manifests.items()}
        return self(job(self._folder, case(*operations), **texts))


def make_any(path: str, **fields: Any) -> dict[str, Any]:
    return {"opcode": "createAny", "templatePath": f"{path}.yaml", **fields}


def test_devices_are_published_handed_out_and_claimed(tmp_path: Path) -> None:
    """Three nodes with two devices each: three are given away, and each pod gets one of the rest.

    When the pods go, so do their claims, and others get the devices.
    """
    pods = {"opcode": "createPods", "namespace": "n", "count": 3, "podTemplatePath": "pod.yaml"}
    bench = DeviceRuns(tmp_path)
    result = bench.of(
        NODES,
        {**DRIVER, "nodes": "*"},
        make_any("class"),
        {
            "opcode": "createResourceClaims",
            "namespace": "taken",
            "templatePath": "claim.yaml",
            "count": 3,
        },
        {"opcode": "allocResourceClaims", "namespace": "taken"},
        make_any("template", namespace="n"),
        pods,
        {"opcode": "deletePods", "namespace": "n"},
        {**pods, "collectMetrics": True},
    )

    assert (result.outcome, result.why) == (RunOutcome.MEASURED, "")
    claims = list(bench.target.engine.cluster.nodes.devices.claims)
    given = [
        (each.pool, each.device)
        for claim in claims
        if claim.allocation is not None
        for each in claim.allocation.results
    ]
    assert len(claims) == len(given) == len(set(given)) == 6
    assert sum(claim.namespace == "taken" for claim in claims) == 3


def test_a_driver_publishes_on_the_nodes_that_are_meant(tmp_path: Path) -> None:
    bench = DeviceRuns(tmp_path)
    bench.of(NODES, {**DRIVER, "nodes": "node-0-*1"}, MEASURED)
    assert [each.nodes for each in bench.target.engine.cluster.nodes.devices.slices.values()] == [
        "node-0-00001"
    ]


def test_claims_for_which_there_are_no_devices_fail_the_run(tmp_path: Path) -> None:
    made, hand_out = make_any("claim", namespace="n"), {"opcode": "allocResourceClaims"}
    result = DeviceRuns(tmp_path).of(NODES, make_any("class"), made, hand_out, MEASURED)
    assert result.outcome is RunOutcome.FAILED
    assert result.why == "there are no devices for claim n/c-0"


def test_devices_are_handed_out_through_an_api_server(tmp_path: Path) -> None:
    """Two nodes have two devices each: four claims get one each, and a fifth one gets none."""
    claims = [
        {**CLAIM, "metadata": {"name": f"c-{at}", "namespace": space}}
        for space, numbers in (("taken", range(4)), ("free", range(1)))
        for at in numbers
    ]
    nodes = ["node-0", "node-1"]
    driver = CreateResourceDriver(driver_name="d", nodes="*", max_claims_per_node=2)
    with (
        embedded_server(tmp_path) as kubeconfig,
        open_control_plane(kubeconfig) as plane,
    ):
        writer = ObjectWriter(plane.api, plane.custom)
        for kind, name in [
            *(("Node", each) for each in nodes),
            ("Namespace", "taken"),
            ("Namespace", "free"),
        ]:
            plane.run(writer.create({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}))
        plane.run(writer.create_all([CLASS, *publish(driver, nodes), *claims]))

        plane.run(allocate_claims(plane.api, writer, "taken"))
        found = plane.run(
            list_kinds(plane.api, ["ResourceClaim"], lambda *why: pytest.fail(str(why)))
        )
        with pytest.raises(NotPlaced, match="there are no devices for claim free/c-0"):
            plane.run(allocate_claims(plane.api, writer, ""))

    assert {each.key for each in found if each.allocation is None} == {"free/c-0"}
    given = [each for each in found if each.allocation is not None]
    devices = {(at.pool, at.device) for each in given for at in each.allocation.results}
    assert len(given) == len(devices) == 4
    assert all(each.finalizers == (FINALIZER,) for each in given)


def test_workloads_with_devices_run_through_an_api_server(tmp_path: Path) -> None:
    texts = {"class": CLASS, "claim": CLAIM, "template": TEMPLATE, "pod": CLAIMING}
    workload = job(
        tmp_path,
        case(
            NODES,
            {**DRIVER, "nodes": "*"},
            make_any("class"),
            make_any("claim", namespace="taken", count=3),
            {"opcode": "allocResourceClaims", "namespace": "taken"},
            make_any("template", namespace="n"),
            {**MEASURED, "namespace": "n", "count": 3, "podTemplatePath": "pod.yaml"},
        ),
        **{name: yaml.safe_dump(each) for name, each in texts.items()},
    )
    (result,) = run_through(EMBEDDED, workload)
    assert (result.outcome, result.why) == (RunOutcome.MEASURED, "")
    assert [each.placed for each in result.measured] == [3]


class ClaimServer:
    """An API server that has claims of the workload's own, and one that a controller made."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def get(self, path: str) -> bytes:
        return b'{"items": [{"metadata": {"name": "own"}}, {"metadata": {"name": "made"}}]}'

    async def delete(self, path: str, body: bytes) -> bytes:
        self.deleted.append(path.rpartition("/")[2])
        return b"{}"

    async def put(self, path: str, body: bytes) -> bytes:
        return b"{}"


def test_claims_that_others_made_are_deleted_after_a_run() -> None:
    server = ClaimServer()
    writer = ObjectWriter(cast(Api, server), {})
    writer.made = {
        ObjectKey("Namespace", "", "n"): None,
        ObjectKey("ResourceClaim", "n", "own"): None,
    }

    asyncio.run(clean(cast(Api, server), writer))

    assert server.deleted == ["own", "made", "n"]
    assert not writer.made
