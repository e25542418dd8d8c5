"""Strict decoding: every offending field, and nothing but problems."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given, strategies as st

from moorage.config.configuration import ConfigurationDocument, PluginsDocument
from moorage.config.duration import Duration
from moorage.documents.conversion import check, convert
from moorage.documents.errors import Problem, Problems
from moorage.objects.meta import Wire
from moorage.objects.quantity import Quantity
from tests.config.fakes import FitArgs, NodeAffinityArgs, SpreadArgs, converted


class Leaf(Wire, frozen=True):
    size: int
    colour: Literal["red", "green"] = "red"


class Tree(Wire, frozen=True):
    first_leaf: Leaf | None = None
    leaves: tuple[Leaf, ...] = ()
    notes: list[str] = msgspec.field(default_factory=list)
    named: dict[str, Leaf] = msgspec.field(default_factory=dict)
    grace: Duration = Duration(0)
    memory: Quantity | None = None
    share: Annotated[float, msgspec.Meta(gt=0)] = 0.5
    either: int | str = 0
    anything: Any = None


class Picky(Wire, frozen=True):
    size: int = 1

    def __post_init__(self) -> None:
        if self.size > 1:
            raise ValueError("too large")


def test_everything_is_read() -> None:
    value, problems = converted(
        Tree,
        {
            "firstLeaf": {"size": 1, "colour": "green"},
            "leaves": [{"size": 2}],
            "notes": ["a"],
            "named": {"x": {"size": 3}},
            "grace": "1s",
            "memory": "1Ki",
            "share": 2,
            "either": "x",
            "anything": [{}],
        },
    )

    assert problems == []
    assert value == Tree(
        first_leaf=Leaf(size=1, colour="green"),
        leaves=(Leaf(size=2),),
        notes=["a"],
        named={"x": Leaf(size=3)},
        grace=Duration(10**9),
        memory=Quantity.parse("1Ki"),
        share=2.0,
        either="x",
        anything=[{}],
    )


@pytest.mark.parametrize(
    ("wanted", "raw", "problem"),
    [
        pytest.param(Tree, 3, "must be a mapping, got 3", id="no mapping"),
        pytest.param(Tree, {3: 4}, "3: unknown field", id="key that is no string"),
        pytest.param(Tree, {"first_leaf": {}}, "first_leaf: unknown field", id="python spelling"),
        pytest.param(Tree, {"firstLeaf": {}}, "firstLeaf.size: is required", id="required"),
        pytest.param(Tree, {"firstLeaf": {"size": None}}, "firstLeaf.size: is required", id="null"),
        pytest.param(
            Tree,
            {"firstLeaf": {"size": True}},
            "firstLeaf.size: must be an integer, got true",
            id="boolean for a number",
        ),
        pytest.param(
            Tree,
            {"leaves": [{"size": 1}, {"size": 1, "colour": "blue"}]},
            'leaves[1].colour: must be one of "red", "green", got "blue"',
            id="choice",
        ),
        pytest.param(Tree, {"leaves": {}}, "leaves: must be a list, got a mapping", id="no list"),
        pytest.param(
            Tree, {"notes": "abc"}, 'notes: must be a list, got "abc"', id="a string is no list"
        ),
        pytest.param(
            Tree, {"notes": [None]}, "notes[0]: must be a string, got null", id="null in a list"
        ),
        pytest.param(
            Tree, {"named": {"x/y": {}}}, 'named["x/y"].size: is required', id="within a mapping"
        ),
        pytest.param(
            Tree,
            {"named": {1: {"size": 1}}},
            "named[1]: must have a string as its key, got 1",
            id="number as a key",
        ),
        pytest.param(Tree, {"named": []}, "named: must be a mapping, got a list", id="no dict"),
        pytest.param(
            Tree, {"memory": "much"}, 'memory: "much" is not a quantity', id="a type of ours"
        ),
        pytest.param(Tree, {"share": 0}, "share: must be a number > 0, got 0", id="constraint"),
        pytest.param(Tree, {"share": "x"}, 'share: must be a number, got "x"', id="constrained"),
        pytest.param(
            Tree, {"either": 1.5}, "either: must be an integer or a string, got 1.5", id="union"
        ),
        pytest.param(Picky, {"size": 2}, "too large", id="refused by the type itself"),
        pytest.param(str, 5, "must be a string, got 5", id="no struct at all"),
        pytest.param(int, "x" * 81, 'must be an integer, got "' + "x" * 80 + '…"', id="shortened"),
    ],
)
def test_one_problem(wanted: Any, raw: Any, problem: str) -> None:
    assert converted(wanted, raw)[1] == [problem]


def test_what_can_be_read_is_read_around_what_cannot() -> None:
    value, problems = converted(Tree, {"share": "x", "notes": ["kept"], "leaves": [7], "odd": 1})

    assert problems == [
        "odd: unknown field",
        "leaves[0]: must be a mapping, got 7",
        'share: must be a number, got "x"',
    ]
    assert value == Tree(notes=["kept"])


def test_nothing_is_read_without_what_is_required() -> None:
    assert converted(Leaf, {"colour": "green"})[0] is None


def test_a_check_says_nothing_about_what_could_not_be_read() -> None:
    problems = Problems()
    raw = {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 0}, {"name": 1}]}}
    value = convert(FitArgs, raw, "args", problems)
    problems.add("args.scoringStrategy.resources[1]", "odd")

    check(FitArgs(), "args", problems)
    check(value, "args", problems)

    assert [problem.path for problem in problems] == [
        "args.scoringStrategy.resources[1].name",
        "args.scoringStrategy.resources[1]",
    ]


def test_a_check_may_name_a_field_and_its_parent() -> None:
    problems = Problems()

    problems.add_found([Problem("a.b", "small"), Problem("a", "odd"), Problem("ab", "x")])

    assert [problem.path for problem in problems] == ["a.b", "a", "ab"]


def test_paths_that_merely_begin_alike_are_different_places() -> None:
    problems = Problems()
    problems.add("a.bc", "broken")

    problems.add_found(
        Problem(path, "found") for path in ("a.b", "a.bc.d", "a.bc[0]", "a.bcd", "a.bc", "a")
    )

    assert [problem.path for problem in problems] == ["a.bc", "a.b", "a.bcd"]


FIELDS = sorted(
    {
        field.encode_name
        for wanted in (Tree, Leaf, FitArgs, ConfigurationDocument, PluginsDocument)
        for field in msgspec.structs.fields(wanted)
    }
)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just("red")
)
JSON_LIKE = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(
    st.sampled_from(
        [Tree, Leaf, Picky, FitArgs, SpreadArgs, NodeAffinityArgs, ConfigurationDocument]
    ),
    JSON_LIKE,
)
def test_any_input_gives_a_value_of_the_type_or_problems(wanted: Any, raw: Any) -> None:
    value, problems = converted(wanted, raw)

    assert problems or isinstance(value, wanted)
    assert value is None or isinstance(value, wanted)


class StrictLeaf(Leaf, frozen=True, forbid_unknown_fields=True):
    """A leaf of which msgspec, too, refuses unknown fields."""


LEAF_LIKE = st.fixed_dictionaries(
    {},
    optional={"size": st.integers() | JSON_LIKE, "colour": st.just("green"), "odd": JSON_LIKE},
)


@given(LEAF_LIKE)
def test_msgspec_agrees_on_what_is_wrong(raw: dict[str, Any]) -> None:
    value, problems = converted(StrictLeaf, raw)

    try:
        expected = msgspec.convert(raw, StrictLeaf)
    except msgspec.ValidationError:
        assert problems
    else:
        assert value == expected
        assert problems == []
