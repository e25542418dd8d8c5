"""Semantic versions, and the functions that Kubernetes adds for them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from moorage.cel.functions.function_table import FunctionTable
from moorage.cel.values import UINT_RANGE, CelError, Meter, Opaque

TABLE = FunctionTable()

_IDENTIFIER = re.compile(r"[0-9A-Za-z-]+", re.ASCII)
_PARTS = ("Major", "Minor", "Patch")


@dataclass(frozen=True)
class CelVersion(Opaque):
    """A semantic version without its build metadata, which neither equality nor order see."""

    type_name: ClassVar = "kubernetes.Semver"

    numbers: tuple[int, int, int]
    prerelease: tuple[str, ...]

    def compare(self, other: CelVersion) -> int:
        mine, theirs = self._order(), other._order()
        return (mine > theirs) - (mine < theirs)

    def _order(self) -> tuple[object, ...]:
        """Returns a sort key: a release after its pre-releases, and numbers before words."""
        identifiers = tuple(
            (0, int(each), "") if each.isdigit() else (1, 0, each) for each in self.prerelease
        )
        return self.numbers, not self.prerelease, identifiers


def parse_version(text: str) -> CelVersion:
    """Reads a version; raises CelError in the words of Kubernetes."""
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    rest, _, build = parts[2].partition("+")
    patch, dash, prerelease = rest.partition("-")
    if "+" in parts[2]:
        _check_identifiers(build, "Build meta data")
    numbers = tuple(map(_number, (parts[0], parts[1], patch), _PARTS))
    identifiers = tuple(prerelease.split(".")) if dash else ()
    if dash:
        _check_identifiers(prerelease, "Prerelease")
    for each in identifiers:
        if each.isdigit() and len(each) > 1 and each[0] == "0":
            raise CelError(
                f'Numeric PreRelease version must not contain leading zeroes "{each[:64]}"'
            )
    return CelVersion((numbers[0], numbers[1], numbers[2]), identifiers)


def _number(text: str, part: str) -> int:
    if not re.fullmatch(r"[0-9]{1,20}", text, re.ASCII):
        raise CelError(f'Invalid character(s) found in {part.lower()} number "{text[:64]}"')
    if len(text) > 1 and text[0] == "0":
        raise CelError(f'{part} number must not contain leading zeroes "{text}"')
    if int(text) not in UINT_RANGE:
        raise CelError(f"{part} number is out of range")
    return int(text)


def _check_identifiers(text: str, what: str) -> None:
    for each in text.split("."):
        if not each:
            raise CelError(f"{what} is empty")
        if not _IDENTIFIER.fullmatch(each):
            raise CelError(f'Invalid character(s) found in {what.lower()} "{each[:64]}"')


def _normal(text: str) -> str:
    """Returns a version with all three numbers, without `v` and without leading zeroes."""
    parts = text.removeprefix("v").split(".", 2)
    for place, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[place] = stripped if stripped[:1].isdigit() else "0" + stripped
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        raise CelError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][:3])


@TABLE.takes("semver", str)
@TABLE.takes("semver", str, bool)
def _semver(meter: Meter, text: str, normalize: bool = False) -> CelVersion:
    return parse_version(_normal(text) if normalize else text)


@TABLE.takes("isSemver", str)
@TABLE.takes("isSemver", str, bool)
def _is_semver(meter: Meter, text: str, normalize: bool = False) -> bool:
    try:
        _semver(meter, text, normalize)
    except CelError:
        return False
    return True


TABLE.add_comparisons(CelVersion)


@TABLE.takes("major", CelVersion)
def _major(meter: Meter, version: CelVersion) -> int:
    return version.numbers[0]


@TABLE.takes("minor", CelVersion)
def _minor(meter: Meter, version: CelVersion) -> int:
    return version.numbers[1]


@TABLE.takes("patch", CelVersion)
def _patch(meter: Meter, version: CelVersion) -> int:
    return version.numbers[2]
