"""The page about the library runs, and the library answers as the commands do."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mooring
from mooring.documents.errors import InputError
from tests.builders import node_manifest, pod_manifest
from tests.docs.pages import DOCS, blocks, run

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
    code = "import sys, mooring; print(len([m for m in sys.modules if m.startswith('mooring.')]))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stdout == "0\n"
