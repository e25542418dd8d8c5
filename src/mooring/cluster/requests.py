"""What the requests of pods take of a row."""

from __future__ import annotations

from mooring.objects.pod import Held
from mooring.objects.resources import PODS

from .columns import FIRST_CLASS, NONZERO_CPU, NONZERO_MEMORY, Columns
from .row_facts import RowFacts

# The column that counts pods, which is there from the beginning.
_PODS = FIRST_CLASS.index(PODS)


def count_requests(
    columns: Columns, facts: RowFacts | None, held: Held, row: int, amount: int
) -> None:
    """A pod came to (1) or left (-1) a row. All that it asks for has a column.

    Facts are kept up to date: plain numbers are added up faster than those of an array, and
    whoever looks at the row next needs them.
    """
    if facts is None:
        _count_in_columns(columns, held, row, amount)
        return
    places, requested, known = columns.resources, columns.requested, facts.requested
    for name, request in held.requests:
        at = places[name]
        known[at] = requested[at, row] = known[at] + amount * request
    known[_PODS] = requested[_PODS, row] = known[_PODS] + amount
    cpu, memory = facts.nonzero_requested
    cpu += amount * held.nonzero_cpu_milli
    memory += amount * held.nonzero_memory_bytes
    facts.nonzero_requested[:] = cpu, memory
    columns.nonzero_requested[NONZERO_CPU, row] = cpu
    columns.nonzero_requested[NONZERO_MEMORY, row] = memory
    facts.changed()


def _count_in_columns(columns: Columns, held: Held, row: int, amount: int) -> None:
    for name, request in held.requests:
        columns.requested[columns.resources[name], row] += amount * request
    columns.requested[_PODS, row] += amount
    columns.nonzero_requested[NONZERO_CPU, row] += amount * held.nonzero_cpu_milli
    columns.nonzero_requested[NONZERO_MEMORY, row] += amount * held.nonzero_memory_bytes
