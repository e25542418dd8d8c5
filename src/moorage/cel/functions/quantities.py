"""Quantities, and the functions that Kubernetes adds for them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from moorage.cel.functions.function_table import FunctionTable
from moorage.cel.functions.operators import whole
from moorage.cel.values import INT_RANGE, CelError, Meter, Opaque

TABLE = FunctionTable()

_SHAPE = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]{1,3})")
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_NANO = -9
_MOST_DIGITS = 18
_MOST_BINARY = INT_RANGE[-1]


@dataclass(frozen=True, eq=False)
class CelQuantity(Opaque):
    """The number `digits` times ten to the power of `scale`, as Kubernetes holds it.

    It holds small numbers in 64 bits (`fast`), others as decimals. Some functions fail for these.
    """

    type_name: ClassVar = "kubernetes.Quantity"

    digits: int
    scale: int
    fast: bool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CelQuantity) and self.compare(other) == 0

    __hash__ = None  # type: ignore[assignment]

    def compare(self, other: CelQuantity) -> int:
        return _sign(self._over(other) - other._over(self))

    def plus(self, other: CelQuantity, sign: int = 1) -> CelQuantity:
        digits = self._over(other) + sign * other._over(self)
        fast = self.fast and other.fast and digits in INT_RANGE
        if not other.digits:
            return self
        if not self.digits:
            return CelQuantity(sign * other.digits, other.scale, other.fast)
        return CelQuantity(digits, min(self.scale, other.scale), fast)

    def _over(self, other: CelQuantity) -> int:
        """Returns the digits at the finer of both scales."""
        return int(self.digits * 10 ** (self.scale - min(self.scale, other.scale)))

    def integer(self) -> int | None:
        """Returns the number, if Kubernetes holds it as a whole number of 64 bits."""
        if not self.fast or self.scale < 0:
            return None
        value = self.digits * 10**self.scale
        return value if value in INT_RANGE else None


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def parse_quantity(text: str) -> CelQuantity:
    """Reads any notation of the API; raises CelError in the words of Kubernetes."""
    match = _SHAPE.fullmatch(text)
    if match is None or not text or not (match[2] or match[3]):
        raise CelError(
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign, number, fraction, suffix = match[1], match[2].lstrip("0") or "0", match[3] or "", match[4]
    digits = int((number + fraction)[:1000])
    if len(number + fraction) > 1000:
        raise CelError("unable to parse numeric part of quantity")
    if sign == "-":
        digits = -digits
    if suffix in _BINARY:
        return _binary(digits, _BINARY[suffix], len(number), len(fraction))
    return _decimal(digits, _exponent(suffix) - len(fraction), len(number) + len(fraction))


def _exponent(suffix: str) -> int:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    if match := _EXPONENT.fullmatch(suffix):
        return int(match[1])
    raise CelError("unable to parse quantity's suffix")


def _binary(digits: int, exponent: int, number: int, fraction: int) -> CelQuantity:
    precise = 15 - number - int(exponent * 0.3) - 1 >= 0
    digits <<= exponent
    if not fraction:
        bounded = max(-_MOST_BINARY, min(digits, _MOST_BINARY))
        return CelQuantity(bounded, 0, precise and bounded == digits)
    bound = _MOST_BINARY * 10**fraction
    return _round_to_nano(max(-bound, min(digits, bound)), -fraction)


def _decimal(digits: int, scale: int, length: int) -> CelQuantity:
    if length <= _MOST_DIGITS and scale >= _NANO:
        return CelQuantity(digits, scale, True)
    return _round_to_nano(digits, scale)


def _round_to_nano(digits: int, scale: int) -> CelQuantity:
    """Rounds digits finer than nano away from zero."""
    if scale < _NANO:
        divisor = 10 ** (_NANO - scale)
        digits = _sign(digits) * -(-abs(digits) // divisor)
        scale = _NANO
    return CelQuantity(digits, scale, False)


@TABLE.takes("quantity", str)
def _quantity(meter: Meter, text: str) -> CelQuantity:
    return parse_quantity(text)


@TABLE.takes("isQuantity", str)
def _is_quantity(meter: Meter, text: str) -> bool:
    try:
        parse_quantity(text)
    except CelError:
        return False
    return True


@TABLE.takes("sign", CelQuantity)
def _sign_of(meter: Meter, quantity: CelQuantity) -> int:
    return _sign(quantity.digits)


@TABLE.takes("isInteger", CelQuantity)
def _is_integer(meter: Meter, quantity: CelQuantity) -> bool:
    return quantity.integer() is not None


@TABLE.takes("asInteger", CelQuantity)
def _as_integer(meter: Meter, quantity: CelQuantity) -> int:
    value = quantity.integer()
    if value is None:
        raise CelError("cannot convert value to integer")
    return value


@TABLE.takes("asApproximateFloat", CelQuantity)
def _as_float(meter: Meter, quantity: CelQuantity) -> float:
    return float(quantity.digits) * float(f"1e{quantity.scale}")


@TABLE.takes("add", CelQuantity, CelQuantity)
def _add(meter: Meter, left: CelQuantity, right: CelQuantity) -> CelQuantity:
    return left.plus(right)


@TABLE.takes("add", CelQuantity, int)
def _add_int(meter: Meter, left: CelQuantity, right: int) -> CelQuantity:
    return left.plus(CelQuantity(whole(right), 0, True))


@TABLE.takes("sub", CelQuantity, CelQuantity)
def _subtract(meter: Meter, left: CelQuantity, right: CelQuantity) -> CelQuantity:
    return left.plus(right, sign=-1)


@TABLE.takes("sub", CelQuantity, int)
def _subtract_int(meter: Meter, left: CelQuantity, right: int) -> CelQuantity:
    return left.plus(CelQuantity(whole(right), 0, True), sign=-1)


TABLE.add_comparisons(CelQuantity)
