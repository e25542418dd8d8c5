"""No test fails because the machine is slow: what a test may wait for is set in one place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent

#: What tests must not write, and what to write instead.
FORBIDDEN = {
    r"(?<!-)\bdeadline=": "the profile of tests/conftest.py has no deadline for examples",
    r"suppress_health_check=\[(?!\*settings\(\)\.suppress_health_check,)": (
        "[*settings().suppress_health_check, …] keeps what tests/conftest.py suppresses"
    ),
    r"--timeout=\d{2,}": "nothing: tests/embedded/kubectl.py gives kubectl the patience it needs",
    r"\bClientSession\(": "open_session of tests/patience.py: by itself aiohttp waits five minutes",
    r"\.launch\(|\bbrowser\.new_(page|context)\(": (
        "open_browser and open_context of tests/browsers.py: Playwright waits half a minute"
    ),
    r"(?<!-)\btimeout=\d{2,}": "PATIENCE_SECONDS of tests/patience.py",
    r"--leader-elect-renew-deadline=": "tests/live/lease_options.py",
}
#: The places that are meant.
MEANT = {"conftest.py", "patience.py", "browsers.py", "lease_options.py", Path(__file__).name}


def find_places(pattern: str) -> Iterator[str]:
    for path in sorted(TESTS.rglob("*.py")):
        text = path.read_text()
        for found in () if path.name in MEANT else re.finditer(pattern, text):
            yield f"{path.relative_to(TESTS)}:{1 + text.count(chr(10), 0, found.start())}"


@pytest.mark.parametrize("pattern", FORBIDDEN)
def test_no_test_has_a_limit_of_its_own(pattern: str) -> None:
    assert list(find_places(pattern)) == [], f"write instead: {FORBIDDEN[pattern]}"


def test_examples_may_be_slow_and_large() -> None:
    assert settings().deadline is None
    assert {HealthCheck.too_slow, HealthCheck.data_too_large} <= {*settings().suppress_health_check}
