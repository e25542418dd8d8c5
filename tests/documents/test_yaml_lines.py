"""Dumps are read line by line exactly as the parser of all YAML reads them, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given, strategies as st

from moorage.documents.errors import InputError
from moorage.documents.yaml_lines import DumpReader, NotPlainError
from moorage.documents.yaml_text import _plain, _roots, documents

KEYS = st.one_of(st.from_regex(r"[a-z0-9./_-]{1,8}", fullmatch=True), st.sampled_from(["<<", "on"]))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-99, 10**6),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.text(max_size=12),
    st.text(alphabet="ab :#-'\"{}[]&*!|>%@,.0~\n", max_size=8),
    st.sampled_from(
        ["yes", "0o17", "1e3", "12:30:45", "2026-11-16T00:06:54Z", "null", "~", "0x1f"]
    ),
    st.just("a long text that go-yaml would fold over several lines, because it is " + 80 * "x "),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)
ITEMS = st.builds(
    lambda name, value: {"apiVersion": "v1", "metadata": {"name": name}, "spec": value},
    st.sampled_from(["a", "b-1"]),
    VALUES,
)


def parse_slowly(text: str) -> Any:
    """What the parser of all YAML reads; a text if it refuses."""
    try:
        return [root for _, _, root in _roots(text)]
    except (ValueError, yaml.YAMLError) as error:
        return str(error)


def read_by_lines(text: str) -> Any:
    """What is read line by line; None if it is not for that."""
    reader = DumpReader(_plain, lambda part: next(root for _, _, root in _roots(part)))
    try:
        return [reader.read(text)]
    except (NotPlainError, ValueError, yaml.YAMLError):
        return None


def dump(items: list[Any]) -> str:
    return yaml.safe_dump({"apiVersion": "v1", "items": items, "kind": "List"}, sort_keys=True)


@given(st.lists(ITEMS, min_size=1, max_size=3))
def test_what_is_written_is_read(items: list[Any]) -> None:
    text = dump(items)
    read = read_by_lines(text)

    # As text, because True equals 1.
    assert read is None or repr(read) == repr(parse_slowly(text))


@given(
    st.lists(ITEMS, min_size=1, max_size=2),
    st.integers(0, 400),
    st.sampled_from(["", " ", "  ", "- ", "\n", ":", ": ", "#", "'", '"', "|", "&x ", "*x", "\t"]),
    st.integers(0, 3),
)
@example([{"metadata": {"name": "a"}, "spec": {"a": 1}}], 30, "\n# text", 0)
def test_what_is_damaged_is_read_alike_or_not_at_all(
    items: list[Any], at: int, put: str, cut: int
) -> None:
    text = dump(items)
    text = text[:at] + put + text[at + cut :]
    read = read_by_lines(text)

    assert read is None or repr(read) == repr(parse_slowly(text))


LIST = """\
apiVersion: v1
items:
- apiVersion: v1
  kind: Pod
  metadata:
    name: {name}
  spec:
    containers:
    - args: []
      image: registry.example/app:v1
      resources: {{}}
    nodeName: node-1
kind: List
metadata:
  resourceVersion: ""
"""


@pytest.mark.parametrize(
    "name",
    ["web-0", "'web-0'", '"web-0"', "|-\n      web-0", '"web\\x2d0"', "web-0 # a comment"],
)
def test_an_item_that_is_not_plain_is_read_by_itself(name: str) -> None:
    (read,) = read_by_lines(LIST.format(name=name))

    assert read["items"][0]["metadata"]["name"] == "web-0"
    assert read["items"][0]["spec"]["containers"] == [
        {"args": [], "image": "registry.example/app:v1", "resources": {}}
    ]
    assert (read["kind"], read["metadata"]) == ("List", {"resourceVersion": ""})


def test_empty_values_are_not_shared() -> None:
    text = LIST.format(name="a").replace("kind: List", "- metadata: {name: b}\n  spec: {}\nkind: x")
    items = next(documents(text, "dump.yaml"))[1]["items"]
    items[0]["spec"]["containers"][0]["resources"]["changed"] = True

    assert items[1]["spec"] == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(LIST.format(name="a\n    name: b"), "line 7.*duplicate key", id="twice"),
        pytest.param(
            LIST.format(name="a").replace("name: a", "x: y"), "metadata.name", id="unnamed"
        ),
        pytest.param(LIST.format(name="*nobody"), "unknown alias", id="alias"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        list(documents(text, "dump.yaml"))
