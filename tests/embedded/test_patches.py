"""Patches of all four kinds, as functions."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from moorage.embedded.api.managed_fields import (
    FieldManager,
    from_tree,
    managers_of,
    note_update,
    paths_of,
    to_tree,
)
from moorage.embedded.api.patches import json_patch, merge_patch, strategic_merge
from moorage.embedded.api.schema import shape_of
from moorage.embedded.api.server_side_apply import (
    AppliedConfiguration,
    apply_configuration,
    create_configuration,
)
from moorage.embedded.request_refusals import RequestRefused
from tests.embedded.serving import PODS, Client, pod

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        ([{"op": "add", "path": "/b", "value": 1}], {"a": [1, 2], "b": 1}),
        ([{"op": "add", "path": "/a/0", "value": 0}], {"a": [0, 1, 2]}),
        ([{"op": "add", "path": "/a/-", "value": 3}], {"a": [1, 2, 3]}),
        ([{"op": "replace", "path": "/a/1", "value": 9}], {"a": [1, 9]}),
        ([{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ([{"op": "move", "from": "/a", "path": "/b"}], {"b": [1, 2]}),
        ([{"op": "copy", "from": "/a/0", "path": "/b"}], {"a": [1, 2], "b": 1}),
        ([{"op": "test", "path": "/a/0", "value": 1}], {"a": [1, 2]}),
        ([{"op": "add", "path": "/x~1y~0z", "value": 1}], {"a": [1, 2], "x/y~z": 1}),
        ([{"op": "replace", "path": "", "value": {}}], {}),
    ],
)
def test_json_patches(operations: list[Json], result: Json) -> None:
    target = {"a": [1, 2]}

    assert json_patch(target, operations) == result
    assert target == {"a": [1, 2]}


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ([{"op": "test", "path": "/a", "value": 2}], 422),
        ([{"op": "remove", "path": "/nope"}], 422),
        ([{"op": "replace", "path": "/nope", "value": 1}], 422),
        ([{"op": "add", "path": "/a/b", "value": 1}], 422),
        ([{"op": "odd", "path": "/a"}], 422),
        ([{"op": "add", "path": "/b"}], 400),
        ([{"op": "add", "path": "b", "value": 1}], 400),
        ({"op": "add"}, 400),
        ([1], 400),
        ([{"op": "add", "path": "/b", "value": 1}] * 10_001, 400),
    ],
)
def test_json_patches_that_do_not_apply(operations: Any, code: int) -> None:
    with pytest.raises(RequestRefused) as refused:
        json_patch({"a": 1}, operations)

    assert refused.value.code == code


OBJECTS: st.SearchStrategy[Any] = st.recursive(
    st.integers(0, 3) | st.text("ab", max_size=2) | st.lists(st.integers(0, 3), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def difference(one: Any, other: Any) -> Any:
    """The merge patch that leads from one to the other."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return other
    changed = {
        key: difference(one.get(key), value)
        for key, value in other.items()
        if key not in one or one[key] != value
    }
    return {**changed, **dict.fromkeys(one.keys() - other.keys())}


@given(
    one=st.dictionaries(st.sampled_from("abc"), OBJECTS),
    other=st.dictionaries(st.sampled_from("abc"), OBJECTS),
)
def test_a_merge_patch_leads_from_one_object_to_another(one: Json, other: Json) -> None:
    assert merge_patch(one, difference(one, other)) == other


STORED = {
    "metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["x.io/a", "x.io/b"]},
    "spec": {
        "containers": [
            {"name": "one", "image": "i:1", "env": [{"name": "A", "value": "1"}], "args": ["x"]},
            {"name": "two", "image": "i:2"},
        ],
        "tolerations": [{"key": "t"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}


@pytest.mark.parametrize(
    ("patch", "path", "value"),
    [
        pytest.param(
            {"spec": {"containers": [{"name": "two", "image": "i:3"}]}},
            ("spec", "containers", 1),
            {"name": "two", "image": "i:3"},
            id="an item is found by its key",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "three", "image": "i:3"}]}},
            ("spec", "containers", 0),
            {"name": "three", "image": "i:3"},
            id="a new item comes first",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "one", "$patch": "delete"}]}},
            ("spec", "containers"),
            [{"name": "two", "image": "i:2"}],
            id="an item is deleted",
        ),
        pytest.param(
            {"spec": {"containers": [{"$patch": "replace"}, {"name": "x", "image": "i"}]}},
            ("spec", "containers"),
            [{"name": "x", "image": "i"}],
            id="a list is replaced",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "one", "env": [{"name": "B", "value": "2"}]}]}},
            ("spec", "containers", 0, "env"),
            [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}],
            id="lists within items are merged",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "one", "args": ["y"]}]}},
            ("spec", "containers", 0, "args"),
            ["y"],
            id="lists without a key are replaced",
        ),
        pytest.param(
            {"spec": {"tolerations": [{"key": "u"}]}},
            ("spec", "tolerations"),
            [{"key": "u"}],
            id="tolerations are replaced",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": None, "c": "3"}}},
            ("metadata", "labels"),
            {"b": "2", "c": "3"},
            id="null removes",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["x.io/c"]}},
            ("metadata", "finalizers"),
            ["x.io/c", "x.io/a", "x.io/b"],
            id="a list of texts is a union",
        ),
        pytest.param(
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/a"]}},
            ("metadata", "finalizers"),
            ["x.io/b"],
            id="a text is taken from a list",
        ),
        pytest.param(
            {"spec": {"$setElementOrder/containers": [{"name": "two"}, {"name": "one"}]}},
            ("spec", "containers", 0, "name"),
            "two",
            id="the order is the client's",
        ),
        pytest.param(
            {
                "spec": {
                    "volumes": [
                        {
                            "name": "v",
                            "$retainKeys": ["name", "hostPath"],
                            "hostPath": {"path": "/"},
                        }
                    ]
                }
            },
            ("spec", "volumes", 0),
            {"name": "v", "hostPath": {"path": "/"}},
            id="other keys are dropped",
        ),
    ],
)
def test_strategic_merge_patches(patch: Json, path: tuple[Any, ...], value: Any) -> None:
    result: Any = strategic_merge(STORED, patch, "core.v1.Pod")

    for step in path:
        result = result[step]
    assert result == value


@pytest.mark.parametrize(
    ("named", "ordered", "kept"),
    [
        ("d", "", "dabc"),
        ("b", "", "abc"),
        ("db", "", "dabc"),
        ("ca", "", "bca"),
        ("", "ca", "bca"),
        ("d", "dcb", "dacb"),
        ("d", "adc", "adbc"),
    ],
)
def test_the_order_of_merged_lists(named: str, ordered: str, kept: str) -> None:
    """As kube-apiserver orders them: what a patch names, and before it what stood before it."""
    items: dict[str, list[Json]] = {
        text: [{"name": each} for each in text] for text in ("abc", named, ordered)
    }
    patch: Json = {"containers": items[named]} if named else {}
    if ordered:
        patch["$setElementOrder/containers"] = items[ordered]

    result = strategic_merge({"spec": {"containers": items["abc"]}}, {"spec": patch}, "core.v1.Pod")

    assert "".join(each["name"] for each in result["spec"]["containers"]) == kept


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"containers": [{"image": "no name"}]}},
        {"spec": {"containers": ["text"]}},
        {"spec": {"$patch": "odd"}},
        {"spec": {"$retainKeys": 3}},
    ],
)
def test_strategic_patches_that_make_no_sense(patch: Json) -> None:
    with pytest.raises(RequestRefused) as refused:
        strategic_merge(STORED, patch, "core.v1.Pod")

    assert refused.value.code == 400


def config(**spec: Any) -> Json:
    return {"metadata": {"name": "d"}, "spec": spec}


def by(name: str, wanted: Json, *, force: bool = False) -> AppliedConfiguration:
    manager = FieldManager(name, "Apply", "", "apps/v1", "2026-01-01T00:00:00Z", frozenset())
    return AppliedConfiguration(wanted, shape_of("apps.v1.Deployment"), manager, force)


def test_what_is_applied_no_more_is_removed_unless_another_wants_it() -> None:
    live = create_configuration(by("one", config(replicas=2, paused=True, minReadySeconds=3)))
    live = apply_configuration(live, by("two", config(paused=True)))

    result = apply_configuration(live, by("one", config(replicas=2)))

    assert result["spec"] == {"replicas": 2, "paused": True}
    assert [each.name for each in managers_of(result)] == ["two", "one"]


def test_another_value_of_an_owned_field_is_a_conflict_until_forced() -> None:
    live = create_configuration(by("one", config(replicas=2)))

    with pytest.raises(RequestRefused) as refused:
        apply_configuration(live, by("two", config(replicas=3)))
    forced = apply_configuration(live, by("two", config(replicas=3), force=True))

    assert refused.value.code == 409
    assert refused.value.details["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "one"',
            "field": ".spec.replicas",
        }
    ]
    assert forced["spec"]["replicas"] == 3
    assert [each.name for each in managers_of(forced)] == ["two"]


def test_items_of_lists_have_owners_of_their_own() -> None:
    def containers(*listed: Json) -> Json:
        return config(template={"spec": {"containers": list(listed)}})

    live = create_configuration(by("one", containers({"name": "a", "image": "i:1"})))
    live = apply_configuration(live, by("two", containers({"name": "b", "image": "i:2"})))

    result = apply_configuration(live, by("one", containers()))

    assert result["spec"]["template"]["spec"]["containers"] == [{"name": "b", "image": "i:2"}]


def test_an_item_that_others_have_changed_stays_what_it_is() -> None:
    def containers(*listed: Json) -> Json:
        return config(template={"spec": {"containers": list(listed)}})

    old = create_configuration(by("one", containers({"name": "a", "image": "i:1", "tty": True})))
    live = deepcopy(old)
    live["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2"
    writer = FieldManager("two", "Update", "", "apps/v1", "", frozenset())
    note_update(live, old, shape_of("apps.v1.Deployment"), writer)

    result = apply_configuration(live, by("one", containers()))

    assert result["spec"]["template"]["spec"]["containers"] == [{"name": "a", "image": "i:2"}]


def test_what_was_there_before_anybody_applied_is_not_overwritten() -> None:
    live = config(replicas=2)

    with pytest.raises(RequestRefused) as refused:
        apply_configuration(live, by("one", config(replicas=3)))

    assert 'conflict with "before-first-apply"' in str(refused.value)
    assert apply_configuration(live, by("one", config(replicas=2)))["spec"] == {"replicas": 2}


@given(st.permutations(["replicas", "paused", "minReadySeconds"]), st.integers(1, 3))
def test_applying_twice_changes_nothing_more(names: list[str], count: int) -> None:
    wanted = by("one", config(**dict.fromkeys(names[:count], 1)))
    live = create_configuration(by("one", config(replicas=1)))

    once = apply_configuration(live, wanted)

    assert apply_configuration(once, wanted) == once


def test_sets_of_fields_are_kept_as_trees() -> None:
    item = pod("a", tolerations=[{"key": "x"}])
    item["metadata"]["finalizers"] = ["x.io/a"]
    paths = paths_of(item, shape_of("core.v1.Pod"))

    tree = to_tree(paths)

    assert from_tree(tree) == paths
    assert tree["f:metadata"] == {"f:finalizers": {'v:"x.io/a"': {}}}
    assert tree["f:spec"]["f:tolerations"] == {}
    assert tree["f:spec"]["f:containers"] == {
        'k:{"name":"main"}': {".": {}, "f:image": {}, "f:name": {}}
    }


async def test_applying_over_http(client: Client) -> None:
    media = "application/apply-patch+yaml"
    text = b"{apiVersion: v1, kind: Pod, spec: {containers: [{name: main, image: 'i:1'}]}}"
    path = f"{PODS}/a"
    status = await client.refused(422, "PATCH", path, text, kind=media)
    assert "fieldManager: Required value" in status["message"]
    code, made = await client.ask("PATCH", f"{path}?fieldManager=me", text, kind=media)
    assert code == 201
    code, again = await client.ask("PATCH", f"{path}?fieldManager=me", text, kind=media)
    assert (code, again) == (200, made)

    changed = await client.patch(path, {"metadata": {"labels": {"a": "b"}}})

    entries = changed["metadata"]["managedFields"]
    assert [each["operation"] for each in entries] == ["Apply", "Update"]
    assert entries[1]["fieldsV1"] == {"f:metadata": {"f:labels": {"f:a": {}}}}


@pytest.mark.parametrize(
    ("media", "body", "code"),
    [
        ("application/merge-patch+json", b"{", 400),
        ("application/merge-patch+json", b"[1]", 400),
        ("application/json-patch+json", b"{}", 400),
        ("application/strategic-merge-patch+json", b"3", 400),
        ("application/apply-patch+yaml", b"[", 400),
        ("application/json", b"{}", 415),
        ("text/plain", b"{}", 415),
        ("application/json-patch+json", b'[{"op":"replace","path":"","value":3}]', 400),
        ("application/merge-patch+json", b'{"metadata":{"name":"b"}}', 400),
        ("application/merge-patch+json", b'{"metadata":{"resourceVersion":"1"}}', 409),
        ("application/merge-patch+json", b'{"metadata":{"uid":"1"}}', 409),
        ("application/merge-patch+json", b'{"kind":"Node"}', 400),
    ],
)
async def test_patches_that_are_refused(client: Client, media: str, body: bytes, code: int) -> None:
    made = await client.create(PODS, pod("a"))

    path = f"{PODS}/a?fieldManager=me"
    await client.refused(code, "PATCH", path, body, kind=media)

    assert await client.get(f"{PODS}/a") == made
