"""`moorage analyse`: the share of pods that could be batched, and what prevents the others."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import node_manifest, pod_manifest
from tests.cli.invoking import Moorage
from tests.record.stage import Stage

OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "1"}


@pytest.fixture
def moorage(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Moorage:
    return Moorage(monkeypatch, capsys)


def indexed(at: int) -> dict[str, Any]:
    """A pod that keeps away from its own index."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"index": str(at)}},
    }
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    owned = {
        "ownerReferences": [{**OWNER, "controller": True}],
        # No plugin reads what kubectl notes.
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": f"index: {at}"},
    }
    labels = {"index": str(at)}
    return pod_manifest(f"db-{at}", labels=labels, metadata=owned, spec={"affinity": rule})


def dump(folder: Path) -> Path:
    path = folder / "pods.yaml"
    pods = [*(indexed(at) for at in range(4)), *(pod_manifest(f"web-{at}") for at in range(6))]
    path.write_text(yaml.safe_dump_all(pods))
    return path


@pytest.mark.parametrize("gates", ["", "EquivalenceCache=false,OpportunisticBatching=false"])
def test_the_share_and_what_prevents_more(moorage: Moorage, tmp_path: Path, gates: str) -> None:
    """Whether anything is reused makes no difference."""
    result = moorage("analyse", "--feature-gates", gates, str(dump(tmp_path)))

    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "default-scheduler: 10 pods, 5 classes; 60 % share a class with another (6)",
        "  40 % (4) would if InterPodAffinity did not tell them apart, "
        "mostly by label index, spec.affinity",
    ]


def test_as_json_and_with_a_plugin_that_does_not_sign(moorage: Moorage, tmp_path: Path) -> None:
    plugin = tmp_path / "plain.py"
    plugin.write_text(
        "from moorage.framework.plugin import NodeFilter\n"
        "class Plain(NodeFilter):\n"
        "    name = 'Plain'\n"
        "    def filter_node(self, pod, node):\n"
        "        return None\n"
    )
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {multiPoint: {enabled: [{name: Plain}]}}}]\n"
    )
    asked = ("--plugins", str(plugin), "--config", str(config), "-o", "json", str(dump(tmp_path)))
    (found,) = json.loads(moorage("analyse", *asked).out)

    assert (found["pods"], found["alike"], found["apart"]) == (10, 0, [])
    assert found["unsigned"] == [
        {"plugin": "Plain", "reason": "silent", "count": 10, "percent": 100}
    ]


def test_a_plugin_that_is_signed_by_what_it_reads_is_asked(
    moorage: Moorage, tmp_path: Path
) -> None:
    plugin = tmp_path / "teams.py"
    plugin.write_text(
        "from moorage.framework.plugin import NodeFilter\n"
        "class Teams(NodeFilter):\n"
        "    name = 'Teams'\n"
        "    def filter_node(self, pod, node):\n"
        "        if pod.labels.get('kind') == 'any':\n"
        "            return None\n"
        "        return None if pod.labels.get('team') == node.name else 'another team'\n"
    )
    teams = [pod_manifest(f"of-{at}", labels={"team": str(at)}) for at in range(2)]
    free = [pod_manifest(f"free-{at}", labels={"kind": "any"}) for at in range(2)]
    path = tmp_path / "pods.yaml"
    path.write_text(yaml.safe_dump_all([node_manifest("n"), *free, *teams]))
    asked = ("--plugins", str(plugin), "--feature-gates", "AutoSignatures=true", str(path))

    assert moorage("analyse", *asked).out.splitlines() == [
        "default-scheduler: 4 pods, 3 classes; 50 % share a class with another (2)",
        "  50 % (2) would if Teams did not tell them apart, mostly by label kind, label team",
    ]


def test_a_single_class_is_told_in_the_singular(moorage: Moorage, tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(yaml.safe_dump(pod_manifest("web")))

    assert "1 pod, 1 class; 0 % share" in moorage("analyse", str(path)).out


def test_a_recording(moorage: Moorage, tmp_path: Path) -> None:
    stage = Stage(tmp_path / "run")
    pods = [indexed(at) for at in range(3)]
    asyncio.run(stage.play((100.0, [partial(stage.apply, node_manifest("n", cpu=4), *pods)])))
    stage.recorder.close()

    result = moorage("analyse", "--recording", str(tmp_path / "run"))
    assert "3 pods, 3 classes; 0 % share" in result.out
    assert "100 % (3) would if InterPodAffinity" in result.out
    both = moorage("analyse", "--recording", str(tmp_path / "run"), str(tmp_path))
    assert both.code == 2
