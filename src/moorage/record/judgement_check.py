"""Replays a recording made beside another scheduler: judges each of its placements again."""

from __future__ import annotations

from collections import deque

from moorage.documents.errors import InputError
from moorage.engine import Engine
from moorage.engine.events import Event
from moorage.world.shadow_judge import Shadow
from moorage.world.shadow_report import JudgedPlacement


class JudgementCheck:
    """Judges placements as `moorage record` did, and compares with the recorded judgement."""

    def __init__(self, engine: Engine, *, placements_only: bool) -> None:
        """With `placements_only`, it compares only where Moorage would have placed pods."""
        self._made: deque[JudgedPlacement] = deque()
        self._placements_only = placements_only
        # How long decisions take is no part of a replay.
        self.shadow = Shadow(engine, lambda: 0.0, on_judged=lambda each: self._made.append(each))

    def handle(self, event: Event, now: float) -> JudgedPlacement | None:
        """Takes in an event; returns a judgement that the recording does not have."""
        unexpected = self._made.popleft() if self._made else None
        self.shadow.handle(event, now)
        return unexpected

    def compare(self, where: str, recorded: JudgedPlacement) -> JudgedPlacement | None:
        """Returns how the same placement is judged now, if that differs."""
        if not self._made:
            raise InputError(where, f"judged: pod {recorded.pod!r} was not placed just before")
        made = self._made.popleft()
        if self._placements_only:
            return None if (made.pod, made.ours) == (recorded.pod, recorded.ours) else made
        return None if made == recorded else made


def describe_judged(judged: JudgedPlacement) -> str:
    """Describes what Moorage would have done."""
    ours = f"place on {judged.ours}" if judged.ours else "place nowhere"
    if judged.our_score or judged.their_score:
        scores = f"{judged.our_score}, {judged.theirs} scores {judged.their_score}"
        return f"{ours}, which scores {scores}"
    reason = f": {judged.reason}" if judged.reason else ""
    return f"{ours} ({judged.theirs} is {judged.agreement}){reason}"
