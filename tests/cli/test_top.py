"""`moorage top`: what it shows, in how much room, and where it gets that from."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console, Group

from moorage.cli.inputs import ConnectionOptions, find_cluster
from moorage.cli.top import _watch_cluster
from moorage.cli.top_picture import NodeLine, TopPicture, WaitingLine
from moorage.cli.top_text import top_parts
from moorage.embedded.server import Server, ServerSettings, serve
from tests.builders import node_manifest, pod_manifest
from tests.cli.invoking import Moorage
from tests.patience import PATIENCE_SECONDS, until_true

ENDING = ".eu-central-1.compute.internal"


def picture(nodes: int = 3, groups: int = 2, **more: Any) -> TopPicture:
    reason = f"0/{nodes} nodes are available: {nodes} Insufficient cpu. preemption: no"
    return TopPicture(
        [
            NodeLine(f"ip-10-0-0-{at}{ENDING}", at == 1, {"cpu": at / nodes, "memory": 0.95})
            for at in range(nodes)
        ],
        {"cpu": (5000.0, 12000.0), "memory": (2.0**32, 2.0**34), "pods": (7.0, 330.0)},
        7,
        [WaitingLine(f"deployment shop/{'x' * 50}-{at}", 4, reason) for at in range(groups)],
        **more,
    )


def drawn(shown: TopPicture, height: int | None = None, sort: str = "cpu") -> list[str]:
    console = Console(width=80, file=None, highlight=False)
    with console.capture() as captured:
        console.print(Group(*top_parts(shown, 80, height, sort)))
    return [each.rstrip() for each in captured.get().splitlines()]


def test_a_small_cluster_at_80_columns() -> None:
    assert drawn(picture(groups=1)) == [
        "nodes 3   pods 7   waiting 4",
        "cpu 42% (5 of 12), memory 25% (4Gi of 16Gi), pods 2% (7 of 330)",
        "",
        "NODE                    cpu          memory       pods",
        "ip-10-0-0-2             ████    67%  █████▊  95%  -",
        "ip-10-0-0-1 (cordoned)  ██      33%  █████▊  95%  -",
        "ip-10-0-0-0                      0%  █████▊  95%  -",
        f"(names end in {ENDING})",
        "",
        "WAITING",
        f"4 pods of deployment shop/{'x' * 50}-0",
        "    0/3 nodes are available: 3 Insufficient cpu",
    ]


def test_names_come_before_resources() -> None:
    shown = picture()
    shown.totals["nvidia.com/gpu"] = (0.0, 8.0)
    shown.nodes[1] = NodeLine(f"ip-10-120-100-105{ENDING}", True, {"cpu": 0.5})

    lines = drawn(shown)

    assert any(each.startswith("ip-10-120-100-105 (cordoned) ") for each in lines)
    assert next(each for each in lines if each.startswith("NODE")).split()[1:] == [
        *("cpu", "memory", "nvidia.com/gpu")
    ]


@pytest.mark.parametrize("nodes", [0, 3, 500])
@pytest.mark.parametrize("groups", [0, 2, 60])
@pytest.mark.parametrize("height", [24, 50])
def test_a_screen_is_never_exceeded(nodes: int, groups: int, height: int) -> None:
    lines = drawn(picture(nodes, groups, problem="it is away " * 3), height)

    assert len(lines) <= height
    assert max(map(len, lines)) <= 80
    # Either part is there, however long the other is.
    assert any("no nodes" in each if not nodes else "ip-10-0-0-" in each for each in lines)
    assert any("no pod waits" in each if not groups else "shop/x" in each for each in lines)
    if nodes == 500:
        assert any(re.search(r"and \d+ more nodes", each) for each in lines)


def test_nodes_are_sorted_by_name_on_request() -> None:
    names = [each.split()[0] for each in drawn(picture(), sort="name") if "ip-10" in each]

    assert names == ["ip-10-0-0-0", "ip-10-0-0-1", "ip-10-0-0-2"]


def test_manifests_are_shown_once(moorage: Moorage, tmp_path: Path) -> None:
    said = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available."}
    objects = [
        node_manifest("n", cpu=4),
        pod_manifest("small", cpu=1, node="n"),
        pod_manifest("big", cpu=9, status={"conditions": [said]}),
    ]
    path = tmp_path / "dump.yaml"
    path.write_text(yaml.safe_dump_all(objects))

    result = moorage("top", str(path))
    data = moorage("top", str(path), "-o", "json")
    same = moorage("top", str(path), "-o", "yaml")

    assert (result.code, result.err) == (0, "")
    assert "cpu 25% (1 of 4)" in result.out
    assert "pod default/big\n    0/1 nodes are available\n" in result.out
    assert json.loads(data.out)["waiting"][0]["owner"] == "pod default/big"
    assert yaml.safe_load(same.out) == json.loads(data.out)


@pytest.mark.parametrize("command", ["top", "simulate", "explain", "shadow", "fit"])
def test_a_cluster_that_is_away_is_one_clear_line(
    moorage: Moorage, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "kubeconfig"
    server = {"cluster": {"server": "http://127.0.0.1:1"}, "name": "c"}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "t"}}
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "c"}
    parts = {"clusters": [server], "contexts": [context], "users": [user]}
    path.write_text(yaml.safe_dump({**config, **parts}))

    result = moorage(command, f"--kubeconfig={path}")

    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith("http://127.0.0.1:1 cannot be reached: connection refused (")


@asynccontextmanager
async def cluster(tmp_path: Path) -> AsyncIterator[tuple[Server, Path]]:
    """An API server with a node, and the kubeconfig for it."""
    server = await serve(ServerSettings())
    try:
        server.api.create(server.api.kinds["nodes"], "", node_manifest("n", cpu=4))
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(server.kubeconfig))
        yield server, path
    finally:
        await server.stop()


async def test_a_cluster_is_watched_and_simulated(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (server, path):
        connection = ConnectionOptions(path)
        async with _watch_cluster(connection) as look:
            assert [each.name for each in look().nodes] == ["n"]
            server.api.create(server.api.kinds["pods"], "default", pod_manifest("p", cpu=1))
            await until_true(lambda: bool(look().waiting))
            assert look().waiting == [WaitingLine("pod default/p", 1, "")]
        # What `moorage simulate` reads where no file is given.
        found = await asyncio.to_thread(find_cluster, (), connection, ())
        assert {each.name for each in found.objects if each.name in "np"} == {"n", "p"}


@pytest.mark.parametrize("by_key", [False, True], ids=["Ctrl-C", "q"])
async def test_in_a_terminal_it_goes_on_until_it_is_stopped(tmp_path: Path, by_key: bool) -> None:
    async with cluster(tmp_path) as (_, path):
        ours, theirs = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "moorage", "top", f"--kubeconfig={path}"),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm"},
        )
        os.close(theirs)
        try:
            shown = await asyncio.wait_for(
                asyncio.to_thread(_read_until, ours, b"no pod waits"), PATIENCE_SECONDS
            )
            if by_key:
                os.write(ours, b"q")
            else:
                process.send_signal(signal.SIGINT)
            code = await asyncio.wait_for(process.wait(), PATIENCE_SECONDS)
        finally:
            os.close(ours)

    assert b"nodes 1" in shown
    assert b"Traceback" not in shown
    assert code == 0


def _read_until(file: int, text: bytes) -> bytes:
    found = b""
    while text not in found:
        found += os.read(file, 4096)
    return found
