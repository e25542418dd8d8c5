"""Two results of the filters that give the same reasons for every row."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from moorage.framework.attempt import Filtered, Layer
from moorage.framework.status import Code, Reason
from moorage.framework.verdict import Verdict

ROWS = np.arange(3)
CPU, MEMORY = Reason("Insufficient cpu"), Reason("Insufficient memory")


def flags(*rows: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.isin(ROWS, rows)


def layer(reason: Reason = CPU, refused: tuple[int, ...] = (0, 1, 2)) -> Layer:
    return Layer("Fit", Verdict.rejecting(flags(*refused), reason), flags(*refused))


def result(*layers: Layer) -> Filtered:
    return Filtered(ROWS, flags(), layers or (layer(),))


def test_results_that_were_found_anew_say_the_same() -> None:
    assert result().agrees_with(result())
    assert result(layer(), layer(MEMORY)).agrees_with(result(layer(), layer(MEMORY)))


@pytest.mark.parametrize(
    "other",
    [
        result(layer(MEMORY)),
        result(layer(Reason("Insufficient cpu", Code.UNRESOLVABLE))),
        result(layer(refused=(0, 1))),
        result(replace(layer(), decided=flags(0))),
        result(replace(layer(), plugin="Other")),
        result(layer(), layer(MEMORY)),
        replace(result(), feasible=flags(1)),
        replace(result(), rows=ROWS.copy()),
        replace(result(), amended=(result(),)),
    ],
    ids=["reason", "code", "rows", "first", "plugin", "layers", "feasible", "array", "amended"],
)
def test_results_that_differ_in_anything_do_not(other: Filtered) -> None:
    assert not result().agrees_with(other)
    assert not other.agrees_with(result())
