"""What `moorage run` writes to a real API server: statuses, events, evictions, volumes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.patience import until

from .arena import Arena, Manifest, node, pod
from .control_plane import MOORAGE_TOKEN, ControlPlane
from .moorage_process import MoorageProcess, kubeconfig, moorage

pytestmark = [pytest.mark.live, pytest.mark.embedded_will_do]

_PODS = "/api/v1/namespaces/default/pods"
_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
_VOLUMES = "/api/v1/persistentvolumes"
_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
_MERGE = {"Content-Type": "application/merge-patch+json"}


@pytest.fixture
async def scheduler(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> AsyncIterator[MoorageProcess]:
    """A scheduler that knows a node of one core.

    The node is there before: pods and nodes have watches of their own, and a pod may be heard of
    before an older node is.
    """
    access = kubeconfig(tmp_path / "kubeconfig", plane.server, MOORAGE_TOKEN)
    await admin.create([node("n1", cpu=1)])
    async with moorage(tmp_path / "log", access, "--leader-elect=false") as process:
        await process.logged("leads")
        yield process


async def seen(admin: Arena, path: str, wanted: Callable[[Manifest], Any]) -> Manifest:
    """The object once it is as wanted."""
    found: Manifest = {}

    async def is_so() -> bool:
        found.clear()
        found.update(await admin.request("GET", path))
        return bool(wanted(found))

    await until(is_so, path)
    return found


def condition(manifest: Manifest, kind: str) -> Manifest:
    conditions = manifest.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), {})


@pytest.mark.usefixtures("scheduler")
async def test_a_pod_that_fits_nowhere_is_told_why(admin: Arena) -> None:
    await admin.create([pod("big", cpu="2")])
    told = await seen(admin, f"{_PODS}/big", lambda it: condition(it, "PodScheduled"))

    because = condition(told, "PodScheduled")
    assert (because["status"], because["reason"]) == ("False", "Unschedulable")
    assert because["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    (event,) = await admin.told("FailedScheduling")
    assert event["note"] == because["message"]
    assert event["reportingController"] == "default-scheduler"


@pytest.mark.usefixtures("scheduler")
async def test_a_repeated_failure_is_one_event_with_a_series(admin: Arena) -> None:
    def fails_on(nodes: int) -> Callable[[Manifest], bool]:
        told = f"0/{nodes} nodes are available"
        return lambda it: condition(it, "PodScheduled").get("message", "").startswith(told)

    await admin.create([pod("big", cpu="9")])
    await seen(admin, f"{_PODS}/big", fails_on(nodes=1))
    for number in range(2, 5):
        # Room, but not for this pod: it is tried again, and fails again.
        taint = {"key": "dedicated", "value": "others", "effect": "NoSchedule"}
        await admin.create([{**node(f"n{number}", cpu=16), "spec": {"taints": [taint]}}])
        await seen(admin, f"{_PODS}/big", fails_on(nodes=number))

    async def counted() -> list[Manifest]:
        events = await admin.events("FailedScheduling")
        return events if any(each.get("series") for each in events) else []

    (event,) = await until(counted)
    assert event["series"]["count"] >= 2


@pytest.mark.usefixtures("scheduler")
async def test_a_victim_is_marked_and_deleted_and_its_preemptor_nominated(admin: Arena) -> None:
    priority = {"metadata": {"name": "urgent"}, "value": 1000}
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await admin.request("POST", classes, priority)
    try:
        await admin.create([pod("low", cpu="1")])
        await admin.bound(1)
        await admin.create([pod("high", cpu="1", priorityClassName="urgent")])
        victim = await seen(
            admin, f"{_PODS}/low", lambda it: it.get("metadata", {}).get("deletionTimestamp")
        )
        high = await seen(
            admin, f"{_PODS}/high", lambda it: it.get("status", {}).get("nominatedNodeName")
        )

        assert condition(victim, "DisruptionTarget")["reason"] == "PreemptionByScheduler"
        assert high["status"]["nominatedNodeName"] == "n1"
        (event,) = await admin.told("Preempted")
        assert event["related"]["name"] == "high"

        # A kubelet would end the pod now.
        await admin.delete(f"{_PODS}/low")
        await admin.all_bound(1)
    finally:
        await admin.delete(f"{classes}/urgent")


@pytest.fixture
async def _classes(admin: Arena) -> AsyncIterator[None]:
    """Storage classes whose claims wait for their pod: volumes are there, or are made."""
    for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", "example.com/x")):
        mode = "WaitForFirstConsumer"
        body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
        await admin.request("POST", _CLASSES, body)
    yield
    for path in (_CLAIMS, _VOLUMES, _CLASSES):
        await admin.delete(path)


def claim(name: str, storage_class: str) -> Manifest:
    return {
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def volume(name: str, node_name: str) -> Manifest:
    term = {
        "matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [node_name]}
        ]
    }
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }


def with_claim(name: str, claim_name: str) -> Manifest:
    used = {"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}
    return pod(name, volumes=[used])


@pytest.mark.usefixtures("scheduler", "_classes")
async def test_a_local_volume_is_bound_before_its_pod(admin: Arena) -> None:
    await admin.create([node("n2")])
    await admin.request("POST", _VOLUMES, volume("pv1", "n2"))
    free = {"status": {"phase": "Available"}}
    await admin.request("PATCH", f"{_VOLUMES}/pv1/status", free, headers=_MERGE)
    await admin.request("POST", _CLAIMS, claim("data", "local"))
    await admin.create([with_claim("db", "data")])
    bound = await seen(admin, f"{_VOLUMES}/pv1", lambda it: it.get("spec", {}).get("claimRef"))

    assert bound["spec"]["claimRef"]["name"] == "data"
    assert (await admin.verdict()).pending == ["db"]

    # A volume controller would finish it.
    done = {"spec": {"volumeName": "pv1"}}
    done_on = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, **done}
    await admin.request("PATCH", f"{_CLAIMS}/data", done_on, headers=_MERGE)
    status = {"status": {"phase": "Bound"}}
    await admin.request("PATCH", f"{_CLAIMS}/data/status", status, headers=_MERGE)
    await admin.request("PATCH", f"{_VOLUMES}/pv1/status", status, headers=_MERGE)
    assert (await admin.bound(1)).bound == {"db": "n2"}


@pytest.mark.usefixtures("scheduler", "_classes")
async def test_a_claim_is_told_for_which_node_to_provision(admin: Arena) -> None:
    await admin.request("POST", _CLAIMS, claim("data", "made"))
    await admin.create([with_claim("db", "data")])
    asked = await seen(
        admin, f"{_CLAIMS}/data", lambda it: it.get("metadata", {}).get("annotations")
    )

    assert asked["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "n1"
