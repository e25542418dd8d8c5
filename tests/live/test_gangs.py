"""Gangs on an API server: all of the minimum bound or nothing, whatever fails on the way."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.patience import until

from .arena import Arena, Manifest, arena, node, pod
from .control_plane import ADMIN_TOKEN, MOORAGE_TOKEN, ControlPlane
from .faulty_proxy import Faults, FaultyProxy
from .gang_versions import GANG_API, GANG_CONDITION, gang_job
from .moorage_process import kubeconfig, moorage

pytestmark = pytest.mark.live

NODES = [node(f"n{number}", cpu=8, pods=40) for number in range(17)]
SIZE = 64

_ALONE = "--leader-elect=false"
_GROUPS = f"/apis/{GANG_API}/namespaces/default/podgroups"
_COSCHEDULED = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DEFINITION = Path(__file__).parents[2] / "deploy" / "coscheduling" / "podgroups.yaml"


# Without a controller that takes off their finalizer, groups stay: each test makes its own.
_RUNS = count()


def name_gangs(number: int) -> list[str]:
    run = next(_RUNS)
    return [f"gang{run}{letter}" for letter in "abc"[:number]]


async def make_gangs(
    admin: Arena, names: list[str], size: int, rack: bool = False, **spec: Any
) -> list[Manifest]:
    for name in names:
        group: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": size}}}
        if rack:
            group["schedulingConstraints"] = {"topology": [{"key": "rack"}]}
        await admin.request("POST", _GROUPS, {"metadata": {"name": name}, "spec": group})
    return [
        pod(f"{name}-{number}", schedulingGroup={"podGroupName": name}, **spec)
        for name in names
        for number in range(size)
    ]


def sizes(bound: dict[str, str]) -> Counter[str]:
    return Counter(name.rpartition("-")[0] for name in bound)


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(Faults(), id="nothing fails"),
        pytest.param(Faults(watch_seconds=1.0, binding_seconds=0.05), id="watches are cut"),
        pytest.param(Faults(lost_bindings=0.2), id="answers to bindings are lost"),
        pytest.param(Faults(failed_bindings=0.2), id="bindings fail"),
    ],
)
async def test_gangs_of_64_are_bound_whole_and_once(
    faults: Faults, gang_plane: ControlPlane, tmp_path: Path
) -> None:
    async with (
        arena(gang_plane.server, ADMIN_TOKEN) as admin,
        FaultyProxy(gang_plane.server, faults).running() as proxy,
    ):
        await admin.clear()
        await admin.create(NODES)
        kubeconfig(tmp_path / "kubeconfig", proxy.url, MOORAGE_TOKEN)
        gates = "--feature-gates=GenericWorkload=true"
        async with moorage(tmp_path / "log", tmp_path / "kubeconfig", _ALONE, gates) as process:
            # Room for two of the three.
            names = name_gangs(3)
            await admin.create(await make_gangs(admin, names, SIZE, cpu="1"))
            verdict = await admin.bound(2 * SIZE)
            await asyncio.sleep(2)
            verdict = await admin.verdict()
            assert sorted(sizes(verdict.bound).values()) == [SIZE, SIZE]
            await admin.nothing_is_over_committed()
            made = Counter(path for path, status in proxy.bindings if status < 300)
            assert set(made.values()) <= {1}
            await _conditions_tell(admin, names, verdict.bound)
            assert "Forbidden" not in process.log


async def _conditions_tell(admin: Arena, names: list[str], bound: dict[str, str]) -> None:
    """The condition of each group says whether it was placed."""

    async def is_told() -> bool:
        groups = (await admin.request("GET", _GROUPS))["items"]
        told = {
            group["metadata"]["name"]: each["status"]
            for group in groups
            for each in group.get("status", {}).get("conditions", ())
            if each["type"] == GANG_CONDITION and group["metadata"]["name"] in names
        }
        return told == {name: str(name in sizes(bound)) for name in names}

    await until(is_told)


async def test_a_scheduler_that_is_killed_while_it_binds_a_gang_finishes_it(
    gang_plane: ControlPlane, tmp_path: Path
) -> None:
    passed = count()

    async def hold_all_but_a_few(_: str) -> None:
        if next(passed) >= SIZE // 4:
            await asyncio.Event().wait()

    faults = Faults(before_binding=hold_all_but_a_few)
    async with (
        arena(gang_plane.server, ADMIN_TOKEN) as admin,
        FaultyProxy(gang_plane.server, faults).running() as proxy,
    ):
        await admin.clear()
        await admin.create(NODES[:9])
        kubeconfig(tmp_path / "kubeconfig", proxy.url, MOORAGE_TOKEN)
        options = _ALONE, "--feature-gates=GenericWorkload=true"
        async with moorage(tmp_path / "one", tmp_path / "kubeconfig", *options) as process:
            await admin.create(await make_gangs(admin, name_gangs(2), SIZE, cpu="1"))
            await process.settled(lambda: _some_bound(admin))
            await process.kill()
        assert len((await admin.verdict()).bound) <= SIZE // 4
        faults.before_binding = None
        async with moorage(tmp_path / "two", tmp_path / "kubeconfig", *options):
            await admin.bound(SIZE)
            await asyncio.sleep(2)
            assert list(sizes((await admin.verdict()).bound).values()) == [SIZE]
            await admin.nothing_is_over_committed()


async def _some_bound(admin: Arena) -> bool:
    return bool((await admin.verdict()).bound)


async def test_gangs_of_scheduler_plugins(gang_plane: ControlPlane, tmp_path: Path) -> None:
    async with arena(gang_plane.server, ADMIN_TOKEN) as admin:
        await admin.clear()
        await admin.create(NODES[:9])
        definition = yaml.safe_load(_DEFINITION.read_text())
        await admin.request("POST", _DEFINITIONS, definition)
        kubeconfig(tmp_path / "kubeconfig", gang_plane.server, MOORAGE_TOKEN)
        await admin.created(_DEFINITIONS, definition["metadata"]["name"])
        gates = "--feature-gates=Coscheduling=true"
        async with moorage(tmp_path / "log", tmp_path / "kubeconfig", _ALONE, gates):
            for name in ("a", "b"):
                group = {
                    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
                    "kind": "PodGroup",
                    "metadata": {"name": name},
                    "spec": {"minMember": SIZE},
                }
                await admin.request("POST", _COSCHEDULED, group)
            pods = [pod(f"{name}-{at}", cpu="1") for at in range(SIZE) for name in ("a", "b")]
            for each in pods:
                name = each["metadata"]["name"].partition("-")[0]
                each["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": name}
            await admin.create(pods)
            await admin.bound(SIZE)
            await asyncio.sleep(2)
            assert list(sizes((await admin.verdict()).bound).values()) == [SIZE]


async def test_a_gang_for_one_rack_is_bound_in_one_rack_and_another_says_why_not(
    gang_plane: ControlPlane, tmp_path: Path
) -> None:
    racks = [node(f"n{number}", cpu=8, pods=40) for number in range(6)]
    for number, each in enumerate(racks):
        each["metadata"]["labels"] = {"rack": f"r{number // 2}"}
    async with arena(gang_plane.server, ADMIN_TOKEN) as admin:
        await admin.clear()
        await admin.create(racks)
        kubeconfig(tmp_path / "kubeconfig", gang_plane.server, MOORAGE_TOKEN)
        gates = "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
        async with moorage(tmp_path / "log", tmp_path / "kubeconfig", _ALONE, gates) as process:
            fits, refused = name_gangs(2)
            await admin.create(await make_gangs(admin, [fits], 16, rack=True, cpu="1"))
            await admin.bound(16)
            bound = (await admin.verdict()).bound
            assert {int(name[1:]) // 2 for name in bound.values()} <= {0, 1, 2}
            assert len({int(name[1:]) // 2 for name in bound.values()}) == 1
            await admin.create(await make_gangs(admin, [refused], 20, rack=True, cpu="1"))
            await process.settled(lambda: _is_told(admin, refused))
            await _conditions_tell(admin, [fits, refused], bound)
            assert len((await admin.verdict()).bound) == 16
            assert "Forbidden" not in process.log


async def _is_told(admin: Arena, name: str) -> bool:
    """Whether an event on a group tells what it lacks."""
    events = (await admin.request("GET", "/apis/events.k8s.io/v1/namespaces/default/events"))[
        "items"
    ]
    return any(
        each["regarding"]["kind"] == "PodGroup"
        and each["regarding"]["name"] == name
        and each["regarding"]["apiVersion"] == GANG_API
        and each["reason"] == "GangDiagnosis"
        and "16" in each["note"]
        for each in events
    )


async def test_the_job_controller_makes_a_gang_which_is_bound_whole(
    gang_plane: ControlPlane, tmp_path: Path
) -> None:
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    gates = "GenericWorkload=true,WorkloadWithJob=true"
    name = next(iter(name_gangs(1)))
    template = {"spec": {**pod("any", cpu="1")["spec"], "restartPolicy": "Never"}}
    with gang_plane.running_controllers("job-controller", gates=gates):
        async with arena(gang_plane.server, ADMIN_TOKEN) as admin:
            await admin.clear()
            await admin.create(NODES[:3])
            kubeconfig(tmp_path / "kubeconfig", gang_plane.server, MOORAGE_TOKEN)
            chosen = "--feature-gates=GenericWorkload=true"
            async with moorage(tmp_path / "log", tmp_path / "kubeconfig", _ALONE, chosen):
                # Room for one of the two, and for half of the other.
                await admin.request("POST", jobs, gang_job(name, 16, template))
                await admin.bound(16)
                await admin.request("POST", jobs, gang_job(f"{name}-late", 16, template))
                await _groups_are(admin, {f"{name}-": "True", f"{name}-late-": "False"})
                assert len((await admin.verdict()).bound) == 16
                for each in (name, f"{name}-late"):
                    await admin.request("DELETE", f"{jobs}/{each}?propagationPolicy=Background")


async def _groups_are(admin: Arena, wanted: dict[str, str]) -> None:
    """Waits until groups whose names begin so have conditions of these statuses."""

    async def is_told() -> bool:
        groups = (await admin.request("GET", _GROUPS))["items"]
        told = {
            max((start for start in wanted if start in group["metadata"]["name"]), key=len): (
                each["status"]
            )
            for group in groups
            for each in group.get("status", {}).get("conditions", ())
            if each["type"] == GANG_CONDITION
            and any(group["metadata"]["name"].startswith(start) for start in wanted)
        }
        return told == wanted

    await until(is_told)
