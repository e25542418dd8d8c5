"""A transcript as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from mooring.objects.resources import CPU, MEMORY
from mooring.simulate.report import reuse_line, unit
from mooring.simulate.transcript import Claimed, Pending, Placed, Preempted, Transcript, Use

from .rendering import console_of_text, table, trimmed
from .text import plain

# Enough to see which workload it is.
_NAMES_SHOWN = 4

_GIB = 2**30


def tables(transcript: Transcript, *, wide: bool = False) -> str:
    """Placements, volumes, use per resource, and what stays pending, one below the other."""
    console = console_of_text()
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
    return trimmed(captured.get())


def cores(milli: int) -> str:
    """Thousandths of a core as cores: 2, 0.5."""
    return f"{milli // 1000}.{milli % 1000:03d}".rstrip("0").rstrip(".")


def gibibytes(amount: int) -> str:
    """Bytes as GiB, to a tenth."""
    return f"{amount / _GIB:.1f}Gi"


def _placements(placed: Sequence[Placed], *, wide: bool) -> Table:
    headers = ("NAMESPACE", "POD", "NODE")
    more = ("PROFILE", "PRIORITY", "ATTEMPTS", "CPU", "MEMORY") if wide else ()
    return table((*headers, *more), [_placement(each, wide=wide) for each in placed])


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
    return table(("NAMESPACE", "PREEMPTED", "FROM", "BY"), rows)


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
    return table(("NAMESPACE", "CLAIM", "VOLUME", "SOURCE", "POD"), rows)


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
    return table(("RESOURCE", "ALLOCATABLE", "BEFORE", "AFTER", "USE"), rows, numbers_from=1)


def _amount(resource: str, amount: int) -> str:
    match unit(resource):
        case "millicores":
            return cores(amount)
        case "bytes":
            return gibibytes(amount)
        case _:
            return str(amount)


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
