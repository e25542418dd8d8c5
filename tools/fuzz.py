"""Runs hostile streams until a number of events is reached: `python -m tools.fuzz`."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator

from tests.exactness.test_together import everything
from tests.robustness import fuzz

_REPORT_EVERY = 100


def run_streams(seed: int, most_events: int) -> Iterator[str]:
    """Runs streams from a seed on; yields what to print. The last line tells the failures."""
    using, began = everything(), time.process_time()
    streams = events = actions = failures = 0
    while events < most_events:
        try:
            told = fuzz.run(seed + streams, using)
        except Exception as error:  # noqa: BLE001 - every kind of failure is a finding
            failures += 1
            yield f"seed {seed + streams}: {type(error).__name__}: {error}"
        else:
            events, actions = events + told.events, actions + told.decisions
        streams += 1
        if streams % _REPORT_EVERY == 0:
            yield f"{streams:,} streams, {events:,} events, {time.process_time() - began:.0f} s"
    yield f"{streams:,} streams, {events:,} events, {actions:,} actions, {failures} failures"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, help="how many events at least")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    # NumPy warns of sums that leave their type: here that is a finding.
    warnings.simplefilter("error")
    line = ""
    for line in run_streams(options.seed, options.events):
        print(line, flush=True)
    return 0 if line.endswith(" 0 failures") else 1


if __name__ == "__main__":
    sys.exit(main())
