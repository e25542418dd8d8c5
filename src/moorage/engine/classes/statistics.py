"""How much like pods could share, how much they did, and why not more."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

# Signatures of placed pods that are remembered; beyond it, remembering begins anew.
_MOST_REMEMBERED = 65_536


class DecisionPath(StrEnum):
    """How a decision was made. The values appear in reports."""

    BATCH = "by the ranking of their class"
    COLUMNS = "over the columns of their class"
    FAILURE = "failed like the one before"
    FIRST = "first of their class"
    OFF = "while reuse was off"
    UNSIGNED = "not signed"
    SAMPLING = "without looking at all nodes"
    NOMINATED = "with a nominated node"
    NARROWED = "for certain nodes only"
    BROKEN = "with a plugin that failed"

    # It is counted for every decision, and that of an enum is many times slower.
    __hash__ = str.__hash__

    @property
    def is_reuse(self) -> bool:
        return self in _REUSES


_REUSES = (DecisionPath.BATCH, DecisionPath.COLUMNS, DecisionPath.FAILURE)


class Flush(StrEnum):
    """Why kept answers had to be found anew, or were dropped."""

    BEHIND = "log_trimmed"
    #: Another change than that of the class's own pods, while answers outlast only these.
    INTERRUPTED = "interrupted"
    FULL = "cache_full"
    UNUSED = "unused"
    #: A plugin raised something while answers were brought up to date.
    BROKEN = "plugin_failed"
    #: The cluster was counted anew, or reuse was switched off.
    FORGOTTEN = "forgotten"


class Unsignable(StrEnum):
    """Why a plugin prevented a pod from being decided like others."""

    #: It has no signatures at all.
    SILENT = "silent"
    #: It cannot sign this pod.
    UNSIGNABLE = "unsignable"
    #: It raised something, or its signature cannot be compared.
    BROKEN = "broken"


@dataclass(slots=True)
class Statistics:
    """Counts for one profile, kept also while nothing is reused."""

    paths: Counter[DecisionPath] = field(default_factory=Counter)
    flushes: Counter[Flush] = field(default_factory=Counter)
    #: Decisions that could not be shared, by the plugin that was why.
    unsigned: Counter[tuple[str, Unsignable]] = field(default_factory=Counter)
    #: Decisions for pods that were signed, and for those of them that were like one before.
    signed: int = 0
    alike: int = 0
    #: Decisions for pods that were unlike the last one of their owner, by who told them apart.
    apart: Counter[str] = field(default_factory=Counter)
    #: Decisions made twice, and those that differed.
    verified: int = 0
    differences: int = 0
    _placed: set[int] = field(default_factory=set)

    def saw(self, signature: int) -> None:
        """Counts a pod of that signature that is about to be decided."""
        self.signed += 1
        self.alike += signature in self._placed

    def placed(self, signature: int) -> None:
        """Counts a pod of that signature that got a node."""
        if len(self._placed) >= _MOST_REMEMBERED:
            self._placed.clear()
        self._placed.add(signature)

    @property
    def decisions(self) -> int:
        return sum(self.paths.values())

    @property
    def by_likeness(self) -> dict[str, int]:
        """Returns decisions by whether the pod was like an earlier one, also while reuse is off."""
        return {
            "alike": self.alike,
            "first": self.signed - self.alike,
            "unsigned": self.decisions - self.signed,
        }

    @property
    def reused(self) -> int:
        return sum(count for path, count in self.paths.items() if path.is_reuse)

    def metrics(self, profile: str) -> dict[str, dict[tuple[str, str], int]]:
        """Returns counters by kube-scheduler's names, labelled with profile, result or reason."""
        used = self.reused
        return {
            "scheduler_batch_attempts_total": {
                (profile, "hint_used"): used,
                (profile, "no_hint"): self.decisions - used,
            },
            "scheduler_batch_cache_flushed_total": {
                (profile, reason.value): count for reason, count in self.flushes.items()
            },
        }
