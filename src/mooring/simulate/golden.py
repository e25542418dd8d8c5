"""Recorded verdicts of kube-scheduler: one scenario a line, each with a verdict per pending pod."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from mooring.documents.errors import InputError
from mooring.documents.files import Lines


class RecordedRefusal(msgspec.Struct, frozen=True):
    """Why a node, or the pod as a whole, was refused."""

    plugin: str
    code: str
    reasons: tuple[str, ...] = ()


class RecordedPreFilter(msgspec.Struct, frozen=True, rename="camel"):
    """A pod rejected as a whole, or the only nodes that were considered."""

    rejected_by: str | None = None
    code: str = ""
    reasons: tuple[str, ...] = ()
    nodes: tuple[str, ...] | None = None


class RecordedCandidate(msgspec.Struct, frozen=True, rename="camel"):
    """A node on which preemption would work."""

    victims: tuple[str, ...]
    pdb_violations: int = 0


class Step(msgspec.Struct, frozen=True, rename="camel"):
    """What kube-scheduler found for one pod, and what it did."""

    pod: str
    signature: str | None = None
    pre_enqueue: RecordedRefusal | None = None
    nominations: dict[str, str] = {}
    start: int = 0
    prefilter: RecordedPreFilter | None = None
    filter: dict[str, RecordedRefusal] | None = None
    scores: dict[str, dict[str, int]] | None = None
    total: dict[str, int] | None = None
    best: tuple[str, ...] | None = None
    chosen: str | None = None
    scoring_skipped: bool = False
    nominated_path: bool = False
    message: str | None = None
    error: bool = False
    nominated: str | None = None
    nominated_any: tuple[str, ...] = ()
    victims: tuple[str, ...] | None = None
    candidates: dict[str, RecordedCandidate] | None = None
    nomination: str = ""


class Scenario(msgspec.Struct, frozen=True, rename="camel"):
    """A cluster, its configuration and the pods to schedule, in order."""

    name: str
    category: str
    config: dict[str, Any] | None
    objects: tuple[dict[str, Any], ...]
    pending: tuple[dict[str, Any], ...]
    feature_gates: dict[str, bool] = {}


class Golden(msgspec.Struct, frozen=True):
    """The verdicts of one scenario."""

    name: str
    steps: tuple[Step, ...]


class Recording(msgspec.Struct, frozen=True):
    """One line of a file."""

    scenario: Scenario
    golden: Golden


_DECODER = msgspec.json.Decoder(Recording)


def read(path: Path) -> Iterator[Recording]:
    """The recordings of a file, which may be compressed."""
    lines = Lines(path, keep_last=True)
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _decode(path, number, line)
    if lines.is_cut:
        raise InputError(path, "the compressed data was cut off")


def _decode(path: Path, number: int, line: bytes) -> Recording:
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(path, f"line {number}: {error}") from error
