"""Who knows what to do about a rejection: one advisor per plugin, tried before it is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from .case import NO_ROWS, Case, RowNumbers
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
class Tried:
    """A proposal, the plugins that it is about, and the rows that it helps."""

    plugins: tuple[str, ...]
    proposal: Proposal
    helped: RowNumbers


def suggestions(
    case: Case, patterns: Iterable[Pattern], infeasible: RowNumbers
) -> tuple[Suggestion, ...]:
    """What would help where one plugin or two reject nodes; what would help most comes first.

    Every proposal is tried on all infeasible rows, so that what is told is true, and all of it.
    """
    known = list(patterns)
    pairs = [pattern for pattern in known if len(pattern[0]) == 2][:_MOST_PAIRS]
    told: dict[frozenset[AnyEdit], Tried] = {}
    hopeless: list[Tried] = []
    for pattern in [*(each for each in known if len(each[0]) == 1), *pairs]:
        for tried in _tried(case, pattern, infeasible):
            if tried.proposal.edits:
                told.setdefault(frozenset(tried.proposal.edits), tried)
            else:
                hopeless.append(tried)
    found = [_suggestion(case, tried) for tried in (*_minimal(told), *hopeless)]
    return tuple(sorted(found, key=lambda each: (not each.count, len(each.edits), -each.count)))


def _tried(case: Case, pattern: Pattern, infeasible: RowNumbers) -> Iterator[Tried]:
    """The proposals for rows that the same plugins reject, those of them that help such a row."""
    plugins, rows = pattern
    each = [(plugin, list(proposed(case, plugin, rows))) for plugin in plugins]
    helps = False
    for plugin, proposals in each:
        # What mends one may mend another too: a cordon comes with its own taint.
        for proposal in proposals:
            helped = case.helped(proposal.edits, infeasible) if proposal.edits else NO_ROWS
            if np.isin(helped, rows).any() or (len(plugins) == 1 and not proposal.edits):
                helps = True
                yield Tried((plugin,), proposal, helped)
    if not helps and len(each) == 2:
        yield from _together(case, each, pattern, infeasible)


def _together(
    case: Case,
    each: list[tuple[str, list[Proposal]]],
    pattern: Pattern,
    infeasible: RowNumbers,
) -> Iterator[Tried]:
    """Two proposals at once: the first that helps, which is the nearest, and that helping most."""
    plugins, rows = pattern
    first, second = ([one for one in found if one.edits][:_PER_PLUGIN] for _, found in each)
    tried = [
        Tried(plugins, both, case.helped(both.edits, infeasible))
        for both in (_both(left, right) for left, right in product(first, second))
    ]
    good = [one for one in tried if np.isin(one.helped, rows).any()]
    if good:
        yield good[0]
        yield max(good, key=lambda one: len(one.helped))


def proposed(case: Case, plugin: str, rows: RowNumbers) -> Iterator[Proposal]:
    """What the advisor of a plugin has to say, if there is one."""
    advisor = ADVISORS.get(plugin)
    return iter(()) if advisor is None else advisor(case, rows)


def _both(left: Proposal, right: Proposal) -> Proposal:
    edits = tuple(dict.fromkeys((*left.edits, *right.edits)))
    problem = f"{left.problem}; {right.problem}"
    return Proposal("several", problem, edits, (*left.blockers, *right.blockers))


def _minimal(told: Mapping[frozenset[AnyEdit], Tried]) -> Iterator[Tried]:
    """Those that help some node which no smaller change helps."""
    for key, each in told.items():
        smaller = [other.helped for edits, other in told.items() if edits < key]
        if not smaller or not np.isin(each.helped, np.concatenate(smaller)).all():
            yield each


def _suggestion(case: Case, tried: Tried) -> Suggestion:
    proposal, helps = tried.proposal, bool(len(tried.helped))
    return Suggestion(
        kind=proposal.kind,
        plugins=tried.plugins,
        problem=proposal.problem,
        remedy=" and ".join(edit.told for edit in proposal.edits) if helps else "",
        effect="fits" if helps else "none",
        edits=proposal.edits if helps else (),
        count=len(tried.helped),
        nodes=tuple(case.actual.names(tried.helped.tolist())),
        blockers=proposal.blockers,
    )
