"""A transcript as tables for people."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mooring.objects.resources import CPU, MEMORY
from mooring.simulate.report import reuse_line, unit
from mooring.simulate.transcript import Claimed, Pending, Placed, Preempted, Transcript, Use

from .text import plain

# Enough to see which workload it is.
_NAMES_SHOWN = 4

# Output that goes to a file or a pipe is not wrapped.
_NO_LIMIT = 10_000

_GIB = 2**30


def tables(transcript: Transcript, *, wide: bool = False) -> str:
    """Placements, volumes, use per resource, and what stays pending, one below the other."""
    console = Console(
        width=None if sys.stdout.isatty() else _NO_LIMIT, highlight=False, emoji=False, markup=False
    )
    with console.capture() as captured:
        if transcript.placed:
            console.print(_placements(transcript.placed, wide=wide), "")
        if transcript.preempted:
            console.print(_preempted(transcript.preempted), "")
        if transcript.volumes:
            console.print(_volumes(transcript.volumes), "")
        if transcript.use:
            console.print(_uses(transcript.use), "")
        for message, pods in _grouped(transcript.pending).items():
            console.print(Text(f"{_count(pods)}: {message}\n    {_names(pods, wide=wide)}\n"))
        for profile, statistics in transcript.reuse.items():
            if statistics.decisions:
                console.print(plain(reuse_line(profile, statistics)))
        console.print(_totals(transcript))
    return re.sub(r" +$", "", captured.get(), flags=re.MULTILINE).rstrip()


def cores(milli: int) -> str:
    """Thousandths of a core as cores: 2, 0.5."""
    return f"{milli // 1000}.{milli % 1000:03d}".rstrip("0").rstrip(".")


def gibibytes(amount: int) -> str:
    """Bytes as GiB, to a tenth."""
    return f"{amount / _GIB:.1f}Gi"


def _placements(placed: Sequence[Placed], *, wide: bool) -> Table:
    headers = ("NAMESPACE", "POD", "NODE")
    more = ("PROFILE", "PRIORITY", "ATTEMPTS", "CPU", "MEMORY") if wide else ()
    return _table((*headers, *more), [_placement(each, wide=wide) for each in placed])


def _placement(placed: Placed, *, wide: bool) -> tuple[str, ...]:
    pod = placed.pod
    where = pod.namespace, pod.name, placed.node
    if not wide:
        return where
    asked = dict(pod.requests)
    return (
        *where,
        placed.profile,
        str(pod.priority),
        str(placed.attempts),
        cores(asked.get(CPU, 0)),
        gibibytes(asked.get(MEMORY, 0)),
    )


def _preempted(preempted: Sequence[Preempted]) -> Table:
    rows = [(each.pod.namespace, each.pod.name, each.node, each.by) for each in preempted]
    return _table(("NAMESPACE", "PREEMPTED", "FROM", "BY"), rows)


def _volumes(volumes: Sequence[Claimed]) -> Table:
    rows = [
        (
            each.claim.namespace,
            each.claim.name,
            each.volume.name,
            "provisioned" if each.provisioned else "existing",
            each.pod,
        )
        for each in volumes
    ]
    return _table(("NAMESPACE", "CLAIM", "VOLUME", "SOURCE", "POD"), rows)


def _totals(transcript: Transcript) -> str:
    told = [f"{len(transcript.placed)} placed", f"{len(transcript.pending)} pending"]
    if transcript.preempted:
        told.append(f"{len(transcript.preempted)} preempted")
    return ", ".join((*told, f"{transcript.nodes} nodes"))


def _uses(uses: dict[str, Use]) -> Table:
    rows = [
        (
            name,
            *(_amount(name, each) for each in (use.allocatable, use.before, use.after)),
            f"{100 * use.after // use.allocatable}%" if use.allocatable > 0 else "-",
        )
        for name, use in uses.items()
    ]
    return _table(("RESOURCE", "ALLOCATABLE", "BEFORE", "AFTER", "USE"), rows, numbers_from=1)


def _amount(resource: str, amount: int) -> str:
    match unit(resource):
        case "millicores":
            return cores(amount)
        case "bytes":
            return gibibytes(amount)
        case _:
            return str(amount)


def _table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], numbers_from: int | None = None
) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for at, header in enumerate(headers):
        is_number = numbers_from is not None and at >= numbers_from
        table.add_column(header, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        # As texts, because a string would be searched for markup.
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table


def _grouped(pending: Iterable[Pending]) -> dict[str, list[Pending]]:
    groups: dict[str, list[Pending]] = {}
    for each in pending:
        groups.setdefault(plain(each.message), []).append(each)
    return groups


def _count(pods: Sequence[Pending]) -> str:
    return "1 pod" if len(pods) == 1 else f"{len(pods)} pods"


def _names(pods: Sequence[Pending], *, wide: bool) -> str:
    shown = pods if wide else pods[:_NAMES_SHOWN]
    told = ", ".join(plain(each.pod.key) for each in shown)
    left = len(pods) - len(shown)
    return f"{told} and {left} more" if left else told
