"""/statusz and /flagz: what this process is, and the flags with which it was started.

Both pages are for people. Their form is that of Kubernetes' components.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

import mooring
from mooring.config import FeatureGates

_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility "
    "guarantees and is for debugging purposes only."
)

_PATHS = ("/configz", "/healthz", "/livez", "/metrics", "/metrics/resources", "/readyz")


def make_pages(
    gates: FeatureGates, flags: Mapping[str, object], clock: Callable[[], datetime] | None = None
) -> dict[str, Callable[[], str]]:
    """Returns the pages by path, without those whose feature gate is off.

    The uptime counts from this call.
    """
    now = clock or (lambda: datetime.now(UTC))
    started = now()
    pages: dict[str, Callable[[], str]] = {}
    if gates["ComponentStatusz"]:
        pages["/statusz"] = lambda: write_statusz(
            started, now(), gates.version.name, (*_PATHS, *pages)
        )
    if gates["ComponentFlagz"]:
        pages["/flagz"] = lambda: write_flagz(flags)
    return pages


def write_statusz(started: datetime, now: datetime, emulated: str, paths: Iterable[str]) -> str:
    """Writes since when the process runs, its version, and the paths that it serves."""
    minutes, seconds = divmod(int((now - started).total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    lines = (
        f"Started: {started:%a %b %e %H:%M:%S UTC %Y}",
        f"Up: {hours} hr {minutes:02} min {seconds:02} sec",
        f"Python version: {platform.python_version()}",
        f"Binary version: {mooring.__version__}",
        f"Emulation version: {emulated}",
        f"Paths: {' '.join(sorted(paths))}",
    )
    return _write_page("statusz", lines)


def write_flagz(flags: Mapping[str, object]) -> str:
    """Writes every flag with its value, sorted by name."""
    return _write_page("flags", (f"{name}={value}" for name, value in sorted(flags.items())))


def _write_page(title: str, lines: Iterable[str]) -> str:
    return "\n".join(("", f"mooring {title}", _WARNING, "", *lines, ""))
