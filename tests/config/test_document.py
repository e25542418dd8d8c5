"""The text of a configuration file, broken in the usual ways and the unusual ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.config import ConfigError, load
from mooring.config.document import read
from mooring.documents.errors import Problems
from tests.config.fakes import KNOWN


def told(text: str | bytes) -> list[str]:
    problems = Problems()
    read(text, problems)
    return [str(problem) for problem in problems]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "a: 1\nb: c: d\n",
            "line 2, column 5: mapping values are not allowed in this context",
            id="broken",
        ),
        pytest.param("a: 1\na: 2", "a: duplicate key (line 2, column 1)", id="duplicate key"),
        pytest.param(
            '{"a": [{"b": 1}, {"b": 1, "c": {}, "b": 2}]}',
            "a[1].b: duplicate key (line 1, column 36)",
            id="duplicate key within",
        ),
        pytest.param(
            "x: &x {a: 1, a: 2}\ny: *x",
            "x.a: duplicate key (line 1, column 14)",
            id="duplicate key behind an alias is told once",
        ),
        pytest.param("[" * 101 + "]" * 101, "nested more than 100 levels deep", id="too deep"),
        pytest.param("[" * 100_000, "nested more than 100 levels deep", id="bottomless"),
        pytest.param("--- a\n--- b", "expected a single document", id="two documents"),
        pytest.param("a: !!python/name:os.system x", "could not determine", id="foreign tag"),
        pytest.param("{[a]: 1}", "found unhashable key", id="key that is a list"),
        pytest.param("a: 2001-99-99", "month must be in 1..12", id="impossible date"),
        pytest.param('a: !!int ""', "string index out of range", id="empty integer"),
        pytest.param("a: !!bool maybe", "maybe", id="no boolean"),
        pytest.param("a: !!timestamp x", "NoneType", id="no timestamp"),
        pytest.param("a: !!timestamp {=: 1}", "expected string", id="mapping for a timestamp"),
        pytest.param(b"a: \xff\xff", "invalid leading UTF-8 octet", id="not UTF-8"),
        pytest.param("a: \x00", "control characters are not allowed", id="control character"),
    ],
)
def test_what_cannot_be_read_is_a_problem(text: str | bytes, problem: str) -> None:
    (only,) = told(text)

    assert problem in only


@pytest.mark.parametrize(
    ("text", "content"),
    [
        pytest.param("", None, id="empty"),
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
    problems = Problems()

    assert read(text, problems) == content
    assert not list(problems)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "must be a mapping, got null", id="empty"),
        pytest.param("- a", "must be a mapping, got a list", id="list"),
        pytest.param("&a [*a]", "must be a mapping, got a list", id="endless"),
        pytest.param("a: b: c", "line 1, column 5: mapping values", id="broken"),
    ],
)
def test_a_file_that_is_no_configuration(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"^<config>: {problem}"):
        load(text, known=KNOWN)


def test_duplicate_keys_are_told_beside_a_wrong_header() -> None:
    with pytest.raises(ConfigError) as caught:
        load("kind: Pod\nkind: Pod", known=KNOWN)

    assert [problem.path for problem in caught.value.problems] == ["kind", "apiVersion", "kind"]


@given(st.text(alphabet="ab&*<!:?-[]{}\"'|>%@# \n01.,~", max_size=40) | st.binary(max_size=20))
def test_no_text_raises_anything_but_a_config_error(text: str | bytes) -> None:
    with pytest.raises(ConfigError):
        load(text, known=KNOWN)
