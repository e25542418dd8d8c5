"""Indexes of a job as its status writes them: "0,3-5,7"."""

from __future__ import annotations

from collections.abc import Iterable


def written(indexes: Iterable[int]) -> str:
    """Indexes in order, three or more that follow each other as a range."""
    runs: list[list[int]] = []
    for index in sorted(set(indexes)):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs
    )


def read(text: str) -> set[int]:
    """The indexes that a text names; what cannot be read names none."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), int(last or first) + 1))
    return found
