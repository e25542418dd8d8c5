"""The driver of `moorage.testing`; every engine is checked when a test ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.engine import Engine
from moorage.framework.plugin import Plugin
from moorage.objects.kinds import Object
from moorage.testing.driver import (
    Driver,
    bindings,
    conditions,
    evictions,
    make_engine,
    nominations,
    notes,
    only,
)
from tests import builders

__all__ = [
    "Driver",
    "bindings",
    "conditions",
    "driver",
    "engine",
    "engines",
    "evictions",
    "nominations",
    "notes",
    "only",
]

#: The engines of the running test: none of them may have caught an exception when it ends.
engines: list[Engine] = []


def engine(
    *plugins: type[Plugin], gates: Mapping[str, bool] | None = None, **config: Any
) -> Engine:
    """Makes an engine as `moorage.testing` does, and has it checked when the test ends."""
    made = make_engine(*plugins, gates=gates, **config)
    builders.made.append(made.cluster)
    engines.append(made)
    return made


def driver(*objects: Object, plugins: tuple[type[Plugin], ...] = (), **config: Any) -> Driver:
    """A driver whose engine has heard of these objects."""
    made = Driver(engine(*plugins, **config))
    made.apply(*objects)
    return made
