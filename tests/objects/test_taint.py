"""Taints and tolerations: every operator."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.objects.placement_rules import Taint, Toleration, is_tolerated

TAINT = Taint(key="gpu", effect="NoSchedule", value="big")


def toleration(**written: str) -> Toleration:
    return msgspec.convert(written, Toleration)


@pytest.mark.parametrize(
    ("written", "accepts"),
    [
        pytest.param({"key": "gpu", "value": "big"}, True, id="Equal goes without saying"),
        pytest.param({"key": "gpu", "operator": "Equal", "value": "big"}, True, id="Equal"),
        pytest.param({"key": "gpu", "value": "small"}, False, id="another value"),
        pytest.param({"key": "gpu"}, False, id="no value is the empty value"),
        pytest.param({"key": "cpu", "value": "big"}, False, id="another key"),
        pytest.param({"key": "gpu", "operator": "Exists"}, True, id="Exists"),
        pytest.param({"key": "cpu", "operator": "Exists"}, False, id="Exists, another key"),
        pytest.param({"operator": "Exists"}, True, id="everything"),
        pytest.param({"value": "big"}, True, id="any key with that value"),
        pytest.param({"operator": "Exists", "effect": "NoSchedule"}, True, id="the effect"),
        pytest.param({"operator": "Exists", "effect": "NoExecute"}, False, id="another effect"),
        pytest.param({"key": "gpu", "operator": "Lt", "value": "9"}, False, id="Lt of a text"),
    ],
)
def test_tolerates(written: dict[str, str], accepts: bool) -> None:
    assert toleration(**written).tolerates(TAINT) is accepts
    assert is_tolerated(TAINT, (toleration(key="other"), toleration(**written))) is accepts


@pytest.mark.parametrize(
    ("operator", "ours", "theirs", "accepts"),
    [
        ("Lt", "10", "9", True),
        ("Lt", "10", "10", False),
        ("Lt", "10", "11", False),
        ("Gt", "10", "11", True),
        ("Gt", "10", "10", False),
        ("Gt", "10", "9", False),
        ("Gt", "-5", "-4", True),
        ("Lt", "0", "-1", True),
        ("Gt", "+1", "2", False),
        ("Gt", "01", "2", False),
        ("Gt", "1", "02", False),
        ("Gt", "1", "", False),
        ("Gt", "", "1", False),
        ("Gt", "-0", "1", False),
        ("Gt", "0", "9223372036854775807", True),
        ("Gt", "0", "9223372036854775808", False),
        ("Lt", "9", "1.5", False),
    ],
)
def test_comparisons(operator: str, ours: str, theirs: str, accepts: bool) -> None:
    taint = Taint(key="level", effect="NoSchedule", value=theirs)
    compared = toleration(key="level", operator=operator, value=ours)

    assert compared.tolerates(taint, compares=True) is accepts
    assert not compared.tolerates(taint)


def test_nobody_tolerates_nothing() -> None:
    assert not is_tolerated(TAINT, ())


@pytest.mark.parametrize("written", [{"operator": "In"}, {"effect": "Never"}])
def test_unknown_words_are_refused(written: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        toleration(**written)
