"""Gangs on an API server: all of the minimum bound or nothing, whatever fails on the way."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from .arena import Arena, Manifest, arena, node, pod
from .control_plane import ADMIN_TOKEN, MOORING_TOKEN, ControlPlane, gang_version
from .faulty_proxy import Faults, FaultyProxy
from .mooring_process import kubeconfig, mooring

pytestmark = pytest.mark.live

NODES = [node(f"n{number}", cpu=8, pods=40) for number in range(17)]
SIZE = 64

_ALONE = "--leader-elect=false"
_GROUPS = f"/apis/scheduling.k8s.io/{gang_version()}/namespaces/default/podgroups"
_CONDITION = {"v1alpha2": "PodGroupScheduled", "v1beta1": "PodGroupInitiallyScheduled"}[
    gang_version()
]
_COSCHEDULED = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DEFINITION = Path(__file__).parents[2] / "deploy" / "coscheduling" / "podgroups.yaml"


# Without a controller that takes off their finalizer, groups stay: each test makes its own.
_RUNS = count()


def name_gangs(number: int) -> list[str]:
    run = next(_RUNS)
    return [f"gang{run}{letter}" for letter in "abc"[:number]]


async def make_gangs(admin: Arena, names: list[str], size: int, **spec: Any) -> list[Manifest]:
    for name in names:
        policy = {"schedulingPolicy": {"gang": {"minCount": size}}}
        await admin.request("POST", _GROUPS, {"metadata": {"name": name}, "spec": policy})
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
        kubeconfig(tmp_path / "kubeconfig", proxy.url, MOORING_TOKEN)
        gates = "--feature-gates=GenericWorkload=true"
        async with mooring(tmp_path / "log", tmp_path / "kubeconfig", _ALONE, gates) as process:
            # Room for two of the three.
            names = name_gangs(3)
            await admin.create(await make_gangs(admin, names, SIZE, cpu="1"))
            verdict = await admin.bound(2 * SIZE, 120)
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
    async with asyncio.timeout(30):
        while True:
            groups = (await admin.request("GET", _GROUPS))["items"]
            told = {
                group["metadata"]["name"]: each["status"]
                for group in groups
                for each in group.get("status", {}).get("conditions", ())
                if each["type"] == _CONDITION and group["metadata"]["name"] in names
            }
            if told == {name: str(name in sizes(bound)) for name in names}:
                return
            await asyncio.sleep(0.2)


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
        kubeconfig(tmp_path / "kubeconfig", proxy.url, MOORING_TOKEN)
        options = _ALONE, "--feature-gates=GenericWorkload=true"
        async with mooring(tmp_path / "one", tmp_path / "kubeconfig", *options) as process:
            await admin.create(await make_gangs(admin, name_gangs(2), SIZE, cpu="1"))
            await process.settled(lambda: _some_bound(admin))
            await process.kill()
        assert len((await admin.verdict()).bound) <= SIZE // 4
        faults.before_binding = None
        async with mooring(tmp_path / "two", tmp_path / "kubeconfig", *options):
            await admin.bound(SIZE, 120)
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
        kubeconfig(tmp_path / "kubeconfig", gang_plane.server, MOORING_TOKEN)
        await admin.created(_DEFINITIONS, definition["metadata"]["name"])
        gates = "--feature-gates=Coscheduling=true"
        async with mooring(tmp_path / "log", tmp_path / "kubeconfig", _ALONE, gates):
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
            await admin.bound(SIZE, 120)
            await asyncio.sleep(2)
            assert list(sizes((await admin.verdict()).bound).values()) == [SIZE]
