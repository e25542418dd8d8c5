"""Node selectors: every operator, names, and what is told about malformed terms."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.objects.node_selector import (
    Malformed,
    NodeSelector,
    NodeSelectorTerm,
    NodeTerm,
    PreferredSchedulingTerm,
    compile_preferences,
    compile_term,
    named_nodes,
    parse_int64,
)


def needs(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def term(*expressions: dict[str, Any], fields: tuple[dict[str, Any], ...] = ()) -> Any:
    raw = {"matchExpressions": list(expressions), "matchFields": list(fields)}
    return compile_term(msgspec.convert(raw, NodeSelectorTerm))


@pytest.mark.parametrize(
    ("expression", "labels", "holds"),
    [
        pytest.param(needs("a", "In", "x", "y"), {"a": "y"}, True, id="In"),
        pytest.param(needs("a", "In", "x"), {"a": "y"}, False, id="In, another value"),
        pytest.param(needs("a", "In", "x"), {}, False, id="In, absent"),
        pytest.param(needs("a", "NotIn", "x"), {"a": "y"}, True, id="NotIn"),
        pytest.param(needs("a", "NotIn", "x"), {"a": "x"}, False, id="NotIn, that value"),
        pytest.param(needs("a", "NotIn", "x"), {}, True, id="NotIn, absent"),
        pytest.param(needs("a", "Exists"), {"a": ""}, True, id="Exists"),
        pytest.param(needs("a", "Exists"), {"b": ""}, False, id="Exists, absent"),
        pytest.param(needs("a", "DoesNotExist"), {"b": ""}, True, id="DoesNotExist"),
        pytest.param(needs("a", "DoesNotExist"), {"a": ""}, False, id="DoesNotExist, present"),
        pytest.param(needs("a", "Gt", "4"), {"a": "5"}, True, id="Gt"),
        pytest.param(needs("a", "Gt", "5"), {"a": "5"}, False, id="Gt, equal"),
        pytest.param(needs("a", "Gt", "4"), {}, False, id="Gt, absent"),
        pytest.param(needs("a", "Gt", "4"), {"a": "many"}, False, id="Gt, not a number"),
        pytest.param(needs("a", "Gt", "1"), {"a": "+2"}, True, id="Gt, a node with a sign"),
        pytest.param(needs("a", "Gt", "4"), {"a": "10"}, True, id="Gt, as numbers, not texts"),
        pytest.param(needs("a", "Lt", "5"), {"a": "4"}, True, id="Lt"),
        pytest.param(needs("a", "Lt", "5"), {"a": "5"}, False, id="Lt, equal"),
        pytest.param(needs("a", "Lt", "5"), {}, False, id="Lt, absent"),
    ],
)
def test_operators(expression: dict[str, Any], labels: dict[str, str], holds: bool) -> None:
    compiled = term(expression)

    assert isinstance(compiled, NodeTerm)
    assert compiled.matches(labels, "node") is holds


def test_all_expressions_and_fields_must_hold() -> None:
    compiled = term(
        needs("a", "Exists"),
        needs("b", "In", "x"),
        fields=(needs("metadata.name", "In", "one"), needs("metadata.name", "NotIn", "two")),
    )

    assert compiled.matches({"a": "", "b": "x"}, "one")
    assert not compiled.matches({"a": "", "b": "x"}, "three")
    assert not compiled.matches({"a": ""}, "one")


def test_a_name_can_be_excluded() -> None:
    compiled = term(fields=(needs("metadata.name", "NotIn", "two"),))

    assert compiled.matches({}, "one")
    assert not compiled.matches({}, "two")


def test_two_names_at_once_match_nothing() -> None:
    compiled = term(
        fields=(needs("metadata.name", "In", "one"), needs("metadata.name", "In", "two"))
    )

    assert not compiled.matches({}, "one")
    assert not compiled.matches({}, "two")


def test_a_term_without_expressions_is_none() -> None:
    assert term() is None


def test_equal_meanings_are_equal_values() -> None:
    one = term(needs("b", "Exists"), needs("a", "In", "y", "x"), needs("b", "Exists"))

    assert one == term(needs("a", "In", "x", "y", "x"), needs("b", "Exists"))


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        (
            needs("a", "In"),
            "matchExpressions[0].values: Invalid value: []: "
            "for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            needs("a", "NotIn"),
            "matchExpressions[0].values: Invalid value: []: "
            "for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            needs("a", "Exists", "x", "y"),
            'matchExpressions[0].values: Invalid value: ["x", "y"]: '
            "values set must be empty for exists and does not exist",
        ),
        (
            needs("a", "DoesNotExist", "x"),
            'matchExpressions[0].values: Invalid value: ["x"]: '
            "values set must be empty for exists and does not exist",
        ),
        (
            needs("a", "Gt"),
            "matchExpressions[0].values: Invalid value: []: "
            "for 'Gt', 'Lt' operators, exactly one value is required",
        ),
        (
            needs("a", "Lt", "1", "2"),
            'matchExpressions[0].values: Invalid value: ["1", "2"]: '
            "for 'Gt', 'Lt' operators, exactly one value is required",
        ),
        (
            needs("a", "Gt", "many"),
            'matchExpressions[0].values[0]: Invalid value: "many": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_malformed_expressions(expression: dict[str, Any], told: str) -> None:
    assert term(expression) == Malformed((told,))


UMLAUTS = "\u00fc" * 40
NO_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
NO_NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        pytest.param(
            needs("a", "Gt", "-5"),
            [f'values[0][a]: Invalid value: "-5": {NO_VALUE}'],
            id="a number with a sign",
        ),
        pytest.param(
            needs("a", "NotIn", "x", "a b"),
            [f'values[1][a]: Invalid value: "a b": {NO_VALUE}'],
            id="a value with a blank",
        ),
        pytest.param(
            needs("a", "In", "x" * 64),
            [f'values[0][a]: Invalid value: "{"x" * 64}": must be no more than 63 bytes'],
            id="a long value",
        ),
        pytest.param(
            needs("a", "In", UMLAUTS),
            [
                f'values[0][a]: Invalid value: "{UMLAUTS}": must be no more than 63 bytes; '
                f"{NO_VALUE}"
            ],
            id="a value that is long in bytes",
        ),
        pytest.param(needs("a", "In", ""), [], id="an empty value"),
        pytest.param(
            needs("n n", "DoesNotExist"),
            [f'key: Invalid value: "n n": {NO_NAME}'],
            id="a key with a blank",
        ),
        pytest.param(
            needs("", "Exists"),
            [f'key: Invalid value: "": name part must be non-empty; {NO_NAME}'],
            id="no key",
        ),
        pytest.param(
            needs("/a", "Exists"),
            ['key: Invalid value: "/a": prefix part must be non-empty'],
            id="no prefix",
        ),
        pytest.param(
            needs("a", "Gt", "x y"),
            [
                "values[0]: Invalid value: \"x y\": for 'Gt', 'Lt' operators, the value must be an "
                "integer",
                f'values[0][a]: Invalid value: "x y": {NO_VALUE}',
            ],
            id="two mistakes",
        ),
    ],
)
def test_expressions_with_what_no_label_can_be(expression: dict[str, Any], told: list[str]) -> None:
    compiled = term(expression)

    if told:
        assert compiled == Malformed(tuple(f"matchExpressions[0].{each}" for each in told))
    else:
        assert isinstance(compiled, NodeTerm)


@pytest.mark.parametrize(
    "key", ["a/b/c", "Upper/a", f"{'x' * 254}/a", f"example.com/{'x' * 64}", "example.com/"]
)
def test_no_key_of_a_label(key: str) -> None:
    assert isinstance(term(needs(key, "Exists")), Malformed)


@pytest.mark.parametrize(
    ("field", "told"),
    [
        (
            needs("metadata.name", "Exists"),
            'matchFields[0].operator: Unsupported value: "Exists": supported values: "In", "NotIn"',
        ),
        (
            needs("metadata.name", "In", "one", "two"),
            "matchFields[0].values: Invalid value: must have one element",
        ),
        (
            needs("metadata.name", "In"),
            "matchFields[0].values: Invalid value: must have one element",
        ),
        (
            needs("metadata.namespace", "In", "one"),
            'matchFields[0].key: Unsupported value: "metadata.namespace": '
            'supported values: "metadata.name"',
        ),
    ],
)
def test_malformed_fields(field: dict[str, Any], told: str) -> None:
    assert term(fields=(field,)) == Malformed((told,))


def test_several_problems_are_told_in_brackets() -> None:
    malformed = term(needs("a", "In"), needs("b", "Exists"), needs("c", "Gt", "x"))

    assert isinstance(malformed, Malformed)
    assert len(malformed.problems) == 2
    assert str(malformed) == f"[{malformed.problems[0]}, {malformed.problems[1]}]"
    assert malformed.problems[1].startswith("matchExpressions[2].values[0]")
    assert str(term(needs("a", "In"))).startswith("matchExpressions[0]")


def preferred(weight: int, *expressions: dict[str, Any]) -> PreferredSchedulingTerm:
    raw = {"weight": weight, "preference": {"matchExpressions": list(expressions)}}
    return msgspec.convert(raw, PreferredSchedulingTerm)


def test_preferences_of_one_meaning_add_up() -> None:
    compiled = compile_preferences(
        [
            preferred(2, needs("a", "Exists")),
            preferred(3, needs("b", "Exists")),
            preferred(5, needs("a", "Exists")),
            preferred(0, needs("c", "In")),
            preferred(9),
        ]
    )

    assert compiled == ((term(needs("a", "Exists")), 7), (term(needs("b", "Exists")), 3))


def test_malformed_preferences_name_their_place() -> None:
    told = compile_preferences([preferred(1, needs("a", "Exists")), preferred(1, needs("a", "In"))])

    assert isinstance(told, Malformed)
    assert told.problems[0].startswith("[1].matchExpressions[0].values: Invalid value")


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        pytest.param([], None, id="no term"),
        pytest.param([["one"]], {"one"}, id="one name"),
        pytest.param([["one"], ["two"]], {"one", "two"}, id="terms are alternatives"),
        pytest.param([["one"], []], None, id="a term leaves the name open"),
        pytest.param([["one", "two"]], set(), id="fields of a term must all hold"),
    ],
)
def test_named_nodes(terms: list[list[str]], names: set[str] | None) -> None:
    raw = {
        "nodeSelectorTerms": [
            {"matchFields": [needs("metadata.name", "In", name) for name in listed]}
            for listed in terms
        ]
    }

    assert named_nodes(msgspec.convert(raw, NodeSelector)) == names


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("", None),
        ("1.0", None),
        (" 1", None),
        ("1_0", None),
        ("٣", None),
    ],
)
def test_parse_int64(text: str, number: int | None) -> None:
    assert parse_int64(text) == number
