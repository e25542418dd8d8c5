"""Replays a recording from beginning to end: which engine, which lines, where to stop."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from moorage import __version__
from moorage.config import Configuration, FeatureGates, default, load
from moorage.config.duration import Duration
from moorage.config.kubernetes_versions import KubernetesVersion, read_version
from moorage.documents.errors import InputError
from moorage.engine import Engine
from moorage.engine.registry import registry
from moorage.framework.plugin import Registry
from moorage.framework.profile import known_plugins
from moorage.world.shadow_report import ShadowReport

from .format import STOPPED, RecordLine, Setup
from .pod_story import PodStory, StoryEntry, WaitingPod
from .reader import Segment, open_recording
from .replayer import ReplayCounts, Replayer


@dataclass(frozen=True, slots=True)
class ReplayLimit:
    """Where a replay ends before the recording does."""

    seconds: float = math.inf
    decisions: float = math.inf

    def __bool__(self) -> bool:
        return self != ReplayLimit()

    def is_before(self, replay: Replayer, at: float) -> bool:
        """Whether the limit comes before a line of that time."""
        if replay.decisions >= self.decisions:
            return True
        began = replay.counts.began
        return began is not None and at - began > self.seconds


@dataclass(slots=True)
class ReplayResult:
    """The result of a replay."""

    segments: list[Segment]
    counts: ReplayCounts
    decisions: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    #: The pod whose story is wanted, if any.
    pod: str = ""
    story: list[StoryEntry] = field(default_factory=list)
    #: The pods that wait at the end; None if not asked for.
    waiting: list[WaitingPod] | None = None
    #: Whether only placements and evictions were compared.
    placements_only: bool = False
    #: How the placements of another scheduler compare, if one decided.
    beside: ShadowReport | None = None


def parse_limit(text: str) -> ReplayLimit:
    """Reads a number of decisions or a duration; an empty text means no limit."""
    if not text:
        return ReplayLimit()
    if text.isascii() and text.isdigit():
        return ReplayLimit(decisions=int(text))
    try:
        return ReplayLimit(seconds=Duration.parse(text).seconds)
    except ValueError as error:
        raise InputError("--until", f"{error}, or a number of decisions") from None


@dataclass(frozen=True, slots=True)
class OtherSettings:
    """The settings of a replay that differ from those of the recording."""

    config: Path | None = None
    version: KubernetesVersion | None = None
    #: The feature gates that are switched.
    gates: Mapping[str, bool] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self != OtherSettings()


def replay(
    paths: Iterable[Path],
    *,
    other: OtherSettings | None = None,
    plugins: Registry | None = None,
    limit: ReplayLimit | None = None,
    pod: str = "",
) -> ReplayResult:
    """Replays a recording as it was, or with other settings.

    Raises InputError or ConfigError if it cannot be used.
    """
    segments = open_recording(paths)
    limit = limit or ReplayLimit()
    first = segments[0]
    other = other or OtherSettings()
    made = make_engine(first, registry() if plugins is None else plugins, other)
    from_middle = first.header.segment > 0
    story = PodStory(made, pod)
    placements_only = bool(other) or from_middle
    run = Replayer(
        made,
        placements_only=placements_only,
        listener=story,
        is_beside=first.header.setup.is_beside,
    )
    for segment, number, line, is_known in read_lines(segments):
        if limit.is_before(run, run.counts.now if line.at is None else line.at):
            break
        if is_known:
            run.begin(segment, number, line)
        else:
            run.take(segment, number, line)
    result = ReplayResult(segments, run.counts, run.decisions, run.seconds)
    result.notes = [*_describe_start(segments)]
    if not limit:
        result.notes += _describe_end(segments[-1], run.counts.end)
    result.placements_only = placements_only
    if run.check is not None:
        result.beside = run.check.shadow.report()
    result.pod = pod
    result.story = story.entries
    if limit:
        result.waiting = list(story.waiting())
    return result


def make_engine(segment: Segment, plugins: Registry, other: OtherSettings) -> Engine:
    """Makes the engine of the recording, or one with other settings."""
    setup = segment.header.setup
    known = known_plugins(plugins)
    gates = _read_gates(setup, segment.path, other.version).switch(**other.gates)
    text, source = _read_config(setup, segment, other.config)
    configuration: Configuration
    if text is None:
        configuration = default(known, gates)
    else:
        configuration = load(text, known=known, source=source, gates=gates)
    return Engine(configuration, plugins, setup.reuse)


def _read_gates(setup: Setup, path: Path, version: KubernetesVersion | None) -> FeatureGates:
    source = f"{path}: setup.featureGates"
    then = read_version(setup.emulation_version, f"{path}: setup.emulationVersion")
    if version is None:
        return FeatureGates.parse(setup.feature_gates, source, then)
    # What was on or off by default is by default in another version, too.
    defaults = FeatureGates(then)
    switched = {
        name: on for name, on in setup.feature_gates.items() if defaults.get(name) is not on
    }
    return FeatureGates.parse(switched, source, version)


def _read_config(
    setup: Setup, segment: Segment, config: Path | None
) -> tuple[str | bytes | None, str]:
    if config is None:
        return setup.config, f"{segment.path}: setup.config"
    try:
        return config.read_bytes(), str(config)
    except OSError as error:
        raise InputError(config, (error.strerror or str(error)).lower()) from error


def read_lines(segments: list[Segment]) -> Iterator[tuple[Segment, int, RecordLine, bool]]:
    """Yields all lines, and whether each says what was known when the first segment began."""
    for at, segment in enumerate(segments):
        head = segment.header.objects
        for number, line in segment.lines():
            is_head = number <= head + 1
            # Who has read the segment before knows its head already.
            if not is_head or at == 0:
                yield segment, number, line, is_head
        if segment.is_cut and at < len(segments) - 1:
            raise InputError(segment.path, "ends early, but is not the last segment")


def _describe_start(segments: list[Segment]) -> Iterator[str]:
    first = segments[0]
    if first.header.version != __version__:
        text = f"was made by Moorage {first.header.version}, this is {__version__}"
        yield f"{first.path} {text}: decisions may differ for that reason alone"
    if first.header.segment:
        text = f"begins in the middle of a run (segment {first.header.segment})"
        yield (
            f"{first.path} {text}: what the scheduler remembered then besides objects is not known"
        )


def _describe_end(last: Segment, end: str) -> Iterator[str]:
    if last.is_cut or not end:
        yield f"{last.path} ends early: the scheduler did not stop in order, or the file was cut"
    elif end != STOPPED:
        yield f"{last.path} ends before the scheduler did: {end}"
