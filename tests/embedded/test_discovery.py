"""What the server tells about itself, as clients ask for it."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.embedded.api.decoding import decode_known
from moorage.embedded.api.schema import package_structs
from moorage.embedded.kinds.catalogue import catalogue
from moorage.embedded.kinds.custom_resources import BUILT_IN_GROUPS
from moorage.objects.kinds import KINDS
from tests.embedded.serving import PODS, Client, pod

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def definition(**version: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "maximum": 9},
                    "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
                    "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                    "replicas": {"type": "integer"},
                    "share": {"x-kubernetes-int-or-string": True},
                    "tags": {"type": "array", "minItems": 1, "items": {"type": "string"}},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "named": {"type": "object", "additionalProperties": {"type": "integer"}},
                },
            },
            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
        },
    }
    first = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas"}},
        "schema": {"openAPIV3Schema": schema},
        **version,
    }
    second = {"name": "v2", "served": True, "storage": False, "schema": first["schema"]}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wg"]},
            "versions": [first, second],
        },
    }


async def test_both_kinds_of_discovery_agree(client: Client) -> None:
    for root, core in (("/api", True), ("/apis", False)):
        found = await client.get(root, headers={"Accept": AGGREGATED})
        assert found["kind"] == "APIGroupDiscoveryList"
        for group in found["items"]:
            version = group["versions"][0]
            prefix = "/api" if core else f"/apis/{group['metadata']['name']}"
            listed = await client.get(f"{prefix}/{version['version']}")
            assert {each["resource"] for each in version["resources"]} == {
                each["name"] for each in listed["resources"] if "/" not in each["name"]
            }
    groups = await client.get("/apis")
    assert "apps" in {each["name"] for each in groups["groups"]}
    assert (await client.get("/apis/apps"))["preferredVersion"]["groupVersion"] == "apps/v1"
    assert (await client.get("/api"))["versions"] == ["v1"]
    assert (await client.get("/version"))["minor"] == "36"
    assert await client.ask("GET", "/healthz") == (200, "ok")


async def test_open_api_documents_are_whole(client: Client) -> None:
    """Every reference leads somewhere, and every kind says that patches are checked."""
    index = await client.get("/openapi/v3")
    for prefix, where in index["paths"].items():
        document = await client.get(where["serverRelativeURL"])
        schemas = document["components"]["schemas"]
        for name in _references(document):
            assert name in schemas, (prefix, name)
    core = await client.get("/openapi/v3/api/v1")
    patch = core["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert "fieldValidation" in [each["name"] for each in patch["parameters"]]
    containers = core["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"][
        "containers"
    ]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    await client.refused(404, "GET", "/openapi/v3/odd")
    await client.refused(405, "POST", "/openapi/v3", {})


async def test_the_older_open_api_document_is_whole(client: Client) -> None:
    document = await client.get("/openapi/v2")
    definitions = document["definitions"]
    for name in _references(document):
        assert name in definitions, name
    kinds = [
        each["kind"]
        for shape in definitions.values()
        for each in shape.get("x-kubernetes-group-version-kind", ())
    ]
    assert {"Pod", "PodList", "Deployment", "StorageClassList"} <= set(kinds)
    await client.create(CRDS, definition())
    assert "com.example.v1.Widget" in (await client.get("/openapi/v2"))["definitions"]
    binary = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    url = f"{client.running.url}/openapi/v2"
    async with client.session.get(url, headers={"Accept": binary}) as response:
        assert response.content_type == binary.replace("@", ".")
        assert b"io.k8s.api.core.v1.PodSpec" in await response.read()


def _references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for each in value for name in _references(each)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"].rpartition("/")[2]] if isinstance(value.get("$ref"), str) else []
    return own + [name for each in value.values() for name in _references(each)]


def test_every_type_of_the_tables_can_be_read() -> None:
    """A type that is misspelt in a table would only be noticed when it is first used."""
    packages = {
        "apiextensions.v1",
        "apps.v1",
        "authentication.v1",
        "authorization.v1",
        "autoscaling.v1",
        "batch.v1",
        "coordination.v1",
        "core.v1",
        "discovery.v1",
        "events.v1",
        "meta.v1",
        "networking.v1",
        "node.v1",
        "policy.v1",
        "rbac.v1",
        "resource.v1",
        "scheduling.v1",
        "scheduling.v1alpha2",
        "scheduling.v1beta1",
        "storage.v1",
    }
    for package in packages:
        # Schemas of custom resources are taken from JSON as they are.
        for name in package_structs(package).keys() - {"apiextensions.v1.JSONSchemaProps"}:
            assert decode_known(name, {}, name) == {}


def test_no_definition_can_add_to_a_group_that_is_there() -> None:
    groups = {kind.group for kind in catalogue() if "." in kind.group}

    assert groups <= BUILT_IN_GROUPS


async def test_reviews_are_answered(client: Client) -> None:
    may = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    asked = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    answer = await client.create(may, asked)
    assert answer["status"]["allowed"] is True
    assert answer["spec"] == asked["spec"]
    who = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    assert (await client.create(who, {}))["status"]["userInfo"]["username"]


@pytest.mark.parametrize(
    ("accept", "code", "answer"),
    [
        ("application/json;as=Table;g=meta.k8s.io;v=v1", 406, "Status"),
        ("application/json;as=Table;g=meta.k8s.io;v=v1,application/json", 201, "SelfSubjectReview"),
        (
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            201,
            "PartialObjectMetadata",
        ),
    ],
)
async def test_reviews_have_no_table(client: Client, accept: str, code: int, answer: str) -> None:
    who = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

    actual, body = await client.ask("POST", who, {}, headers={"Accept": accept})

    assert (actual, body["kind"]) == (code, answer)


async def test_events_have_two_forms(client: Client) -> None:
    newer = "/apis/events.k8s.io/v1/namespaces/default/events"
    older = "/api/v1/namespaces/default/events"
    sent = {
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.000001Z",
        "regarding": {"kind": "Pod", "name": "a", "namespace": "default"},
        "note": "hello",
        "reason": "Said",
        "reportingController": "tests",
    }
    made = await client.create(newer, sent)
    assert (made["apiVersion"], made["note"]) == ("events.k8s.io/v1", "hello")

    stored = await client.get(f"{older}/e")
    assert (stored["apiVersion"], stored["message"]) == ("v1", "hello")
    assert stored["involvedObject"]["name"] == "a"
    for path, field in ((newer, "regarding.name"), (older, "involvedObject.name")):
        assert len((await client.get(f"{path}?fieldSelector={field}=a"))["items"]) == 1
    changed = await client.patch(f"{newer}/e", {"note": "bye", "series": {"count": 2}})
    assert (changed["note"], changed["series"]) == ("bye", {"count": 2})
    async with client.watch(f"{newer}?watch=1") as events:
        assert (await anext(events))["object"]["note"] == "bye"


async def test_custom_resources_follow_their_schema(client: Client) -> None:
    made = await client.create(CRDS, definition())
    conditions = {each["type"]: each["status"] for each in made["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}

    spec = {"size": 3, "odd": 1, "free": {"any": [1]}, "named": {"a": 1}}
    widget = await client.create(WIDGETS, {"metadata": {"name": "w"}, "spec": spec, "status": {}})
    assert widget["spec"] == {"size": 3, "free": {"any": [1]}, "named": {"a": 1}, "color": "red"}
    assert "status" not in widget
    assert widget["metadata"]["generation"] == 1
    path = f"{WIDGETS}/w/status"
    told = await client.patch(path, {"status": {"replicas": 2}, "spec": {"size": 5}})
    assert (told["spec"]["size"], told["status"]) == (3, {"replicas": 2})
    scale = await client.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 4}})
    assert (scale["spec"], scale["status"]["replicas"]) == ({"replicas": 4}, 2)
    other = await client.get("/apis/example.com/v2/namespaces/default/widgets/w")
    assert other["apiVersion"] == "example.com/v2"
    assert other["metadata"] == (await client.get(f"{WIDGETS}/w"))["metadata"]


async def test_custom_resources_that_break_their_schema(client: Client) -> None:
    await client.create(CRDS, definition())
    for spec, field in (
        ({}, "spec.size"),
        ({"size": 0}, "spec.size"),
        ({"size": 10}, "spec.size"),
        ({"size": "x"}, "spec.size"),
        ({"size": True}, "spec.size"),
        ({"size": 1, "color": "green"}, "spec.color"),
        ({"size": 1, "name": "ABC"}, "spec.name"),
        ({"size": 1, "name": "abcdef"}, "spec.name"),
        ({"size": 1, "share": []}, "spec.share"),
        ({"size": 1, "tags": []}, "spec.tags"),
        ({"size": 1, "tags": [1]}, "spec.tags[0]"),
        ({"size": 1, "named": {"a": "x"}}, "spec.named.a"),
    ):
        body = {"metadata": {"name": "w"}, "spec": spec}
        status = await client.refused(422, "POST", WIDGETS, body)
        assert status["details"]["causes"][0]["field"] == field


async def test_a_definition_takes_its_resources_with_it(client: Client) -> None:
    await client.create(CRDS, definition())
    await client.create(WIDGETS, {"metadata": {"name": "w"}, "spec": {"size": 1}})

    await client.delete(f"{CRDS}/widgets.example.com")
    await client.refused(404, "GET", WIDGETS)
    with pytest.raises(KeyError):
        client.running.api.kinds["widgets.example.com"]
    await client.create(CRDS, definition())

    assert (await client.get(WIDGETS))["items"] == []


def shaped(schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}


async def test_definitions_that_are_refused(client: Client) -> None:
    for change, told in (
        ({"group": "apps"}, "should be a domain of your own"),
        ({"group": "storage.k8s.io"}, "should be a domain of your own"),
        ({"scope": "Odd"}, "must be Cluster or Namespaced"),
        ({"names": {"plural": "Widgets", "kind": "Widget"}}, "a DNS-1035 label"),
        ({"versions": []}, "exactly one version marked as storage version"),
        ({"versions": [shaped({"properties": 3})]}, "openAPIV3Schema.properties: Invalid value: 3"),
        ({"versions": [shaped({"properties": {"a": 3}})]}, "properties[a]: Invalid value: 3"),
        ({"versions": [shaped({"items": {"required": 1}})]}, "items.required: Invalid value: 1"),
    ):
        body = definition()
        body["spec"] |= change
        body["metadata"]["name"] = (
            f"{body['spec']['names']['plural'].lower()}.{body['spec']['group']}"
        )
        status = await client.refused(422, "POST", CRDS, body)
        assert told in status["message"]


async def test_logs_are_refused_politely(client: Client) -> None:
    await client.create(PODS, pod("a"))

    status = await client.refused(400, "GET", f"{PODS}/a/log")

    assert "this cluster runs no containers" in status["message"]
    await client.refused(404, "GET", f"{PODS}/b/log")


async def test_scale(client: Client) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await client.create(path, {"metadata": {"name": "d"}, "spec": spec})

    scale = await client.get(f"{path}/d/scale")
    assert scale["spec"] == {"replicas": 1}
    assert scale["status"] == {"replicas": 0, "selector": "a=b"}
    changed = await client.put(f"{path}/d/scale", {**scale, "spec": {"replicas": 3}})
    assert changed["spec"] == {"replicas": 3}
    assert (await client.get(f"{path}/d"))["metadata"]["generation"] == 2
    await client.refused(409, "PUT", f"{path}/d/scale", scale)
    less = {"metadata": {"name": "d"}, "spec": {"replicas": -1}}
    await client.refused(422, "PUT", f"{path}/d/scale", less)


def test_kinds_are_served_as_the_table_of_kinds_has_them() -> None:
    served = {(each.api_version, each.kind): each for each in catalogue()}
    known = [each for each in KINDS.values() if each.item is not None]

    assert known
    for kind in known:
        versions = [f"{each.group}/{each.version}".lstrip("/") for each in kind.forms]
        # Some kinds have several versions, of which an API server has one.
        found = next(served[each, kind.kind] for each in versions if (each, kind.kind) in served)
        assert (found.plural, found.namespaced) == (kind.plural, kind.namespaced)
