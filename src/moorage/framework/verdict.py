"""The answer of a filter for many rows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask
from moorage.objects.lazy_property import lazy_property

from .status import Code, Reason


class Verdict:
    """One flag per reason and row. A row without a flag is accepted."""

    def __init__(
        self,
        reasons: Sequence[Reason],
        failed: NDArray[np.bool_],
        broken: Mask | None = None,
        describe: Callable[[int], str] = str,
    ) -> None:
        #: bool[reason, row]
        self.failed = failed
        self.reasons = tuple(reasons)
        #: The rows on which the plugin broke, if any: one of them, still in question when the
        #: plugin is asked, ends the attempt.
        self.broken = broken
        #: Why it broke on a row, given the row's number.
        self.describe = describe

    @classmethod
    def accepting(cls, count: int) -> Verdict:
        """Makes a verdict that accepts that many rows."""
        return cls((), np.empty((0, count), np.bool_))

    @classmethod
    def rejecting(cls, rejected: Mask, reason: Reason) -> Verdict:
        """Makes a verdict with a single reason."""
        return cls((reason,), rejected[np.newaxis])

    @property
    def rejected(self) -> Mask:
        if not self.reasons:
            return np.zeros(self.failed.shape[1], np.bool_)
        rejected: Mask = self.failed[0]
        if len(self.reasons) > 1:
            rejected = rejected | self.failed[1]
        # One by one: ten times faster than to reduce them.
        for each in self.failed[2:]:
            rejected |= each
        return rejected

    @property
    def ok(self) -> Mask:
        return ~self.rejected

    def texts(self, at: int) -> tuple[str, ...]:
        """Returns the reasons against the row at a position, in order; equal texts once."""
        texts = (
            reason.text
            for reason, failed in zip(self.reasons, self.failed, strict=True)
            if failed[at]
        )
        return tuple(dict.fromkeys(texts))

    def code(self, at: int) -> Code:
        """Returns the kind of rejection of the row at a position."""
        return Code.UNRESOLVABLE if self.unresolvable[at] else Code.UNSCHEDULABLE

    @lazy_property
    def unresolvable(self) -> Mask:
        """Returns the rows on which evicting pods cannot help."""
        # One by one: ten times faster than to reduce them.
        unresolvable: Mask = np.zeros(self.failed.shape[1], np.bool_)
        for reason, failed in zip(self.reasons, self.failed, strict=True):
            if reason.code is Code.UNRESOLVABLE:
                unresolvable |= failed
        return unresolvable

    def counts(self, among: Mask) -> Iterator[tuple[str, int]]:
        """Returns how many of the rows each reason rejects; equal texts of a row count once."""
        by_text: dict[str, Mask] = {}
        for reason, failed in zip(self.reasons, self.failed, strict=True):
            known = by_text.get(reason.text)
            by_text[reason.text] = failed if known is None else known | failed
        for text, failed in by_text.items():
            yield text, int(np.count_nonzero(failed & among))
