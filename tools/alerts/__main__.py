"""`python -m tools.alerts`: run the tests of the alert rules, by promtool too where it is there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from .rule_tests import run_tests

TESTS = Path(__file__).parents[2] / "deploy" / "monitoring" / "alerts.test.yaml"
RULES = TESTS.with_name("alerts.yaml")


def main() -> int:
    """Prints what is wrong; returns the exit code."""
    problems = list(run_tests(TESTS))
    for problem in problems:
        print(problem)
    promtool = shutil.which("promtool")
    if promtool is None:
        print("promtool is not installed: the rules were run by our own checker alone")
    elif not _ask(promtool):
        return 1
    return 1 if problems else 0


def _ask(promtool: str) -> bool:
    """Whether promtool finds nothing wrong with the rules and their tests."""
    checks = ("check", RULES), ("test", TESTS)
    asked = [
        subprocess.run([promtool, verb, "rules", str(file)], check=False) for verb, file in checks
    ]
    return not any(each.returncode for each in asked)


if __name__ == "__main__":
    sys.exit(main())
