"""The Helm chart: by default it is what kustomize makes, and wrong values are refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import moorage
from tests.programs import need_program, needs_program

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "moorage"
pytestmark = needs_program("helm")

Manifest = dict[str, Any]

_LABELS = ("app.kubernetes.io/managed-by", "helm.sh/chart")


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [need_program("helm"), *arguments], capture_output=True, text=True, check=False
    )


def template(values: Manifest | None = None) -> dict[tuple[str, str], Manifest]:
    given = [f"--set-json={key}={json.dumps(value)}" for key, value in (values or {}).items()]
    namespace = ("--namespace=moorage-system", "--kube-version=1.36.0")
    done = helm("template", "moorage", CHART, *namespace, *given)
    assert done.returncode == 0, done.stderr
    return by_name(yaml.safe_load_all(done.stdout))


def by_name(items: Any) -> dict[tuple[str, str], Manifest]:
    return {(each["kind"], each["metadata"]["name"]): each for each in items if each}


def kustomize(folder: str) -> dict[tuple[str, str], Manifest]:
    kubectl = need_program("kubectl")
    done = subprocess.run(
        [kubectl, "kustomize", DEPLOY / folder], capture_output=True, text=True, check=True
    )
    return by_name(yaml.safe_load_all(done.stdout))


def plain(found: dict[tuple[str, str], Manifest]) -> dict[tuple[str, str], Manifest]:
    """Objects without what either tool adds.

    Helm makes namespaces with --create-namespace, and deletes none: so it has the lease.
    """
    for item in found.values():
        metadata = item["metadata"]
        labels = metadata.pop("labels", {})
        own = {key: value for key, value in labels.items() if key not in _LABELS}
        if own:
            metadata["labels"] = own
        if item["kind"] == "ConfigMap":
            # Kustomize adds a hash to its name.
            metadata["name"] = "moorage-config"
            item["data"] = {key: yaml.safe_load(text) for key, text in item["data"].items()}
        if item["kind"] == "Deployment":
            strip_deployment(item["spec"]["template"])
    return by_name(item for item in found.values() if item["kind"] not in ("Namespace", "Lease"))


def strip_deployment(template: Manifest) -> None:
    template["metadata"].pop("annotations", None)
    template["spec"]["containers"][0].pop("imagePullPolicy", None)
    for volume in template["spec"]["volumes"]:
        if "configMap" in volume:
            volume["configMap"]["name"] = "moorage-config"


@pytest.mark.parametrize(
    ("folder", "values"),
    [("base", {}), ("default-scheduler", {"asDefaultScheduler": True})],
)
def test_it_is_what_kustomize_makes(folder: str, values: Manifest) -> None:
    ours, theirs = plain(template(values)), plain(kustomize(folder))

    assert ours.keys() == theirs.keys()
    for key, item in theirs.items():
        assert ours[key] == item, key


def test_values_take_effect() -> None:
    config = {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}], "parallelism": 4}
    made = template(
        {
            "config": config,
            "image": {"repository": "r/m", "tag": "x", "pullSecrets": [{"name": "s"}]},
            "extraArgs": ["--feature-gates=GenericWorkload=true"],
            "networkPolicy": {"enabled": False},
            "podDisruptionBudget": {"enabled": False},
            "nodeSelector": {"role": "control"},
            "tolerations": [{"operator": "Exists"}],
        }
    )
    pod = made["Deployment", "moorage"]["spec"]["template"]["spec"]
    read = yaml.safe_load(made["ConfigMap", "moorage-config"]["data"]["moorage.yaml"])

    assert pod["containers"][0]["image"] == "r/m:x"
    assert pod["containers"][0]["args"][-1] == "--feature-gates=GenericWorkload=true"
    assert (pod["imagePullSecrets"], pod["nodeSelector"]) == ([{"name": "s"}], {"role": "control"})
    assert {key: read[key] for key in config} == config
    assert read["leaderElection"]["resourceName"] == "moorage"
    assert not {kind for kind, _ in made} & {"NetworkPolicy", "PodDisruptionBudget"}


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"replica": 3}, "replica"),
        ({"replicas": "3"}, "replicas"),
        ({"image": {"repository": ""}}, "repository"),
        ({"image": {"repository": "r", "pullPolicy": "Often"}}, "pullPolicy"),
        ({"extraArgs": ["v=4"]}, "extraArgs"),
        ({"config": {"leaderElection": {"leaderElect": False}}}, "config"),
    ],
)
def test_wrong_values_are_refused(values: Manifest, field: str) -> None:
    given = [f"--set-json={key}={json.dumps(value)}" for key, value in values.items()]
    done = helm("template", "moorage", CHART, "--kube-version=1.36.0", *given)

    assert done.returncode != 0
    assert field in done.stderr


def test_it_passes_the_linter_and_has_our_version() -> None:
    done = helm("lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == moorage.__version__
