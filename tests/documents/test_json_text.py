"""JSON that is nested too deeply to be decoded, and lists with items that are no JSON."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from moorage.documents.json_text import DEEPEST, cut, empty_below, split_list
from moorage.objects.custom import CustomKind
from moorage.objects.decode import Identity, from_json, read_identity, reader, split_page
from moorage.objects.kinds import READ_KINDS
from moorage.objects.pod import Pod

# As deep as an API server accepts, and deeper.
DEPTHS = (500, 1_000, 9_995, 100_000)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


def nested(depth: int) -> bytes:
    return b'{"f:a\\"]":[' * (depth // 2) + b"]}" * (depth // 2)


def deep_object(name: str, depth: int) -> bytes:
    fields = b'[{"fieldsV1":%b}]' % nested(depth)
    return b'{"metadata":{"managedFields":%b,"name":"%b"}}' % (fields, name.encode())


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, dict | list) + max(map(depth_of, inner), default=0)


@given(JSON)
def test_what_is_shallow_stays_as_it_is(value: Any) -> None:
    text = json.dumps(value).encode()

    assert cut(text) == text


@given(JSON, st.integers(1, 4))
def test_what_is_deep_is_emptied(value: Any, deepest: int) -> None:
    text = json.dumps(value, ensure_ascii=False).encode()

    def emptied(inner: Any, depth: int = 1) -> Any:
        if isinstance(inner, dict | list) and depth > deepest:
            return type(inner)()
        if isinstance(inner, dict):
            return {key: emptied(each, depth + 1) for key, each in inner.items()}
        return [emptied(each, depth + 1) for each in inner] if isinstance(inner, list) else inner

    assert json.loads(cut(text, deepest)) == emptied(value)
    if isinstance(value, dict | list):
        empty_below(value, deepest)
        assert value == json.loads(cut(text, deepest))


@given(st.lists(JSON), st.sampled_from(["", " ", "\n"]))
def test_a_list_and_its_items(items: list[Any], space: str) -> None:
    written = f",{space}".join(json.dumps(each) for each in items)
    text = f'{{"metadata":{{"items":[1]}},{space}"items":{space}[{written}{space}]}}'.encode()

    envelope, found = split_list(text)

    containers = [each for each in items if isinstance(each, dict | list)]
    assert json.loads(envelope) == {"metadata": {"items": [1]}, "items": []}
    if len(containers) == len(items):
        assert [json.loads(each) for each in found] == items


@pytest.mark.parametrize(
    "broken",
    [
        b'"' * 300_001,
        b'"\\"' * 100_000,
        b"x" * 300_000,
        b"[" * 300_000,
        b"]" * 300_000,
        b'{"items":[' + b'{"a":"' * 50_000,
        b'{"items":[{}' + b",1" * 100_000,
    ],
    ids=["quotes", "escapes", "letters", "opening", "closing", "strings", "numbers"],
)
def test_what_is_broken_costs_little_and_stays_broken(broken: bytes) -> None:
    for text in (cut(broken), split_list(broken)[0]):
        with pytest.raises((msgspec.DecodeError, RecursionError)):
            msgspec.json.decode(text)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", sorted(READ_KINDS))
def test_an_object_of_any_depth_is_read(kind: str, depth: int) -> None:
    assert from_json(kind, deep_object("a", depth)).name == "a"


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_custom_object_keeps_what_is_not_too_deep(depth: int) -> None:
    kind = CustomKind("example.com", "v1", "Thing", "things")
    text = b'{"metadata":{"name":"a"},"spec":{"size":3,"deep":%b}}' % nested(depth)

    found = from_json(kind, text)

    assert found.fields["spec"]["size"] == 3  # type: ignore[union-attr]
    assert depth_of(found.fields) == DEEPEST + 1  # type: ignore[union-attr]


@pytest.mark.parametrize("depth", DEPTHS)
def test_it_does_not_depend_on_the_callers_stack(depth: int) -> None:
    """Neither frames below nor a small stack of a thread's own make a difference."""
    found: list[str] = []

    def descend(levels: int) -> None:
        if levels:
            descend(levels - 1)
        else:
            found.append(from_json("Pod", deep_object("a", depth)).name)

    descend(sys.getrecursionlimit() // 2)
    thread = threading.Thread(target=descend, args=(0,))
    thread.start()
    thread.join()

    assert found == ["a", "a"]


def test_a_page_is_split_whatever_is_in_it() -> None:
    items = [
        b'{"metadata":{"name":"a"}}',
        deep_object("b", 9_000),
        b'{"metadata":{"name":"c"},"x":NaN}',
        b'{"metadata":{"name":"d"},"x":"\\ud800"}',
        b'{"metadata":{"name":"e"},"x":"\xff"}',
        b'{"metadata":{"name":"f"},"x":%b}' % (b"9" * 5000),
        b"null",
        b'{"metadata":{"name":"g"}}',
    ]
    page = b'{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[%b]}' % b",".join(items)

    meta, found = split_page(page)

    assert meta.resource_version == "7"
    assert len(found) == len(items)
    assert [read_identity(found[at]) for at in (0, 1, -1)] == [
        Identity(name="a"),
        Identity(name="b"),
        Identity(name="g"),
    ]


@pytest.mark.parametrize("text", [b"", b"[]", b'{"items":[{}]}', b'{"items":[{}', b"<html>"])
def test_what_is_no_list_is_refused(text: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        split_page(text)


def test_a_value_that_no_code_expects_is_a_bad_value() -> None:
    def build(wire: Any) -> Any:
        raise OverflowError("too large")

    broken = reader("Pod")
    strange = type(broken)(type(broken.one.decode(b'{"metadata":{}}')), build)

    with pytest.raises(ValueError, match="OverflowError: too large"):
        strange.build(None)
    assert isinstance(broken.build(broken.one.decode(b'{"metadata":{"name":"a"}}')), Pod)
