"""HardwareGeneration: newer hardware is better, and a pod may insist on it.

A node's generation is a number in a label. A pod that carries the label
`hardware.example.com/min-generation` runs on no older node; every pod prefers the newest.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np
from numpy.typing import NDArray

from moorage.plugin import (
    Action,
    Change,
    Code,
    Filter,
    Node,
    Pod,
    PreFilter,
    Reason,
    Reduction,
    Rejected,
    Resource,
    Rows,
    Scope,
    Score,
    Scores,
    Sign,
    Verdict,
    View,
    Wakeup,
    Wire,
    normalize_scores,
    on,
    parse_int64,
    unresolvable,
)

MIN_GENERATION = "hardware.example.com/min-generation"

# Scores are scaled by 100, which must not overflow whatever a label says.
NEWEST = 1_000_000

# Evicting pods makes no node newer, so preemption need not try these nodes.
_UNKNOWN = Reason("node(s) have no hardware generation", Code.UNRESOLVABLE)
_OLDER = Reason("node(s) are of an older hardware generation", Code.UNRESOLVABLE)


class HardwareGenerationArgs(Wire, frozen=True):
    """Where a node says which generation it is."""

    node_label: str = "hardware.example.com/generation"

    def problems(self) -> Iterator[tuple[str, str]]:
        if not self.node_label:
            yield "nodeLabel", "is required"


class HardwareGeneration(PreFilter[int], Filter[int], Score[Pod], Sign):
    """Compares numbers in a node label, a column at a time."""

    name = "HardwareGeneration"
    Args = HardwareGenerationArgs
    reads = Change.LABELS
    reduces = Reduction.LARGEST
    scope = Scope.ROW

    def __init__(self, args: HardwareGenerationArgs | None = None) -> None:
        self._label = (args or HardwareGenerationArgs()).node_label

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return pod.labels.get(MIN_GENERATION)

    def pre_filter(self, pod: Pod, nodes: View) -> int | Rejected | None:
        wanted = pod.labels.get(MIN_GENERATION)
        if wanted is None:
            return None
        generation = parse_int64(wanted)
        if generation is None:
            return unresolvable(f'label {MIN_GENERATION} must be a number, got "{wanted}"')
        return generation

    def filter(self, prepared: int, nodes: View, rows: Rows) -> Verdict:
        generations, known = self._generations(nodes, rows)
        return Verdict((_UNKNOWN, _OLDER), np.stack((~known, known & (generations < prepared))))

    def score(self, prepared: Pod, nodes: View, rows: Rows) -> Scores:
        generations, _ = self._generations(nodes, rows)
        return np.clip(generations, 0, NEWEST)

    def normalize(self, prepared: Pod, scores: Scores) -> Scores:
        return normalize_scores(scores)

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._after_node_change),
            on(Resource.POD, Action.UPDATE_POD_LABEL, self._after_pod_change),
        )

    def _generations(self, nodes: View, rows: Rows) -> tuple[Scores, NDArray[np.bool_]]:
        """Per row its generation, 0 where it is not known, and whether it is."""
        column = nodes.label(self._label)
        # One number per distinct value, then to the rows. A node without the label has the code
        # ABSENT, for which these tables hold 0 and False.
        numbers, numeric = column.numbers()
        codes = column.codes[rows]
        return numbers[codes], numeric[codes]

    def _after_node_change(self, pod: Pod, old: Node | None, new: Node) -> bool:
        wanted = parse_int64(pod.labels.get(MIN_GENERATION, ""))
        has = parse_int64(new.labels.get(self._label, ""))
        return wanted is not None and has is not None and has >= wanted

    def _after_pod_change(self, pod: Pod, old: Pod | None, new: Pod) -> bool:
        return new.uid == pod.uid
