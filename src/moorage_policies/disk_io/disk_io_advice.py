"""Advice for a pod for which disks have too little bandwidth left: request less, or none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from moorage.plugin import (
    Advice,
    Edit,
    Pod,
    Quantity,
    SetAnnotation,
    View,
    name_nodes,
    near_misses,
)

from .disk_io_resource import (
    BLOCK_SIZE,
    DISK_IO,
    READ,
    READ_CAPACITY,
    READ_USED,
    WRITE,
    WRITE_CAPACITY,
    WRITE_USED,
    Bandwidth,
)

_COLUMNS = ((READ, READ_CAPACITY, READ_USED), (WRITE, WRITE_CAPACITY, WRITE_USED))

RowNumbers = NDArray[np.intp]


def advise_on_disks(
    pod: Pod, asked: Bandwidth | None, nodes: View, rows: RowNumbers
) -> Iterator[Advice]:
    """Yields advice about disk bandwidth that is short, or not known."""
    none: tuple[Edit, ...] = tuple(
        SetAnnotation(key, None) for key in (READ, WRITE, BLOCK_SIZE) if key in pod.annotations
    )
    columns = nodes.extended.columns(DISK_IO)
    if asked is None or columns is None:
        problem = "the disk bandwidth that the pod asks for cannot be weighed"
        yield Advice(problem, none, kind="disk")
        return
    present = columns.present[rows]
    if not present.all():
        problem = f"{name_nodes(rows[~present], nodes)} tell no disk bandwidth"
        yield Advice(problem, none, kind="disk")
    short = [
        np.maximum(amount - (columns[has][rows] - columns[uses][rows]), 0)
        for amount, (_, has, uses) in zip(asked, _COLUMNS, strict=True)
    ]
    known = rows[present]
    if len(known):
        for miss in near_misses(np.array(short)[:, present], known, np.array(asked)):
            most = "" if miss.is_exact else "up to "
            who = f"{name_nodes(miss.rows, nodes)} lacked {most}"
            yield from _less(pod, asked, miss.short.tolist(), who)


def _less(pod: Pod, asked: Bandwidth, amounts: list[int], who: str) -> Iterator[Advice]:
    lacking = [
        (what, key, by, amount)
        for what, by, amount, (key, _, _) in zip(
            ("read", "write"), amounts, asked, _COLUMNS, strict=True
        )
        if by and amount
    ]
    if lacking:
        problem = " and ".join(
            f"{by} bytes/s of disk {what} bandwidth" for what, _, by, _ in lacking
        )
        edits = tuple(
            SetAnnotation(key, str(_scale(pod.annotations[key], amount - by, amount)))
            for _, key, by, amount in lacking
        )
        yield Advice(f"{who}{problem}", edits, kind="disk")


def _scale(written: str, left: int, estimated: int) -> int:
    """Returns the request whose estimate is that much: small blocks cost more than they move."""
    return Quantity.parse(written).value * max(left, 0) // estimated
