"""Pods with claims to devices in `moorage simulate` and `moorage fit`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moorage import read_cluster
from tests.builders import Manifest, node_manifest, pod_manifest
from tests.cli.invoking import Moorage
from tests.device_builders import claim_manifest, device, result, slice_manifest

_API = {"apiVersion": "resource.k8s.io/v1"}
CLASS: Manifest = {**_API, "kind": "DeviceClass", "metadata": {"name": "gpu"}}
# What an API server fills in is left out: one device.
SPEC: Manifest = {"devices": {"requests": [{"name": "r0", "exactly": {"deviceClassName": "gpu"}}]}}
TEMPLATE: Manifest = {
    **_API,
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one"},
    "spec": {"spec": SPEC},
}


def gpus(node_name: str, model: str, count: int) -> Manifest:
    attributes = {"model": {"string": model}}
    devices = [device(f"gpu-{at}", attributes=attributes) for at in range(count)]
    return slice_manifest(node_name, devices)


def claiming(name: str, **fields: Any) -> Manifest:
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]}
    return pod_manifest(name, spec={**spec, **fields.pop("spec", {})}, **fields)


CLUSTER = (
    *(node_manifest("n1"), gpus("n1", "A100", 3)),
    *(node_manifest("n2"), gpus("n2", "A30", 2)),
    CLASS,
)


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(name: str, *manifests: Manifest) -> str:
        path = tmp_path / name
        path.write_text("\n".join(map(json.dumps, manifests)))
        return str(path)

    return write


def test_pods_with_claims_from_templates_are_placed_until_devices_run_out(
    moorage: Moorage, write: Any
) -> None:
    pods = [claiming(f"p{number}") for number in range(6)]

    simulated = moorage("simulate", write("cluster.json", *CLUSTER, TEMPLATE, *pods))

    assert "5 placed, 1 pending, 2 nodes" in simulated.out
    assert "0/2 nodes are available: 2 cannot allocate all claims." in simulated.out


def test_claims_that_a_pod_names_are_shared(moorage: Moorage, write: Any) -> None:
    shared = {**claim_manifest("shared"), "spec": SPEC}
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}]}
    pods = [pod_manifest(f"p{number}", spec=spec) for number in range(3)]

    simulated = moorage("simulate", write("cluster.json", *CLUSTER, shared, *pods))

    assert "3 placed, 0 pending, 2 nodes" in simulated.out


def test_it_is_told_how_many_more_such_claims_fit(moorage: Moorage, write: Any) -> None:
    cluster = write("cluster.json", *CLUSTER, claiming("running", node="n1"))
    copy = write("pod.json", TEMPLATE, claiming("copy"))

    found = moorage("fit", cluster, "-f", copy, "--count", "8")

    assert found.code == 1
    assert found.out.startswith("5 of 8 pods fit, on 2 of 2 nodes\n")
    assert "cannot allocate all claims   2       n1, n2" in found.out


def test_a_drain_frees_the_devices_of_the_pods_that_leave(moorage: Moorage, write: Any) -> None:
    owner = {"kind": "Pod", "name": "p", "uid": "default/p", "controller": True}
    selector = {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
        ]
    }
    held = claim_manifest(
        "p-gpu",
        metadata={"ownerReferences": [owner]},
        allocation={"devices": {"results": [result("n1", "gpu-0")]}, "nodeSelector": selector},
        status={"reservedFor": [{"resource": "pods", "name": "p", "uid": "default/p"}]},
    )
    made = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu"}]}
    pod = claiming("p", node="n1", status=made)

    found = moorage("fit", write("cluster.json", *CLUSTER, held, pod), "--drain", "n1")

    assert found.code == 0
    assert "default/p   n1     n2" in found.out


def test_a_workload_brings_its_template(moorage: Moorage, write: Any) -> None:
    metadata = {"labels": {"app": "train"}}
    template = {"metadata": metadata, "spec": claiming("p")["spec"]}
    selector = {"matchLabels": metadata["labels"]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "train"},
        "spec": {"replicas": 6, "selector": selector, "template": template},
    }
    workload = write("train.json", TEMPLATE, deployment)

    found = moorage("fit", write("cluster.json", *CLUSTER), "-f", workload)

    assert found.code == 1
    assert "deployment default/train: 1 of 6 pods finds no node" in found.out


def test_a_template_that_cannot_be_read_is_named(moorage: Moorage, write: Any) -> None:
    bad = {**TEMPLATE, "spec": {"spec": {"devices": {"requests": "none"}}}}

    found = moorage("simulate", path := write("cluster.json", *CLUSTER, bad, claiming("p")))

    assert found.code == 2
    assert f"{path}:" in found.err
    assert "ResourceClaimTemplate one: spec.spec.devices.requests: " in found.err


def test_python_asks_the_same(write: Any) -> None:
    cluster = read_cluster(write("cluster.json", *CLUSTER, TEMPLATE))

    assert cluster.fit(claiming("copy"), count=8).placed == 5
