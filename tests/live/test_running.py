"""`moorage run` on a real API server: beside others, with bad input, asked about itself."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS

from .arena import Arena, node, pod
from .control_plane import MOORAGE_TOKEN, ControlPlane
from .faulty_proxy import Faults, FaultyProxy
from .lease_options import LONG_LEASE
from .moorage_process import kubeconfig, moorage

pytestmark = [pytest.mark.live, pytest.mark.embedded_will_do]

_ALONE = "--leader-elect=false"

_TWO_NAMES = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: {name}
"""


def configuration(folder: Path, name: str) -> str:
    path = folder / f"{name}.yaml"
    path.write_text(_TWO_NAMES.format(name=name))
    return f"--config={path}"


@pytest.fixture
def access(plane: ControlPlane, tmp_path: Path) -> Path:
    return kubeconfig(tmp_path / "kubeconfig", plane.server, MOORAGE_TOKEN)


async def test_pods_of_other_schedulers_are_left_alone(
    admin: Arena, access: Path, tmp_path: Path
) -> None:
    await admin.create([node("n1"), pod("theirs", scheduler="other"), pod("ours")])
    async with moorage(tmp_path / "log", access, _ALONE):
        verdict = await admin.bound(1)

        assert verdict.pending == ["theirs"]


async def test_two_schedulers_share_nodes_without_over_committing_for_good(
    admin: Arena, access: Path, tmp_path: Path
) -> None:
    """Room for 64 pods, and 60 of them from two schedulers that do not know of each other."""
    await admin.create(node(f"n{number}", cpu=4) for number in range(16))
    ones = (pod(f"one{number}", cpu="1", scheduler="one") for number in range(30))
    twos = (pod(f"two{number}", cpu="1", scheduler="two") for number in range(30))
    async with (
        moorage(tmp_path / "one", access, _ALONE, configuration(tmp_path, "one")) as one,
        moorage(tmp_path / "two", access, _ALONE, configuration(tmp_path, "two")) as two,
    ):
        await one.logged("leads")
        await two.logged("leads")
        await asyncio.gather(admin.create(ones, 4), admin.create(twos, 4))
        # What raced may have gone too far. Now that both have seen it, nothing is added to it.
        verdict = await admin.all_bound(60)
        await one.caught_up()
        full = {name for name in verdict.bound.values() if len(verdict.on(name)) >= 4}
        await admin.create([pod("late1", cpu="1", scheduler="one")])
        late = (await admin.all_bound(61)).bound["late1"]

        assert late not in full


async def test_a_pod_that_the_kubelet_rejected_is_not_fought_over(
    admin: Arena, access: Path, tmp_path: Path
) -> None:
    await admin.create([node("n1", cpu=1), pod("first", cpu="1")])
    async with moorage(tmp_path / "log", access, _ALONE):
        await admin.all_bound(1)
        rejected = {"status": {"phase": "Failed", "reason": "OutOfcpu"}}
        path = "/api/v1/namespaces/default/pods"
        await admin.request(
            "PATCH",
            f"{path}/first/status",
            rejected,
            headers={"Content-Type": "application/merge-patch+json"},
        )
        # The room that it was to take is there for another.
        await admin.create([pod("second", cpu="1")])
        await admin.all_bound(2)


async def test_objects_that_cannot_be_read_are_reported_once_and_stop_nothing(
    plane: ControlPlane, admin: Arena, tmp_path: Path
) -> None:
    def spoil(text: bytes) -> bytes:
        return text.replace(b'"cpu":"77"', b'"cpu":"7x7"').replace(
            b'"operator":"DoesNotExist"', b'"operator":"Excites"'
        )

    affinity = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "zone",
                    "labelSelector": {
                        "matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]
                    },
                }
            ]
        }
    }
    await admin.create(
        [node("good", pods=30), node("spoiled", cpu=77), pod("odd", affinity=affinity)]
    )
    async with FaultyProxy(plane.server, Faults(rewrite=spoil)).running() as proxy:
        access = kubeconfig(tmp_path / "kubeconfig", proxy.url, MOORAGE_TOKEN)
        async with moorage(tmp_path / "log", access, _ALONE) as process:
            await admin.create(pod(f"p{number}") for number in range(20))
            verdict = await admin.bound(20)
            assert set(verdict.bound.values()) == {"good"}
            assert verdict.pending == ["odd"]
            for name in ("spoiled", "default/odd"):
                assert process.log.count(f'object="{name}"') == 1
            assert "7x7" in process.log
            assert "Excites" in process.log


async def test_sigusr2_compares_the_cache_with_the_api_server(
    admin: Arena, access: Path, tmp_path: Path
) -> None:
    await admin.create([node("n1"), pod("a"), pod("b")])
    async with moorage(tmp_path / "log", access, _ALONE) as process:
        await admin.all_bound(2)
        await process.caught_up()

        assert "nodes=1 pods=2 differences=0" in process.log


# An hour forward, an hour back, a day forward: every 300 ms another time of day.
_JUMPY = """\
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *told) {
    static const long offsets[] = {0, 3600, -3600, 86400};
    long failed = syscall(SYS_clock_gettime, id, told);
    if (id == CLOCK_REALTIME) {
        struct timespec steady;
        syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &steady);
        told->tv_sec += offsets[(steady.tv_sec * 10 + steady.tv_nsec / 100000000) / 3 % 4];
    }
    return failed;
}
"""


# Ends as soon as it has seen the clock jump, which another clock would never let it.
_LOOK = """\
import time
first = time.time()
while abs(time.time() - first) < 1800:
    time.sleep(0.1)
"""


@pytest.fixture
def jumpy_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that are started see a time of day that jumps."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to make a clock that jumps")
    source, library = tmp_path / "clock.c", tmp_path / "clock.so"
    source.write_text(_JUMPY)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    subprocess.run([sys.executable, "-c", _LOOK], check=True, timeout=PATIENCE_SECONDS)


@pytest.mark.usefixtures("jumpy_clock")
async def test_the_clock_jumps(admin: Arena, access: Path, tmp_path: Path) -> None:
    # The clock jumps by more than the lease lasts.
    await admin.create([node("n1"), node("big", cpu=16)])
    async with moorage(tmp_path / "log", access, *LONG_LEASE) as process:
        await process.logged("leads")
        # The last needs the backoff to end at the right time: its node comes later.
        await admin.create([pod("a"), pod("b"), pod("large", cpu="20")])
        await admin.bound(2)
        await admin.told("FailedScheduling")
        await admin.create([node("huge", cpu=32)])
        verdict = await admin.all_bound(3)

        assert verdict.bound["large"] == "huge"
        assert "Leadership is lost" not in process.log
        assert await process.stop() == 0
