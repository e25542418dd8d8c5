"""What CoexistPolicy costs: against anti-affinity that does the same, and for who does without."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

from mooring.objects.coexist import DAEMONSET_AND_STATIC_PODS
from mooring.objects.node import HOSTNAME

from .measure import MakeEngine, Measured, fill, measure, place_all
from .workloads import WORKLOADS, Workload

# An odd number, so that the median is a pair that was measured.
_PAIRS = 9

# With anti-affinity, every pod that is to be kept off needs a label, exclusive or not.
_REPELLED = {"coexists": "no"}
_TERM = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": _REPELLED}}
_REPELLING = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]}}

BY_POLICY = Workload("by policy", {"coexistPolicy": DAEMONSET_AND_STATIC_PODS}, running_per_node=0)
BY_ANTI_AFFINITY = Workload(
    "by anti-affinity", {"affinity": _REPELLING}, _REPELLED, running_per_node=0
)


def exclusive(make_engine: MakeEngine, nodes: int, pods: int) -> Iterator[Measured]:
    """Pods that take a node each, and ordinary pods around them; then both by anti-affinity."""
    for alone in (BY_POLICY, BY_ANTI_AFFINITY):
        engine = make_engine()
        fill(engine, alone, nodes)
        # Half of the nodes are left to the others.
        count = min(pods, max(nodes // 2, 1))
        deciding, seconds = place_all(engine, alone.pods(count, "alone"))
        yield Measured(f"alone {alone.name}", nodes, count, deciding, seconds)
        others = Workload("others", labels=alone.labels)
        deciding, seconds = place_all(engine, others.pods(pods, "other"))
        yield Measured(f"others {alone.name}", nodes, pods, deciding, seconds)


def overhead(make_engine: MakeEngine, nodes: int, pods: int) -> Iterator[Measured]:
    """Plain pods with the gate on and off, in pairs; tells the median of what a pair differs by."""
    plain = WORKLOADS["plain pods"]
    measure(plain, nodes, pods, make_engine)
    pairs = []
    for number in range(_PAIRS):
        # Whoever comes second may find a warmer machine, or a slower one.
        order = (True, False) if number % 2 else (False, True)
        pairs.append({is_on: _measured(plain, nodes, pods, make_engine, is_on) for is_on in order})
    by_ratio = sorted(pairs, key=lambda pair: pair[True].seconds / pair[False].seconds)
    more = median(pair[True].seconds / pair[False].seconds for pair in pairs) - 1
    middle = by_ratio[len(by_ratio) // 2]
    yield replace(middle[False], workload="gate off")
    yield replace(middle[True], workload=f"gate on ({more:+.2%})")


def _measured(
    workload: Workload, nodes: int, pods: int, make_engine: MakeEngine, is_on: bool
) -> Measured:
    gc.collect()
    return measure(workload, nodes, pods, lambda: make_engine(CoexistPolicy=is_on))
