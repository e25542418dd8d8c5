"""Who knows what to do about a rejection: one advisor per plugin, tried before it is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from .case import Case, RowNumbers
from .data import Suggestion
from .edits import AnyEdit
from .node_advice import advise_on_cordons, advise_on_labels, advise_on_names, advise_on_taints
from .pod_advice import advise_on_affinity, advise_on_coexistence, advise_on_ports
from .proposals import Advisor, Proposal
from .room_advice import advise_on_disks, advise_on_gpus, advise_on_resources
from .spread_advice import advise_on_spread
from .volume_advice import advise_on_volumes

ADVISORS: Mapping[str, Advisor] = {
    "NodeName": advise_on_names,
    "NodeUnschedulable": advise_on_cordons,
    "TaintToleration": advise_on_taints,
    "NodeAffinity": advise_on_labels,
    "NodeResourcesFit": advise_on_resources,
    "NodePorts": advise_on_ports,
    "InterPodAffinity": advise_on_affinity,
    "PodTopologySpread": advise_on_spread,
    "VolumeBinding": advise_on_volumes,
    "VolumeZone": advise_on_volumes,
    "VolumeRestrictions": advise_on_volumes,
    "NodeVolumeLimits": advise_on_volumes,
    "CoexistPolicy": advise_on_coexistence,
    "GPUAware": advise_on_gpus,
    "DiskIO": advise_on_disks,
}

# Of nodes that two plugins reject, the largest groups, and of each the most promising pairs.
_MOST_PAIRS = 4
_PER_PLUGIN = 3

Pattern = tuple[tuple[str, ...], RowNumbers]


@dataclass(frozen=True, slots=True)
class Advised:
    """A proposal and the plugins that it is about."""

    plugins: tuple[str, ...]
    proposal: Proposal


def suggestions(
    case: Case, patterns: Iterable[Pattern], infeasible: RowNumbers
) -> tuple[Suggestion, ...]:
    """What would help where one plugin or two reject nodes; what would help most comes first.

    Every proposal is tried on all infeasible rows, so that what is told is true, and all of it.
    """
    told: dict[frozenset[AnyEdit], Suggestion] = {}
    without: list[Suggestion] = []
    for advised in _proposals(case, list(patterns)):
        key = frozenset(advised.proposal.edits)
        if not key:
            without.append(_suggestion(case, advised, infeasible[:0]))
        elif key not in told:
            helped = case.helped(advised.proposal.edits, infeasible)
            if len(helped):
                told[key] = _suggestion(case, advised, helped)
    best = sorted(_minimal(told), key=lambda each: (len(each.edits), -each.count))
    return (*best, *without)


def _proposals(case: Case, patterns: list[Pattern]) -> Iterator[Advised]:
    alone = [pattern for pattern in patterns if len(pattern[0]) == 1]
    pairs = [pattern for pattern in patterns if len(pattern[0]) == 2][:_MOST_PAIRS]
    for (plugin,), rows in alone:
        for proposal in proposed(case, plugin, rows):
            yield Advised((plugin,), proposal)
    for (one, other), rows in pairs:
        first, second = (
            [each for each in proposed(case, name, rows) if each.edits][:_PER_PLUGIN]
            for name in (one, other)
        )
        # What mends one may mend the other too: a cordon comes with its own taint.
        for plugin, found in ((one, first), (other, second)):
            yield from (Advised((plugin,), proposal) for proposal in found)
        for left, right in product(first, second):
            yield Advised((one, other), _both(left, right))


def proposed(case: Case, plugin: str, rows: RowNumbers) -> Iterator[Proposal]:
    """What the advisor of a plugin has to say, if there is one."""
    advisor = ADVISORS.get(plugin)
    return iter(()) if advisor is None else advisor(case, rows)


def _both(left: Proposal, right: Proposal) -> Proposal:
    edits = tuple(dict.fromkeys((*left.edits, *right.edits)))
    problem = f"{left.problem}; {right.problem}"
    return Proposal("several", problem, edits, (*left.blockers, *right.blockers))


def _minimal(told: Mapping[frozenset[AnyEdit], Suggestion]) -> Iterator[Suggestion]:
    """Those that help some node which no smaller change helps."""
    for key, each in told.items():
        smaller = [other for edits, other in told.items() if edits < key]
        if not smaller or not set(each.nodes) <= {name for less in smaller for name in less.nodes}:
            yield each


def _suggestion(case: Case, advised: Advised, helped: RowNumbers) -> Suggestion:
    proposal = advised.proposal
    return Suggestion(
        kind=proposal.kind,
        plugins=advised.plugins,
        problem=proposal.problem,
        remedy=" and ".join(edit.told for edit in proposal.edits) if len(helped) else "",
        effect="fits" if len(helped) else "none",
        edits=proposal.edits if len(helped) else (),
        count=len(helped),
        nodes=tuple(case.actual.names(helped.tolist())),
        blockers=proposal.blockers,
    )
