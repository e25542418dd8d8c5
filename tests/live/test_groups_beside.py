"""Groups that kube-scheduler places are placed, on an API server of the same version."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from .arena import Arena, Manifest, arena, node, pod
from .control_plane import ADMIN_TOKEN, MOORAGE_TOKEN, ControlPlane
from .gang_versions import GANG_API, GANG_GATES
from .kube_scheduler import kube_scheduler
from .moorage_process import MoorageProcess, kubeconfig, moorage
from .test_devices import one_gpu, pool

pytestmark = pytest.mark.live

_GROUPS = f"/apis/{GANG_API}/namespaces/default/podgroups"
_PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"

#: Those of the scheduler: a Job makes its groups without it.
_GATES = "--feature-gates=" + ",".join(
    f"{gate}=true" for gate in GANG_GATES if gate != "WorkloadWithJob"
)
_OUR_GATES = "--feature-gates=GenericWorkload=true,DRAWorkloadResourceClaims=true"

# Without a controller that takes off their finalizer, groups stay: each run makes its own.
_RUNS = count()


async def _make_gang(admin: Arena, group: Manifest | None, **spec: Any) -> list[str]:
    """Makes a group of two and its pods; returns the names of these."""
    name = f"beside{next(_RUNS)}"
    wanted = {"schedulingPolicy": {"gang": {"minCount": 2}}, **(group or {})}
    await admin.request("POST", _GROUPS, {"metadata": {"name": name}, "spec": wanted})
    pods = [
        pod(f"{name}-{at}", cpu="1", schedulingGroup={"podGroupName": name}, **spec)
        for at in range(2)
    ]
    await admin.create(pods)
    return sorted(each["metadata"]["name"] for each in pods)


async def _bound(admin: Arena, process: MoorageProcess, names: list[str]) -> list[str]:
    async def are_bound() -> bool:
        return sorted((await admin.verdict()).bound) == names

    await process.settled(are_bound)
    return sorted((await admin.verdict()).bound)


async def _place_by_each(
    plane: ControlPlane,
    folder: Path,
    objects: list[Manifest],
    group: Manifest | None = None,
    **spec: Any,
) -> list[list[str]]:
    """Expects kube-scheduler and then Moorage to bind a gang whose pods have this spec.

    Returns what kinds of objects claims are reserved for then, for each of the two.
    """
    users = []
    async with arena(plane.server, ADMIN_TOKEN) as admin:
        await admin.clear()
        await admin.create(objects)
        async with kube_scheduler(plane, folder, _GATES) as process:
            names = await _make_gang(admin, group, **spec)
            assert await _bound(admin, process, names) == names
            users.append(await _find_users(admin))
        await admin.clear()
        await admin.create(objects)
        access = kubeconfig(folder / "access", plane.server, MOORAGE_TOKEN)
        options = "--leader-elect=false", _OUR_GATES
        async with moorage(folder / "log", access, *options) as process:
            names = await _make_gang(admin, group, **spec)
            assert await _bound(admin, process, names) == names
            users.append(await _find_users(admin))
    return users


async def _find_users(admin: Arena) -> list[str]:
    """Returns the kinds of objects that claims are reserved for."""
    return [user["resource"] for each in await admin.claims() for user in _users_of(each)]


def _users_of(claim: Manifest) -> list[Manifest]:
    users: list[Manifest] = claim.get("status", {}).get("reservedFor", [])
    return users


async def test_a_gang_whose_pods_have_a_priority_is_placed(
    gang_plane: ControlPlane, tmp_path: Path
) -> None:
    """The API server of 1.36 drops the priority that their group gives."""
    important = {"metadata": {"name": "beside-important"}, "value": 100}
    async with arena(gang_plane.server, ADMIN_TOKEN) as admin:
        await admin.request("POST", _PRIORITY_CLASSES, important)
    try:
        objects = [node("n0", cpu=4), node("n1", cpu=4)]
        ranked = {"priorityClassName": "beside-important"}
        await _place_by_each(gang_plane, tmp_path, objects, ranked, **ranked)
    finally:
        async with arena(gang_plane.server, ADMIN_TOKEN) as admin:
            await admin.clear()
            await admin.delete(f"{_PRIORITY_CLASSES}/beside-important")


def _nodes_with_a_claim() -> list[Manifest]:
    selector = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    return [
        node("n0", cpu=4),
        node("n1", cpu=4),
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpu"},
            "spec": {"selectors": [selector]},
        },
        pool(1),
        one_gpu("ResourceClaim", "shared"),
    ]


_CLAIMS = [{"name": "gpu", "resourceClaimName": "shared"}]


async def test_a_gang_whose_members_share_an_unallocated_claim_is_placed(
    gang_plane: ControlPlane, tmp_path: Path
) -> None:
    objects = _nodes_with_a_claim()

    users = await _place_by_each(gang_plane, tmp_path, objects, resourceClaims=_CLAIMS)

    assert users == [["pods", "pods"], ["pods", "pods"]]


async def test_a_claim_of_a_gang_is_reserved_for_the_gang(
    gang_plane: ControlPlane, tmp_path: Path
) -> None:
    objects, group = _nodes_with_a_claim(), {"resourceClaims": _CLAIMS}

    users = await _place_by_each(gang_plane, tmp_path, objects, group, resourceClaims=_CLAIMS)

    assert users == [["podgroups"], ["podgroups"]]
