"""Protobuf as Kubernetes' clients write it, read into what JSON would have said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from moorage.embedded.api.protobuf import read_protobuf
from moorage.embedded.request_refusals import RequestRefused
from tests.embedded.serving import PODS, Client

MEDIA = "application/vnd.kubernetes.protobuf"


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(*fields: tuple[int, Any]) -> bytes:
    """A message of numbered integers, texts and messages."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def enveloped(kind: str, raw: bytes, version: str = "v1") -> bytes:
    return b"k8s\x00" + message((1, message((1, version), (2, kind))), (2, raw), (3, ""), (4, ""))


METADATA = message((1, "a"), (3, ""), (8, b""), (11, message((1, "app"), (2, "x"))))
REQUESTS = message((2, message((1, "cpu"), (2, message((1, "500m"))))))
CONTAINER = message((1, "main"), (2, "i:1"), (8, REQUESTS), (6, message((3, 80), (2, 0))))
VOLUME = message((1, "v"), (2, message((19, message((1, message((1, "cm"))))))))
SPEC = message((1, VOLUME), (2, CONTAINER), (4, -5), (7, message((1, "disk"), (2, "fast"))))


def test_a_pod() -> None:
    assert read_protobuf("core.v1.Pod", enveloped("Pod", message((1, METADATA), (2, SPEC)))) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"app": "x"}},
        "spec": {
            "volumes": [{"name": "v", "configMap": {"name": "cm"}}],
            "containers": [
                {
                    "name": "main",
                    "image": "i:1",
                    "resources": {"requests": {"cpu": "500m"}},
                    "ports": [{"containerPort": 80}],
                }
            ],
            "terminationGracePeriodSeconds": -5,
            "nodeSelector": {"disk": "fast"},
        },
    }


@pytest.mark.parametrize(
    ("schema", "raw", "field", "value"),
    [
        (
            "core.v1.Secret",
            message((2, message((1, "k"), (2, b"\x00\xff")))),
            "data",
            {"k": "AP8="},
        ),
        (
            "core.v1.Event",
            message((6, message((1, 0), (2, 0)))),
            "firstTimestamp",
            "1970-01-01T00:00:00Z",
        ),
        (
            "core.v1.Event",
            message((10, message((1, 1), (2, 5000)))),
            "eventTime",
            "1970-01-01T00:00:01.000005Z",
        ),
        (
            "core.v1.Event",
            message((6, message((1, -62135510400)))),
            "firstTimestamp",
            "0001-01-02T00:00:00Z",
        ),
        (
            "core.v1.Event",
            message((10, message((1, -62135510400), (2, 1000)))),
            "eventTime",
            "0001-01-02T00:00:00.000001Z",
        ),
        (
            "policy.v1.PodDisruptionBudgetSpec",
            message((1, message((1, 1), (2, 0), (3, "50%")))),
            "minAvailable",
            "50%",
        ),
        (
            "policy.v1.PodDisruptionBudgetSpec",
            message((1, message((1, 0), (2, 2), (3, "")))),
            "minAvailable",
            2,
        ),
        ("core.v1.PersistentVolumeClaimSpec", message((5, "")), "storageClassName", ""),
        ("apps.v1.ControllerRevision", message((2, message((1, '{"a":1}')))), "data", {"a": 1}),
        ("core.v1.PodSpec", message((11, 1)), "hostNetwork", True),
        # What may be absent says something if it is zero; what may not, comes anyway.
        ("apps.v1.DeploymentSpec", message((1, 0)), "replicas", 0),
        ("core.v1.PodStatus", message((1, ""), (9, "")), "phase", None),
    ],
)
def test_types_that_are_simpler_in_json(schema: str, raw: bytes, field: str, value: Any) -> None:
    assert read_protobuf(schema, enveloped("X", raw)).get(field) == value


SCHEMA = message(
    (5, "object"),
    (10, 0),
    (20, message((1, "0"))),
    (24, message((1, message((5, "string"))))),
    (29, message((1, "spec"), (2, message((5, "integer"), (37, 1), (8, message((1, "0"))))))),
    (30, message((1, 1))),
    (32, message((1, "a"), (2, message((2, "b"), (2, "c"))))),
    (33, message((1, 0), (2, message((5, "null"))))),
    (38, 1),
    (3, "#/x"),
)


def test_the_schema_of_a_custom_resource() -> None:
    raw = message((1, SCHEMA))

    read = read_protobuf("apiextensions.v1.CustomResourceValidation", enveloped("X", raw))

    assert read["openAPIV3Schema"] == {
        "type": "object",
        "enum": [0],
        "items": {"type": "string"},
        "properties": {"spec": {"type": "integer", "nullable": True, "default": 0}},
        "additionalProperties": True,
        "dependencies": {"a": ["b", "c"]},
        "additionalItems": {"type": "null"},
        "x-kubernetes-preserve-unknown-fields": True,
        "$ref": "#/x",
    }


async def test_a_definition_may_come_as_protobuf(client: Client) -> None:
    """Operators in Go define their kinds in this form."""
    names = message((1, "widgets"), (2, ""), (4, "Widget"), (5, ""))
    schema = message((1, message((5, "object"), (38, 1))))
    version = message((1, "v1"), (2, 1), (3, 1), (4, schema), (7, 0))
    spec = message((1, "example.com"), (3, names), (4, "Namespaced"), (7, version), (10, 0))
    raw = message((1, message((1, "widgets.example.com"))), (2, spec), (3, b""))
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await client.create(
        definitions,
        enveloped("CustomResourceDefinition", raw, "apiextensions.k8s.io/v1"),
        kind=MEDIA,
    )

    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    made = await client.create(
        widgets,
        {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "a"},
            "spec": {"size": 3},
        },
    )
    assert made["spec"] == {"size": 3}


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (message((1, METADATA))[:-1], "it ends within a field"),
        (b"\x08\x80", "it ends within a number"),
        (b"\x08" + b"\x80" * 11, "a number is too long"),
        (b"\x0b", "unknown wire type 3"),
        (message((1, 7)), "a text or a message is expected"),
        (message((2, message((4, "text")))), "a number is expected"),
    ],
)
def test_what_breaks_the_format_is_refused(raw: bytes, told: str) -> None:
    with pytest.raises(RequestRefused, match=told):
        read_protobuf("core.v1.Pod", enveloped("Pod", raw))


@given(st.binary(max_size=60), st.booleans())
def test_noise_is_refused_or_read(noise: bytes, wrapped: bool) -> None:
    body = enveloped("Pod", noise) if wrapped else b"k8s\x00" + noise
    try:
        item = read_protobuf("core.v1.Pod", body)
    except RequestRefused as refusal:
        if refusal.code != 400:
            raise
    else:
        assert set(item) >= {"apiVersion", "kind"}


async def test_objects_are_created_from_it(client: Client) -> None:
    body = enveloped("Pod", message((1, METADATA), (2, SPEC)))

    made = await client.create(PODS, body, kind=MEDIA)
    await client.create(
        f"{PODS}/a/binding",
        enveloped("Binding", message((1, message((1, "a"))), (2, message((1, "Node"), (3, "n"))))),
        kind=MEDIA,
    )

    assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m"}
    assert (await client.get(f"{PODS}/a"))["spec"]["nodeName"] == "n"
    now = enveloped("DeleteOptions", message((1, 0)))
    code, _ = await client.ask("DELETE", f"{PODS}/a", now, kind=MEDIA)
    assert code == 200
    await client.refused(404, "GET", f"{PODS}/a")
    await client.refused(400, "POST", PODS, enveloped("Node", b""), kind=MEDIA)
    await client.refused(400, "POST", PODS, b"nothing of ours", kind=MEDIA)
    patch = "application/merge-patch+json"
    await client.refused(404, "PATCH", f"{PODS}/a", {}, kind=patch)


ZEROS: dict[str, Any] = {
    "hostNetwork": False,
    "nodeSelector": {},
    "containers": [
        {
            "name": "main",
            "image": "i:1",
            "command": [],
            "stdin": False,
            "workingDir": "",
            "ports": [{"containerPort": 80, "hostPort": 0}],
            "securityContext": {"runAsUser": 0, "privileged": False},
        }
    ],
}


async def test_an_object_has_one_form_however_it_was_sent(client: Client) -> None:
    """So that a client in Go that writes back what it read starts no rollout."""
    path = "/apis/apps/v1/namespaces/default/deployments"
    labels = {"matchLabels": {"app": "x"}}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": ZEROS}
    sent = {"metadata": {"name": "a"}, "spec": {"selector": labels, "template": template}}

    made = await client.create(path, sent)

    container = made["spec"]["template"]["spec"]["containers"][0]
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    # These may be absent, so that a zero says something.
    assert container["securityContext"] == {"runAsUser": 0, "privileged": False}
    assert not {"command", "stdin", "workingDir"} & container.keys()
    assert not {"hostNetwork", "nodeSelector"} & made["spec"]["template"]["spec"].keys()
    again = {**sent, "metadata": made["metadata"]}
    assert (await client.put(f"{path}/a", again))["metadata"] == made["metadata"]
    # Nothing that was sent is unknown.
    strict = await client.ask("PUT", f"{path}/a?fieldValidation=Strict", again)
    assert strict[0] == 200


async def test_a_type_whose_fields_have_no_known_numbers_is_refused_as_a_format(
    client: Client,
) -> None:
    """Kubernetes 1.37 writes pod groups so. To read nothing of them would be a riddle."""
    group = message((1, METADATA), (2, message((1, message((2, message((1, 2))))))))
    path = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
    body = enveloped("PodGroup", group, "scheduling.k8s.io/v1beta1")

    status = await client.refused(415, "POST", path, body, kind=MEDIA)

    assert "accepted media types include: application/json" in status["message"]
