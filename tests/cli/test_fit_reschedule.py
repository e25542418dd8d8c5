"""`moorage fit --reschedule` and what a drain disturbs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import node_manifest, pod_manifest
from tests.cli.invoking import Moorage

_PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy:
            type: MostAllocated
            resources: [{name: cpu, weight: 1}]
    plugins:
      score:
        disabled: [{name: "*"}]
        enabled: [{name: NodeResourcesFit, weight: 1}]
"""


def budget(allowed: int) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": allowed},
    }


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    """Four nodes with one pod each, a daemon on all, and a pod that is not selected."""
    daemon = {"kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "w", "controller": True}
    objects = [budget(2), pod_manifest("other", node="n3", cpu=1)]
    for at in range(4):
        objects.append(node_manifest(f"n{at}", cpu=4))
        objects.append(
            pod_manifest(f"web-{at}", node=f"n{at}", cpu=1, labels={"app": "web"},
                         metadata={"ownerReferences": [owner]})
        )  # fmt: skip
        objects.append(
            pod_manifest(f"d-{at}", node=f"n{at}", metadata={"ownerReferences": [daemon]})
        )
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    (tmp_path / "packing.yaml").write_text(_PACKING)
    return str(path)


def test_two_configurations_beside_the_present(moorage: Moorage, cluster: str) -> None:
    packing = str(Path(cluster).parent / "packing.yaml")
    flags = ("--reschedule", "--config", packing, "--config", packing, "-o", "json")

    result = moorage("fit", cluster, *flags)

    now, first, second = json.loads(result.out)
    assert result.code == 0
    assert (now["nodesInUse"], now["moves"], now["pods"]) == (4, 0, 5)
    assert (first["nodesInUse"], first["left"]) == (2, 0)
    assert first == second
    cpu = first["resources"][0]
    # One node is full, one has a pod, two have daemons only.
    assert cpu["histogram"] == [2, 0, 1, 0, 0, 0, 0, 0, 0, 1]
    assert (cpu["used"], cpu["allocatable"], cpu["largestFree"]) == (5000, 16000, 4000)
    assert first["budgets"][0]["budget"] == "default/web"


def test_only_what_is_selected_moves(moorage: Moorage, cluster: str) -> None:
    packing = str(Path(cluster).parent / "packing.yaml")
    flags = ("--reschedule", "-l", "app=web", "--config", packing)

    told = moorage("fit", cluster, *flags).out
    (_, found) = json.loads(moorage("fit", cluster, *flags, "-o", "json").out)

    assert found["pods"] == 4
    assert told.splitlines()[0].split() == ["now", "packing.yaml"]
    assert "budgets exceeded at once" in told


def test_a_drain_names_budgets_and_pods_without_a_controller(
    moorage: Moorage, cluster: str
) -> None:
    out = moorage("fit", cluster, "--drain", "n1,n2,n3").out

    budget = "budget default/web allows 2 at once, and 3 of its pods have to go"
    assert f"the drain has to wait: {budget}" in out
    assert "1 pod without a controller is not created again: default/other" in out
    assert "budget" not in moorage("fit", cluster, "--drain", "n1").out


def test_a_drain_that_a_budget_forbids_is_a_failure(moorage: Moorage, tmp_path: Path) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0},
    }
    web = pod_manifest("web", node="n1", labels={"app": "web"})
    cluster, new = tmp_path / "cluster.json", tmp_path / "new.json"
    items = [node_manifest("n1", cpu=4), node_manifest("n2", cpu=4), web, budget]
    cluster.write_text("\n".join(map(json.dumps, items)))
    new.write_text(json.dumps(pod_manifest("new")))
    drain, why = ("fit", str(cluster), "--drain", "n1"), "budget default/web allows no disruption"

    result = moorage(*drain)
    assert result.code == 1
    assert f"the drain is forbidden: {why}, and 1 of its pods has to go" in result.out
    found = json.loads(moorage(*drain, "-o", "json").out)["drain"]
    assert found["forbidden"]
    assert found["budgets"] == [{"budget": "default/web", "moved": 1, "allowed": 0}]

    for output in ("table", "junit", "github"):
        result = moorage(*drain, "-f", str(new), "-o", output)
        assert result.code == 1
        assert why in result.out
    budget["status"] = {"disruptionsAllowed": 1}
    cluster.write_text("\n".join(map(json.dumps, items)))
    assert moorage(*drain).code == 0


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (("-l", "app=web"), "--selector: only with --reschedule"),
        (("--reschedule", "-l", "app"), "--selector: app: write KEY=VALUE[,KEY=VALUE...]"),
        (("--reschedule", "-o", "junit"), "--reschedule: places running pods"),
        (("--config", "{packing}", "--config", "{packing}"), "--config: may be repeated only with"),
    ],
)
def test_flags_that_do_not_go_together(
    flags: tuple[str, ...], error: str, moorage: Moorage, cluster: str
) -> None:
    packing = str(Path(cluster).parent / "packing.yaml")
    result = moorage("fit", cluster, *(each.format(packing=packing) for each in flags))

    assert (result.code, result.out) == (2, "")
    assert error in result.err


def test_no_advice_is_to_uncordon_what_is_drained(moorage: Moorage, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    other = node_manifest("n2", cpu=1, spec={"unschedulable": True})
    items = [node_manifest("n1", cpu=4), other, pod_manifest("web", node="n1", cpu=1)]
    cluster.write_text("\n".join(map(json.dumps, items)))

    out = moorage("fit", str(cluster), "--drain", "n1").out
    assert "default/web would fit 1 node if n2 were uncordoned" in out

    cluster.write_text("\n".join(map(json.dumps, (items[0], items[2]))))
    out = moorage("fit", str(cluster), "--drain", "n1").out
    assert "0/1 nodes are available: 1 node(s) were unschedulable" in out
    assert "uncordoned" not in out
