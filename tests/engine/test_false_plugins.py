"""A plugin that breaks a promise is named, and other pods are placed all the same."""

from __future__ import annotations

import inspect

import pytest

from moorage.engine.actions import Report
from moorage.framework.plugin import Plugin
from tests import false_plugins
from tests.builders import node, pod
from tests.engine.driver import bindings, driver, notes, only

FALSE = [
    each
    for _, each in inspect.getmembers(false_plugins, inspect.isclass)
    if each.__module__ == false_plugins.__name__ and hasattr(each, "name")
]
#: Plugins without a usable signature: their pods are placed, each decided alone.
UNSIGNED = ("Unhashable", "Unstable")


def test_there_are_ten_of_them() -> None:
    assert len(FALSE) >= 10


@pytest.mark.parametrize("kind", FALSE, ids=lambda each: each.name)
def test_it_is_named_and_other_pods_are_placed(kind: type[Plugin]) -> None:
    run = driver(node("a"), node("b"), pod("there", node="a"), plugins=(kind,))
    run.apply(pod("meant", labels={"false": kind.name}), pod("other", labels={"false": "no"}))
    actions = run.step(2)

    said = [*notes(actions), *(each.message for each in only(actions, Report))]
    assert any(kind.name in each for each in said), said
    placed = {"meant", "other"} if kind.name in UNSIGNED else {"other"}
    assert bindings(actions).keys() == placed
