"""A replay from beginning to end: which engine, which lines, where to stop."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mooring import __version__
from mooring.app.recorded import STOPPED, Line, Setup
from mooring.config import Configuration, FeatureGates, default, load
from mooring.config.duration import Duration
from mooring.documents.errors import InputError
from mooring.engine import Engine
from mooring.engine.registry import registry
from mooring.framework.plugin import Registry
from mooring.framework.profile import known_plugins

from .recording import Segment, open_recording
from .replay import Outcome, Replay
from .replay_story import Chronicle, Moment, Waiting


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a replay ends before the recording does."""

    seconds: float = math.inf
    decisions: float = math.inf

    def __bool__(self) -> bool:
        return self != Stop()

    def is_before(self, replay: Replay, at: float) -> bool:
        """Whether a line of that time comes too late."""
        if replay.decisions >= self.decisions:
            return True
        began = replay.outcome.began
        return began is not None and at - began > self.seconds


@dataclass(slots=True)
class Replayed:
    """What came of a replay."""

    segments: list[Segment]
    outcome: Outcome
    decisions: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    #: The pod whose story is told, if one is.
    pod: str = ""
    story: list[Moment] = field(default_factory=list)
    verdicts: dict[str, int] = field(default_factory=dict)
    #: Who waits at the end; None if nobody asked.
    waiting: list[Waiting] | None = None
    #: Whether only placements and evictions were compared.
    placements_only: bool = False


def stop_at(text: str) -> Stop:
    """Reads a number of decisions or a duration; an empty text does not stop."""
    if not text:
        return Stop()
    if text.isascii() and text.isdigit():
        return Stop(decisions=int(text))
    try:
        return Stop(seconds=Duration.parse(text).seconds)
    except ValueError as error:
        raise InputError("--until", f"{error}, or a number of decisions") from None


def replay(
    paths: Iterable[Path],
    *,
    config: Path | None = None,
    plugins: Registry | None = None,
    stop: Stop | None = None,
    pod: str = "",
) -> Replayed:
    """Replays a recording. Raises InputError or ConfigError if it cannot be used."""
    segments = open_recording(paths)
    stop = stop or Stop()
    first = segments[0]
    made = engine(first, config, registry() if plugins is None else plugins)
    from_middle = first.header.segment > 0
    chronicle = Chronicle(made, pod)
    placements_only = config is not None or from_middle
    run = Replay(made, placements_only=placements_only, listener=chronicle)
    for segment, number, line, is_known in _lines(segments):
        if stop.is_before(run, run.outcome.now if line.at is None else line.at):
            break
        if is_known:
            run.begin(segment, number, line)
        else:
            run.take(segment, number, line)
    done = Replayed(segments, run.outcome, run.decisions, run.seconds)
    done.notes = [*_notes(segments)]
    if not stop:
        done.notes += _end_notes(segments[-1], run.outcome.end)
    done.placements_only = placements_only
    done.pod = pod
    done.story = chronicle.story
    done.verdicts = chronicle.verdicts()
    if stop:
        done.waiting = list(chronicle.waiting())
    return done


def engine(segment: Segment, config: Path | None, plugins: Registry) -> Engine:
    """The engine that made the recording, or one with another configuration."""
    setup = segment.header.setup
    known = known_plugins(plugins)
    gates = FeatureGates.parse(setup.feature_gates, f"{segment.path}: setup.featureGates")
    text, source = _config(setup, segment, config)
    configuration: Configuration
    if text is None:
        configuration = default(known, gates)
    else:
        configuration = load(text, known=known, source=source, gates=gates)
    return Engine(configuration, plugins, setup.reuse)


def _config(setup: Setup, segment: Segment, config: Path | None) -> tuple[str | bytes | None, str]:
    if config is None:
        return setup.config, f"{segment.path}: setup.config"
    try:
        return config.read_bytes(), str(config)
    except OSError as error:
        raise InputError(config, (error.strerror or str(error)).lower()) from error


def _lines(segments: list[Segment]) -> Iterator[tuple[Segment, int, Line, bool]]:
    """All lines, and whether they tell what was known when the first segment began."""
    for at, segment in enumerate(segments):
        head = segment.header.objects
        for number, line in segment.lines():
            is_head = number <= head + 1
            # Who has read the segment before knows its head already.
            if not is_head or at == 0:
                yield segment, number, line, is_head
        if segment.is_cut and at < len(segments) - 1:
            raise InputError(segment.path, "ends early, but is not the last segment")


def _notes(segments: list[Segment]) -> Iterator[str]:
    first = segments[0]
    if first.header.version != __version__:
        told = f"was made by Mooring {first.header.version}, this is {__version__}"
        yield f"{first.path} {told}: decisions may differ for that reason alone"
    if first.header.segment:
        told = f"begins in the middle of a run (segment {first.header.segment})"
        yield (
            f"{first.path} {told}: what the scheduler remembered then besides objects is not known"
        )


def _end_notes(last: Segment, end: str) -> Iterator[str]:
    if last.is_cut or not end:
        yield f"{last.path} ends early: the scheduler did not stop in order, or the file was cut"
    elif end != STOPPED:
        yield f"{last.path} ends before the scheduler did: {end}"
