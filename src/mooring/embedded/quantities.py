"""Quantities as the API server writes them: the largest suffix that leaves a whole number."""

from __future__ import annotations

import re
from functools import lru_cache

from mooring.objects.quantity import NANOS_PER_UNIT, Quantity, units

_DECIMAL = {18: "E", 15: "P", 12: "T", 9: "G", 6: "M", 3: "k", 0: "", -3: "m", -6: "u", -9: "n"}
_BINARY = {60: "Ei", 50: "Pi", 40: "Ti", 30: "Gi", 20: "Mi", 10: "Ki"}
_EXPONENT = re.compile(r"[\d.][eE][+-]?\d")

# Smaller numbers are written without a binary suffix.
_LEAST_BINARY = 1024


@lru_cache(maxsize=65_536)
def canonical(text: str) -> str:
    """The quantity in its canonical form; raises ValueError naming a text that is none."""
    nanos = int(Quantity.parse(text))
    if text.endswith("i") and abs(nanos) >= _LEAST_BINARY * NANOS_PER_UNIT:
        return _binary(units(nanos))
    return _decimal(nanos, exponents=_EXPONENT.search(text) is not None)


def _binary(value: int) -> str:
    for power, suffix in _BINARY.items():
        whole, rest = divmod(value, 2**power)
        if rest == 0:
            return f"{whole}{suffix}"
    return str(value)


def _decimal(nanos: int, *, exponents: bool) -> str:
    if nanos == 0:
        return "0"
    power = next(each for each in _DECIMAL if nanos % 10 ** (each + 9) == 0)
    whole = nanos // 10 ** (power + 9)
    if exponents:
        return f"{whole}e{power}" if power else str(whole)
    return f"{whole}{_DECIMAL[power]}"
