"""What `moorage up` does for somebody who uses it for the first time."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.invoking import Moorage

_PLUGIN = Path("examples/tutorial/new_nodes_only.py")
_NODES = """
apiVersion: v1
kind: Node
metadata: {name: big, labels: {example.com/generation: old}}
status: {allocatable: {cpu: "64", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: small}
status: {allocatable: {cpu: "2", memory: 8Gi, pods: "10"}}
"""
_HELLO = """
apiVersion: v1
kind: Pod
metadata: {name: hello, namespace: default}
spec: {containers: [{name: main, image: app}]}
"""


def _count_nodes(moorage: Moorage, *flags: str) -> str:
    ended = moorage("up", "--for=0", *flags)
    assert ended.code == 0, ended.err
    found = re.match(r"The cluster is ready: (\d+) ", ended.out)
    assert found is not None, ended.out
    return found[1]


def test_a_kept_cluster_gets_no_more_nodes_unless_they_are_asked_for(
    moorage: Moorage, tmp_path: Path
) -> None:
    kept = f"--data-dir={tmp_path / 'data'}"

    assert _count_nodes(moorage, kept, "--nodes=2") == "2"
    assert _count_nodes(moorage, kept) == "2"
    assert _count_nodes(moorage, kept, "--nodes=3") == "3"


def test_nodes_may_be_manifests_as_fit_takes_them(moorage: Moorage, tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text(_NODES)

    assert _count_nodes(moorage, f"--nodes={file}") == "2"


def test_the_printed_hints_have_the_flags_of_the_scheduler_and_whole_paths(
    moorage: Moorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = str(_PLUGIN.absolute())
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(f"{_NODES}---{_HELLO}")
    monkeypatch.chdir(tmp_path)
    ended = moorage("up", "--for=0", "--kubeconfig=kubeconfig", f"--plugins={plugin}")
    assert ended.code == 0, ended.err

    assert f"export KUBECONFIG={tmp_path / 'kubeconfig'}\n" in ended.out
    hint = ended.out.split(" fit -f - --count 1000 ")[1].splitlines()[0]
    explained = moorage("explain", "hello", *shlex.split(hint), str(cluster))
    assert explained.code == 0, explained.err
    assert "NewNodesOnly" in explained.out
