"""Short jobs on an API server that keeps dying, under leaders that keep dying: `make soak`.

All of them are bound, once; afterwards the room that the scheduler knows of is the room that there
is, and its memory is where it was. A short form of it runs with the other tests.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import aiohttp
import pytest

from tests.patience import PATIENCE_SECONDS

from .arena import Arena, Manifest, arena, node, pod
from .control_plane import ADMIN_TOKEN, MOORAGE_TOKEN, ControlPlane
from .faulty_proxy import Faults, FaultyProxy
from .lease_options import USUAL_LEASE
from .moorage_process import MoorageProcess, kubeconfig, moorage

pytestmark = pytest.mark.live

_NODES, _CPUS = 100, 32
_PODS = "/api/v1/namespaces/default/pods"
_MOST_GROWTH = 1.15

# What an administrator sees while the API server is down or has only just come up.
_AWAY = (AssertionError, aiohttp.ClientError, ConnectionError, TimeoutError)


@dataclass(frozen=True)
class Plan:
    """How long it lasts, how many jobs come, and what dies how often."""

    seconds: float
    jobs_per_second: float
    api_server_every: float
    leader_every: float


async def persist(attempt: Callable[[], Awaitable[object]]) -> None:
    """Tries until it works, as a controller does while the API server is away."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await attempt()
                return
            except _AWAY:
                await asyncio.sleep(0.5)


@dataclass
class Jobs:
    """Pods that are made, run for a moment once they have a node, end, and are taken away."""

    admin: Arena
    random: Random = field(default_factory=lambda: Random(1))
    bound: dict[str, asyncio.Event] = field(default_factory=dict)
    done: int = 0
    under_way: set[asyncio.Task[None]] = field(default_factory=set)

    async def make(self, plan: Plan) -> None:
        """Begins one after the other, for as long as the plan says."""
        began = time.monotonic()
        for number in itertools.count():
            due = began + number / plan.jobs_per_second
            if due > began + plan.seconds:
                break
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            job = asyncio.create_task(self._live(f"job-{number}"))
            self.under_way.add(job)
            job.add_done_callback(self._end)

    def _end(self, job: asyncio.Task[None]) -> None:
        # One that failed stays, and is told of by `finish`.
        if not job.cancelled() and job.exception() is None:
            self.under_way.discard(job)

    async def finish(self) -> None:
        """Waits until all have ended."""
        await asyncio.gather(*self.under_way)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        watch = asyncio.create_task(self._look())
        try:
            yield
        finally:
            watch.cancel()
            for job in self.under_way:
                job.cancel()

    async def _look(self) -> None:
        """Sees which pods have a node: by lists, since watches end with the API server."""
        while True:
            with suppress(*_AWAY):
                for name in (await self.admin.verdict()).bound:
                    if name in self.bound:
                        self.bound[name].set()
            await asyncio.sleep(0.5)

    async def _live(self, name: str) -> None:
        self.bound[name] = asyncio.Event()
        await persist(lambda: self._create(pod(name, cpu="500m")))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.bound[name].wait()
        await asyncio.sleep(self.random.choice([0.0, 0.1, 1.0, 3.0]))
        if self.random.random() < 0.5:
            await persist(lambda: self._finish(name))
            await asyncio.sleep(self.random.random())
        await persist(lambda: self._delete(name))
        del self.bound[name]
        self.done += 1

    async def _create(self, manifest: Manifest) -> None:
        with _tolerating("409"):
            await self.admin.request("POST", _PODS, manifest)

    async def _finish(self, name: str) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        ended = {"status": {"phase": self.random.choice(["Succeeded", "Failed"])}}
        await self.admin.request("PATCH", f"{_PODS}/{name}/status", ended, headers=headers)

    async def _delete(self, name: str) -> None:
        with _tolerating("404"):
            await self.admin.delete(f"{_PODS}/{name}")


class _tolerating(suppress):
    """Takes a refusal for success: what was to be done was done by an attempt whose answer died."""

    def __init__(self, status: str) -> None:
        super().__init__(AssertionError)
        self._status = status

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        return isinstance(error, AssertionError) and f": {self._status} " in str(error)


@dataclass
class Replicas:
    """Two schedulers of which one leads."""

    folder: Path
    stack: AsyncExitStack
    number: int = 0
    running: list[MoorageProcess] = field(default_factory=list)
    #: Resident memory at the beginning and at the end of each lead.
    memory: list[tuple[int, int]] = field(default_factory=list)

    async def add(self) -> None:
        self.number += 1
        log, access = self.folder / f"log{self.number}", self.folder / "kubeconfig"
        self.running.append(
            await self.stack.enter_async_context(moorage(log, access, *USUAL_LEASE))
        )

    async def leader(self) -> MoorageProcess:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                for process in self.running:
                    if not process.has_ended and "This scheduler leads" in process.log:
                        return process
                await asyncio.sleep(0.2)

    async def replace_leader(self, after: float) -> None:
        """Lets one lead for a while, notes its memory, and kills it."""
        leader = await self.leader()
        await asyncio.sleep(after / 4)
        early = resident(leader)
        await asyncio.sleep(after * 3 / 4)
        late = resident(leader)
        if not leader.has_ended:
            self.memory.append((early, late))
            await leader.kill()

    async def restart_again_and_again(self) -> None:
        """Starts one for each that ended, as a Deployment does: who loses the lead ends itself."""
        while True:
            for process in [each for each in self.running if each.has_ended]:
                self.running.remove(process)
                await self.add()
            await asyncio.sleep(0.5)


async def kill_again_and_again(plane: ControlPlane, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        await asyncio.to_thread(plane.kill_api_server)
        await asyncio.sleep(1.0)
        await asyncio.to_thread(plane.start_api_server)


async def replace_again_and_again(replicas: Replicas, every: float) -> None:
    while True:
        await replicas.replace_leader(every)


@asynccontextmanager
async def meanwhile(*troubles: Awaitable[None]) -> AsyncIterator[None]:
    """Makes trouble for as long as the block runs. Trouble that ends by itself has failed."""
    tasks = [asyncio.ensure_future(each) for each in troubles]
    try:
        yield
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def soak(plan: Plan, plane: ControlPlane, admin: Arena, folder: Path) -> str:
    """Runs a plan and judges it; returns what there is to tell."""
    await admin.create(node(f"n{number}", cpu=_CPUS) for number in range(_NODES))
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(FaultyProxy(plane.server, Faults()).running())
        kubeconfig(folder / "kubeconfig", proxy.url, MOORAGE_TOKEN)
        replicas = Replicas(folder, stack)
        await replicas.add()
        await replicas.leader()
        await replicas.add()
        jobs = Jobs(admin)
        async with jobs.watching(), meanwhile(replicas.restart_again_and_again()):
            async with meanwhile(
                kill_again_and_again(plane, plan.api_server_every),
                replace_again_and_again(replicas, plan.leader_every),
            ):
                await jobs.make(plan)
            # Trouble may have ended in the middle of a restart.
            await asyncio.to_thread(plane.kill_api_server)
            await asyncio.to_thread(plane.start_api_server)
            # On a slow machine an API server and a leader may need longer than they live.
            await jobs.finish()
            made = Counter(path for path, status in proxy.bindings if status < 300)
            assert set(made.values()) == {1}, made.most_common(3)
            await all_room_is_there(plane, await replicas.leader())
        memory = ", ".join(f"{early >> 20} to {late >> 20}" for early, late in replicas.memory)
        report = f"{jobs.done} jobs, {len(made)} bindings, MB of the leaders: {memory}"
        (folder / "report").write_text(report)
        assert all(late <= _MOST_GROWTH * early for early, late in replicas.memory), report
        return report


async def all_room_is_there(plane: ControlPlane, leader: MoorageProcess) -> None:
    """Every core that is free is found free: pods that take all of them are all bound."""
    async with arena(plane.server, ADMIN_TOKEN) as admin:
        await persist(admin.pods)
        await leader.caught_up()
        assert "pods=0 differences=0" in leader.log[-2_000:]
        whole = [pod(f"whole-{number}", cpu=str(_CPUS)) for number in range(_NODES)]
        await admin.create(whole)
        await admin.bound(_NODES)
        await admin.nothing_is_over_committed()


def resident(process: MoorageProcess) -> int:
    """The memory of a process in bytes; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{process.pid}/statm").read_text().split()
    except OSError:
        return 0
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.soak
async def test_soak(plane: ControlPlane, admin: Arena, tmp_path: Path) -> None:
    minutes = float(os.environ.get("MOORAGE_SOAK_MINUTES", "30"))
    jobs = float(os.environ.get("MOORAGE_SOAK_JOBS", "50"))
    plan = Plan(60 * minutes, jobs_per_second=jobs, api_server_every=60, leader_every=300)
    report = await soak(plan, plane, admin, tmp_path)
    print(report)  # noqa: T201 - it is what `make soak` shows


async def test_soak_for_a_moment(plane: ControlPlane, admin: Arena, tmp_path: Path) -> None:
    plan = Plan(20, jobs_per_second=20, api_server_every=7, leader_every=10)
    await soak(plan, plane, admin, tmp_path)
