"""Who refuses which row and why, as it is kept for like pods."""

from __future__ import annotations

import numpy as np
import pytest

from moorage.engine.classes.refusals import Refusals
from moorage.framework.attempt import Filtered, Layer
from moorage.framework.status import Code, Reason
from moorage.framework.verdict import Verdict

CPU = Reason("Insufficient cpu", Code.UNSCHEDULABLE)
MEMORY = Reason("Insufficient memory", Code.UNSCHEDULABLE)
ROWS = np.array([2, 3, 5])


def refuse(plugin: str, *rows: int, reasons: tuple[Reason, ...] = (CPU,)) -> Filtered:
    """Some rows, all refused by one plugin."""
    verdict = Verdict(reasons, np.ones((len(reasons), len(rows)), np.bool_))
    layer = Layer(plugin, verdict, np.ones(len(rows), np.bool_))
    return Filtered(np.array(rows), np.zeros(len(rows), np.bool_), (layer,))


def amend(filtered: Filtered, other: Filtered) -> Filtered:
    """The same rows, but another outcome has the last word."""
    return filtered.replacing(other)


@pytest.mark.parametrize(
    ("said", "is_known"),
    [
        pytest.param(refuse("Fit", 3), True, id="the same"),
        pytest.param(refuse("Fit", 3, reasons=(MEMORY,)), False, id="another reason"),
        pytest.param(refuse("Fit", 3, reasons=(CPU, MEMORY)), False, id="one reason more"),
        pytest.param(refuse("Taint", 3), False, id="another plugin"),
        pytest.param(refuse("Fit", 3, 5), False, id="several rows are not compared"),
        pytest.param(amend(refuse("Taint", 3), refuse("Fit", 3)), True, id="the last word counts"),
        pytest.param(
            amend(refuse("Fit", 3), refuse("Taint", 3)), False, id="the last word differs"
        ),
    ],
)
def test_what_is_said_of_a_row_may_be_known(said: Filtered, is_known: bool) -> None:
    assert Refusals(refuse("Fit", *ROWS.tolist())).say(said) is is_known


def test_a_row_that_another_plugin_refuses_by_now_is_known_as_that() -> None:
    known = Refusals(refuse("Fit", *ROWS.tolist(), reasons=(CPU, MEMORY)))
    known.put(refuse("Fit", 3))
    known.put(refuse("Taint", 5))

    assert known.say(refuse("Fit", 3))
    assert not known.say(refuse("Fit", 5))
    assert known.say(refuse("Taint", 5))
    assert not known.say(refuse("Fit", 2))
