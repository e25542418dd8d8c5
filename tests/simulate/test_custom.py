"""Custom objects in manifests: those that an enabled plugin asks for are taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moorage.documents.errors import InputError
from moorage.objects.custom import CustomKind, CustomObject
from moorage.simulate.loading import Input, load
from tests.builders import node_manifest

KIND = CustomKind("example.com", "v1", "Thing", "things")


def thing(name: str = "one", **more: Any) -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, **more}


def loaded(folder: Path, *manifests: dict[str, Any], wanted: tuple[CustomKind, ...]) -> Input:
    path = folder / "input.json"
    path.write_text("\n".join(json.dumps(each) for each in (node_manifest("a"), *manifests)))
    return load([str(path)], wanted)


def test_wanted_objects_are_taken(tmp_path: Path) -> None:
    listed = {
        "apiVersion": "example.com/v1",
        "kind": "ThingList",
        "items": [{"metadata": {"name": "two"}}],
    }
    given = loaded(tmp_path, thing(spec={"x": 1}), listed, wanted=(KIND,))

    found = [each for each in given.objects if isinstance(each, CustomObject)]
    assert [(each.name, each.fields) for each in found] == [
        ("one", {"spec": {"x": 1}}),
        ("two", {}),
    ]
    assert given.notes == ()


def test_a_kind_may_have_the_name_of_one_that_is_known(tmp_path: Path) -> None:
    """Another group may have nodes of its own."""
    other = CustomKind("example.com", "v1", "Node", "nodes")
    given = loaded(tmp_path, thing("a", kind="Node", status=3), wanted=(other,))

    assert [type(each).__name__ for each in given.objects] == ["Node", "CustomObject"]


@pytest.mark.parametrize("kind", ["Node", "Namespace", "Pod"])
def test_a_plugin_that_follows_a_core_kind_does_not_hide_it(tmp_path: Path, kind: str) -> None:
    followed = CustomKind("", "v1", kind, f"{kind.lower()}s")
    made = thing("b", apiVersion="v1", kind=kind, spec={"containers": [{"name": "main"}]})

    given = loaded(tmp_path, made, wanted=(followed,))

    read = [(type(each).__name__, each.name) for each in given.objects]
    assert ("Node", "a") in read
    assert (kind, "b") in read
    assert ("CustomObject", "b") in read
    assert len(read) == len(set(read))


def test_a_plugin_that_follows_a_workload_leaves_its_pods(tmp_path: Path) -> None:
    followed = CustomKind("apps", "v1", "ReplicaSet", "replicasets")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = thing("set", apiVersion="apps/v1", kind="ReplicaSet", spec=spec)

    given = loaded(tmp_path, made, wanted=(followed,))

    read = sorted(type(each).__name__ for each in given.objects)
    assert read == ["CustomObject", "Node", "Pod", "Pod", "ReplicaSet"]


@pytest.mark.parametrize(
    "unwanted", [thing(), thing(apiVersion="other.com/v1")], ids=["kind", "group"]
)
def test_others_are_told(tmp_path: Path, unwanted: dict[str, Any]) -> None:
    wanted = (KIND,) if unwanted["apiVersion"] == "other.com/v1" else ()
    given = loaded(tmp_path, unwanted, wanted=wanted)

    assert given.notes == ("ignored 1 Thing: scheduling has no use for it",)


@pytest.mark.parametrize(
    ("manifests", "told"),
    [
        (
            [thing(apiVersion="example.com/v2")],
            'apiVersion: must be "example.com/v1", got "example',
        ),
        ([thing(""), thing()], "Thing : metadata.name: is required"),
        ([thing(), thing()], "Thing one: metadata.name: duplicate"),
        ([{**thing(), "metadata": {"name": "one", "labels": 3}}], "Thing one: metadata.labels: "),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, manifests: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(InputError) as refused:
        loaded(tmp_path, *manifests, wanted=(KIND,))
    assert told in str(refused.value)
