"""Compares recorded choices. Where kube-scheduler chose at random among equals, any is right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from .verdicts import (
    NodeRefusal,
    PodVerdict,
    RecordedMember,
    RecordedRefusal,
    RecordedStep,
    read_refusal,
)

#: What is compared: its name, as recorded and as found.
Comparison = tuple[str, Any, Any]

_NOMINATED = " on node {},"


def compare_held(
    recorded: Mapping[str, Any] | None, found: tuple[NodeRefusal, ...]
) -> Iterator[Comparison]:
    """Compares why a pod may not be queued: plugins are asked in random order, until one refuses.

    Yields nothing if the recorded refusal is one of those found.
    """
    held = None if recorded is None else msgspec.convert(recorded, RecordedRefusal)
    refusal = read_refusal(held)
    if refusal not in found:
        yield "preEnqueue", refusal, found[0] if found else None


def has_scores(recorded: RecordedStep | RecordedMember, found: PodVerdict) -> bool:
    """Returns whether scores are to be compared.

    Where kube-scheduler needs none, a recording may have none.
    """
    needs_none = recorded.scoring_skipped or recorded.nominated_path or len(found.total or ()) == 1
    return not needs_none or bool(recorded.total)


def compare_chosen(
    recorded: RecordedStep | RecordedMember, found: PodVerdict
) -> Iterator[Comparison]:
    """Compares the best nodes and the one that was chosen, which may be any of the best."""
    best = tuple(sorted(recorded.best or ()))
    if best or has_scores(recorded, found):
        yield "best", best, found.best
    tied = best or found.best
    is_tie = recorded.chosen in tied and found.chosen in tied
    if recorded.nominated_path or not is_tie:
        yield "chosen", recorded.chosen, found.chosen


def word_as_recorded(step: RecordedStep, found: PodVerdict) -> str | None:
    """Returns the message found, with the recorded one of the nodes on which preemption ties."""
    message = found.message
    if message is None or step.nominated is None or found.nominated not in step.nominated_any:
        return message
    ours, recorded = _NOMINATED.format(found.nominated), _NOMINATED.format(step.nominated)
    return message.replace(ours, recorded)
