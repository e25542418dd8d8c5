"""A scheduler that is killed between any two of its writes leaves nothing half done.

The story has every kind of write: a plain pod is bound, a pod with a claim has its volume written
first, and a pod that matters more evicts one that matters less. It is told once to count the
writes. Then it is told again and again, and each time the scheduler is killed at another write:
just before the API server sees it, or just before the scheduler sees the answer. The next
scheduler has to find the way from there.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.patience import until

from .arena import Arena, Manifest, node, pod
from .control_plane import MOORAGE_TOKEN, ControlPlane
from .faulty_proxy import Faults, FaultyProxy
from .moorage_process import MoorageProcess, kubeconfig, moorage

pytestmark = pytest.mark.live

_ALONE = "--leader-elect=false"
_CORE = "/api/v1"
_STORAGE = "/apis/storage.k8s.io/v1/storageclasses"
_PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_CLAIMS = f"{_CORE}/namespaces/default/persistentvolumeclaims"
_VOLUMES = f"{_CORE}/persistentvolumes"
_PODS = f"{_CORE}/namespaces/default/pods"
_MERGE = {"Content-Type": "application/merge-patch+json"}
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"

_CLASS: Manifest = {
    "metadata": {"name": "late"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}
_URGENT: Manifest = {"metadata": {"name": "urgent"}, "value": 1_000}
_CLAIM: Manifest = {
    "metadata": {"name": "claim", "namespace": "default"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "late",
    },
}
_VOLUME: Manifest = {
    "metadata": {"name": "volume"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "hostPath": {"path": "/data"},
    },
}


@dataclass
class Failpoint:
    """Kills the scheduler at one of its writes."""

    #: Which write; None only counts.
    at: int | None = None
    is_before_answer: bool = False
    writes: int = 0
    answers: int = 0
    victim: MoorageProcess | None = None
    struck: asyncio.Event = field(default_factory=asyncio.Event)

    async def before_write(self) -> None:
        self.writes += 1
        if not self.is_before_answer and self.writes == self.at:
            await self._strike()

    async def before_answer(self) -> None:
        self.answers += 1
        if self.is_before_answer and self.answers == self.at:
            await self._strike()

    async def _strike(self) -> None:
        assert self.victim is not None
        await self.victim.kill()
        self.struck.set()


class Story:
    """Objects, and the parts of the controllers and kubelets that it needs."""

    def __init__(self, admin: Arena) -> None:
        self._admin = admin

    async def begin(self) -> None:
        items = (_STORAGE, _CLASS), (_PRIORITIES, _URGENT), (_VOLUMES, _VOLUME), (_CLAIMS, _CLAIM)
        for folder, item in items:
            await self._admin.request("POST", folder, item)
        await self._report_volume("Available")
        await self._admin.create([node("small", cpu=1), node("large", cpu=2, kind="large")])
        claimed = [{"name": "data", "persistentVolumeClaim": {"claimName": "claim"}}]
        await self._admin.create([pod("plain", cpu="1"), pod("stateful", cpu="1", volumes=claimed)])
        await self._admin.create([pod("lesser", cpu="1")])

    async def matter_more(self) -> None:
        await self._admin.create([pod("urgent", cpu="2", priorityClassName="urgent")])

    async def end(self) -> None:
        for each in await self._admin.pods():
            await self._admin.delete(f"{_PODS}/{each['metadata']['name']}")
        paths = (
            f"{_CLAIMS}/claim",
            f"{_VOLUMES}/volume",
            f"{_STORAGE}/late",
            f"{_PRIORITIES}/urgent",
        )
        for path in paths:
            with suppress(AssertionError):
                await self._admin.delete(path)

    async def look_after(self) -> None:
        """Binds the claim to the volume that the scheduler chose, and ends pods that must go."""
        while True:
            for each in await self._admin.pods():
                if each["metadata"].get("deletionTimestamp"):
                    with suppress(AssertionError):
                        await self._admin.delete(f"{_PODS}/{each['metadata']['name']}")
            volume = await self._admin.request("GET", f"{_VOLUMES}/volume")
            claim = await self._admin.request("GET", f"{_CLAIMS}/claim")
            if volume["spec"].get("claimRef") and not claim["spec"].get("volumeName"):
                await self._bind_claim()
            await asyncio.sleep(0.1)

    async def _bind_claim(self) -> None:
        annotations = {"annotations": {_BIND_COMPLETED: "yes"}}
        bound = {"metadata": annotations, "spec": {"volumeName": "volume"}}
        await self._admin.request("PATCH", f"{_CLAIMS}/claim", bound, headers=_MERGE)
        phase = {"status": {"phase": "Bound"}}
        await self._admin.request("PATCH", f"{_CLAIMS}/claim/status", phase, headers=_MERGE)
        await self._report_volume("Bound")

    async def _report_volume(self, phase: str) -> None:
        status = {"status": {"phase": phase}}
        await self._admin.request("PATCH", f"{_VOLUMES}/volume/status", status, headers=_MERGE)

    async def wait_for(self, *names: str) -> dict[str, str]:
        async def are_bound() -> dict[str, str]:
            bound = (await self._admin.verdict()).bound
            return bound if all(name in bound for name in names) else {}

        return await until(are_bound, f"the bindings of {names}")


async def tell(story: Story, failpoint: Failpoint, proxy: FaultyProxy, folder: Path) -> None:
    """Tells the story, with a second scheduler once the first is killed."""
    controllers = asyncio.create_task(story.look_after())
    followers: set[asyncio.Task[None]] = set()
    access = folder / "kubeconfig"
    try:
        async with moorage(folder / "first", access, _ALONE) as first:
            failpoint.victim = first
            followers.add(asyncio.create_task(_follow(failpoint, folder)))
            await story.wait_for("plain", "stateful", "lesser")
            await story.matter_more()
            bound = await story.wait_for("urgent")
        assert bound["urgent"] == "large"
        made = Counter(path for path, status in proxy.bindings if status < 300)
        assert set(made.values()) == {1}
        if failpoint.at is not None:
            assert failpoint.struck.is_set()
    finally:
        for task in (*followers, controllers):
            task.cancel()
        await asyncio.gather(*followers, controllers, return_exceptions=True)


async def _follow(failpoint: Failpoint, folder: Path) -> None:
    await failpoint.struck.wait()
    async with moorage(folder / "second", folder / "kubeconfig", _ALONE):
        await asyncio.Event().wait()


async def run(failpoint: Failpoint, plane: ControlPlane, admin: Arena, folder: Path) -> int:
    """One telling; returns how many writes there were."""
    await asyncio.to_thread(folder.mkdir)
    faults = Faults(before_write=failpoint.before_write, before_answer=failpoint.before_answer)
    story = Story(admin)
    try:
        await story.begin()
        async with FaultyProxy(plane.server, faults).running() as proxy:
            kubeconfig(folder / "kubeconfig", proxy.url, MOORAGE_TOKEN)
            await tell(story, failpoint, proxy, folder)
    finally:
        await story.end()
        await admin.clear()
    return failpoint.writes


async def run_all(
    plane: ControlPlane, admin: Arena, folder: Path, every: int = 1
) -> tuple[int, int]:
    """Fails at every write, or every second, third…; returns the writes and the failures."""
    writes = await run(Failpoint(), plane, admin, folder / "counting")
    points = range(1, writes + 1, every)
    for at in points:
        for is_before_answer in (False, True):
            failpoint = Failpoint(at, is_before_answer)
            await run(failpoint, plane, admin, folder / f"{at}-{is_before_answer}")
    return writes, 2 * len(points)


@pytest.mark.soak
async def test_every_failpoint(plane: ControlPlane, admin: Arena, tmp_path: Path) -> None:
    writes, failures = await run_all(plane, admin, tmp_path)
    print(f"{writes} writes, {failures} failures survived")  # noqa: T201 - `make soak` shows it


async def test_some_failpoints(plane: ControlPlane, admin: Arena, tmp_path: Path) -> None:
    writes, _ = await run_all(plane, admin, tmp_path, every=6)
    assert writes >= 6, "the story has become too short"
