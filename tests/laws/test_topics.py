"""A pod whose hint agrees shares a topic with the event, so that looking up topics loses nobody."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from moorage.framework.plugin import Plugin
from moorage.framework.wakeups import Action, Resource, Wakeup
from moorage.objects.pod import Pod
from moorage_policies.disk_io.disk_io_resource import KIND
from tests.device_builders import device_class
from tests.extended_fakes import custom
from tests.laws.answers import build
from tests.registered import PLUGINS
from tests.storage_builders import pvc
from tests.strategies import NAMESPACES, nodes, pods

#: Every hint of a built-in plugin that has topics, with the plugin it belongs to.
TOPICAL = [
    pytest.param(kind, at, id=f"{kind.name}-{at}")
    for kind in PLUGINS
    for at, each in enumerate(build(kind).wakeups())
    if each.topics is not None
]

CLAIMS = ["bound", "late", "missing", "waiting-v"]


def objects(kind: type[Plugin], wakeup: Wakeup) -> st.SearchStrategy[Any]:
    """Objects of the kind that is listened to."""
    resource = wakeup.event.resource
    if resource is Resource.NODE:
        return nodes("n")
    if resource is Resource.PERSISTENT_VOLUME_CLAIM:
        return st.builds(pvc, st.sampled_from(CLAIMS), namespace=st.sampled_from(NAMESPACES))
    if resource is Resource.DEVICE_CLASS:
        served = st.sampled_from(["", "cpu", "memory", "example.com/gpu"])
        return st.builds(device_class, st.just("c"), extendedResourceName=served)
    if resource == KIND.resource:
        capacity = st.fixed_dictionaries(
            {"read": st.sampled_from(["1", "100"]), "write": st.sampled_from(["1", "100"])}
        )
        spec = st.fixed_dictionaries(
            {"nodeName": st.sampled_from(["n", "m"]), "capacity": capacity}
        )
        return st.builds(lambda spec: custom(KIND, "n", spec=spec), spec)
    return st.one_of(pods("other", "n", focus=kind.name), pods("other", "", focus=kind.name))


def changes(kind: type[Plugin], wakeup: Wakeup) -> st.SearchStrategy[tuple[Any, Any]]:
    """An object before and after an event that is listened to."""
    value = objects(kind, wakeup)
    action = wakeup.event.action
    found: list[st.SearchStrategy[tuple[Any, Any]]] = []
    if action & Action.UPDATE:
        found += [st.tuples(value, value), value.map(lambda same: (same, same))]
    if Action.ADD in action:
        found.append(st.tuples(st.none(), value))
    if Action.DELETE in action:
        found.append(st.tuples(value, st.none()))
    return st.one_of(found)


@pytest.mark.parametrize(("kind", "at"), TOPICAL)
@settings(max_examples=30)
@given(data=st.data())
def test_whoever_is_helped_shares_a_topic(kind: type[Plugin], at: int, data: st.DataObject) -> None:
    wakeup = build(kind).wakeups()[at]
    waiting = data.draw(pods("waiting", focus=kind.name))
    old, new = data.draw(changes(kind, wakeup))

    assert not helps(wakeup, waiting, old, new) or share(wakeup, waiting, old, new)


def helps(wakeup: Wakeup, waiting: Pod, old: Any, new: Any) -> bool:
    return wakeup.hint is None or bool(wakeup.hint(waiting, old, new))


def share(wakeup: Wakeup, waiting: Pod, old: Any, new: Any) -> bool:
    assert wakeup.topics is not None
    about = as_set(wakeup.topics.of_event(old, new))
    wanted = None if wakeup.topics.of_pod is None else as_set(wakeup.topics.of_pod(waiting))
    if about is None or wanted is None:
        return about is None or bool(about)
    return bool(about & wanted)


def as_set(topics: Iterable[Hashable] | None) -> set[Hashable] | None:
    return None if topics is None else set(topics)


def test_most_events_about_pods_have_topics() -> None:
    assert len(TOPICAL) > 15
