"""Durations in Go's notation."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from moorage.config import Duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15s", 15),
        ("1m30s", 90),
        ("500ms", 0.5),
        ("1h2m3s4ms", 3723.004),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("1.s", 1),
        ("-2s", -2),
        ("+2s", 2),
        ("0", 0),
        ("3us", 3e-6),
        ("3\u00b5s", 3e-6),
        ("3\u03bcs", 3e-6),
        ("7ns", 7e-9),
    ],
)
def test_parse(text: str, seconds: float) -> None:
    assert Duration.parse(text).seconds == seconds


@pytest.mark.parametrize("text", ["", "s", "1", "15", "1 s", "1s ", "1d", "1m-3s", ".s", "--1s", 5])
def test_what_is_no_duration(text: str | int) -> None:
    with pytest.raises(ValueError, match="must be a duration such as"):
        Duration.parse(text)


def test_a_duration_fits_64_bits() -> None:
    assert Duration.parse("9223372036854775807ns") == 2**63 - 1
    with pytest.raises(ValueError, match="at most 292 years"):
        Duration.parse("9223372036854775808ns")


@given(st.integers(0, 10**6), st.integers(0, 59), st.integers(0, 999))
def test_parts_add_up(minutes: int, seconds: int, millis: int) -> None:
    text = f"{minutes}m{seconds}s{millis}ms"

    assert Duration.parse(text) == ((minutes * 60 + seconds) * 1000 + millis) * 10**6


def test_text() -> None:
    assert str(Duration.parse("1m30s")) == "90s"
    assert str(Duration.parse("500ms")) == "0.5s"
