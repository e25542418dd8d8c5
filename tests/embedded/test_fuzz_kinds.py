"""Objects of every kind with the right types and odd values are taken or refused."""

from __future__ import annotations

import http.client
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from moorage.embedded.api.kind import ServedKind
from moorage.embedded.api.schema import SchemaField, SchemaType, struct
from moorage.embedded.kinds.catalogue import catalogue
from moorage.embedded.server import Server
from tests.embedded.serving import TOKEN, Json
from tests.patience import PATIENCE_SECONDS

KINDS = [kind for kind in catalogue() if "watch" in kind.verbs]
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
JSON = "application/json"

# Words that mean something somewhere, so that more than the first check is reached.
WORDS = st.sampled_from(
    [
        "a",
        "b",
        "Always",
        "Never",
        "None",
        "NodePort",
        "ExternalName",
        "In",
        "Exists",
        "Immediate",
        "RollingUpdate",
        "Indexed",
        "10.96.0.20",
        "50%",
        "example.com/a",
        "NoSchedule",
        "Equal",
    ]
) | st.text(max_size=4)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "any": st.none() | st.booleans() | st.dictionaries(WORDS, WORDS, max_size=2),
    "boolean": st.booleans(),
    "bytes": st.just("YQ=="),
    "int32": st.integers(-2, 3) | st.sampled_from([30080, 65536, 2**31 - 1]),
    "int64": st.integers(-2, 3) | st.just(2**63 - 1),
    "intOrString": st.integers(-1, 2) | WORDS,
    "microTime": st.just("2026-01-01T00:00:00.000000Z"),
    "number": st.floats(-1, 2),
    "jsonSchema": st.dictionaries(WORDS, WORDS, max_size=2),
    "object": st.dictionaries(WORDS, WORDS, max_size=2),
    "quantity": st.sampled_from(["0", "1", "-1", "500m", "1Gi", "1e3"]),
    "string": WORDS,
    "time": st.just("2026-01-01T00:00:00Z"),
}
# A body says this much of each struct, and goes this deep.
_MOST_FIELDS, _MOST_DEEP = 5, 7
_MOSTLY = st.integers(0, 9)


# Strategies are made once: to make and check one takes longer than to draw from it.


@cache
@st.composite
def shaped(draw: st.DrawFn, schema: str, deep: int = 0) -> Json:
    """An object with some fields of a type."""
    if deep == _MOST_DEEP:
        return {}
    fields = list(struct(schema).fields.values())
    required = [each for each in fields if each.required and draw(_MOSTLY)]
    chosen: list[SchemaField] = [*required, *draw(_some_fields(schema))]
    return {each.name: draw(_value(each.type, deep + 1)) for each in chosen}


@cache
def _some_fields(schema: str) -> st.SearchStrategy[list[SchemaField]]:
    fields = list(struct(schema).fields.values())
    return st.lists(st.sampled_from(fields), max_size=_MOST_FIELDS) if fields else st.just([])


@cache
def _value(kind: SchemaType, deep: int) -> st.SearchStrategy[Any]:
    if kind.of is None:
        return SCALARS[kind.name] if kind.name in SCALARS else shaped(kind.name, deep)
    inner = _value(kind.of, deep)
    return (
        st.lists(inner, max_size=2) if kind.is_list else st.dictionaries(WORDS, inner, max_size=2)
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource)
@given(data=st.data())
@settings(
    # There are many kinds, and every example is a dozen requests.
    max_examples=settings().max_examples // 5,
    suppress_health_check=list(HealthCheck),
)
def test_odd_objects(running: Server, kind: ServedKind, data: st.DataObject) -> None:
    item, change = (data.draw(shaped(kind.schema)) for _ in range(2))
    item["metadata"] = {"name": "x", "labels": {"a": "b"}}
    change["metadata"] = {**change.get("metadata", {}), "name": "x"}
    change["metadata"].pop("namespace", None)
    below = "namespaces/default/" if kind.namespaced else ""
    root = f"apis/{kind.group}" if kind.group else "api"
    whole = f"/{root}/{kind.version}/{below}{kind.plural}"
    one = f"{whole}/x"
    steps = [
        ("POST", f"{whole}?dryRun=All", item, JSON),
        ("POST", whole, item, JSON),
        ("GET", whole, None, TABLE),
        ("PATCH", f"{one}?dryRun=All", change, "application/merge-patch+json"),
        ("PATCH", f"{one}?dryRun=All", change, "application/strategic-merge-patch+json"),
        (
            "PATCH",
            f"{one}?fieldManager=m&force=1",
            _typed(kind, change),
            "application/apply-patch+yaml",
        ),
        ("PATCH", f"{one}/status", change, "application/merge-patch+json"),
        ("PUT", one, change, JSON),
        ("GET", whole, None, TABLE),
        ("GET", one, None, JSON),
        ("DELETE", one, {"gracePeriodSeconds": 0}, JSON),
        ("PATCH", one, {"metadata": {"finalizers": None}}, "application/merge-patch+json"),
    ]
    connection = http.client.HTTPConnection(
        running.settings.host, running.port, timeout=PATIENCE_SECONDS
    )
    for method, path, body, media in steps:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": media}
        headers["Accept"] = media if media == TABLE else JSON
        connection.request(method, path, msgspec.json.encode(body) if body else None, headers)
        response = connection.getresponse()
        answer = msgspec.json.decode(response.read())
        assert response.status != 500, (method, path, body, answer)
        assert response.status < 400 or answer["kind"] == "Status"
    connection.close()


def _typed(kind: ServedKind, item: Json) -> Json:
    return {**item, "apiVersion": kind.api_version, "kind": kind.kind}
