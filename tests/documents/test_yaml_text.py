"""The text of a document, broken in the usual ways and the unusual ones."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from moorage.config import load
from moorage.documents.errors import ConfigError, DecodeError
from moorage.documents.yaml_text import read_document
from tests.config.fakes import KNOWN


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "a: 1\nb: c: d\n",
            "line 2, column 5: mapping values are not allowed in this context",
            id="broken",
        ),
        pytest.param("a: 1\na: 2", 'line 2, column 1: duplicate key "a"', id="duplicate key"),
        pytest.param(
            '{"a": [{"b": 1}, {"b": 1, "c": {}, "b": 2}]}',
            'line 1, column 36: duplicate key "b"',
            id="duplicate key within",
        ),
        pytest.param(
            "x: &x {a: 1, a: 2}\ny: *x",
            'line 1, column 14: duplicate key "a"',
            id="duplicate key behind an alias",
        ),
        pytest.param("[" * 101 + "]" * 101, "nested more than 100 levels deep", id="too deep"),
        pytest.param("[" * 100_000, "nested more than 100 levels deep", id="bottomless"),
        pytest.param("--- a\n--- b", "must be one document, and has 2", id="two documents"),
        pytest.param(
            "a: !!python/name:os.system x",
            "tag !!python/name:os.system is not supported",
            id="foreign tag",
        ),
        pytest.param("{[a]: 1}", "a key must be text", id="key that is a list"),
        pytest.param('a: !!int ""', '"" is no int', id="empty integer"),
        pytest.param("a: !!bool maybe", '"maybe" is no bool', id="no boolean"),
        pytest.param(b"a: \xff\xff", "not UTF-8 text (byte 0xff)", id="not UTF-8"),
        pytest.param("a: \x00", "control characters are not allowed", id="control character"),
    ],
)
def test_what_cannot_be_read_is_a_problem(text: str | bytes, problem: str) -> None:
    with pytest.raises(DecodeError) as raised:
        read_document(text)

    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        pytest.param("", None, id="empty"),
        pytest.param("a: 2001-99-99", {"a": "2001-99-99"}, id="a date is text"),
        pytest.param("a: !!timestamp x", {"a": "x"}, id="a time is text"),
        pytest.param("a: {b: [1, 2.5, true, null, x]}", {"a": {"b": [1, 2.5, True, None, "x"]}}),
        pytest.param("[" * 5 + "]" * 5, [[[[[]]]]], id="nested"),
        pytest.param("[" + "[]," * 200 + "]", [[]] * 200, id="wide but not deep"),
        pytest.param("a: [{x: 1}, {x: 1}]", {"a": [{"x": 1}, {"x": 1}]}, id="not duplicate keys"),
        pytest.param(
            "a: &a {x: 1}\nb: {<<: *a, x: 2}", {"a": {"x": 1}, "b": {"x": 2}}, id="merged"
        ),
        pytest.param(
            "a: &a {<<: {x: 1}, x: 2}\nb: {<<: *a, x: 3}",
            {"a": {"x": 2}, "b": {"x": 3}},
            id="merged twice",
        ),
    ],
)
def test_content(text: str, content: object) -> None:
    assert read_document(text) == content


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "must be a mapping, got null", id="empty"),
        pytest.param("- a", "must be a mapping, got a list", id="list"),
        pytest.param("&a [*a]", "line 1, column 5: unknown alias", id="endless"),
        pytest.param("a: b: c", "broken YAML: line 1, column 5: mapping values", id="broken"),
    ],
)
def test_a_file_that_is_no_configuration(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"^<config>: {problem}"):
        load(text, known=KNOWN)


@given(st.text(alphabet="ab&*<!:?-[]{}\"'|>%@# \n01.,~", max_size=40) | st.binary(max_size=20))
def test_no_text_raises_anything_but_a_config_error(text: str | bytes) -> None:
    with pytest.raises(ConfigError):
        load(text, known=KNOWN)
