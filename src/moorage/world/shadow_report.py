"""Reports what a shadow has seen: each placement, and all of them together."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from moorage.engine.explain.explanation import ExplanationPart


class Agreement(StrEnum):
    """How a placement of the other scheduler compares with what Moorage would have done."""

    SAME = "the same node"
    EQUAL = "a node that scores the same"
    LOWER = "a node that scores less"
    REFUSED = "a node that Moorage refuses"
    NOWHERE = "Moorage finds no node"
    ERROR = "Moorage cannot decide"

    @property
    def is_same(self) -> bool:
        """Whether both chose among the same best nodes"""
        return self in (Agreement.SAME, Agreement.EQUAL)


class JudgedPlacement(ExplanationPart, frozen=True):
    """A placement of the other scheduler, and what Moorage would have done."""

    pod: str
    agreement: str
    theirs: str
    ours: str = ""
    #: What the nodes score here; 0 where there is nothing to choose.
    their_score: int = 0
    our_score: int = 0
    reason: str = ""


class ShadowReport(ExplanationPart, frozen=True):
    """Everything that a shadow has seen so far."""

    placed: int
    by_agreement: dict[str, int]
    #: Percent of placements on one of the nodes that are best here, too; None without placements.
    agreement: float | None
    #: Pods that the other scheduler leaves pending and Moorage would place, by key, with the node.
    placeable: dict[str, str]
    #: Seconds to decide a pod here, and from a pod's creation until it was bound there, on average.
    our_seconds: float
    their_seconds: float
    differences: tuple[JudgedPlacement, ...]


def describe(report: ShadowReport) -> Iterator[str]:
    """Yields the report in sentences."""
    if report.agreement is None:
        yield "the other scheduler has placed no pod since the shadow began: nothing to compare"
    else:
        pods = f"{report.placed:,} pod{'s' * (report.placed != 1)}"
        yield f"{pods} placed by the other scheduler, {describe_share(report.agreement)}"
    for agreement, count in report.by_agreement.items():
        if count:
            yield f"    {count:>8,}  {agreement}"
    if report.placeable:
        yield f"Moorage would place {len(report.placeable):,} of the pods that wait there"
    if report.placed:
        yield _describe_times(report)


def describe_share(agreement: float) -> str:
    """Returns how many of the placements Moorage would have made as well."""
    return f"{agreement:.2f}% on a node that is best here"


def _describe_times(report: ShadowReport) -> str:
    return (
        f"{1000 * report.our_seconds:.2f} ms to decide a pod here; "
        f"{report.their_seconds:.2f} s from its creation to its binding there"
    )
