"""The page about the library runs, and the library answers as the commands do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import mooring
from mooring.documents.errors import InputError
from mooring.embedded.server import ServerSettings, serve
from tests.builders import node_manifest, pod_manifest
from tests.docs.pages import DOCS, blocks, run
from tests.record.test_replay import record

PAGE = DOCS / "library.md"
DEMO = "examples/demo"


def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    for at, block in enumerate(blocks(PAGE, "python")):
        run(f"library_page_{at}", block)

    first, second, third, fourth = capsys.readouterr().out.splitlines()
    assert first.startswith("pending it tolerated dedicated=database:NoSchedule")
    assert second == "16 placed, 4 pending"
    assert int(third) > int(fourth) > 0


def test_questions_leave_the_cluster_as_it_is() -> None:
    cluster = mooring.read_cluster(DEMO)
    before = cluster.objects

    assert cluster.fit(pod_manifest("p", cpu=1), count=3).placed == 3
    assert cluster.reschedule().pods == 1
    assert cluster.explain("shop/cache-0").running_on == "b1"
    assert cluster.objects is before
    assert len(cluster.add(node_manifest("new")).nodes) == len(cluster.nodes) + 1


def test_tables_have_a_row_per_object() -> None:
    cluster = mooring.read_cluster(DEMO)
    nodes, pods = cluster.node_table(), cluster.pod_table()

    assert (len(nodes), len(pods)) == (6, 21)
    assert nodes[0]["allocatable.cpu"] == 4000
    assert next(each for each in pods if each["name"] == "cache-0")["node"] == "b1"


def test_configurations_and_mistakes() -> None:
    cluster = mooring.read_cluster(DEMO)
    raw = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
           "profiles": [{"schedulerName": "other"}]}  # fmt: skip

    assert cluster.configure(raw).simulate().placed == ()
    with pytest.raises(InputError, match="pod a/b: not found among 21 pods"):
        cluster.explain("a/b")


def test_importing_the_package_loads_next_to_nothing() -> None:
    """Neither our modules nor what is slow to load; time would depend on the machine."""
    heavy = "mooring.", "numpy", "msgspec", "asyncio", "aiohttp", "yaml", "typer", "cel_expr"
    code = f"import sys, mooring; print([m for m in sys.modules if m.startswith({heavy!r})])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stdout == "[]\n"


def test_a_recording_and_a_live_cluster_are_read(tmp_path: Path) -> None:
    record(tmp_path / "run")
    cluster = mooring.read_cluster(tmp_path / "run")
    assert ({node.name for node in cluster.nodes}, len(cluster.pods)) == ({"n0", "n1"}, 5)
    assert mooring.ClusterSnapshot(()).run_trace(mooring.read_trace(tmp_path / "run")).nodes == 2

    async def read_live() -> mooring.ClusterSnapshot:
        server = await serve(ServerSettings())
        try:
            server.api.create(server.api.kinds["nodes"], "", node_manifest("n"))
            (tmp_path / "kubeconfig").write_text(yaml.safe_dump(server.kubeconfig))
            # In another thread, as the loop of a notebook is busy, too.
            return await asyncio.to_thread(mooring.read_live_cluster, tmp_path / "kubeconfig")
        finally:
            await server.stop()

    assert [node.name for node in asyncio.run(read_live()).nodes] == ["n"]
