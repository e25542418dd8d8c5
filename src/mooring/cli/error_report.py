"""How errors are reported: one line for the user, and the exit code."""

from __future__ import annotations

import sys
import traceback

from mooring.documents.errors import ConfigError, MooringError

from .rendering import plain

BAD_INPUT = 2

# EX_SOFTWARE of sysexits.h.
INTERNAL = 70


def report(error: Exception, *, debug: bool) -> int:
    """Prints an error on standard error and returns the exit code."""
    lines = _input_errors(error)
    if lines:
        for text in lines:
            print(plain(text), file=sys.stderr)
        return BAD_INPUT
    if debug:
        traceback.print_exception(error)
    hint = "" if debug else " (run `mooring --debug ...` or set MOORING_DEBUG=1 for the traceback)"
    text = plain(f"{type(error).__name__}: {error}")
    print(f"mooring: internal error: {text}{hint}", file=sys.stderr)
    return INTERNAL


def _input_errors(error: Exception) -> list[str]:
    """Returns what is wrong with the user's input; nothing if the error is Mooring's own."""
    if isinstance(error, ConfigError):
        return [f"{error.source}: {problem}" for problem in error.problems]
    if isinstance(error, MooringError):
        return [str(error)]
    if isinstance(error, ModuleNotFoundError) and _is_left_out(error.name or ""):
        return [f"this install has no {error.name}: an image for production leaves it out"]
    if isinstance(error, OSError) and error.filename is not None:
        return [f"{error.filename}: {(error.strerror or str(error)).lower()}"]
    return []


def _is_left_out(module: str) -> bool:
    return module.startswith(("mooring.embedded", "mooring.demo"))
