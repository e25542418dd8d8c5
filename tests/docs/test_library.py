"""The page about the library runs, and the library answers as the commands do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import moorage
from moorage.documents.errors import InputError
from moorage.embedded.server import ServerSettings, serve
from tests.builders import node_manifest, pod_manifest
from tests.docs.pages import DOCS, blocks, run
from tests.record.test_replay import record

PAGE = DOCS / "library.md"
DEMO = "examples/demo"


def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    run("library_page", *blocks(PAGE, "python"))

    first, second, pod, requested, third, fourth = capsys.readouterr().out.splitlines()
    assert (pod, requested in ("1000", "without pandas")) == (
        "shop Running zone-b 4294967296",
        True,
    )
    assert first.startswith("pending it did not take host port 443/TCP")
    assert second == "16 placed, 4 pending"
    placed, in_first_zone = map(int, third.split())
    assert placed > in_first_zone > 0
    assert fourth == "{'pod': 'shop/db-1', 'node': 'c1', 'other': 'a1'}"


def test_questions_leave_the_cluster_as_it_is() -> None:
    cluster = moorage.read_cluster(DEMO)
    before = cluster.objects

    assert cluster.fit(pod_manifest("p", cpu=1), count=3).placed == 3
    assert cluster.reschedule().pods == 1
    assert cluster.explain("shop/cache-0").running_on == "b1"
    assert cluster.objects is before
    assert len(cluster.add(node_manifest("new")).nodes) == len(cluster.nodes) + 1


def test_tables_have_a_row_per_object() -> None:
    cluster = moorage.read_cluster(DEMO)
    nodes, pods = cluster.node_table(), cluster.pod_table()

    assert (len(nodes), len(pods)) == (6, 21)
    assert nodes[0]["allocatable.cpu"] == 4000
    assert next(each for each in pods if each["name"] == "cache-0")["node"] == "b1"


def test_scores_are_rows_and_the_best_is_where_the_pod_goes() -> None:
    cluster = moorage.ClusterSnapshot(()).add(
        node_manifest("big", cpu=8),
        node_manifest("small", cpu=2),
        node_manifest("full", cpu="100m"),
        pod_manifest("runs", cpu=1, node="small"),
        pod_manifest("huge", cpu=64),
        pod_manifest("other", cpu=1, spec={"schedulerName": "volcano"}),
    )

    first, second = cluster.score_table("default/runs")
    assert (first["node"], second["node"]) == ("big", "small")
    for row in (first, second):
        assert row["total"] == sum(row[each] for each in row if each not in ("node", "total"))
    assert first["NodeResourcesFit"] > second["NodeResourcesFit"]
    assert cluster.explain("default/runs").scores[0].node == "big"

    assert cluster.score_table("default/huge") == []
    with pytest.raises(InputError, match="no profile 'volcano'"):
        cluster.score_table("default/other")


@pytest.mark.parametrize(
    ("pod", "node"),
    [
        pytest.param("default/runs", "big", id="one that runs, as if it waited"),
        pytest.param("default/huge", "", id="one that fits nowhere"),
        pytest.param(pod_manifest("new", cpu=7), "big", id="a manifest"),
        pytest.param(pod_manifest("new", spec={"nodeSelector": {"no": "such"}}), "", id="no node"),
    ],
)
def test_where_a_pod_goes(pod: str | dict[str, object], node: str) -> None:
    cluster = moorage.ClusterSnapshot(()).add(
        node_manifest("big", cpu=8),
        node_manifest("small", cpu=2),
        pod_manifest("runs", cpu=1, node="small"),
        pod_manifest("huge", cpu=64),
    )

    assert cluster.place(pod) == node


def test_pods_that_go_elsewhere_in_another_cluster() -> None:
    here = moorage.ClusterSnapshot(()).add(
        node_manifest("big", cpu=8), pod_manifest("p", cpu=1), pod_manifest("q", cpu=4)
    )
    there = here.add(node_manifest("bigger", cpu=64))
    without = moorage.ClusterSnapshot(()).add(pod_manifest("p", cpu=1), pod_manifest("q", cpu=4))

    assert here.compare(here) == []
    assert here.compare(there) == [
        {"pod": "default/p", "node": "big", "other": "bigger"},
        {"pod": "default/q", "node": "big", "other": "bigger"},
    ]
    assert without.compare(here) == [
        {"pod": "default/p", "node": "", "other": "big"},
        {"pod": "default/q", "node": "", "other": "big"},
    ]


def test_a_pod_that_fits_on_one_node_has_one_row_without_scores() -> None:
    cluster = moorage.ClusterSnapshot(()).add(node_manifest("n"), pod_manifest("p", cpu=1))

    assert cluster.score_table("default/p") == [{"node": "n", "total": 0}]


def test_configurations_and_mistakes() -> None:
    cluster = moorage.read_cluster(DEMO)
    raw = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
           "profiles": [{"schedulerName": "other"}]}  # fmt: skip

    assert cluster.configure(raw).simulate().placed == ()
    with pytest.raises(InputError, match="pod a/b: not found among 21 pods"):
        cluster.explain("a/b")


def test_importing_the_package_loads_next_to_nothing() -> None:
    """Neither our modules nor what is slow to load; time would depend on the machine."""
    heavy = "moorage.", "numpy", "msgspec", "asyncio", "aiohttp", "yaml", "typer", "cel_expr"
    code = f"import sys, moorage; print([m for m in sys.modules if m.startswith({heavy!r})])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stdout == "[]\n"


def test_a_recording_and_a_live_cluster_are_read(tmp_path: Path) -> None:
    record(tmp_path / "run")
    cluster = moorage.read_cluster(tmp_path / "run")
    assert ({node.name for node in cluster.nodes}, len(cluster.pods)) == ({"n0", "n1"}, 5)
    assert moorage.ClusterSnapshot(()).run_trace(moorage.read_trace(tmp_path / "run")).nodes == 2

    async def read_live() -> moorage.ClusterSnapshot:
        server = await serve(ServerSettings())
        try:
            server.api.create(server.api.kinds["nodes"], "", node_manifest("n"))
            (tmp_path / "kubeconfig").write_text(yaml.safe_dump(server.kubeconfig))
            # In another thread, as the loop of a notebook is busy, too.
            return await asyncio.to_thread(moorage.read_live_cluster, tmp_path / "kubeconfig")
        finally:
            await server.stop()

    assert [node.name for node in asyncio.run(read_live()).nodes] == ["n"]
