"""All pods that a recording tells of, and the cluster as it was at the end."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mooring.engine import Engine
from mooring.engine.events import Applied, Event
from mooring.framework.plugin import Registry
from mooring.objects.pod import Pod

from .reader import open_recording
from .replay import make_engine, read_lines
from .replayer import Replayer, ReplayListener


class SeenPods(ReplayListener):
    """Keeps every pod in the form in which it first waited, else in which it was first seen."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}

    def on_event(self, at: float, event: Event) -> None:
        if isinstance(event, Applied) and isinstance(event.object, Pod):
            self.pods.setdefault(event.object.uid, event.object)


def read_pods(
    paths: Iterable[Path], config: Path | None, plugins: Registry
) -> tuple[Engine, list[Pod]]:
    """Replays a recording. Raises InputError or ConfigError if it cannot be used."""
    segments = open_recording(paths)
    first = segments[0]
    engine = make_engine(first, config, plugins)
    seen = SeenPods()
    is_beside = first.header.setup.is_beside
    run = Replayer(engine, placements_only=True, listener=seen, is_beside=is_beside)
    for segment, number, line, is_known in read_lines(segments):
        (run.begin if is_known else run.take)(segment, number, line)
    return engine, list(seen.pods.values())
