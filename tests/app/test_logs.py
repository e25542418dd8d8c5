"""Logs are one line per record, whatever the values are."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moorage.app import logs
from moorage.app.logs import Format, LogSettings, RepeatFilter, level_of, make_log, quote

LOG = make_log("moorage.tests")

FORGED = 'web\nI1115 00:00:00.000000 x.py:1] "Bound pod" pod="evil"'


@pytest.fixture(autouse=True)
def _quiet_again() -> Iterator[None]:
    """Leaves the root logger as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(settings: LogSettings) -> io.StringIO:
    stream = io.StringIO()
    logs.configure(settings, stream)
    return stream


def test_text() -> None:
    stream = logged(LogSettings())
    LOG.info("Bound pod", pod="default/web", attempts=2, seconds=0.5, early=True, node=None)

    line = stream.getvalue()
    assert re.fullmatch(
        r"I\d{4} \d\d:\d\d:\d\d\.\d{6} test_logs\.py:\d+\] "
        r'"Bound pod" pod="default/web" attempts=2 seconds=0\.5 early=true node="None"\n',
        line,
    )


def test_json() -> None:
    stream = logged(LogSettings(Format.JSON))
    LOG.warning("Bound pod", pod="default/web", attempts=2, msg="mine", odd=float("nan"))

    line = json.loads(stream.getvalue())
    assert line["caller"].startswith("test_logs.py:")
    del line["caller"], line["ts"]
    assert line == {
        "level": "warning",
        "logger": "moorage.tests",
        "msg": "Bound pod",
        "pod": "default/web",
        "attempts": 2,
        "msg_": "mine",
        "odd": "nan",
    }


@pytest.mark.parametrize("form", list(Format))
@pytest.mark.parametrize(
    "evil", [FORGED, "a\r\nb", "a\x0bb", "a\x85b", "a\u2028b", "\x1b[2J", "a\u202eb", '"', "\\"]
)
def test_no_value_makes_a_line_of_its_own(form: Format, evil: str) -> None:
    stream = logged(LogSettings(form))
    LOG.info("Bound pod", pod=evil)
    LOG.info(evil)
    # As libraries log.
    logging.getLogger("other").warning("no %s", evil)

    text = stream.getvalue()
    assert len(text.splitlines()) == text.count("\n") == 3
    assert all(line.isprintable() for line in text.splitlines())


@given(st.text())
def test_quoted_text_can_be_read_back(text: str) -> None:
    found = quote(text)

    assert found.isprintable()
    assert found.startswith('"')
    assert found.endswith('"')
    # What JSON has no escape for is written as Python does.
    assert json.loads(re.sub(r"\\U[0-9a-f]{8}", lambda each: _pair(each[0]), found)) == text


def _pair(escape: str) -> str:
    return json.dumps(chr(int(escape[2:], 16)))[1:-1]


def test_a_traceback_is_part_of_its_line() -> None:
    for form in Format:
        stream = logged(LogSettings(form))
        try:
            raise ValueError(FORGED)
        except ValueError:
            LOG.exception("It broke", pod="a")

        (line,) = stream.getvalue().splitlines()
        assert "Traceback" in line


@pytest.mark.parametrize(
    ("level", "seen"),
    [("debug", "diwe"), ("INFO", "iwe"), ("warning", "we"), ("error", "e")],
)
def test_levels(level: str, seen: str) -> None:
    stream = logged(LogSettings(level=level))
    for log, name in ((LOG.debug, "d"), (LOG.info, "i"), (LOG.warning, "w"), (LOG.error, "e")):
        log(name)

    assert re.findall(r'"(.)"', stream.getvalue()) == list(seen)


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be one of critical, debug, .*, got 'loud'"):
        logs.configure(LogSettings(level="loud"))


@pytest.mark.parametrize(("verbosity", "level"), [(0, "info"), (3, "info"), (4, "debug")])
def test_verbosity(verbosity: int, level: str) -> None:
    assert level_of(verbosity) == level


def record(message: str, level: int = logging.WARNING, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("log", level, "file.py", 1, message, (), None)
    made.moorage_fields = fields
    return made


def test_repeated_warnings_are_dropped_for_a_while() -> None:
    now = 0.0
    repeats = RepeatFilter(lambda: now)

    assert repeats.filter(record("Watch failed", kind="Pod"))
    assert not repeats.filter(record("Watch failed", kind="Pod"))
    assert repeats.filter(record("Watch failed", kind="Node"))
    now = 59.9
    assert not repeats.filter(record("Watch failed", kind="Pod"))
    now = 60.0
    again = record("Watch failed", kind="Pod")
    assert repeats.filter(again)
    assert again.moorage_fields == {"kind": "Pod", "repeated": 2}  # type: ignore[attr-defined]
    now = 130.0
    later = record("Watch failed", kind="Pod")
    assert repeats.filter(later)
    assert later.moorage_fields == {"kind": "Pod"}  # type: ignore[attr-defined]


def test_what_is_no_warning_is_never_dropped() -> None:
    repeats = RepeatFilter(lambda: 0.0)

    assert all(repeats.filter(record("Bound pod", logging.INFO)) for _ in range(3))


def test_few_warnings_are_remembered() -> None:
    repeats = RepeatFilter(lambda: 0.0)
    for number in range(2_000):
        repeats.filter(record("Watch failed", pod=number))

    assert repeats.filter(record("Watch failed", pod=0))
    assert not repeats.filter(record("Watch failed", pod=1_999))
