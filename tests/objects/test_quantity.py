"""Quantities: every notation, exact to the nano-unit, rounded up when read."""

from __future__ import annotations

import math
from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moorage.objects.quantity import MAX_INT64, Quantity, millis, units

SUFFIXES = {
    "": Fraction(1),
    **{suffix: Fraction(10) ** power for suffix, power in zip("num", (-9, -6, -3), strict=True)},
    **{suffix: Fraction(10) ** (3 * at) for at, suffix in enumerate("kMGTPE", start=1)},
    **{suffix + "i": Fraction(2) ** (10 * at) for at, suffix in enumerate("KMGTPE", start=1)},
}


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        pytest.param("0", 0, 0, id="nothing"),
        pytest.param("2", 2, 2000, id="a whole number"),
        pytest.param("+2", 2, 2000, id="a plus sign"),
        pytest.param("0.5", 1, 500, id="a fraction"),
        pytest.param(".5", 1, 500, id="without a leading zero"),
        pytest.param("5.", 5, 5000, id="with a trailing dot"),
        pytest.param("007", 7, 7000, id="leading zeros"),
        pytest.param("100m", 1, 100, id="milli"),
        pytest.param("1500m", 2, 1500, id="value rounds up"),
        pytest.param("1u", 1, 1, id="milli rounds up"),
        pytest.param("1n", 1, 1, id="the finest step"),
        pytest.param("0.1n", 1, 1, id="finer than the finest step rounds up to it"),
        pytest.param("1k", 1000, 10**6, id="kilo"),
        pytest.param("1Ki", 1024, 1024 * 1000, id="kibi"),
        pytest.param("1.5Gi", 3 * 2**29, 3 * 2**29 * 1000, id="a fraction of a binary unit"),
        pytest.param("0.0000000001Ki", 1, 1, id="a tiny fraction of a binary unit"),
        pytest.param("1e3", 1000, 10**6, id="an exponent"),
        pytest.param("1E3", 1000, 10**6, id="an upper-case exponent"),
        pytest.param("1E", 10**18, MAX_INT64, id="exa is no exponent"),
        pytest.param("1e+2", 100, 10**5, id="a signed exponent"),
        pytest.param("12e-1", 2, 1200, id="a negative exponent"),
        pytest.param("1e-400", 1, 1, id="next to nothing is not nothing"),
        pytest.param("1e-999999999", 1, 1, id="an exponent far out"),
        pytest.param("0e999999999", 0, 0, id="zero stays zero"),
        pytest.param("-1", -1, -1000, id="less than nothing"),
        pytest.param("-1500m", -1, -1500, id="rounding up is towards zero below it"),
        pytest.param("9223372036854775807", MAX_INT64, MAX_INT64, id="the largest"),
        pytest.param("9223372036854775808", MAX_INT64, MAX_INT64, id="one more is capped"),
        pytest.param("8Ei", MAX_INT64, MAX_INT64, id="binary units are capped"),
        pytest.param("1e999999999", MAX_INT64, MAX_INT64, id="exponents are capped"),
        pytest.param(3, 3, 3000, id="a JSON integer"),
        pytest.param(0.1, 1, 100, id="a JSON number"),
        pytest.param(1e20, MAX_INT64, MAX_INT64, id="a JSON number with an exponent"),
    ],
)
def test_parse(text: str | int | float, value: int, milli: int) -> None:
    parsed = Quantity.parse(text)

    assert (parsed.value, parsed.milli) == (value, milli)


BAD = "abc 1x 1KI 1ki 1K Mi . - 1.2.3 1e 1e1.5 --1 1,5 0x10 1_000 1e3Mi 1mm ٣ inf nan"


@pytest.mark.parametrize("text", [*BAD.split(), "", " ", "1 ", " 1", "1\n"])
def test_what_is_not_a_quantity_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity") as raised:
        Quantity.parse(text)

    assert f'"{text}"' in str(raised.value)


@st.composite
def written(draw: st.DrawFn) -> tuple[str, Fraction]:
    """A number in some notation, and what it means."""
    sign = draw(st.sampled_from(["", "+", "-"]))
    whole = draw(st.integers(0, 10**21))
    digits = draw(st.text("0123456789", max_size=14))
    number = f"{whole}.{digits}" if digits or draw(st.booleans()) else str(whole)
    exponent = draw(st.none() | st.integers(-30, 30))
    if exponent is None:
        suffix = draw(st.sampled_from(sorted(SUFFIXES)))
        factor = SUFFIXES[suffix]
    else:
        suffix = f"{draw(st.sampled_from('eE'))}{exponent}"
        factor = Fraction(10) ** exponent
    amount = Fraction(f"{whole}.{digits}0") * factor
    return sign + number + suffix, -amount if sign == "-" else amount


@given(written())
def test_every_notation_agrees_with_fractions(example: tuple[str, Fraction]) -> None:
    text, amount = example
    nanos = min(math.ceil(abs(amount) * 10**9), MAX_INT64 * 10**9)
    expected = -nanos if amount < 0 else nanos

    parsed = Quantity.parse(text)

    assert parsed == expected
    assert parsed.value == math.ceil(Fraction(expected, 10**9))
    assert parsed.milli == min(math.ceil(Fraction(expected, 10**6)), MAX_INT64)


@given(st.integers(0, 10**22))
def test_rounding_up_is_the_least_that_is_enough(nanos: int) -> None:
    assert (units(nanos) - 1) * 10**9 < nanos <= units(nanos) * 10**9
    assert millis(nanos) == MAX_INT64 or (millis(nanos) - 1) * 10**6 < nanos
