"""Whatever fails between the scheduler and the API server: every pod is bound, once, none lost.

Each test runs `moorage run` as its own process, with the role that is shipped, behind a proxy that
makes things go wrong.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from tests.patience import PATIENCE_SECONDS, until_true

from .arena import Arena, node, pod
from .control_plane import MOORAGE_TOKEN, ControlPlane
from .faulty_proxy import Faults, FaultyProxy
from .lease_options import LONG_LEASE, SHORT_LEASE
from .moorage_process import MoorageProcess, kubeconfig, moorage, start

pytestmark = [pytest.mark.live, pytest.mark.embedded_will_do]

NODES = [node(f"n{number}", cpu=8, pods=40) for number in range(10)]
PODS = [pod(f"p{number}") for number in range(200)]

_LEADS = "This scheduler leads"
_ALONE = "--leader-elect=false"


@asynccontextmanager
async def proxied(plane: ControlPlane, faults: Faults, folder: Path) -> AsyncIterator[FaultyProxy]:
    async with FaultyProxy(plane.server, faults).running() as proxy:
        kubeconfig(folder / "kubeconfig", proxy.url, MOORAGE_TOKEN)
        yield proxy


async def all_is_well(admin: Arena, proxy: FaultyProxy, count: int = len(PODS)) -> None:
    """Every pod is bound, by one binding that succeeded, and no node has more than it can take."""
    await admin.all_bound(count)
    await admin.nothing_is_over_committed()
    made = Counter(path for path, status in proxy.bindings if status < 300)
    assert set(made.values()) <= {1}


async def run_with(
    faults: Faults, plane: ControlPlane, admin: Arena, folder: Path, **strikes: int
) -> MoorageProcess:
    """Schedules all pods on all nodes while things go wrong, at least so many times each."""
    await admin.create(NODES)
    async with (
        proxied(plane, faults, folder) as proxy,
        moorage(folder / "log", folder / "kubeconfig", _ALONE) as process,
    ):
        await admin.create(PODS)
        await all_is_well(admin, proxy)
        for what, times in strikes.items():
            name = what.replace("_", " ")
            await until_true(lambda: faults.struck.get(name, 0) >= times, name)  # noqa: B023
        assert await process.stop() == 0
    return process


async def test_nothing_fails(plane: ControlPlane, admin: Arena, tmp_path: Path) -> None:
    process = await run_with(Faults(), plane, admin, tmp_path)

    assert len(await admin.events("Scheduled")) == len(PODS)
    assert "Forbidden" not in process.log


async def test_watches_are_cut_every_second(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    faults = Faults(watch_seconds=1.0, binding_seconds=0.1)
    await run_with(faults, plane, admin, tmp_path, watch_cut=6)


async def test_watches_are_gone(plane: ControlPlane, admin: Arena, tmp_path: Path) -> None:
    faults = Faults(watch_seconds=0.5, gone=0.5, binding_seconds=0.1)
    await run_with(faults, plane, admin, tmp_path, gone=6)


async def test_storms_of_429(plane: ControlPlane, admin: Arena, tmp_path: Path) -> None:
    faults = Faults(throttled=0.3)
    await run_with(faults, plane, admin, tmp_path)

    assert faults.struck["throttled"] > 50


async def test_bindings_fail_and_answers_are_lost(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    faults = Faults(failed_bindings=0.1, lost_bindings=0.1)
    await run_with(faults, plane, admin, tmp_path)

    assert faults.struck["failed binding"] > 5
    assert faults.struck["lost binding"] > 5


async def test_the_api_server_is_killed_and_comes_back(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    await admin.create(NODES)
    faults = Faults(binding_seconds=0.2)
    async with (
        proxied(plane, faults, tmp_path) as proxy,
        moorage(tmp_path / "log", tmp_path / "kubeconfig", _ALONE),
    ):
        await admin.create(PODS)
        for count in (10, 75):
            await admin.bound(count)
            await asyncio.to_thread(plane.kill_api_server)
            # So long that the scheduler tries in vain.
            await asyncio.sleep(1.0)
            await asyncio.to_thread(plane.start_api_server)
        await all_is_well(admin, proxy)


async def test_a_node_is_deleted_while_pods_are_bound_to_it(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    faults = Faults(binding_seconds=0.1)
    await admin.create(NODES)
    async with (
        proxied(plane, faults, tmp_path),
        moorage(tmp_path / "log", tmp_path / "kubeconfig", _ALONE) as process,
    ):
        await admin.create(PODS)
        await admin.bound(10)
        await admin.delete("/api/v1/nodes/n0")
        await process.caught_up()
        late = [pod(f"late{number}") for number in range(50)]
        await admin.create(late)
        verdict = await admin.all_bound(len(PODS) + len(late))

    assert not [name for name in verdict.on("n0") if name.startswith("late")]
    await admin.nothing_is_over_committed()


async def test_the_scheduler_is_killed_at_random_points(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    await admin.create(NODES)
    chance = Random(7)
    async with proxied(plane, Faults(binding_seconds=0.3), tmp_path) as proxy:
        await admin.create(PODS)
        for _ in range(5):
            process = await start(tmp_path / "log", tmp_path / "kubeconfig", _ALONE)
            await process.logged("The cluster is known")
            await asyncio.sleep(chance.uniform(0.0, 0.6))
            await process.kill()
        async with moorage(tmp_path / "log", tmp_path / "kubeconfig", _ALONE):
            await all_is_well(admin, proxy)


async def test_the_leader_is_killed_and_the_standby_takes_over(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    await admin.create(NODES)
    async with (
        proxied(plane, Faults(binding_seconds=0.3), tmp_path) as proxy,
        moorage(tmp_path / "one", tmp_path / "kubeconfig", *SHORT_LEASE) as leader,
    ):
        await leader.logged(_LEADS)
        async with moorage(tmp_path / "two", tmp_path / "kubeconfig", *SHORT_LEASE) as standby:
            await standby.logged("The cluster is known")
            await admin.create(PODS)
            await admin.bound(10)
            assert _LEADS not in standby.log
            await leader.kill()
            await standby.logged(_LEADS)
            await all_is_well(admin, proxy)


async def test_a_leader_that_stood_still_binds_nothing_any_more(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    await admin.create(NODES)
    async with (
        proxied(plane, Faults(), tmp_path) as proxy,
        moorage(tmp_path / "one", tmp_path / "kubeconfig", *SHORT_LEASE) as leader,
    ):
        await leader.logged(_LEADS)
        async with moorage(tmp_path / "two", tmp_path / "kubeconfig", *SHORT_LEASE) as standby:
            await standby.logged("The cluster is known")
            leader.pause()
            await standby.logged(_LEADS)
        await admin.create(PODS[:50])
        leader.go_on()
        assert await leader.wait() == 1
        assert proxy.bindings == []
        async with moorage(tmp_path / "three", tmp_path / "kubeconfig", _ALONE):
            await all_is_well(admin, proxy, 50)


async def test_a_leader_that_is_asked_to_stop_makes_way_at_once(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    async with (
        proxied(plane, Faults(), tmp_path),
        moorage(tmp_path / "one", tmp_path / "kubeconfig", *LONG_LEASE) as leader,
    ):
        await leader.logged(_LEADS)
        async with moorage(tmp_path / "two", tmp_path / "kubeconfig", *LONG_LEASE) as standby:
            await standby.logged("The cluster is known")
            assert await leader.stop() == 0
            await standby.logged(_LEADS)


@pytest.mark.parametrize("ending", ["deleted", "finished"])
async def test_the_room_of_pods_that_end_unseen_comes_back(
    ending: str, plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    """Short jobs end as soon as they are bound; the next thing that is told is a list."""
    await admin.create([node("n0", cpu=8)])
    jobs = [pod(f"job{number}", cpu="4") for number in range(10)]
    ended, all_ended = set[str](), asyncio.Event()

    async def end(path: str) -> None:
        if ending == "deleted":
            await admin.delete(path)
        else:
            headers = {"Content-Type": "application/merge-patch+json"}
            done = {"status": {"phase": "Succeeded"}}
            await admin.request("PATCH", f"{path}/status", done, headers=headers)
        ended.add(path)
        if len(ended) == len(jobs):
            all_ended.set()

    faults = Faults(after_binding=end)
    async with (
        proxied(plane, faults, tmp_path),
        moorage(tmp_path / "log", tmp_path / "kubeconfig", _ALONE) as process,
    ):
        await process.logged(_LEADS)
        # Two of them fill the node: where room does not come back, no third is bound.
        await admin.create(jobs)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await all_ended.wait()
        faults.after_binding = None
        await admin.create([pod("last", cpu="8")])
        await admin.bound(1 if ending == "deleted" else len(jobs) + 1)
        await process.caught_up()

    assert faults.struck["gone"] > 1
