"""A recorded stream of events, replayed: what the engine asked for, byte for byte.

Run as a program it replays one fixed stream and prints a digest of the actions.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterable
from typing import Any

from moorage.engine.actions import BindPod, encode
from moorage.engine.events import Applied, BindingFailed, Event, Removed
from moorage.objects.node import ZONE
from moorage.objects.pod import Pod
from moorage.objects.selector import equality
from moorage.objects.workload import Service
from moorage.world import World
from tests.builders import node, pod
from tests.engine.driver import engine

#: An event and the time at which it happens; None is a step.
Moment = tuple[float, Event | None]


def actions_of(moments: Iterable[Moment]) -> bytes:
    """Replays a stream. Bindings and evictions succeed, and the outcome is told at once."""
    made = engine()
    world = World(made)
    told = bytearray()
    for now, event in moments:
        if event is not None:
            if isinstance(event, Applied) and isinstance(event.object, Pod):
                world.pods[event.object.uid] = event.object
            made.handle(event, now)
            continue
        for action in made.step(now, 3):
            told += encode(action) + b"\n"
            if isinstance(action, BindPod) and len(action.pod.name) % 5 == 0:
                made.handle(BindingFailed(action.pod.uid, "busy"), now)
            else:
                world.perform([action], now)
    return bytes(told)


def stream(seed: int, length: int = 120) -> list[Moment]:
    """A cluster's day: nodes and pods come, change and go."""
    dice = random.Random(seed)
    web = Service(namespace="default", name="web", selector=equality({"app": "web"}))
    moments: list[Moment] = [(0.0, Applied(web))]
    now = 0.0
    for at in range(length):
        now += dice.choice([0.0, 0.5, 3.0, 40.0])
        moments.append((now, dice.choice([_node, _pod, _pod, _pod, _gone])(dice, at)))
        if dice.random() < 0.5:
            moments.append((now, None))
    return [*moments, *((now + 20 * at, None) for at in range(1, 10))]


def rush() -> list[Moment]:
    """Like nodes full of like pods, and important ones that may go to any of them."""
    names = [f"n{at}" for at in range(12)]
    moments: list[Moment] = [(0.0, Applied(node(name, cpu=1))) for name in names]
    moments += [(0.0, Applied(pod(f"low-{name}", node=name, cpu=1))) for name in names]
    for at in range(8):
        moments.append((1.0, Applied(pod(f"urgent{at}", spec={"priority": 5}, cpu=1))))
        moments.append((1.0, None))
    return moments


def _node(dice: random.Random, at: int) -> Event:
    labels = {ZONE: dice.choice("abc"), "disk": dice.choice(["ssd", "hdd"])}
    return Applied(node(f"n{dice.randrange(8)}", labels=labels, cpu=dice.choice([1, 2, 4])))


def _pod(dice: random.Random, at: int) -> Event:
    spread = {
        "maxSkew": 1,
        "topologyKey": dice.choice([ZONE, "disk"]),
        "whenUnsatisfiable": dice.choice(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    away = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "db"}}}
            ]
        }
    }
    gpus = {"requests": {"example.com/a": "1", "example.com/b": "1", "example.com/c": "1"}}
    extras: list[dict[str, Any]] = [
        {},
        {},
        {"topologySpreadConstraints": [spread]},
        {"affinity": away},
        {"containers": [{"name": "main", "resources": gpus}]},
    ]
    extra = dice.choice(extras)
    spec = {"priority": dice.choice([0, 0, 5]), **extra}
    labels = {"app": dice.choice(["web", "db"]), "tier": dice.choice("xy")}
    return Applied(pod(f"p{at}", labels=labels, spec=spec, cpu=dice.choice(["500m", "1"])))


def _gone(dice: random.Random, at: int) -> Event:
    if dice.random() < 0.3:
        return Removed(node(f"n{dice.randrange(8)}"))
    return Removed(pod(f"p{dice.randrange(at + 1)}"))


if __name__ == "__main__":
    streams = [stream(0), stream(1), rush()]
    digest = hashlib.sha256(b"".join(actions_of(each) for each in streams))
    sys.stdout.write(digest.hexdigest())
