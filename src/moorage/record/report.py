"""Reports the result of a replay, as lines for people and as a structure for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from moorage.engine.actions import Action
from moorage.world.shadow_report import JudgedPlacement, ShadowReport, describe_share

from .judgement_check import describe_judged
from .pod_story import describe_action
from .replayer import StepDifference
from .whole_replay import ReplayResult

_NOTHING = "nothing"


def describe(result: ReplayResult) -> Iterator[str]:
    """Yields the summary, every difference, and what else was asked for."""
    first, last = result.segments[0].header, result.segments[-1].header
    numbers = f"segment {first.segment}" + (f" to {last.segment}" if last is not first else "")
    yield f"recording    {first.started} by Moorage {first.version}, {numbers}"
    events = result.counts.events
    counts = ", ".join(f"{count} {name}" for name, count in sorted(events.items())) or "none"
    yield f"events       {sum(events.values())}: {counts}"
    if result.beside is None:
        made = f"{result.decisions} in {result.counts.steps} steps"
        yield f"decisions    {made}, {result.seconds:.3f} s"
    else:
        yield from _describe_beside(result.beside, result.seconds)
    what = " (of bindings and evictions)" if result.placements_only else ""
    yield f"differences  {result.counts.difference_count}{what}"
    untried = result.counts.untried_count
    if untried:
        yield f"not tried    {untried} times, because a like pod failed"
    yield from _differences(result)
    yield from _story(result)
    yield from _waiting(result)


def to_builtins(result: ReplayResult) -> dict[str, Any]:
    """Returns the whole report as values for JSON."""
    first, counts = result.segments[0].header, result.counts
    made: dict[str, Any] = {
        "recording": {
            "version": first.version,
            "started": first.started,
            "segments": [each.header.segment for each in result.segments],
            "end": counts.end,
        },
        "events": dict(counts.events),
        "decisions": result.decisions,
        "steps": counts.steps,
        "seconds": result.seconds,
        "placementsOnly": result.placements_only,
        "differenceCount": counts.difference_count,
        "untriedCount": counts.untried_count,
        "differences": [_difference(each, result) for each in counts.differences],
        "notes": result.notes,
    }
    if result.beside is not None:
        made["beside"] = msgspec.to_builtins(result.beside)
    if result.pod:
        made["pod"] = {
            "name": result.pod,
            "story": [
                {"seconds": _since(result, each.at), "text": each.text} for each in result.story
            ],
        }
    if result.waiting is not None:
        made["waiting"] = msgspec.to_builtins(result.waiting)
    return made


def _describe_beside(report: ShadowReport, seconds: float) -> Iterator[str]:
    share = "" if report.agreement is None else f", {describe_share(report.agreement)}"
    yield f"placements   {report.placed:,} by another scheduler in {seconds:.3f} s{share}"
    for agreement, count in report.by_agreement.items():
        if count:
            yield f"             {count:,}: {agreement}"


def _differences(result: ReplayResult) -> Iterator[str]:
    for each in result.counts.differences:
        yield ""
        about = f"pod {each.pod}" if each.pod else "the step as a whole"
        yield f"{each.where}: {_since(result, each.at):.3f} s: {about}"
        yield from _side("recorded", each.recorded, each.recorded_error)
        yield from _side("replayed", each.replayed, each.replayed_error)
    left = result.counts.difference_count - len(result.counts.differences)
    if left:
        yield f"and {left} more"


def _side(name: str, actions: Sequence[Action | JudgedPlacement], error: str) -> Iterator[str]:
    lines = [
        describe_judged(each) if isinstance(each, JudgedPlacement) else describe_action(each)
        for each in actions
    ]
    if error:
        lines.append(f"failed: {error}")
    for line in lines or [_NOTHING]:
        yield f"    {name}  {line}"


def _story(result: ReplayResult) -> Iterator[str]:
    if not result.pod:
        return
    yield ""
    yield f"pod {result.pod}" + ("" if result.story else ": nothing is recorded of it")
    for each in result.story:
        yield f"    {_since(result, each.at):10.3f} s  {each.text}"


def _waiting(result: ReplayResult) -> Iterator[str]:
    if result.waiting is None:
        return
    several = "s" * (len(result.waiting) != 1)
    yield ""
    yield f"waiting after {result.seconds:.3f} s: {len(result.waiting)} pod{several}"
    for each in result.waiting:
        by = f", rejected by {', '.join(each.rejectors)}" if each.rejectors else ""
        attempts = f"{each.attempts} attempt{'s' * (each.attempts != 1)}"
        yield f"    {each.pod}  {each.place}, {attempts}{by}"
        if each.message:
            yield f"        {each.message}"


def _difference(each: StepDifference, result: ReplayResult) -> dict[str, Any]:
    return {
        "where": each.where,
        "seconds": _since(result, each.at),
        "pod": each.pod,
        "recorded": msgspec.to_builtins(each.recorded),
        "replayed": msgspec.to_builtins(each.replayed),
        "recordedError": each.recorded_error,
        "replayedError": each.replayed_error,
    }


def _since(result: ReplayResult, at: float) -> float:
    return at - (result.counts.began or 0.0)
