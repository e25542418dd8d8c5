"""Reuse changes no decision in which extenders have a say, and a recording replays without them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import pytest

from moorage.config.configuration import API_VERSION, KIND
from moorage.engine.actions import AskExtender, encode
from moorage.engine.events import Applied, Event, ExtenderAnswered
from moorage.engine.extender_answers import FilterAnswer, PreemptAnswer, PrioritizeAnswer
from moorage.objects.decode import from_builtins
from moorage.objects.node import ZONE
from moorage.objects.pod import Pod
from moorage.plugins import REGISTRY
from moorage.record.format import Setup
from moorage.record.recorder import Recorder
from moorage.record.whole_replay import replay
from moorage.world import World
from tests.builders import node_manifest, pod_manifest
from tests.engine.driver import engine, only

EXTENDERS: list[dict[str, Any]] = [
    {"urlPrefix": "http://f", "filterVerb": "f", "preemptVerb": "e", "nodeCacheCapable": True},
    {"urlPrefix": "http://s", "prioritizeVerb": "s", "weight": 3, "filterVerb": "f"},
    {
        "urlPrefix": "http://i",
        "filterVerb": "f",
        "prioritizeVerb": "s",
        "weight": 1,
        "nodeCacheCapable": True,
        "ignorable": True,
        "managedResources": [{"name": "example.com/gpu"}],
    },
]


def chance(*parts: object) -> int:
    return crc32("|".join(map(str, parts)).encode()) % 100


def answer(ask: AskExtender) -> ExtenderAnswered:
    """An answer that depends on the question alone."""
    told = ask.pod.uid, ask.attempt, ask.number
    salt = ask.extender, ask.verb, ask.pod.name
    if chance("fail", *salt) < 5:
        return ExtenderAnswered(*told, failure="out of order")
    if ask.verb == "filter":
        kept = tuple(each for each in ask.nodes if chance(*salt, each) >= 30)
        failed = {each: "no" for each in ask.nodes if chance(*salt, each) < 15}
        names, objects = (kept, None) if ask.extender != 1 else (None, kept)
        return ExtenderAnswered(*told, FilterAnswer(names, objects, failed))
    if ask.verb == "prioritize":
        scores = tuple(chance(*salt, each) % 11 for each in ask.nodes)
        return ExtenderAnswered(*told, PrioritizeAnswer(ask.nodes, scores))
    kept_victims = {name: each for name, each in ask.victims.items() if chance(*salt, name) >= 30}
    return ExtenderAnswered(*told, PreemptAnswer(kept_victims))


def day(seed: int) -> list[dict[str, Any]]:
    """Nodes, then pods of some templates, with nodes that change in between."""
    dice = random.Random(seed)
    found = [some_node(dice, at) for at in range(dice.randint(3, 30))]
    for at in range(60):
        size = dice.choice([1, 1, 2, 3])
        more: dict[str, Any] = {"gpu": 1} if dice.random() < 0.2 else {}
        spec = {"priority": dice.choice([0, 0, 0, 50])}
        labels = {"app": dice.choice("ab")}
        found.append(pod_manifest(f"p{at}", cpu=size, labels=labels, spec=spec, **more))
        if dice.random() < 0.1:
            found.append(some_node(dice, dice.randint(0, 35)))
    return found


def some_node(dice: random.Random, at: int) -> dict[str, Any]:
    labels = {ZONE: f"z{at % 3}"}
    return node_manifest(f"n{at}", cpu=dice.choice([2, 4, 8]), gpu=1, labels=labels)


def decide(seed: int, *, reuse: bool, concurrency: int = 1, path: Path | None = None) -> bytes:
    """All actions of a day. An answer comes two moments after its question."""
    config = {"extenders": EXTENDERS, "extenderConcurrency": concurrency}
    gates = {"EquivalenceCache": reuse, "OpportunisticBatching": reuse}
    made = engine(gates=gates, **config)
    recorder = None if path is None else Recorder(path, setup(config, gates))
    world = World(made)
    story = bytearray()
    now = 0.0
    late: list[AskExtender] = []
    later: list[AskExtender] = []
    for manifest in [*day(seed), *[{}] * 300]:
        now += 0.5
        happened: list[Event] = [answer(ask) for ask in late]
        if manifest:
            item = from_builtins(manifest["kind"], manifest)
            if isinstance(item, Pod):
                world.pods[item.uid] = item
            raw = msgspec.json.encode(manifest)
            happened.append(Applied(item) if recorder is None else recorder.make_event(item, raw))
        for event in happened:
            if recorder is not None:
                recorder.write_event(event, now)
            made.handle(event, now)
        actions = made.step(now, 2) if recorder is None else recorder.step(made, now, 2)
        late, later = later, only(actions, AskExtender)
        story += b"\n".join(map(encode, actions))
        if recorder is None:
            world.perform(actions, now)
    if recorder is not None:
        recorder.close()
    return bytes(story)


def setup(config: dict[str, Any], gates: dict[str, bool]) -> Setup:
    header = {"apiVersion": API_VERSION, "kind": KIND}
    return Setup(config=msgspec.json.encode({**header, **config}).decode(), feature_gates=gates)


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("seed", range(6))
def test_reuse_changes_no_decision(seed: int, concurrency: int) -> None:
    alone = decide(seed, reuse=False, concurrency=concurrency)

    assert alone.count(b"askExtender") > 20
    assert alone.count(b"bindPod") > 5
    assert decide(seed, reuse=True, concurrency=concurrency) == alone


def test_a_recording_is_replayed_without_extenders(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    story = decide(3, reuse=True, path=path)

    result = replay([path], plugins=REGISTRY)

    assert story.count(b"askExtender") > 20
    assert result.counts.difference_count == 0
    assert result.counts.events["outcomes"] > 20
