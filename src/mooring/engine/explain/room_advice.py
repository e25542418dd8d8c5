"""Advice about what is left on nodes: resources, GPUs that are kept, disk bandwidth."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mooring.objects.quantity import Quantity
from mooring.objects.resources import PODS
from mooring.plugins.disk_io_resource import (
    BLOCK_SIZE,
    DISK_IO,
    READ,
    READ_CAPACITY,
    READ_USED,
    WRITE,
    WRITE_CAPACITY,
    WRITE_USED,
)

from .amounts import shown
from .case import Case, RowNumbers
from .edits import AnyEdit, AskForDevice, LowerRequest, SetAnnotation
from .proposals import Proposal, on_nodes
from .rejecting import like_columns

# Per set of short resources: the nearest miss, what would do for half of the nodes, and for all.
_MOST_AMOUNTS = 3

_DISK_COLUMNS = ((READ, READ_CAPACITY, READ_USED), (WRITE, WRITE_CAPACITY, WRITE_USED))


def advise_on_resources(case: Case, rows: RowNumbers) -> Iterator[Proposal]:
    """Resources that are short: by how much, over like nodes."""
    nodes = case.nodes
    pods = nodes.resources[PODS]
    full = nodes.requested[pods][rows] >= nodes.allocatable[pods][rows]
    if full.any():
        yield Proposal("pods", f"{on_nodes(rows[full], case)} cannot take more pods")
    roomy = rows[~full]
    if len(roomy):
        yield from _short(case, roomy)


def _short(case: Case, rows: RowNumbers) -> Iterator[Proposal]:
    nodes, asked = case.nodes, case.prepared.prepared["NodeResourcesFit"].amounts
    short = np.zeros((len(asked), len(rows)), np.int64)
    for place, (name, amount) in enumerate(asked):
        at = nodes.resource(name)
        free = 0 if at is None else nodes.allocatable[at][rows] - nodes.requested[at][rows]
        # What is overcommitted already does not matter to a pod that asks for nothing of it.
        short[place] = np.minimum(np.maximum(amount - free, 0), amount)
    names = tuple(name for name, _ in asked)
    for amounts, there, most in _near_misses(short, rows, np.array([each for _, each in asked])):
        lacking = [(name, by) for name, by in zip(names, amounts, strict=True) if by]
        if lacking:
            told = " and ".join(f"{shown(name, by)} {name}" for name, by in lacking)
            verb = "was" if len(there) == 1 else "were"
            yield Proposal(
                "resources",
                f"{on_nodes(there, case)} {verb} {most}{told} short",
                tuple(LowerRequest(name, by) for name, by in lacking),
            )


def _near_misses(
    short: NDArray[np.int64], rows: RowNumbers, asked: NDArray[np.int64]
) -> Iterator[tuple[list[int], RowNumbers, str]]:
    """Per set of short resources some shortages, the nearest first, and who has no larger one."""
    for places in sorted(like_columns(short > 0), key=len, reverse=True):
        distinct = np.unique(short[:, places], axis=1)
        shares = (distinct / np.maximum(asked, 1)[:, np.newaxis]).sum(axis=0)
        order = np.argsort(shares, kind="stable").tolist()
        if len(order) > _MOST_AMOUNTS:
            order = [order[0], order[len(order) // 2], order[-1]]
        for at in order:
            amounts = distinct[:, at]
            within = (short[:, places] <= amounts[:, np.newaxis]).all(axis=0)
            alike = (short[:, places[within]] == amounts[:, np.newaxis]).all()
            yield amounts.tolist(), rows[places[within]], "" if alike else "up to "


def advise_on_gpus(case: Case, rows: RowNumbers) -> Iterator[Proposal]:
    """Nodes that are kept for pods with GPUs: ask for one of those that are there."""
    names = case.prepared.prepared["GPUAware"]
    for resource, at in case.nodes.resources.items():
        there = rows[case.nodes.allocatable[at][rows] > 0] if resource in names else rows[:0]
        if len(there):
            verb = "is" if len(there) == 1 else "are"
            yield Proposal(
                "gpu",
                f"{on_nodes(there, case)} with {resource} {verb} kept for pods that ask for one",
                (AskForDevice(resource),),
            )


def advise_on_disks(case: Case, rows: RowNumbers) -> Iterator[Proposal]:
    """Disk bandwidth that is short, or not known: ask for less, or for none."""
    held = case.pod.annotations
    none: tuple[AnyEdit, ...] = tuple(
        SetAnnotation(key, None) for key in (READ, WRITE, BLOCK_SIZE) if key in held
    )
    asked = case.prepared.prepared.get("DiskIO")
    columns = case.nodes.extended.columns(DISK_IO)
    if asked is None or columns is None:
        yield Proposal("disk", "the disk bandwidth that the pod asks for cannot be weighed", none)
        return
    present = columns.present[rows]
    if not present.all():
        yield Proposal("disk", f"{on_nodes(rows[~present], case)} tell no disk bandwidth", none)
    short = [
        np.maximum(amount - (columns[has][rows] - columns[uses][rows]), 0)
        for amount, (_, has, uses) in zip(asked, _DISK_COLUMNS, strict=True)
    ]
    known = rows[present]
    if len(known):
        yield from _short_disks(case, known, np.array(short)[:, present], asked)


def _short_disks(
    case: Case, rows: RowNumbers, short: NDArray[np.int64], asked: tuple[int, int]
) -> Iterator[Proposal]:
    for amounts, there, most in _near_misses(short, rows, np.array(asked)):
        edits = tuple(
            SetAnnotation(key, str(_scaled(case.pod.annotations[key], amount - by, amount)))
            for by, amount, (key, _, _) in zip(amounts, asked, _DISK_COLUMNS, strict=True)
            if by and amount
        )
        if edits:
            told = " and ".join(
                f"{by} bytes/s of disk {what} bandwidth"
                for by, amount, what in zip(amounts, asked, ("read", "write"), strict=True)
                if by and amount
            )
            yield Proposal("disk", f"{on_nodes(there, case)} lacked {most}{told}", edits)


def _scaled(written: str, left: int, estimated: int) -> int:
    """What to ask for so that so much is estimated: small blocks cost more than they move."""
    return Quantity.parse(written).value * max(left, 0) // estimated
