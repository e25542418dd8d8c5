"""What would help a pod for which too little is left of a counted resource: ask for less."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Nodes
from mooring.framework.advice import Advice, name_nodes, near_misses
from mooring.framework.edits import AnyEdit, SetAnnotation
from mooring.objects.pod import Pod

from .counted_amount import CAPACITY, OLD, USED, PodUse


def advise_on_amount(
    pod: Pod, use: PodUse, name: str, nodes: Nodes, rows: NDArray[np.intp]
) -> Iterator[Advice]:
    """A counted resource that is short on some nodes, or not known there."""
    columns, asked = nodes.extended.columns(name), use.amount(pod)
    if columns is None or not asked:
        return
    known = columns.present[rows] & (columns[OLD][rows] == 0)
    if not known.all():
        yield Advice(f"{name_nodes(rows[~known], nodes)} tell no {name}", _ask(use, None))
    rows = rows[known]
    if not len(rows):
        return
    short = np.maximum(asked - (columns[CAPACITY][rows] - columns[USED][rows]), 0)
    for miss in near_misses(short[np.newaxis], rows, np.array([asked])):
        (by,) = miss.short.tolist()
        if by:
            most = "" if miss.is_exact else "up to "
            problem = f"{name_nodes(miss.rows, nodes)} lacked {most}{by} {name}"
            yield Advice(problem, _ask(use, max(asked - by, 0)))


def advise_on_annotation(pod: Pod, use: PodUse) -> Advice:
    """An annotation that cannot be read."""
    return Advice(f"annotation {use.annotation} is no quantity", _ask(use, None))


def _ask(use: PodUse, amount: int | None) -> tuple[AnyEdit, ...]:
    """Has the pod ask for so much, or for nothing. What containers request is not changed."""
    if not use.annotation:
        return ()
    return (SetAnnotation(use.annotation, str(amount) if amount else None),)
