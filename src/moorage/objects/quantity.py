"""Kubernetes quantities: exact numbers of nano-units, rounded up only when read."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import ClassVar, Self

from moorage.documents.errors import describe

MAX_INT64 = 2**63 - 1

NANOS_PER_UNIT = 10**9
NANOS_PER_MILLI = 10**6
MAX_NANOS = MAX_INT64 * NANOS_PER_UNIT

#: The largest amount that is counted; what is larger counts as this much. It is far beyond any
#: machine (64 Pi bytes), and a hundredfold of it, by which shares are worked out, fits 64 bits.
MOST_AMOUNT = 2**56

_SHAPE = re.compile(
    r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d{1,18}))?", re.ASCII
)
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}

# Beyond this power of ten every non-zero mantissa is out of range anyway; the clamp keeps
# "1e999999999" from building a number with a billion digits.
_FARTHEST_EXPONENT = 400


class Quantity(int):
    """A quantity in nano-units, the finest step Kubernetes keeps."""

    noun: ClassVar = "a quantity"

    @classmethod
    def parse(cls, text: str | int | float) -> Self:
        """Reads any notation of the API; raises ValueError naming the text it cannot read."""
        return cls(_nanos(text if isinstance(text, str) else repr(text)))

    @property
    def value(self) -> int:
        """In whole units, rounded up."""
        return units(self)

    @property
    def milli(self) -> int:
        """In thousandths, rounded up."""
        return millis(self)


def units(nanos: int) -> int:
    """Nano-units as whole units, rounded up."""
    return -(-nanos // NANOS_PER_UNIT)


def millis(nanos: int) -> int:
    """Nano-units as thousandths, rounded up and held within 64 bits."""
    return min(-(-nanos // NANOS_PER_MILLI), MAX_INT64)


def clamp(amount: int) -> int:
    """Returns an amount as it is counted: neither negative nor larger than `MOST_AMOUNT`."""
    return max(0, min(amount, MOST_AMOUNT))


@lru_cache(maxsize=65_536)
def _nanos(text: str) -> int:
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise ValueError(f"{describe(text)} is not a quantity")
    sign, digits, binary, decimal, exponent = match.groups()
    whole, _, fraction = digits.partition(".")
    mantissa = int(whole + fraction or "0")
    power = -len(fraction) + 9
    if binary:
        mantissa *= _BINARY[binary]
    elif decimal:
        power += _DECIMAL[decimal]
    elif exponent:
        power += max(-_FARTHEST_EXPONENT, min(int(exponent), _FARTHEST_EXPONENT))
    nanos = mantissa * 10**power if power >= 0 else -(-mantissa // 10**-power)
    return min(nanos, MAX_NANOS) * (-1 if sign == "-" else 1)


def format_quantity(nanos: int) -> str:
    """Returns a quantity in the shortest notation that is exact."""
    for size, suffix in ((NANOS_PER_UNIT, ""), (NANOS_PER_MILLI, "m")):
        whole, rest = divmod(int(nanos), size)
        if not rest:
            return f"{whole}{suffix}"
    return f"{int(nanos)}n"
