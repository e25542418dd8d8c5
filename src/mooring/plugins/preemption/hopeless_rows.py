"""Rows on which evicting everybody does not help, found in plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mooring.cluster.pods import LesserPods
from mooring.cluster.usage import Usage
from mooring.cluster.what_if import imagine_facts
from mooring.framework.calls import ask_recheck
from mooring.framework.plugin import INFEASIBLE, Filter

from .preemption_dry_run import DryRun, find_counting


def is_hopeless(run: DryRun, lesser: LesserPods) -> bool:
    """Whether rows lack room even without all lesser pods, beside the pods nominated to them.

    Only filters that read nothing but figures are asked, so that False is no answer.
    """
    gone = -lesser.usage.sum_groups(lesser.begins)
    weight = run.nodes.nominated_weight(run.pod)
    change = gone if weight is None else gone + weight.at(lesser.rows)
    asked = [each for each in find_counting(run) if each.reads_figures_only]
    return all(_lacks_room(run, row, change, at, asked) for at, row in enumerate(lesser.rows))


def _lacks_room(
    run: DryRun, row: int, change: Usage, at: int, asked: Sequence[Filter[Any]]
) -> bool:
    facts = imagine_facts(run.nodes, int(row), change, at)
    if facts is None:
        return False
    prepared = run.pre_filtered.prepared
    return any(
        ask_recheck(each, prepared.get(each.name, run.pod), run.nodes, facts) is INFEASIBLE
        for each in asked
    )
