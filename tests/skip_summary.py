"""What pytest says at the end about skipped tests: how many there are for each reason.

By itself it repeats a reason for each place in the tests at which one was skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

_PREFIX = "Skipped: "


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the reasons at the end of a run, also of one that is quiet."""
    reports = terminalreporter.stats.get("skipped", ())
    for line in summarize(report.longrepr[2] for report in reports):
        terminalreporter.write_line(line, yellow=True)


def summarize(reasons: Iterable[str]) -> Iterator[str]:
    """Yields a line for each reason, the most frequent first; nothing if nothing was skipped."""
    counts = Counter(reason.removeprefix(_PREFIX) for reason in reasons)
    if counts:
        yield f"Skipped {counts.total()} tests:"
    for reason, count in counts.most_common():
        yield f"  {count:4} {reason}"
