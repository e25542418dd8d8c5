"""Durations and timestamps. Devices have none, so that times of day in zones are left out."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from moorage.cel.functions.function_table import FunctionTable
from moorage.cel.functions.operators import whole
from moorage.cel.values import CelDuration, CelError, CelTimestamp, Meter

TABLE = FunctionTable()

_SECOND = 10**9
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6}
_UNITS |= {"s": _SECOND, "m": 60 * _SECOND, "h": 3600 * _SECOND}
_DURATION = re.compile(r"([+-]?)(?:0|((?:[0-9]{1,12}(?:\.[0-9]{1,9})?(?:[nuµμm]?s|m|h))+))")
_TERM = re.compile(r"([0-9]+)(?:\.([0-9]+))?([nuµμm]?s|m|h)")
_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII
)


@TABLE.takes("duration", str)
def _duration(meter: Meter, text: str) -> CelDuration:
    match = _DURATION.fullmatch(text[:256])
    if match is None or len(text) > 256:
        raise CelError(f'time: invalid duration "{text[:64]}"')
    total = 0
    for number, fraction, unit in _TERM.findall(match[2] or ""):
        places = 10 ** len(fraction)
        total += int(number + fraction) * _UNITS[unit] // places
    return CelDuration(whole(-total if match[1] == "-" else total))


@TABLE.takes("timestamp", str)
def _timestamp(meter: Meter, text: str) -> CelTimestamp:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise CelError(f'parsing time "{text[:64]}": not in the format of RFC 3339')
    zone = "+00:00" if match[3] == "Z" else match[3]
    try:
        moment = datetime.fromisoformat(match[1] + zone)
    except ValueError as error:
        raise CelError(f'parsing time "{text[:64]}": {error}') from None
    seconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    return CelTimestamp(seconds * _SECOND + int((match[2] or "").ljust(9, "0")))


@TABLE.takes("_+_", CelDuration, CelDuration)
def _add_durations(meter: Meter, left: CelDuration, right: CelDuration) -> CelDuration:
    return CelDuration(whole(left.nanoseconds + right.nanoseconds))


@TABLE.takes("_-_", CelDuration, CelDuration)
def _subtract_durations(meter: Meter, left: CelDuration, right: CelDuration) -> CelDuration:
    return CelDuration(whole(left.nanoseconds - right.nanoseconds))


@TABLE.takes("_+_", CelTimestamp, CelDuration)
def _later(meter: Meter, moment: CelTimestamp, duration: CelDuration) -> CelTimestamp:
    return CelTimestamp(moment.nanoseconds + duration.nanoseconds)


@TABLE.takes("_+_", CelDuration, CelTimestamp)
def _later_swapped(meter: Meter, duration: CelDuration, moment: CelTimestamp) -> CelTimestamp:
    return _later(meter, moment, duration)


@TABLE.takes("_-_", CelTimestamp, CelDuration)
def _earlier(meter: Meter, moment: CelTimestamp, duration: CelDuration) -> CelTimestamp:
    return CelTimestamp(moment.nanoseconds - duration.nanoseconds)


@TABLE.takes("_-_", CelTimestamp, CelTimestamp)
def _between(meter: Meter, left: CelTimestamp, right: CelTimestamp) -> CelDuration:
    return CelDuration(whole(left.nanoseconds - right.nanoseconds))


@TABLE.takes("getFullYear", CelTimestamp)
def _full_year(meter: Meter, moment: CelTimestamp) -> int:
    try:
        return (datetime(1970, 1, 1) + timedelta(seconds=moment.nanoseconds // _SECOND)).year
    except OverflowError:
        raise CelError("timestamp overflow") from None
