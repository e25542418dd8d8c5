"""Selectors of devices beyond the recorded cases: rules of Kubernetes, bounds, odd input."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from moorage.cel import DeviceView, Version, compile_device_expression
from moorage.cel.device_expression import MOST_STEPS, DeviceExpression
from tests.cel.recorded_cases import ask

GPU = DeviceView(
    "gpu.example.com",
    (
        ("model", "A100"),
        ("index", 1),
        ("healthy", True),
        ("version", Version("1.10.2")),
        ("rack.example.com/row", "r1"),
    ),
    (("memory", "40Gi"),),
)


def answer(expression: str, device: DeviceView = GPU) -> bool | str:
    """The answer, or the text of the error at run time."""
    selector = compile_device_expression(expression)
    assert not selector.problem, selector.problem
    return ask(selector, device)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param('device.attributes["rack.example.com"].row == "r1"', True, id="domain"),
        pytest.param('device.attributes["gpu.example.com"].index == 1.0', True, id="cross type"),
        pytest.param("1 < 2.5 && 2u < 3 && 1.5 <= 2u", True, id="orders across types"),
        pytest.param('quantity("100Ti").isInteger()', False, id="large binary is a decimal"),
        pytest.param('quantity("1Ti").isInteger()', True, id="small binary is whole"),
        pytest.param('quantity("1000m").isInteger()', False, id="thousandths are not whole"),
        pytest.param('quantity("1.5k").asInteger() == 1500', True, id="scaled up"),
        pytest.param('quantity("8Ei") == quantity("9223372036854775807")', True, id="capped"),
        pytest.param('quantity("0.1n") == quantity("1n")', True, id="rounded up to nano"),
        pytest.param('quantity("1").add(quantity("1m")).isInteger()', False, id="sum"),
        pytest.param('quantity("1").sub(1).isInteger()', True, id="difference of whole"),
        pytest.param('semver("v1.02", true) == semver("1.2.0")', True, id="normalized"),
        pytest.param('semver("1.0.0-2").isLessThan(semver("1.0.0-10"))', True, id="numeric part"),
        pytest.param('semver("1.0.0-a").isLessThan(semver("1.0.0-a.1"))', True, id="longer"),
        pytest.param('isSemver("1.0.0-01") || isSemver("1.0.0-")', False, id="bad prerelease"),
        pytest.param('"A100".find("([A-Z])[0-9]") == "A1"', True, id="find with a group"),
        pytest.param('"a1b22".findAll("[0-9]+", 1) == ["1"]', True, id="findAll with a limit"),
        pytest.param('"a".matches(device.driver + "[")', "invalid", id="pattern of run time"),
        pytest.param("cel.bind(x, 1 / 0, true)", True, id="an error that nobody reads"),
        pytest.param("[0, 1].exists(x, 1 / x == 1)", True, id="an error before a match"),
        pytest.param("[0, 2].exists(x, 1 / x == 1)", "division by zero", id="and no match"),
        pytest.param("-7 / 2 == -3 && -7 % 2 == -1", True, id="division towards zero"),
        pytest.param("[1, 2].sum() == 3 && [2u].sum() == 2u", True, id="sums"),
        pytest.param('{"a": 1}.transformMap(k, v, v + 1) == {"a": 2}', True, id="transformMap"),
        pytest.param("[1, 2, 3].sortBy(x, -x) == [3, 2, 1]", True, id="sortBy"),
        pytest.param("[1, 2].first().value() + [1, 2].last().value() == 3", True, id="ends"),
        pytest.param("optional.ofNonZeroValue(0).hasValue()", False, id="zero is nothing"),
        pytest.param(
            '{"a": 1}.transformMapEntry(k, v, {k + "b": v}) == {"ab": 1}', True, id="map of entries"
        ),
        pytest.param("[?optional.none(), 1] == [1]", True, id="optional element"),
        pytest.param('{?"a": optional.none()} == {}', True, id="optional entry"),
        pytest.param("optional.none().or(optional.of(1)).value() == 1", True, id="or"),
        pytest.param('ip("::1").isLoopback() && isIP("::ffff:1.2.3.4")', False, id="mapped"),
        pytest.param('cidr("10.1.0.0/16").containsCIDR("10.1.2.0/24")', True, id="blocks"),
        pytest.param('duration("90s") == duration("1m30s")', True, id="durations"),
        pytest.param(
            'timestamp("2026-01-01T00:00:00Z") - duration("1s") < '
            'timestamp("2026-01-01T01:00:00+01:00")',
            True,
            id="timestamps",
        ),
        pytest.param('"%s-%d-%x".format(["a", 3, 255]) == "a-3-ff"', True, id="format"),
        pytest.param("has(device.driver)", True, id="has"),
        pytest.param(
            "!has( device . capacity ) || has(device.attributes) == false",
            False,
            id="has with spaces",
        ),
        pytest.param(
            "[1].all(x, has(device.allowMultipleAllocations) && has({'x': x}.x))",
            True,
            id="has in a loop",
        ),
        pytest.param("has(device.driver) && 'has(device.x)' != ''", True, id="has beside a text"),
    ],
)
def test_rules(expression: str, expected: bool | str) -> None:
    found = answer(expression)

    assert found is expected or (isinstance(found, str) and found.startswith(str(expected)))


def test_an_unreadable_version_fails_every_expression() -> None:
    device = DeviceView("gpu.example.com", (("version", Version("1.x")),))

    assert answer("true", device) == (
        "attribute version: parse semantic version: No Major.Minor.Patch elements found"
    )


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        pytest.param("device.driver ==", "compilation failed", id="syntax"),
        pytest.param("device.nothing", "compilation failed", id="unknown field"),
        pytest.param("1", "must evaluate to bool or the unknown type, not int", id="type"),
        pytest.param("a" * 10_241, "the expression is longer than 10240 bytes", id="length"),
        pytest.param('"\ud800" == ""', "the expression is not valid Unicode", id="surrogate"),
        pytest.param('bytes("a") == b"a"', "the function bytes is not supported", id="bytes"),
        pytest.param(
            'timestamp("2026-01-01T00:00:00Z").getFullYear("UTC") == 2026',
            "the function getFullYear is not supported with 2 arguments",
            id="time zone",
        ),
        pytest.param('"".matches("[")', "invalid matches argument", id="pattern"),
        pytest.param("has(device.nothing)", "compilation failed", id="has an unknown field"),
        pytest.param(
            "[{'a': 1}].all(device, has(device.driver))",
            "the function has is not supported for device.driver here",
            id="has in a loop over others",
        ),
        pytest.param(
            "cel.bind(device, {'a': 1}, has(device.driver))",
            "the function has is not supported for device.driver here",
            id="has of another value",
        ),
        pytest.param(
            "has(device /* the */ .driver) || 'has(device.driver)' == ''",
            "compilation failed",
            id="no comment of CEL",
        ),
        pytest.param(
            "has(device // the\n .driver) && 'has(device.driver)' != ''",
            "the function has is not supported for device.driver here",
            id="has with a comment, and a text like it",
        ),
        pytest.param("1" + "+1" * 40 + " == 1", "compilation failed", id="nesting"),
        pytest.param(
            "optional.of(1)" + ".optMap(x, x)" * 30 + ".hasValue()",
            "the functions optMap and optFlatMap occur more than 6 times",
            id="doubling",
        ),
    ],
)
def test_problems(expression: str, problem: str) -> None:
    assert compile_device_expression(expression).problem.startswith(problem)


NUMBERS = "[" + ", ".join(["1"] * 100) + "]"


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(f"{NUMBERS}.all(a, {NUMBERS}.all(b, {NUMBERS}.all(c, true)))", id="loops"),
        pytest.param("lists.range(9223372036854775807).size() == 1", id="range"),
        pytest.param("lists.range(30000).distinct().size() == 1", id="distinct"),
        pytest.param(
            "".join(f"cel.bind(a{n + 1}, {f'a{n} + a{n}' if n else '[1]'}, " for n in range(20))
            + "a20 == a20"
            + ")" * 20,
            id="doubling lists",
        ),
        pytest.param(
            "".join(f"cel.bind(a{n + 1}, {f'[a{n}, a{n}]' if n else '[1]'}, " for n in range(20))
            + "a20 == a20"
            + ")" * 20,
            id="doubling pairs",
        ),
        pytest.param(
            "".join(
                f"""cel.bind(a{n + 1}, {f"a{n}.replace('x', a{n})" if n else "'xxxx'"}, """
                for n in range(8)
            )
            + "a8 == ''"
            + ")" * 8,
            id="growing texts",
        ),
        pytest.param(f'"{"a" * 4000}".matches("{"(a*)*" * 900}b")', id="pattern"),
    ],
)
def test_the_work_is_bounded(expression: str) -> None:
    assert answer(expression) == f"the evaluation takes more than {MOST_STEPS} steps"


def test_a_bound_cannot_be_hidden_by_an_operator() -> None:
    assert answer("lists.range(99999).size() == 1 || true") == (
        f"the evaluation takes more than {MOST_STEPS} steps"
    )


def test_attributes_that_are_read() -> None:
    expression = compile_device_expression(
        'device.attributes["a.example"].x == 1 && device.attributes["b.example"]["y"] == 2 && '
        'device.attributes["a.example"].?z.orValue(1) == 1 && has(device.attributes["a.example"].x)'
    )

    assert expression.attributes == ("a.example/x", "b.example/y", "a.example/z")


def test_selectors_are_compiled_once() -> None:
    assert compile_device_expression("true") is compile_device_expression("true")


OPERANDS = st.sampled_from(
    """\
1
2u
1.5
"a"
true
null
[1]
{"a": 1}
device
device.attributes
device.attributes["gpu.example.com"]
device.attributes["gpu.example.com"].index
device.attributes["x"][?"y"]
device.capacity["gpu.example.com"].memory
quantity("1")
semver("1.2.3")
duration("1s")
optional.of(1)
dyn(1)
dyn([1])
dyn("a")
dyn(quantity("1"))
dyn(optional.none())
dyn(device.attributes)
""".splitlines()
)
SHAPES = st.sampled_from(
    """\
{0} == {1}
{0} < {1}
{0} + {1} == {0}
{0} in {1}
{0}[{1}] == {0}
!{0}
{0} && {1}
{0} ? {1} : {0}
{0}.size() == {1}
{0}.all(x, x == {1})
{0}.map(x, {1}) == [{0}]
[?{0}] == {1}
{{{0}: {1}}} == {0}
{{?{0}: {1}}} == {0}
{0}.orValue({1})
{0}.x == {1}
has({0}.x)
{0}.?x.hasValue()
{0}[?{1}].hasValue()
type({0}) == int
{0}.indexOf({1}) == 0
{0}.exists(k, v, v == {1})
{0}.split({1}) == []
int({0}) == 1
string({0}) == {1}
{0}.contains({1})
{0}.add({1}) == {0}
{0}.compareTo({1}) == 0
'%s'.format([{0}]) == {1}
{0}.max() == {1}
{0}.sort() == {1}
{0}.join({1}) == ''
{0}.transformMap(k, v, {1}) == {{}}
sets.contains({0}, {1})
{0}.flatten() == {1}
""".splitlines()
)


@settings(max_examples=100)
@given(SHAPES, OPERANDS, OPERANDS)
def test_any_expression_has_an_answer_or_an_error(shape: str, left: str, right: str) -> None:
    selector = DeviceExpression(shape.format(left, right))

    assert selector.problem or ask(selector, GPU) != ""
