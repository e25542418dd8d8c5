"""What the requests of pods take of a row."""

from __future__ import annotations

from collections.abc import Mapping

from mooring.objects.pod import Held
from mooring.objects.resources import PODS

from .columns import FIRST_CLASS, NONZERO_CPU, NONZERO_MEMORY, Columns
from .row_facts import RowFacts
from .sums import Sums

# The column that counts pods, which is there from the beginning.
_PODS = FIRST_CLASS.index(PODS)


def count_requests(
    columns: Columns, facts: RowFacts | None, held: Held, row: int, amount: int
) -> None:
    """A pod came to (1) or left (-1) a row. What no node offers has no column.

    Facts are kept up to date: plain numbers are added up faster than those of an array, and
    whoever looks at the row next needs them.
    """
    if facts is None:
        for name, request in held.requests:
            if name not in columns.resources:
                columns.request_unoffered(row, name, amount * request)
        add_requests(columns.requested, columns.resources, held, row, amount)
        add_nonzero(columns.nonzero_requested, held, row, amount)
        return
    places, known, sums = columns.resources, facts.requested, columns.requested
    array, bound = sums.array, sums.bound
    for name, request in held.requests:
        at = places.get(name)
        if at is None:
            columns.request_unoffered(row, name, amount * request)
            continue
        total = known[at] + amount * request
        if total > bound:
            total = sums.add(at, row, amount * request)
        else:
            array[at, row] = total
        known[at] = total
    known[_PODS] = array[_PODS, row] = known[_PODS] + amount
    _count_nonzero(columns.nonzero_requested, facts.nonzero_requested, held, row, amount)
    facts.changed()


def _count_nonzero(sums: Sums, known: list[int], held: Held, row: int, amount: int) -> None:
    cpu, memory = known
    cpu += amount * held.nonzero_cpu_milli
    memory += amount * held.nonzero_memory_bytes
    if cpu > sums.bound or memory > sums.bound:
        known[:] = add_nonzero(sums, held, row, amount)
        return
    known[:] = cpu, memory
    sums.array[NONZERO_CPU, row] = cpu
    sums.array[NONZERO_MEMORY, row] = memory


def add_requests(
    sums: Sums, resources: Mapping[str, int], held: Held, row: int, amount: int
) -> None:
    """Adds (1) or takes away (-1) what a pod asks for where it has a column, and the pod itself."""
    for name, request in held.requests:
        at = resources.get(name)
        if at is not None:
            sums.add(at, row, amount * request)
    sums.add(_PODS, row, amount)


def add_nonzero(sums: Sums, held: Held, row: int, amount: int) -> tuple[int, int]:
    """The same for what scoring counts; returns what the columns then hold."""
    return (
        sums.add(NONZERO_CPU, row, amount * held.nonzero_cpu_milli),
        sums.add(NONZERO_MEMORY, row, amount * held.nonzero_memory_bytes),
    )
