"""Custom objects: what is kept of them, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.documents.errors import DecodeError
from moorage.objects.custom import CustomKind, CustomObject
from moorage.objects.decode import from_builtins, from_json

KIND = CustomKind("example.com", "v1", "Thing", "things", namespaced=True)
RAW: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Thing",
    "metadata": {
        "name": "one",
        "namespace": "shop",
        "uid": "u",
        "resourceVersion": "7",
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
        "managedFields": [{}],
    },
    "spec": {"deep": {"value": [1, "two"]}},
    "data": "x",
}


@pytest.mark.parametrize(
    "read", [from_builtins, lambda kind, raw: from_json(kind, json.dumps(raw))]
)
def test_what_is_kept(read: Any) -> None:
    assert read(KIND, RAW) == CustomObject(
        api_version="example.com/v1",
        kind="Thing",
        name="one",
        namespace="shop",
        uid="u",
        resource_version="7",
        labels={"a": "b"},
        annotations={"c": "d"},
        fields={"spec": {"deep": {"value": [1, "two"]}}, "data": "x"},
    )


def test_names() -> None:
    item = from_builtins(KIND, RAW)
    assert isinstance(item, CustomObject)

    assert (item.key, item.title) == ("shop/one", "Thing shop/one")
    assert (KIND.api_version, KIND.resource) == ("example.com/v1", "things.v1.example.com")


def test_the_items_of_a_list_do_not_say_what_they_are() -> None:
    item = from_builtins(KIND, {"metadata": {"name": "one"}})

    assert isinstance(item, CustomObject)
    assert (item.api_version, item.kind, item.key) == ("example.com/v1", "Thing", "one")


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ({}, "metadata"),
        ({"metadata": {"name": 3}}, "metadata.name"),
        ({**RAW, "kind": "Other"}, "kind: must be Thing"),
        ({**RAW, "apiVersion": "example.com/v2"}, "apiVersion: must be example.com/v1"),
    ],
)
def test_what_is_refused(raw: Any, told: str) -> None:
    with pytest.raises(DecodeError, match=told):
        from_builtins(KIND, raw)
    with pytest.raises(DecodeError, match=told):
        from_json(KIND, json.dumps(raw))


@pytest.mark.parametrize("text", ["", "{", "[]", "3"])
def test_what_is_no_object(text: str) -> None:
    with pytest.raises(DecodeError):
        from_json(KIND, text)


def test_mappings_within() -> None:
    item = from_builtins(KIND, RAW)
    assert isinstance(item, CustomObject)

    assert item.mapping("spec", "deep") == {"value": [1, "two"]}
    assert item.mapping("spec", "other", "deeper") == {}
    with pytest.raises(DecodeError, match=r"spec\.deep\.value: must be a mapping"):
        item.mapping("spec", "deep", "value")
