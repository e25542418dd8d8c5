"""`moorage up` as its users run it: one process, and kubectl."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

import pytest
import yaml
from aiohttp import ClientSession, CookieJar

from moorage.app.local_cluster import KubeconfigError, write_kubeconfig
from tests import false_plugins
from tests.builders import pod_manifest
from tests.cli.invoking import Moorage
from tests.embedded.kubectl import BINARIES, Kubectl, needs_kubectl
from tests.engine.test_false_plugins import FALSE
from tests.patience import PATIENCE_SECONDS, open_session, until

_POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: %s
  containers: [{name: main, image: app, resources: {requests: {cpu: "3"}}}]
"""
_NODE = """
apiVersion: v1
kind: Node
metadata: {name: mine}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "10"}}
"""

_HANGING = """
from pathlib import Path

from moorage.framework.plugin import PreFilter

class Hanging(PreFilter):
    name = "Hanging"

    def pre_filter(self, pod, nodes):
        Path({begun!r}).touch()
        while True:
            pass
"""

SHAPES = {
    "no such file": (None, "nodes.yaml: no such file or directory"),
    "no YAML": ("{", "nodes.yaml: document 1: broken YAML"),
    "two documents": (
        "shapes: []\n---\nshapes: []",
        "must be Nodes or one document of shapes, has 2",
    ),
    "a wrong field": ("shapes: [{count: x}]", "nodes.yaml: shapes[0].count: Expected int, got str"),
    "no such manifest": ("{shapes: [], manifests: [absent.yaml]}", "absent.yaml: no such file"),
    "a taint that is none": (
        "shapes: [{taints: [{key: a, effect: b}]}]",
        "shapes[0]: Node 'node-0': Node \"node-0\" is invalid: spec.taints[0].effect",
    ),
}


@asynccontextmanager
async def _up(
    folder: Path, *flags: str, log: IO[bytes] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A cluster that is ready; kubectl finds it through the folder."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "moorage", "up", f"--kubeconfig={folder / 'kubeconfig'}", *flags),
        stdout=asyncio.subprocess.PIPE,
        stderr=log,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = await process.stdout.readline()
        assert line.startswith(b"The cluster is ready: "), line
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def _until(kubectl: Kubectl, command: str, told: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (said := await kubectl.run(command)) != told:
            assert isinstance(said, str)
            await asyncio.sleep(0.1)


@needs_kubectl
@pytest.mark.parametrize("scheduler", ["direct", "http"])
async def test_pods_run_and_go_and_the_end_is_orderly(tmp_path: Path, scheduler: str) -> None:
    async with _up(tmp_path, "--nodes=2", f"--scheduler={scheduler}") as process:
        kubectl = Kubectl(BINARIES[0], tmp_path)
        await kubectl.run("create -f -", _NODE)
        await kubectl.run("wait --for=condition=Ready node/mine")
        await kubectl.run("run hello --image=app")
        await kubectl.run("wait --for=condition=Ready pod/hello")
        await kubectl.run("create -f -", _POD % ("first", "mine"))
        await kubectl.run("create -f -", _POD % ("second", "mine"))
        await _until(kubectl, "get pod second -o jsonpath={.status.reason}", "OutOfcpu")
        await kubectl.run("delete pod hello")
        names = await kubectl.run("get pods -o name")
        assert names.split() == ["pod/first", "pod/second"]

        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await process.wait() == 0


@needs_kubectl
async def test_plugins_that_break_a_promise_are_named(tmp_path: Path) -> None:
    """By the condition of the pod that they fail, or in the log if its decision stands."""
    names = [each.name for each in FALSE]
    first, *pods = [
        json.dumps(pod_manifest(each.lower(), labels={"false": each})) for each in ("Not", *names)
    ]
    log = tmp_path / "log"
    with log.open("wb") as written:
        flags = ("--nodes=2", f"--plugins={false_plugins.__file__}")
        async with _up(tmp_path, *flags, log=written):
            kubectl = Kubectl(BINARIES[0], tmp_path)
            await kubectl.run("create -f -", first)
            await kubectl.run("wait --for=condition=Ready pod/not")
            await kubectl.run("create -f -", "\n".join(pods))

            async def are_named() -> bool:
                said = await kubectl.run("get pods -o jsonpath={.items[*].status.conditions}")
                return all(name in said + log.read_text() for name in names)

            await until(are_named, "the name of each plugin")


async def test_it_stops_while_a_decision_hangs(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    (tmp_path / "hanging.py").write_text(_HANGING.format(begun=str(begun)))
    (tmp_path / "pod.yaml").write_text(_POD % ("hang", '""'))
    (tmp_path / "nodes.yaml").write_text("{shapes: [{count: 1}], manifests: [pod.yaml]}")
    flags = (f"--nodes={tmp_path / 'nodes.yaml'}", f"--plugins={tmp_path / 'hanging.py'}")
    async with _up(tmp_path, *flags) as process, asyncio.timeout(PATIENCE_SECONDS):
        while not begun.exists():
            assert process.returncode is None
            await asyncio.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 1


async def test_sigusr2_compares_at_any_log_level_and_stops_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as written:
        async with (
            _up(tmp_path, "--nodes=2", "--log-level=error", log=written) as process,
            asyncio.timeout(PATIENCE_SECONDS),
        ):
            while "Compared the cache with the API server" not in log.read_text():
                # A signal before the cluster is ready is heard and has nothing to compare.
                process.send_signal(signal.SIGUSR2)
                assert process.returncode is None
                await asyncio.sleep(0.1)
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0


_EXCLUSIVE_POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  coexistPolicy: DaemonsetAndStaticPods
  nodeName: node-0
  containers: [{name: main, image: app}]
"""


@needs_kubectl
async def test_the_gate_of_the_coexist_policy_reaches_api_server_and_kubelets(
    tmp_path: Path,
) -> None:
    kubectl = Kubectl(BINARIES[0], tmp_path)
    async with _up(tmp_path, "--nodes=1", "--feature-gates=CoexistPolicy=false"):
        for name in ("first", "second"):
            await kubectl.run("create --validate=false -f -", _EXCLUSIVE_POD % name)
            await kubectl.run(f"wait --for=condition=Ready pod/{name}")
        assert await kubectl.run("get pod first -o jsonpath={.spec.coexistPolicy}") == ""
    async with _up(tmp_path, "--nodes=1"):
        await kubectl.run("create --validate=false -f -", _EXCLUSIVE_POD % "first")
        kept = await kubectl.run("get pod first -o jsonpath={.spec.coexistPolicy}")
        assert kept == "DaemonsetAndStaticPods"
        await kubectl.run("create --validate=false -f -", _EXCLUSIVE_POD % "second")
        await _until(kubectl, "get pod second -o jsonpath={.status.phase}", "Failed")


@needs_kubectl
async def test_without_a_scheduler_pods_wait_and_the_next_run_goes_on(tmp_path: Path) -> None:
    flags = ("--nodes=1", "--no-scheduler", f"--data-dir={tmp_path / 'data'}")
    kubectl = Kubectl(BINARIES[0], tmp_path)
    async with _up(tmp_path, *flags) as process:
        await kubectl.run("run waiting --image=app")
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
    async with _up(tmp_path, *flags):
        phase = await kubectl.run("get pod waiting -o jsonpath={.status.phase}")
        assert phase == "Pending"


async def test_what_the_scheduler_tells_is_for_those_who_were_let_in(tmp_path: Path) -> None:
    async with (
        _up(tmp_path, "--nodes=1", "--token=secret") as process,
        open_session() as other,
    ):
        assert process.stdout is not None
        page = (await process.stdout.readline()).decode().removeprefix("Its page: ").strip()
        endpoints = page.partition("/ui/enter/")[0]
        data, metrics = f"{endpoints}/ui/api/snapshot", f"{endpoints}/metrics"
        # A jar takes no cookies from an address without a name unless it is told to.
        async with open_session(cookie_jar=CookieJar(unsafe=True)) as browser:
            assert [await _status(browser, each) for each in (data, page, data)] == [401, 200, 200]
        # It gets to the page, which asks for the token, and to nothing of the cluster.
        assert await _status(other, page.rpartition("/")[0] + "/wrong") == 200
        assert [await _status(other, each) for each in (data, metrics, f"{endpoints}/configz")] == [
            401
        ] * 3
        token = {"Authorization": "Bearer secret"}
        assert [await _status(other, each, token) for each in (data, metrics)] == [200, 200]


async def _status(
    session: ClientSession, address: str, headers: Mapping[str, str] | None = None
) -> int:
    async with session.get(address, headers=headers) as answer:
        return answer.status


def test_a_port_that_is_taken_is_told_in_one_line(moorage: Moorage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = moorage("up", f"--port={port}", "--for=0")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"cannot listen on 127.0.0.1:{port}: address already in use\n"


def test_it_can_end_by_itself(moorage: Moorage, tmp_path: Path) -> None:
    ended = moorage("up", "--nodes=3", "--for=0", "--no-browser", f"--kubeconfig={tmp_path / 'k'}")

    assert ended.code == 0, ended.err
    assert ended.out.startswith("The cluster is ready: 3 nodes, https://127.0.0.1:")
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o600
    # Only a path may make a line longer than a terminal is wide.
    paths = (" /", "=/")
    long = [line for line in ended.out.splitlines() if len(line) > 80]
    assert not [line for line in long if not any(each in line for each in paths)]


@pytest.mark.parametrize("name", SHAPES)
def test_a_bad_shape_file_is_told_in_one_line(name: str, moorage: Moorage, tmp_path: Path) -> None:
    text, told = SHAPES[name]
    path = tmp_path / "nodes.yaml"
    if text is not None:
        path.write_text(text)

    ended = moorage("up", f"--nodes={path}", "--for=0")

    assert ended.code == 2
    assert told in ended.err
    assert ended.err.count("\n") == 1


_MINE = {"current-context": "moorage", "contexts": [{"name": "moorage", "context": {}}]}


def test_a_kubeconfig_of_its_own_is_for_the_owner_and_goes_away() -> None:
    with write_kubeconfig(_MINE, None) as path:
        assert yaml.safe_load(path.read_text()) == _MINE
        assert os.stat(path).st_mode & 0o777 == 0o600
    assert not path.exists()


@pytest.mark.parametrize("there", ["contexts: [{name: production}]", "{", "- a list"])
def test_the_way_to_other_clusters_is_not_overwritten(there: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(there)

    with pytest.raises(KubeconfigError, match=str(path)), write_kubeconfig(_MINE, path):
        pass

    assert path.read_text() == there


def test_its_own_kubeconfig_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "config"
    for _ in range(2):
        with write_kubeconfig(_MINE, path):
            pass

    assert yaml.safe_load(path.read_text()) == _MINE
