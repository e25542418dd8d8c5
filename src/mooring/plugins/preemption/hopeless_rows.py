"""Rows on which evicting everybody does not help, found in plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mooring.cluster.what_if import imagine_pods
from mooring.framework.calls import ask_recheck
from mooring.framework.plugin import INFEASIBLE, Filter
from mooring.objects.pod import Pod

from .preemption_dry_run import DryRun


def find_hopeful(run: DryRun, rows: Sequence[int]) -> list[int]:
    """The rows without those that lack room even if all lesser pods leave, or that have none.

    Pods that are nominated to a row take their room there. Only filters that read nothing but
    figures are asked, so that a row that is left may be one that has no room all the same.
    """
    asked = [each for each in run.counting if each.reads_figures_only]
    return [row for row in rows if _is_hopeful(run, row, asked)]


def _is_hopeful(run: DryRun, row: int, asked: Sequence[Filter[Any]]) -> bool:
    priority = run.pod.priority
    lesser = [each for each in run.nodes.pods(row).values() if each.priority < priority]
    return bool(lesser) and not _lacks_room(run, row, lesser, asked)


def _lacks_room(run: DryRun, row: int, lesser: Sequence[Pod], asked: Sequence[Filter[Any]]) -> bool:
    nodes, pod = run.nodes, run.pod
    coming = [
        each
        for each in nodes.nominations.on(nodes.name(row)).values()
        if each.priority >= pod.priority and each.uid != pod.uid
    ]
    facts = imagine_pods(nodes, row, lesser, coming)
    if facts is None:
        return False
    prepared = run.pre_filtered.prepared
    return any(
        ask_recheck(each, prepared.get(each.name, pod), nodes, facts) is INFEASIBLE
        for each in asked
    )
