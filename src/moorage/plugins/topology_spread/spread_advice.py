"""Advice about even spreading: which domains are too full, and by how much."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, View
from moorage.cluster.labels import ABSENT
from moorage.framework.advice import MOST_GROUPS, Advice, group_by_failures, name_nodes
from moorage.framework.edits import RaiseMaxSkew, SoftenSpread
from moorage.objects.pod import Pod

from .spread_constraints import HARD
from .spread_counts import Spread

RowNumbers = NDArray[np.intp]

SpreadEdit = RaiseMaxSkew | SoftenSpread

# The most domains that are named. Of the others, the number is given.
_MOST_DOMAINS = 3


def advise_on_spread(
    pod: Pod, spreads: tuple[Spread, ...], nodes: View, rows: RowNumbers
) -> Iterator[Advice]:
    """Yields advice on hard constraints: raise the skew, or soften them if a label is missing."""
    written = pod.spec.topology_spread_constraints or ()
    own = [at for at, each in enumerate(written) if each.when_unsatisfiable == HARD]
    if len(own) != len(spreads):
        # The constraints are those of the profile. No change of the pod alters them.
        problem = f"{name_nodes(rows, nodes)} break the profile's spread constraints"
        yield Advice(problem, kind="spread")
        return
    flags: dict[SpreadEdit, Mask] = {}
    for at, spread in zip(own, spreads, strict=True):
        flags |= _failing(at, spread, rows)
    for edits, there in group_by_failures(flags, rows):
        problem = "; ".join(
            _describe(edit, spreads[own.index(edit.constraint)], there) for edit in edits
        )
        yield Advice(problem, edits, kind="spread")


def _failing(at: int, spread: Spread, rows: RowNumbers) -> dict[SpreadEdit, Mask]:
    key = spread.constraint.topology_key
    codes = spread.column.codes[rows]
    lacking = codes == ABSENT
    flags: dict[SpreadEdit, Mask] = {}
    if lacking.any():
        flags[SoftenSpread(at, key)] = lacking
    skewed = spread.skewed()[codes] & ~lacking
    needed = np.where(skewed, spread.counts[codes] - _fewest(spread) + spread.own, 0)
    for skew in np.unique(needed[skewed])[:MOST_GROUPS].tolist():
        flags[RaiseMaxSkew(at, key, skew)] = needed == skew
    return flags


def _fewest(spread: Spread) -> int:
    enough = spread.domain_count >= spread.constraint.min_domains
    return spread.lowest.count if enough else 0


def _describe(edit: SpreadEdit, spread: Spread, rows: RowNumbers) -> str:
    key = edit.topology_key
    if isinstance(edit, SoftenSpread):
        return f"{len(rows)} node{'s' * (len(rows) > 1)} without label {key}"
    codes = np.unique(spread.column.codes[rows]).tolist()
    values = {code: value for value, code in spread.column.vocabulary.in_use().items()}
    named = [f"{key}={values[code]}" for code in codes[:_MOST_DOMAINS]]
    more = f" and {len(codes) - len(named)} more" if len(codes) > len(named) else ""
    count = int(spread.counts[codes[0]])
    allowed = spread.constraint.max_skew
    return (
        f"{', '.join(named)}{more} has {count} of its pods, the emptiest domain "
        f"{_fewest(spread)}, and the skew may be {allowed}"
    )
