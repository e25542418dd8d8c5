"""Devices by claim on an API server, with the real controller where there is one.

Whatever fails between the scheduler and the API server: no device is given away twice, none is kept
for nobody, and every pod is bound once.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS, until
from tests.programs import need_program

from .arena import Arena, Manifest, node, pod
from .control_plane import MOORAGE_TOKEN, ControlPlane
from .faulty_proxy import Faults, FaultyProxy
from .moorage_process import kubeconfig, moorage, start

pytestmark = pytest.mark.live

_ALONE = "--leader-elect=false"
_API = "resource.k8s.io/v1"
_PROTECTION = "resource.kubernetes.io/delete-protection"

NODES, GPUS = 6, 8
#: So many pods with a claim of their own, pairs that share one, and pods that ask by name.
OWN, PAIRS, NAMED = 24, 5, 8


def pool(number: int) -> Manifest:
    devices = [{"name": f"gpu-{at}", "attributes": {"index": {"int": at}}} for at in range(GPUS)]
    name = f"n{number}"
    spec = {
        "driver": "gpu.example.com",
        "nodeName": name,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        "devices": devices,
    }
    return {"apiVersion": _API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def one_gpu(kind: str, name: str) -> Manifest:
    """A claim of one GPU, or the template of such claims."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    spec: Manifest = {"devices": {"requests": [request]}}
    if kind == "ResourceClaimTemplate":
        spec = {"spec": spec}
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def claiming(name: str, **source: str) -> Manifest:
    return pod(name, resourceClaims=[{"name": "gpu", **source}])


def asking(name: str) -> Manifest:
    made = pod(name)
    resources = made["spec"]["containers"][0]["resources"]
    resources["requests"]["example.com/gpu"] = "1"
    resources["limits"] = {"example.com/gpu": "1"}
    return made


CLASS = {
    "apiVersion": _API,
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {
        "extendedResourceName": "example.com/gpu",
        "selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}],
    },
}
FLEET = [
    CLASS,
    *(node(f"n{number}") for number in range(NODES)),
    *(pool(number) for number in range(NODES)),
    one_gpu("ResourceClaimTemplate", "one-gpu"),
    *(one_gpu("ResourceClaim", f"shared{number}") for number in range(PAIRS)),
]
CLAIMING = [
    *(claiming(f"own{number}", resourceClaimTemplateName="one-gpu") for number in range(OWN)),
    *(
        claiming(f"pair{number}{side}", resourceClaimName=f"shared{number}")
        for number in range(PAIRS)
        for side in "ab"
    ),
]
PODS = [*CLAIMING, *(asking(f"named{number}") for number in range(NAMED))]


@pytest.fixture(autouse=True)
def controller(plane: ControlPlane, tmp_path: Path) -> Iterator[None]:
    """kube-controller-manager, which makes claims from templates and frees those of nobody."""
    manager = need_program("kube-controller-manager")
    with (tmp_path / "controller.log").open("ab") as log:
        process = subprocess.Popen(
            [
                manager,
                f"--kubeconfig={plane.kubeconfig}",
                "--controllers=resourceclaim-controller,garbage-collector-controller",
                "--leader-elect=false",
                "--secure-port=0",
                "--kube-api-qps=200",
                "--kube-api-burst=400",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def devices_of(claim: Manifest) -> list[tuple[str, str]]:
    """The devices that a claim has: pool and name."""
    allocation = claim.get("status", {}).get("allocation") or {}
    results = allocation.get("devices", {}).get("results") or []
    return [(each["pool"], each["device"]) for each in results]


async def all_is_well(
    admin: Arena, proxy: FaultyProxy, pods: Sequence[Manifest] = tuple(PODS)
) -> None:
    """Every pod is bound once and has its device there; no device is had twice or by nobody."""
    verdict = await admin.all_bound(len(pods))
    made = Counter(path for path, status in proxy.bindings if status < 300)
    assert set(made.values()) <= {1}
    uids = {each["metadata"]["uid"]: each for each in await admin.pods()}
    claims = await admin.claims()
    given = Counter(device for claim in claims for device in devices_of(claim))
    assert set(given.values()) == {1}
    assert len(given) == len(pods) - PAIRS
    users = Counter[str]()
    for claim in claims:
        name, status = claim["metadata"]["name"], claim["status"]
        assert claim["metadata"]["finalizers"] == [_PROTECTION], name
        assert status["reservedFor"], f"{name} has devices for nobody"
        for user in status["reservedFor"]:
            users[user["name"]] += 1
            (where,) = {where for where, _ in devices_of(claim)}
            assert verdict.bound[user["name"]] == where, name
            assert user["uid"] in uids, name
    assert users == Counter(each["metadata"]["name"] for each in pods)


async def schedule(
    faults: Faults, plane: ControlPlane, admin: Arena, folder: Path
) -> list[tuple[str, str]]:
    """Schedules all pods while things go wrong; returns the writes."""
    await admin.create(FLEET)
    async with FaultyProxy(plane.server, faults).running() as proxy:
        kubeconfig(folder / "kubeconfig", proxy.url, MOORAGE_TOKEN)
        async with moorage(folder / "log", folder / "kubeconfig", _ALONE) as process:
            await admin.create(PODS)
            await all_is_well(admin, proxy)
            assert await process.stop() == 0
        assert "Forbidden" not in process.log
    return proxy.writes


async def test_claims_are_written_in_order(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    writes = await schedule(Faults(), plane, admin, tmp_path)

    paths = [path for _, path in writes]
    made = [path for method, path in writes if method == "POST" and "/resourceclaims" in path]
    assert len(made) == NAMED
    for claim in await admin.claims():
        name = claim["metadata"]["name"]
        own = [path for path in paths if f"/resourceclaims/{name}" in path]
        # The finalizer, then the devices with the first user; a second user is one more write.
        first, *later = own
        assert first.endswith(f"/{name}"), own
        assert {path.rpartition("/")[2] for path in later} == {"status"}
        assert len(later) == len(claim["status"]["reservedFor"])


async def test_every_write_to_a_claim_conflicts_once(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    faults = Faults(conflicting_claims=True)
    await schedule(faults, plane, admin, tmp_path)

    assert faults.struck["conflict"] >= 2 * (OWN + PAIRS + NAMED)


async def test_answers_are_lost(plane: ControlPlane, admin: Arena, tmp_path: Path) -> None:
    faults = Faults(lost_claims=0.05, lost_bindings=0.05)
    await schedule(faults, plane, admin, tmp_path)

    assert faults.struck["lost claim"] > 0


async def test_the_api_server_is_killed(plane: ControlPlane, admin: Arena, tmp_path: Path) -> None:
    await admin.create(FLEET)
    async with FaultyProxy(plane.server, Faults(binding_seconds=0.2)).running() as proxy:
        kubeconfig(tmp_path / "kubeconfig", proxy.url, MOORAGE_TOKEN)
        async with moorage(tmp_path / "log", tmp_path / "kubeconfig", _ALONE):
            await admin.create(PODS)
            await admin.bound(len(PODS) // 3)
            await asyncio.to_thread(plane.kill_api_server)
            await asyncio.sleep(1.0)
            await asyncio.to_thread(plane.start_api_server)
            await all_is_well(admin, proxy)


async def test_the_scheduler_is_killed_between_allocation_and_binding(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    await admin.create(FLEET)
    allocated = asyncio.Event()

    async def hold(path: str) -> None:
        """The first pods after a start are never bound: their scheduler dies before."""
        if deaths:
            allocated.set()
            await asyncio.Event().wait()

    deaths = 3
    async with FaultyProxy(plane.server, Faults(before_binding=hold)).running() as proxy:
        kubeconfig(tmp_path / "kubeconfig", proxy.url, MOORAGE_TOKEN)
        await admin.create(PODS)
        while deaths:
            allocated.clear()
            process = await start(tmp_path / "log", tmp_path / "kubeconfig", _ALONE)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await allocated.wait()
            # Others have their devices by now, and wait for their bindings as well.
            await asyncio.sleep(0.3)
            await process.kill()
            deaths -= 1
        async with moorage(tmp_path / "log", tmp_path / "kubeconfig", _ALONE):
            await all_is_well(admin, proxy)


@pytest.mark.parametrize("write", ["POST", "PATCH"])
async def test_the_scheduler_is_killed_while_it_makes_a_claim_for_extended_resources(
    plane: ControlPlane, admin: Arena, tmp_path: Path, write: str
) -> None:
    """The claim is there, and empty: after its creation, or after its finalizer."""
    await admin.create([CLASS, node("n0"), pool(0)])
    written = asyncio.Event()

    async def hold(method: str, path: str) -> None:
        if method == write and not written.is_set():
            written.set()
            await asyncio.Event().wait()

    faults = Faults(after_claim_write=hold)
    async with FaultyProxy(plane.server, faults).running() as proxy:
        kubeconfig(tmp_path / "kubeconfig", proxy.url, MOORAGE_TOKEN)
        async with moorage(tmp_path / "log", tmp_path / "kubeconfig", _ALONE) as process:
            await admin.create([asking("named")])
            async with asyncio.timeout(PATIENCE_SECONDS):
                await written.wait()
            await process.kill()
        (left,) = await admin.claims()
        assert not devices_of(left)
        async with moorage(tmp_path / "log", tmp_path / "kubeconfig", _ALONE):
            await admin.all_bound(1)
    (made,) = await admin.claims()
    assert made["metadata"]["uid"] != left["metadata"]["uid"]
    assert len(devices_of(made)) == 1


_URGENT: Manifest = {"metadata": {"name": "urgent"}, "value": 1_000}
_PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_PREEMPTING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
      - {name: DynamicResources, args: {preemptDevices: true}}
"""


async def end_evicted(admin: Arena) -> None:
    """Does what kubelets do: pods that are asked to go are gone at once."""
    while True:
        for each in await admin.pods():
            if each["metadata"].get("deletionTimestamp"):
                with suppress(AssertionError):
                    name = each["metadata"]["name"]
                    await admin.delete(f"/api/v1/namespaces/default/pods/{name}")
        await asyncio.sleep(0.1)


async def bound(admin: Arena, name: str) -> None:
    """Waits until a pod is bound."""

    async def is_bound() -> bool:
        return name in (await admin.verdict()).bound

    await until(is_bound, f"the binding of {name}")


async def test_a_pod_is_evicted_for_its_device_and_its_claim_released_first(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    template = one_gpu("ResourceClaimTemplate", "one-gpu")
    await admin.create([CLASS, node("n0"), pool(0), template])
    await admin.request("POST", _PRIORITIES, _URGENT)
    kubelets = asyncio.create_task(end_evicted(admin))
    (tmp_path / "config.yaml").write_text(_PREEMPTING)
    flags = _ALONE, f"--config={tmp_path / 'config.yaml'}"
    lesser = [claiming(f"low{at}", resourceClaimTemplateName="one-gpu") for at in range(GPUS)]
    urgent = claiming("urgent", resourceClaimTemplateName="one-gpu")
    urgent["spec"]["priorityClassName"] = "urgent"
    try:
        async with FaultyProxy(plane.server, Faults()).running() as proxy:
            kubeconfig(tmp_path / "kubeconfig", proxy.url, MOORAGE_TOKEN)
            async with moorage(tmp_path / "log", tmp_path / "kubeconfig", *flags):
                await admin.create(lesser)
                await admin.all_bound(GPUS)
                await admin.create([urgent])
                await bound(admin, "urgent")
        left = [each["metadata"]["name"] for each in await admin.pods()]
        assert len(left) == GPUS, "one was enough"
        held = [device for claim in await admin.claims() for device in devices_of(claim)]
        assert len(held) == len(set(held)) == GPUS
    finally:
        kubelets.cancel()
        await asyncio.gather(kubelets, return_exceptions=True)
        await admin.delete(f"{_PRIORITIES}/urgent")
