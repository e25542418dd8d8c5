"""What came of a replay, as lines for people and as a structure for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from mooring.engine.actions import Action

from .replay import Difference
from .replay_run import Replayed
from .replay_story import told

_NOTHING = "nothing"


def text(done: Replayed) -> Iterator[str]:
    """The summary, every difference, and what was asked for besides."""
    first, last = done.segments[0].header, done.segments[-1].header
    numbers = f"segment {first.segment}" + (f" to {last.segment}" if last is not first else "")
    yield f"recording    {first.started} by Mooring {first.version}, {numbers}"
    events = done.outcome.events
    counts = ", ".join(f"{count} {name}" for name, count in sorted(events.items())) or "none"
    yield f"events       {sum(events.values())}: {counts}"
    yield f"decisions    {done.decisions} in {done.outcome.steps} steps, {done.seconds:.3f} s"
    what = " (of bindings and evictions)" if done.placements_only else ""
    yield f"differences  {done.outcome.difference_count}{what}"
    yield from _differences(done)
    yield from _story(done)
    yield from _waiting(done)


def structure(done: Replayed) -> dict[str, Any]:
    """All of it, to be written as JSON."""
    first, outcome = done.segments[0].header, done.outcome
    made: dict[str, Any] = {
        "recording": {
            "version": first.version,
            "started": first.started,
            "segments": [each.header.segment for each in done.segments],
            "end": outcome.end,
        },
        "events": dict(outcome.events),
        "decisions": done.decisions,
        "steps": outcome.steps,
        "seconds": done.seconds,
        "placementsOnly": done.placements_only,
        "differenceCount": outcome.difference_count,
        "differences": [_difference(each, done) for each in outcome.differences],
        "notes": done.notes,
    }
    if done.pod:
        made["pod"] = {
            "name": done.pod,
            "story": [{"seconds": _since(done, each.at), "text": each.text} for each in done.story],
            "rejectedNow": done.verdicts,
        }
    if done.waiting is not None:
        made["waiting"] = msgspec.to_builtins(done.waiting)
    return made


def _differences(done: Replayed) -> Iterator[str]:
    for each in done.outcome.differences:
        yield ""
        about = f"pod {each.pod}" if each.pod else "the step as a whole"
        yield f"{each.where}: {_since(done, each.at):.3f} s: {about}"
        yield from _side("recorded", each.recorded, each.recorded_error)
        yield from _side("replayed", each.replayed, each.replayed_error)
    left = done.outcome.difference_count - len(done.outcome.differences)
    if left:
        yield f"and {left} more"


def _side(name: str, actions: Sequence[Action], error: str) -> Iterator[str]:
    lines = [told(action) for action in actions]
    if error:
        lines.append(f"failed: {error}")
    for line in lines or [_NOTHING]:
        yield f"    {name}  {line}"


def _story(done: Replayed) -> Iterator[str]:
    if not done.pod:
        return
    yield ""
    yield f"pod {done.pod}" + ("" if done.story else ": nothing is recorded of it")
    for each in done.story:
        yield f"    {_since(done, each.at):10.3f} s  {each.text}"
    if done.verdicts:
        yield "    at the end it is rejected by"
    for reason, count in sorted(done.verdicts.items()):
        yield f"        {count} nodes: {reason}"


def _waiting(done: Replayed) -> Iterator[str]:
    if done.waiting is None:
        return
    yield ""
    yield f"waiting after {done.seconds:.3f} s: {len(done.waiting)} pods"
    for each in done.waiting:
        by = f", rejected by {', '.join(each.rejectors)}" if each.rejectors else ""
        yield f"    {each.pod}  {each.place}, {each.attempts} attempts{by}"
        if each.message:
            yield f"        {each.message}"


def _difference(each: Difference, done: Replayed) -> dict[str, Any]:
    return {
        "where": each.where,
        "seconds": _since(done, each.at),
        "pod": each.pod,
        "recorded": msgspec.to_builtins(each.recorded),
        "replayed": msgspec.to_builtins(each.replayed),
        "recordedError": each.recorded_error,
        "replayedError": each.replayed_error,
    }


def _since(done: Replayed, at: float) -> float:
    return at - (done.outcome.began or 0.0)
