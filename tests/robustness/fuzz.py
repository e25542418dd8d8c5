"""Hostile streams through engines with and without reuse; `tools/fuzz.py` runs many of them.

No exception may come out of `handle` or `step`, the engines must ask for the same, the columns must
be what the objects say, and at the end the room that is taken must be what the API server's pods
take.
"""

from __future__ import annotations

from dataclasses import dataclass

from moorage.config import Configuration
from moorage.engine import Engine
from tests.exactness.four_ways import FourWays
from tests.exactness.streams import Shape
from tests.robustness.hostile_world import HostileWorld

SHAPE = Shape(nodes=(3, 16), turns=60, coexisting=True, disks=True)

# After so many turns the columns are compared with the objects.
_CHECK_EVERY = 20


@dataclass(frozen=True, slots=True)
class Told:
    """How much a run has seen."""

    events: int
    decisions: int


def run(seed: int, using: Configuration, shape: Shape = SHAPE) -> Told:
    """Runs a stream. What it finds is raised, with the seed and the turn."""
    world = HostileWorld(seed, shape)
    ways = FourWays(using, recounts=False)
    # Two engines are enough here: what lies between them is the business of `tests.exactness`.
    for name in ("classes", "batches"):
        del ways.engines[name]
    turn = decisions = 0
    try:
        ways.handle(world.opening(), world.now)
        for turn in range(shape.turns):
            ways.handle(world.turn(), world.now)
            actions = ways.step(world.now, world.random.choice([1, 1, 3, 10]))
            decisions += len(actions)
            ways.handle(world.perform(actions), world.now)
            if turn % _CHECK_EVERY == 0:
                ways.check()
        _end(world, ways)
    except Exception as error:
        error.add_note(f"in turn {turn} of the hostile stream with seed {seed}")
        raise
    return Told(world.told, decisions)


def _end(world: HostileWorld, ways: FourWays) -> None:
    """The API server is quiet and has told everything: nobody may count what is not there."""
    ways.handle(world.list_everything(), world.now)
    ways.check()
    placed = {
        manifest["metadata"]["uid"]
        for manifest in world.all("Pod").values()
        if manifest["spec"].get("nodeName")
        and manifest.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    }
    for name, engine in ways.engines.items():
        _account(name, engine, placed)


def _account(name: str, engine: Engine, placed: set[str]) -> None:
    # A pod on its way to a node is counted there, and the API server does not know of it yet.
    counted = {uid for uid in engine.cluster.pods if engine.placement(uid) is None}
    assert not engine.caught, f"{name}: the fence caught {dict(engine.caught)}"
    leaked, missed = counted - placed, placed - set(engine.cluster.pods)
    assert not leaked, f"{name}: counted, but not there: {sorted(leaked)[:5]}"
    assert not missed, f"{name}: there, but not counted: {sorted(missed)[:5]}"
