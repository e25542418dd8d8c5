"""Structured logs: a message and named values, one line per record, as text or JSON.

Names and texts come from the cluster and are not trusted. Every value is quoted, and characters
that could end a line or control a terminal are escaped. So no value can look like another record.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from time import monotonic
from typing import Any, TextIO

# Under this name a record carries its values.
_FIELDS = "moorage_fields"

# Names that a JSON line has of its own.
_RESERVED = frozenset({"ts", "level", "logger", "caller", "msg", "stacktrace"})

_INITIALS = {"DEBUG": "D", "INFO": "I", "WARNING": "W", "ERROR": "E", "CRITICAL": "F"}

#: How long a warning that was logged is not repeated, in seconds.
REPEAT_SECONDS = 60.0
# Different warnings that are remembered; the oldest is forgotten first.
_MOST_REMEMBERED = 1_024

# From this -v on, kube-scheduler's users expect to see what is of interest to developers.
_DEBUG_VERBOSITY = 4


class Format(StrEnum):
    """The format of log lines."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is logged, and how.

    The level is a name of the logging module, in upper or lower case.
    """

    format: Format = Format.TEXT
    level: str = "info"


def level_of(verbosity: int) -> str:
    """Returns the level for the -v flag of Kubernetes' components."""
    return "debug" if verbosity >= _DEBUG_VERBOSITY else "info"


class Log:
    """Logs messages with named values."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, message: str, **fields: object) -> None:
        self._log(logging.DEBUG, message, fields)

    def info(self, message: str, **fields: object) -> None:
        self._log(logging.INFO, message, fields)

    def warning(self, message: str, **fields: object) -> None:
        self._log(logging.WARNING, message, fields)

    def error(self, message: str, **fields: object) -> None:
        self._log(logging.ERROR, message, fields)

    def exception(self, message: str, **fields: object) -> None:
        """Logs an error with the traceback of the exception that is being handled."""
        self._log(logging.ERROR, message, fields, with_traceback=True)

    def _log(
        self,
        level: int,
        message: str,
        fields: Mapping[str, object],
        *,
        with_traceback: bool = False,
    ) -> None:
        if self._logger.isEnabledFor(level):
            # Without arguments, nothing in the message is taken for a placeholder.
            self._logger.log(
                level, message, extra={_FIELDS: fields}, exc_info=with_traceback, stacklevel=3
            )


def make_log(name: str, level: int = logging.NOTSET) -> Log:
    """Makes the log of a part of the program.

    If a level is given, its messages are logged from that level on, whatever the log level is.
    """
    logger = logging.getLogger(name)
    logger.setLevel(level)
    return Log(logger)


def configure(settings: LogSettings, stream: TextIO | None = None) -> None:
    """Sends all logs of the process, also those of libraries, to a stream (stderr) as lines."""
    level = logging.getLevelNamesMapping().get(settings.level.upper())
    if level is None:
        known = ", ".join(sorted(each.lower() for each in _INITIALS))
        raise ValueError(f"log level: must be one of {known}, got {settings.level!r}")
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonLines() if settings.format is Format.JSON else _TextLines())
    handler.addFilter(RepeatFilter())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)


def _fields(record: logging.LogRecord) -> Mapping[str, object]:
    fields = getattr(record, _FIELDS, {})
    return fields if isinstance(fields, Mapping) else {}


def quote(value: object) -> str:
    """Returns a value in double quotes on one line; characters that do not print are escaped."""
    text = json.dumps(value if isinstance(value, str) else str(value), ensure_ascii=False)
    return text if text.isprintable() else "".join(map(_escape, text))


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _show(value: object) -> str:
    """Returns numbers and booleans as they are, everything else in quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if type(value) in (int, float) else quote(value)


class _TextLines(logging.Formatter):
    """Formats as Kubernetes does: I1115 14:03:07.123456 file.py:12] "Message" key="value"."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        initial = _INITIALS.get(record.levelname, "I")
        head = f"{initial}{moment:%m%d %H:%M:%S.%f} {record.filename}:{record.lineno}]"
        parts = [head, quote(record.getMessage())]
        parts += (f"{_key(name)}={_show(value)}" for name, value in _fields(record).items())
        if record.exc_info:
            parts.append(f"stacktrace={quote(self.formatException(record.exc_info))}")
        return " ".join(parts)


def _key(name: str) -> str:
    """Returns the name of a value, in quotes unless it is an identifier."""
    return name if name.isidentifier() else quote(name)


class _JsonLines(logging.Formatter):
    """Formats one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": round(record.created, 6),
            "level": record.levelname.lower(),
            "logger": record.name,
            "caller": f"{record.filename}:{record.lineno}",
            "msg": record.getMessage(),
        }
        for name, value in _fields(record).items():
            line[f"{name}_" if name in _RESERVED else name] = _plain(value)
        if record.exc_info:
            line["stacktrace"] = self.formatException(record.exc_info)
        # All that is not ASCII is escaped, line separators among it.
        return json.dumps(line)


def _plain(value: object) -> object:
    # A number that JSON has no word for would make the line unreadable.
    if isinstance(value, float) and value - value != 0:
        return str(value)
    return value if isinstance(value, str | int | float | None) else str(value)


class RepeatFilter(logging.Filter):
    """Drops a warning or error that was just logged with the same text and values.

    When it is logged again, `repeated` says how often it was dropped.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._clock = clock
        # Handlers lock only what they write.
        self._lock = threading.Lock()
        self._seen: OrderedDict[tuple[str, ...], tuple[float, int]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        with self._lock:
            return self._is_new(record)

    def _is_new(self, record: logging.LogRecord) -> bool:
        fields = _fields(record)
        what = (record.name, record.getMessage(), *(f"{k}={v}" for k, v in fields.items()))
        now = self._clock()
        until, dropped = self._seen.get(what, (now, 0))
        if now < until:
            self._seen[what] = until, dropped + 1
            return False
        if dropped:
            setattr(record, _FIELDS, {**fields, "repeated": dropped})
        self._seen[what] = now + REPEAT_SECONDS, 0
        self._seen.move_to_end(what)
        if len(self._seen) > _MOST_REMEMBERED:
            self._seen.popitem(last=False)
        return True
