"""Label selectors: what they match, and that equal meanings compare equal."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from moorage.objects.selector import (
    EVERYTHING,
    LabelSelector,
    Selector,
    SelectorError,
    compile_selector,
    equality,
)

LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "x", "y"]), max_size=3)


def selector(**written: Any) -> Selector:
    compiled = compile_selector(msgspec.convert(written, LabelSelector))
    assert compiled is not None
    return compiled


def needs(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("expression", "present", "other", "absent"),
    [
        pytest.param(needs("a", "In", "x", "z"), True, False, False, id="In"),
        pytest.param(needs("a", "NotIn", "x", "z"), False, True, True, id="NotIn"),
        pytest.param(needs("a", "Exists"), True, True, False, id="Exists"),
        pytest.param(needs("a", "DoesNotExist"), False, False, True, id="DoesNotExist"),
    ],
)
def test_operators(expression: dict[str, Any], present: bool, other: bool, absent: bool) -> None:
    compiled = selector(matchExpressions=[expression])

    assert compiled.matches({"a": "x"}) is present
    assert compiled.matches({"a": "y"}) is other
    assert compiled.matches({"b": "x"}) is absent


def test_labels_and_expressions_must_all_hold() -> None:
    compiled = selector(matchLabels={"a": "x"}, matchExpressions=[needs("b", "Exists")])

    assert compiled.matches({"a": "x", "b": ""})
    assert not compiled.matches({"a": "x"})
    assert not compiled.matches({"b": "x"})


def test_nothing_written_selects_nothing_and_nothing_asked_selects_everything() -> None:
    assert compile_selector(None) is None
    assert compile_selector(LabelSelector()) == EVERYTHING
    assert not EVERYTHING
    assert EVERYTHING.matches({})


def test_equal_meanings_are_equal_values() -> None:
    one = selector(
        matchLabels={"b": "y", "a": "x"},
        matchExpressions=[needs("c", "In", "2", "1"), needs("c", "In", "1", "2", "1")],
    )
    other = selector(
        matchLabels={"a": "x"},
        matchExpressions=[needs("b", "In", "y"), needs("c", "In", "1", "2")],
    )

    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        (
            needs("a", "In"),
            "values: Invalid value: []: for 'In' operator, values set can't be empty",
        ),
        (
            needs("a", "NotIn"),
            "values: Invalid value: []: for 'NotIn' operator, values set can't be empty",
        ),
        (
            needs("a", "Exists", "x"),
            "values: Invalid value: ['x']: values set must be empty for exists and does not exist",
        ),
        (
            needs("a", "DoesNotExist", "x"),
            "values: Invalid value: ['x']: values set must be empty for exists and does not exist",
        ),
    ],
)
def test_malformed(expression: dict[str, Any], told: str) -> None:
    with pytest.raises(SelectorError) as raised:
        selector(matchExpressions=[expression])

    assert str(raised.value) == told


@given(LABELS, LABELS)
def test_equality_wants_exactly_these_values(
    wanted: dict[str, str], labels: dict[str, str]
) -> None:
    assert equality(wanted).matches(labels) == (wanted.items() <= labels.items())
    assert set(equality(wanted).keys) == set(wanted)


@given(LABELS, LABELS, LABELS)
def test_both_hold_where_each_holds(
    one: dict[str, str], other: dict[str, str], labels: dict[str, str]
) -> None:
    merged = equality(one) & equality(other)

    expected = equality(one).matches(labels) and equality(other).matches(labels)
    assert merged.matches(labels) == expected
    assert merged == equality(other) & equality(one)


@given(LABELS, st.sets(st.sampled_from("abc")))
def test_without_some_keys(wanted: dict[str, str], dropped: set[str]) -> None:
    left = {key: value for key, value in wanted.items() if key not in dropped}

    assert equality(wanted).without(dropped) == equality(left)
