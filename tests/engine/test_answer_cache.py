"""What is kept for like pods is bounded in bytes, over all profiles."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass

from moorage.config import load_mapping
from moorage.engine.classes.answer_cache import AnswerCache, Key
from moorage.engine.classes.classes import ClassSettings
from moorage.engine.classes.statistics import Flush, Statistics
from moorage.engine.engine import Engine
from moorage.engine.events import Applied, Removed
from moorage.framework.profile import known_plugins
from moorage.plugins import REGISTRY
from tests.builders import node, pod


@dataclass
class Kept:
    """A value that says whether it was dropped."""

    is_closed: bool = False

    def close(self) -> None:
        self.is_closed = True


def test_the_least_recently_used_makes_room() -> None:
    cache, ours, theirs = AnswerCache(100), Statistics(), Statistics()
    one, two, three = Kept(), Kept(), Kept()
    cache.put(Key("a", 1), one, 40, ours)
    cache.put(Key("b", 1), two, 40, theirs)
    assert cache.find(Key("a", 1)) is one
    cache.put(Key("a", 2), three, 40, ours)

    assert cache.find(Key("b", 1)) is None
    assert [each.is_closed for each in (one, two, three)] == [False, True, False]
    assert [cache.find(Key("a", at)) for at in (1, 2)] == [one, three]
    assert (ours.flushes, theirs.flushes) == ({}, {Flush.FULL: 1})
    cache.discard(Key("a", 1))
    cache.discard(Key("a", 1))
    assert cache.bytes == 40


def test_a_value_larger_than_all_room_is_kept_alone() -> None:
    cache, statistics = AnswerCache(100), Statistics()
    cache.put(Key("a", 1), Kept(), 40, statistics)
    cache.put(Key("a", 2), Kept(), 4_000, statistics)

    assert cache.keys_of("a") == [Key("a", 2)]
    cache.put(Key("a", 3), Kept(), 40, statistics)
    assert cache.bytes == 40


def test_a_value_that_grows_is_counted_anew() -> None:
    cache, statistics = AnswerCache(100), Statistics()
    for size in (10, 90, 20):
        cache.put(Key("a", 1), Kept(), size, statistics)

    assert (cache.bytes, cache.bytes_of("a"), cache.bytes_of("b")) == (20, 20, 0)


def test_what_nobody_asked_for_is_dropped() -> None:
    cache, statistics = AnswerCache(100), Statistics()
    cache.put(Key("a", 1), Kept(), 10, statistics)
    cache.put(Key("a", 2), Kept(), 10, statistics)
    cache.sweep("a")
    cache.find(Key("a", 2))
    cache.sweep("a")

    assert cache.keys_of("a") == [Key("a", 2)]
    assert statistics.flushes == {Flush.UNUSED: 1}
    cache.forget("a")
    assert len(cache) == cache.bytes == 0


def engine_with(most_bytes: int) -> Engine:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": name} for name in ("default-scheduler", "other")],
    }
    engine = Engine(
        load_mapping(raw, known=known_plugins(REGISTRY)),
        REGISTRY,
        ClassSettings(most_bytes=most_bytes),
    )
    for at in range(200):
        engine.handle(Applied(node(f"n{at}")), 0.0)
    return engine


def decide_many(engine: Engine, count: int, *, huge: bool = False) -> None:
    """Pods of two profiles of which no two are alike; huge ones fit nowhere."""
    for at in range(count):
        spec = {"schedulerName": ("default-scheduler", "other")[at % 2]}
        each = pod(f"p{at}", cpu=f"{1 + at}m", gpu=1 if huge else 0, spec=spec)
        engine.handle(Applied(each), 0.0)
        engine.step(0.0)
        engine.handle(Removed(each), 0.0)


def test_profiles_share_the_room() -> None:
    engine = engine_with(2 * 2**20)
    decide_many(engine, 60)

    kept = [len(each) for each in engine.classes.values()]
    assert sum(kept) < 30
    assert min(kept) > 3
    assert engine.answers.bytes <= engine.answers.most_bytes
    assert sum(each.bytes for each in engine.classes.values()) == engine.answers.bytes
    flushes = [each.statistics.flushes[Flush.FULL] for each in engine.classes.values()]
    assert sum(flushes) == 60 - sum(kept)


def test_failures_take_room_too() -> None:
    engine = engine_with(2**18)
    decide_many(engine, 60, huge=True)

    assert 1 <= len(engine.answers) < 30
    assert engine.answers.bytes <= engine.answers.most_bytes


def test_classes_take_no_more_than_is_told() -> None:
    engine = engine_with(2**30)
    decide_many(engine, 4)
    tracemalloc.start()
    try:
        before, told = tracemalloc.get_traced_memory()[0], engine.answers.bytes
        decide_many(engine, 60)
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

    assert taken < engine.answers.bytes - told
