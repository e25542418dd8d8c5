"""What is worked out of a failed attempt."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from moorage.framework.attempt import Failed, Filtered, PreFiltered


def test_what_follows_from_the_outcome_is_worked_out_once_for_the_same_outcome() -> None:
    rows = np.array([0, 1])
    first, second = (Filtered(rows, np.zeros(2, np.bool_), ()) for _ in range(2))
    failed = Failed(PreFiltered({}), first, 2)
    worked_out: list[str] = []

    def ask(of: Failed, text: str) -> str:
        return of.digest("text", lambda: worked_out.append(text) or text)  # type: ignore[func-returns-value]

    assert ask(failed, "first") == "first"
    assert ask(replace(failed, attempt=3), "again") == "first"
    assert ask(replace(failed, filtered=second), "second") == "second"
    assert worked_out == ["first", "second"]
