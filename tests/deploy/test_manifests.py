"""What is shipped under deploy/ fits what the code does."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_group

from moorage.app import metric_table
from moorage.app.coexist_webhook import RAISE_PATH
from moorage.cli import app
from moorage.config import load
from moorage.engine.registry import registry
from moorage.framework.profile import known_plugins
from moorage.objects import coexist
from moorage.objects.coexist import PLACED
from moorage.objects.custom import CustomKind
from moorage.objects.kinds import KINDS, READ_KINDS
from moorage_policies.counted.counted_args import ConfigMapCapacity
from moorage_policies.disk_io.disk_io_resource import KIND as DISK_IO
from tests.programs import need_program

DEPLOY = Path(__file__).parents[2] / "deploy"


def documents(path: str) -> list[Any]:
    return [each for each in yaml.safe_load_all((DEPLOY / path).read_text()) if each]


def test_everything_that_is_watched_may_be_listed_and_watched() -> None:
    (role,) = [each for each in documents("base/rbac.yaml") if each["kind"] == "ClusterRole"]
    granted = {
        (group, resource): set(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    for kind in READ_KINDS:
        resource = KINDS[kind]
        assert granted[resource.group, resource.plural] >= {"list", "watch"}, kind


def test_the_role_grants_no_wildcards_and_no_secrets() -> None:
    text = (DEPLOY / "base" / "rbac.yaml").read_text()

    assert "*" not in text
    assert "secrets" not in text


@pytest.mark.parametrize("overlay", ["base", "default-scheduler"])
def test_the_configuration_can_be_loaded(overlay: str) -> None:
    path = DEPLOY / overlay / "moorage.yaml"
    configuration = load(path.read_text(), known=known_plugins(registry()), source=str(path))

    assert configuration.leader_election.leader_elect


@pytest.mark.parametrize("folder", ["base", "webhook"])
def test_the_flags_of_the_deployment_are_flags_of_the_command(folder: str) -> None:
    found = documents(f"{folder}/deployment.yaml")
    (deployment,) = [each for each in found if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    command, *flags = container["args"]
    known = {option for each in get_group(app).commands[command].params for option in each.opts}

    assert {flag.split("=")[0] for flag in flags} <= known


def test_the_custom_resource_of_our_plugins_may_be_listed_and_watched() -> None:
    (definition,) = documents("disk-io/nodediskiostatuses.yaml")
    role, binding = documents("disk-io/rbac.yaml")
    (rule,) = role["rules"]

    assert rule["apiGroups"] == [definition["spec"]["group"]]
    assert rule["resources"] == [definition["spec"]["names"]["plural"]]
    assert {"list", "watch"} <= set(rule["verbs"])
    assert binding["roleRef"]["name"] == role["metadata"]["name"]


@pytest.mark.parametrize(
    ("policy", "deployment"),
    [
        ("base/network-policy.yaml", "base/deployment.yaml"),
        ("webhook/network-policy/policy.yaml", "webhook/deployment.yaml"),
    ],
)
def test_network_policies_select_the_pods_and_a_port_that_they_have(
    policy: str, deployment: str
) -> None:
    (found,) = documents(policy)
    (deployed,) = [each for each in documents(deployment) if each["kind"] == "Deployment"]
    template = deployed["spec"]["template"]
    selected = found["spec"]["podSelector"]["matchLabels"].items()
    (rule,) = found["spec"]["ingress"]

    assert selected <= template["metadata"]["labels"].items()
    assert found["metadata"]["namespace"] == deployed["metadata"]["namespace"]
    assert [each["port"] for each in rule["ports"]] == [
        port["name"] for each in template["spec"]["containers"] for port in each["ports"]
    ]


def metrics_in(text: str) -> set[str]:
    names = re.findall(r"\b((?:scheduler|rest_client|leader_election)_[a-z_]+)\b", text)
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}


@pytest.mark.parametrize("name", ["alerts.yaml", "dashboard.json"])
def test_alerts_and_the_dashboard_use_metrics_that_exist(name: str) -> None:
    text = (DEPLOY / "monitoring" / name).read_text()
    used = metrics_in(text)

    assert used
    assert used <= {each.name for each in metric_table.METRICS}


_QUANTILE = re.compile(
    r"histogram_quantile\(.*?\b(?P<name>[a-z_]+)_bucket.*\)\s*>\s*(?P<bound>[\d.]+)", re.DOTALL
)


def test_alerts_on_quantiles_can_fire() -> None:
    """A quantile is never above the last bucket, so the threshold has to be below that."""
    rules = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yaml").read_text())
    found = [
        match.groupdict()
        for group in rules["groups"]
        for rule in group["rules"]
        if (match := _QUANTILE.search(rule["expr"]))
    ]
    buckets = {each.name: each.buckets for each in metric_table.METRICS}

    assert len(found) >= 2
    assert [each for each in found if buckets[each["name"]][-1] <= float(each["bound"])] == []


def test_the_dashboard_has_one_panel_per_place() -> None:
    board = json.loads((DEPLOY / "monitoring" / "dashboard.json").read_text())
    taken = [
        (x, y)
        for panel in board["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert len(taken) == len(set(taken))


@pytest.mark.parametrize(
    "folder",
    [
        "base",
        "default-scheduler",
        "disk-io",
        "metrics-reader",
        "shadow",
        "webhook",
        "webhook/network-policy",
    ],
)
def test_kustomize_builds_it(folder: str) -> None:
    kubectl = need_program("kubectl")
    built = subprocess.run(
        [kubectl, "kustomize", DEPLOY / folder], capture_output=True, text=True, check=True
    )

    assert [each["kind"] for each in yaml.safe_load_all(built.stdout)]


def test_the_shadow_can_read_what_the_scheduler_reads_and_write_nothing() -> None:
    base, shadow = (
        next(yaml.safe_load_all((DEPLOY / folder / "rbac.yaml").read_text()))
        for folder in ("base", "shadow")
    )

    def grants(role: dict[str, Any]) -> set[tuple[str, str, str]]:
        return {
            (group, resource, verb)
            for rule in role["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }

    reads = {each for each in grants(base) if each[2] in ("list", "watch")}
    assert grants(shadow) == reads


def test_the_raised_requests_of_the_webhook_are_asked_for_at_its_path() -> None:
    (mutating,) = documents("webhook/raise-requests/mutating-webhook.yaml")
    (component,) = documents("webhook/raise-requests/kustomization.yaml")
    (hook,) = mutating["webhooks"]
    (patch,) = yaml.safe_load(component["patches"][0]["patch"])
    known = {option for each in get_group(app).commands["webhook"].params for option in each.opts}

    assert hook["clientConfig"]["service"]["path"] == RAISE_PATH
    assert hook["failurePolicy"] == "Ignore"
    assert patch["value"] in known


def test_the_admission_policies_name_our_annotations_and_are_bound() -> None:
    found = [
        *documents("admission-policy/placed.yaml"),
        *documents("admission-policy/unchanged.yaml"),
    ]
    policies = [each for each in found if each["kind"] == "ValidatingAdmissionPolicy"]
    texts = [str(each["spec"]["validations"]) for each in policies]

    assert PLACED in texts[0]
    assert all(name in texts[1] for name in (coexist.ANNOTATION, coexist.GROUP))
    bound = [each["spec"]["policyName"] for each in found if each not in policies]
    assert bound == [each["metadata"]["name"] for each in policies]


@pytest.mark.parametrize(
    "kind",
    [DISK_IO, ConfigMapCapacity(namespace="moorage-system", name="counted-resources").custom_kind],
    ids=lambda kind: kind.kind,
)
def test_what_a_plugin_follows_has_a_component_with_a_role(kind: CustomKind) -> None:
    """The log tells to apply it where the kind is missing or refused."""
    folder = kind.manifest.removeprefix("deploy/")
    (component,) = documents(f"{folder}/kustomization.yaml")
    found = [each for name in component["resources"] for each in documents(f"{folder}/{name}")]
    (role,) = [each for each in found if each["kind"] in ("Role", "ClusterRole")]
    (rule,) = role["rules"]

    assert (rule["apiGroups"], rule["resources"]) == ([kind.group], [kind.plural])
    assert set(rule["verbs"]) == {"list", "watch"}
    assert any(each["kind"] in ("CustomResourceDefinition", "ConfigMap") for each in found)
    if kind.only is not None:
        assert (role["metadata"]["namespace"], *rule["resourceNames"]) == kind.only
