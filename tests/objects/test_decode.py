"""The edge: what is read, what is skipped, what is refused, and what is shared."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.documents.errors import DecodeError
from moorage.objects.decode import from_builtins, from_json
from moorage.objects.kinds import READ_KINDS
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.workload import Namespace, PodDisruptionBudget, ReplicaSet, Service
from tests.builders import node_manifest, pod, pod_manifest

MiB = 2**20


def read(kind: str, raw: dict[str, Any]) -> Any:
    """Reads an object both ways, which must agree."""
    from_text = from_json(kind, msgspec.json.encode(raw))
    assert from_text == from_builtins(kind, raw)
    return from_text


def test_a_pod() -> None:
    raw = pod_manifest(
        "web",
        namespace="shop",
        labels={"app": "web"},
        node="n1",
        cpu="500m",
        spec={"priority": 7},
        status={"startTime": "2024-01-01T00:00:00Z", "nominatedNodeName": "n2"},
        metadata={
            "creationTimestamp": "1970-01-01T00:01:00Z",
            "deletionTimestamp": "2024-01-01T00:00:00Z",
            "generation": 3,
            "resourceVersion": "42",
            "ownerReferences": [
                {"kind": "Job", "name": "other"},
                {"kind": "ReplicaSet", "name": "web-1", "controller": True},
            ],
        },
    )

    built = read("Pod", raw)

    assert isinstance(built, Pod)
    assert (built.key, built.uid, built.node_name) == ("shop/web", "shop/web", "n1")
    assert (built.priority, built.generation, built.resource_version) == (7, 3, "42")
    assert (built.created, built.started) == (60.0, 1704067200.0)
    assert built.terminating
    assert built.nominated_node_name == "n2"
    assert built.owner is not None
    assert built.owner.name == "web-1"
    assert built.requests == (("cpu", 500),)


def test_a_bare_pod_has_a_namespace_and_an_identity() -> None:
    built = read("Pod", {"metadata": {"name": "bare"}})

    assert (built.namespace, built.uid, built.priority) == ("default", "default/bare", 0)
    assert built.spec.scheduler_name == "default-scheduler"


def test_unknown_fields_are_skipped() -> None:
    plain = pod_manifest("web", cpu=1)
    strange = pod_manifest("web", cpu=1, spec={"fromTheFuture": {"deep": [1]}, "hostPID": True})
    strange["metadata"]["managedFields"] = [{"manager": "kubectl"}]

    assert read("Pod", strange) == read("Pod", plain)


@pytest.mark.parametrize(
    ("kind", "raw", "field"),
    [
        pytest.param("Pod", pod_manifest(spec={"priority": "high"}), "spec.priority", id="type"),
        pytest.param("Pod", {"spec": {}}, "metadata", id="missing"),
        pytest.param("Pod", pod_manifest(cpu="lots"), '"lots" is not a quantity', id="quantity"),
        pytest.param(
            "Pod",
            pod_manifest(spec={"tolerations": [{"operator": "Near"}]}),
            "spec.tolerations[0].operator",
            id="word",
        ),
        pytest.param(
            "Pod",
            pod_manifest(spec={"overhead": {"cpu": [1]}}),
            "must be a quantity, got a list",
            id="no number",
        ),
        pytest.param(
            "Pod",
            pod_manifest(spec={"overhead": {"cpu": True}}),
            "must be a quantity, got true",
            id="a yes is no number",
        ),
        pytest.param(
            "Node",
            {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "a", "effect": "Go"}]}},
            "spec.taints[0].effect",
            id="node",
        ),
    ],
)
def test_errors_name_the_field(kind: str, raw: dict[str, Any], field: str) -> None:
    with pytest.raises(DecodeError) as built:
        from_builtins(kind, raw)
    with pytest.raises(DecodeError) as parsed:
        from_json(kind, msgspec.json.encode(raw))

    assert field in str(built.value)
    assert field in str(parsed.value)


def test_broken_json_is_a_decode_error() -> None:
    with pytest.raises(DecodeError):
        from_json("Pod", b"{")


def test_what_scheduling_reads() -> None:
    assert {"Pod", "Node", "Namespace", "Service", "PodDisruptionBudget"} <= READ_KINDS


def test_a_node() -> None:
    built = read(
        "Node",
        {
            "metadata": {"name": "n", "labels": {"a": "b"}},
            "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoExecute"}]},
            "status": {
                "allocatable": {"cpu": "3500m", "memory": "1Mi", "pods": "10", "storage": "9"},
                "declaredFeatures": ["A", "B"],
                "images": [{"names": ["app:v1"], "sizeBytes": 5}],
            },
        },
    )

    assert isinstance(built, Node)
    assert built.allocatable == (("cpu", 3500), ("memory", MiB), ("pods", 10))
    assert built.unschedulable
    assert built.taints[0].key == "k"
    assert built.declared_features == {"A", "B"}
    assert built.images[0].names == ("app:v1",)


def test_a_node_that_says_nothing_takes_no_pods() -> None:
    assert read("Node", {"metadata": {"name": "n"}}).allocatable == (("pods", 0),)


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        ({}, ("", "")),
        ({"topology.kubernetes.io/zone": "a"}, ("", "a")),
        ({"topology.kubernetes.io/region": "r"}, ("r", "")),
        (
            {"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r"},
            ("r", "a"),
        ),
        (
            {
                "failure-domain.beta.kubernetes.io/zone": "old",
                "topology.kubernetes.io/zone": "new",
                "failure-domain.beta.kubernetes.io/region": "older",
                "topology.kubernetes.io/region": "newer",
            },
            ("older", "old"),
        ),
        (
            {
                "failure-domain.beta.kubernetes.io/zone": "",
                "topology.kubernetes.io/zone": "new",
            },
            ("", ""),
        ),
    ],
)
def test_zone_of_a_node(labels: dict[str, str], zone: tuple[str, str]) -> None:
    assert from_builtins("Node", node_manifest(labels=labels)).zone == zone  # type: ignore[union-attr]


def test_namespaces_and_what_selects_pods() -> None:
    namespace = read("Namespace", {"metadata": {"name": "shop", "labels": {"team": "a"}}})
    service = read("Service", {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}}})
    headless = read("Service", {"metadata": {"name": "web"}, "spec": {}})
    everything = read("ReplicaSet", {"metadata": {"name": "r"}, "spec": {"selector": {}}})
    budget = read(
        "PodDisruptionBudget",
        {
            "metadata": {"name": "b", "namespace": "shop"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 2, "disruptedPods": {"gone": "2024-01-01T00:00:00Z"}},
        },
    )

    assert namespace == Namespace(name="shop", labels={"team": "a"})
    assert isinstance(service, Service)
    assert service.key == "default/web"
    assert service.selector is not None
    assert service.selector.matches({"app": "web"})
    assert headless.selector is None
    assert isinstance(everything, ReplicaSet)
    assert everything.selector is not None
    assert everything.selector.matches({})
    assert isinstance(budget, PodDisruptionBudget)
    assert budget.disruptions_allowed == 2


@pytest.mark.parametrize(
    ("victim", "selector", "covered"),
    [
        pytest.param(pod("a", labels={"app": "web"}), {"app": "web"}, True, id="selected"),
        pytest.param(pod("a", labels={"app": "db"}), {"app": "web"}, False, id="not selected"),
        pytest.param(pod("a"), {}, False, id="an empty selector covers nobody"),
        pytest.param(
            pod("a", labels={"app": "web"}, namespace="other"),
            {"app": "web"},
            False,
            id="another namespace",
        ),
        pytest.param(
            pod("gone", labels={"app": "web"}), {"app": "web"}, False, id="disrupted already"
        ),
    ],
)
def test_whom_a_budget_covers(victim: Pod, selector: dict[str, str], covered: bool) -> None:
    budget = read(
        "PodDisruptionBudget",
        {
            "metadata": {"name": "b"},
            "spec": {"selector": {"matchLabels": selector}},
            "status": {"disruptedPods": {"gone": "2024-01-01T00:00:00Z"}},
        },
    )

    assert budget.covers(victim) is covered


# Templates


def mounting(claim: str | None = None, config_map: str | None = None) -> dict[str, Any]:
    volumes: list[dict[str, Any]] = [{"name": "token", "projected": {"sources": []}}]
    if config_map:
        volumes.append({"name": "config", "configMap": {"name": config_map}})
    if claim:
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": claim}})
    return {"volumes": volumes}


def test_pods_of_one_template_share_one_spec() -> None:
    first = pod("a", cpu=1, spec=mounting(config_map="one"))
    elsewhere = pod("b", cpu=1, node="n1", labels={"x": "y"}, spec=mounting(config_map="two"))

    assert first.spec is elsewhere.spec
    assert elsewhere.node_name == "n1"


def test_pods_that_differ_in_their_claims_alone_share_what_does_not_follow_from_them() -> None:
    one, other = (pod(name, cpu=1, spec=mounting(claim=name)).spec for name in ("a", "b"))
    larger = pod("c", cpu=2, spec=mounting(claim="a")).spec
    plain = pod("d", cpu=1, spec=mounting()).spec

    assert one is not other
    assert one.template is other.template is plain.template is plain
    assert one.held is other.held is plain.held
    assert one.named_claims != other.named_claims != plain.named_claims
    assert (larger.template is one.template, larger.requests == one.requests) == (False, False)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"cpu": "2"}, id="requests"),
        pytest.param({"cpu": "1", "spec": {"priority": 1}}, id="priority"),
        pytest.param({"cpu": "1", "spec": mounting(claim="a")}, id="a claim"),
        pytest.param({"cpu": "1", "spec": {"nodeSelector": {"a": "b"}}}, id="node selector"),
    ],
)
def test_pods_that_differ_in_what_decides_do_not(other: dict[str, Any]) -> None:
    assert pod("a", cpu=1).spec is not pod("b", **other).spec


def test_claims_tell_specs_apart_and_ephemeral_ones_are_named_after_the_pod() -> None:
    ephemeral = {"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]}
    one, other = pod("a", spec=ephemeral), pod("b", spec=ephemeral)

    assert pod("a", spec=mounting(claim="x")).spec is not pod("a", spec=mounting(claim="y")).spec
    assert one.spec is other.spec
    assert [claim.name for claim in one.claims] == ["a-scratch"]
    assert [claim.name for claim in other.claims] == ["b-scratch"]


def test_notation_does_not_tell_specs_apart() -> None:
    assert pod("a", cpu="1").spec is pod("b", cpu="1000m").spec
