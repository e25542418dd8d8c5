"""A hint that says it tells like pods the same does so."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from msgspec import structs

from moorage.framework.plugin import Plugin
from moorage.framework.wakeups import Resource, Wakeup
from moorage.objects.pod import Pod
from tests.laws.answers import build
from tests.registered import PLUGINS
from tests.strategies import nodes, pods

#: Every hint of a built-in plugin that is alike, with the plugin it belongs to.
ALIKE = [
    pytest.param(kind, at, id=f"{kind.name}-{at}")
    for kind in PLUGINS
    for at, each in enumerate(build(kind).wakeups())
    if each.alike and each.hint is not None
]


def changes(wakeup: Wakeup) -> st.SearchStrategy[tuple[Any, Any]]:
    """An object before and after an event of the kind that is listened to."""
    value: st.SearchStrategy[Any]
    value = nodes("n") if wakeup.event.resource is Resource.NODE else pods("other", "n")
    both = st.tuples(value, value)
    return st.one_of(both, both.map(lambda pair: (None, pair[1])), both.map(lambda p: (p[0], None)))


@pytest.mark.parametrize(("kind", "at"), ALIKE)
@given(waiting=pods(), data=st.data())
def test_like_pods_are_told_the_same(
    kind: type[Plugin], at: int, waiting: Pod, data: st.DataObject
) -> None:
    wakeup = build(kind).wakeups()[at]
    old, new = data.draw(changes(wakeup))
    like = structs.replace(waiting, name="another", uid="another", created=5.0)

    assert told(wakeup, like, old, new) == told(wakeup, waiting, old, new)


def told(wakeup: Wakeup, waiting: Pod, old: Any, new: Any) -> bool | str:
    assert wakeup.hint is not None
    try:
        return bool(wakeup.hint(waiting, old, new))
    except AttributeError as error:
        # An event that this plugin never hears: nothing was before, or nothing is after it.
        return str(error)


def test_most_hints_are_alike() -> None:
    assert len(ALIKE) > 10
