"""What `moorage simulate` prints of a transcript: placements, volumes, use, and pending pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from moorage.objects.resources import CPU, MEMORY, describe_amount

from .rendering import indent, line, plain, render, shorten, table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from moorage.simulate.transcript import PendingPod, PlacedPod, PreemptedPod, Transcript, Use
    from moorage.world import ClaimedVolume


def write_tables(transcript: Transcript, *, wide: bool = False) -> str:
    """Writes placements, volumes, use per resource and pending pods as tables."""
    return render(_make_parts(transcript, wide=wide))


def _make_parts(transcript: Transcript, *, wide: bool) -> Iterator[RenderableType]:
    from moorage.simulate.transcript import describe_reuse

    if transcript.placed:
        yield _tabulate_placements(transcript.placed, wide=wide)
        yield ""
    if transcript.preempted:
        yield _tabulate_preemptions(transcript.preempted)
        yield ""
    if transcript.volumes:
        yield _tabulate_volumes(transcript.volumes)
        yield ""
    if transcript.use:
        yield _tabulate_use(transcript.use)
        yield ""
    for message, pods in _group_by_message(transcript.pending).items():
        count = "1 pod" if len(pods) == 1 else f"{len(pods)} pods"
        yield line(f"{count}: {message}")
        names = [each.pod.key for each in pods]
        yield indent(line(shorten(names, len(names)) if wide else shorten(names)))
        yield ""
    for profile, reuse in transcript.reuse.items():
        if reuse.statistics.decisions and (wide or reuse.statistics.verified):
            yield line(describe_reuse(profile, reuse))
    yield _write_totals(transcript)


def _tabulate_placements(placed: Sequence[PlacedPod], *, wide: bool) -> Table:
    headers = ("NAMESPACE", "POD", "NODE")
    more = ("PROFILE", "PRIORITY", "ATTEMPTS", "CPU", "MEMORY") if wide else ()
    return table((*headers, *more), [_describe_placement(each, wide=wide) for each in placed])


def _describe_placement(placed: PlacedPod, *, wide: bool) -> tuple[str, ...]:
    pod = placed.pod
    where = pod.namespace, pod.name, placed.node
    if not wide:
        return where
    requests = dict(pod.requests)
    return (
        *where,
        placed.profile,
        str(pod.priority),
        str(placed.attempts),
        describe_amount(CPU, requests.get(CPU, 0)),
        describe_amount(MEMORY, requests.get(MEMORY, 0)),
    )


def _tabulate_preemptions(preempted: Sequence[PreemptedPod]) -> Table:
    rows = [(each.pod.namespace, each.pod.name, each.node, each.by) for each in preempted]
    return table(("NAMESPACE", "PREEMPTED", "FROM", "BY"), rows)


def _tabulate_volumes(volumes: Sequence[ClaimedVolume]) -> Table:
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


def _tabulate_use(uses: dict[str, Use]) -> Table:
    rows = [
        (
            name,
            *(describe_amount(name, each) for each in (use.allocatable, use.before, use.after)),
            f"{100 * use.after // use.allocatable}%" if use.allocatable > 0 else "-",
        )
        for name, use in uses.items()
    ]
    return table(("RESOURCE", "ALLOCATABLE", "BEFORE", "AFTER", "USE"), rows, numbers_from=1)


def _group_by_message(pending: Iterable[PendingPod]) -> dict[str, list[PendingPod]]:
    """Groups pending pods by their message."""
    groups: dict[str, list[PendingPod]] = {}
    for each in pending:
        groups.setdefault(plain(each.message), []).append(each)
    return groups


def _write_totals(transcript: Transcript) -> str:
    counts = [f"{len(transcript.placed)} placed", f"{len(transcript.pending)} pending"]
    if transcript.preempted:
        counts.append(f"{len(transcript.preempted)} preempted")
    return ", ".join((*counts, f"{transcript.nodes} nodes"))
