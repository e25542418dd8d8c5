"""Advice about what is left on nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mooring.framework.advice import Advice, near_misses, on_nodes
from mooring.framework.edits import LowerRequest
from mooring.framework.edits.amounts import shown
from mooring.objects.resources import PODS

from .case import Case, RowNumbers


def advise_on_resources(case: Case, rows: RowNumbers) -> Iterator[Advice]:
    """Resources that are short: by how much, over like nodes."""
    nodes = case.nodes
    pods = nodes.resources[PODS]
    full = nodes.requested[pods][rows] >= nodes.allocatable[pods][rows]
    if full.any():
        yield Advice(f"{on_nodes(rows[full], case.actual)} cannot take more pods", kind="pods")
    roomy = rows[~full]
    if len(roomy):
        yield from _short(case, roomy)


def _short(case: Case, rows: RowNumbers) -> Iterator[Advice]:
    nodes, asked = case.nodes, case.prepared.prepared["NodeResourcesFit"].amounts
    short = np.zeros((len(asked), len(rows)), np.int64)
    for place, (name, amount) in enumerate(asked):
        at = nodes.resource(name)
        free = 0 if at is None else nodes.allocatable[at][rows] - nodes.requested[at][rows]
        # What is overcommitted already does not matter to a pod that asks for nothing of it.
        short[place] = np.minimum(np.maximum(amount - free, 0), amount)
    names = tuple(name for name, _ in asked)
    for amounts, there, most in near_misses(short, rows, np.array([each for _, each in asked])):
        lacking = [(name, by) for name, by in zip(names, amounts, strict=True) if by]
        if lacking:
            told = " and ".join(f"{shown(name, by)} {name}" for name, by in lacking)
            verb = "was" if len(there) == 1 else "were"
            yield Advice(
                f"{on_nodes(there, case.actual)} {verb} {most}{told} short",
                tuple(LowerRequest(name, by) for name, by in lacking),
                kind="resources",
            )
