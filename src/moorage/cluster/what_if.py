"""The rows as they would be with other pods. The cluster itself is not touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from moorage.objects.pod import Pod

from .arrays import MOST_SUM, Sums, freeze
from .columns import RowFacts
from .extended.resources import ExtendedLayer
from .inventory import Image
from .ledger import LedgerLayer
from .nodes import Mask, Nodes
from .tally import PodMatch
from .usage import PODS_PLACE, Usage, add_nonzero, add_requests


class WhatIf(Nodes):
    """Copied rows. What is counted over whole domains is kept by the plugins that count it."""

    def __init__(self, nodes: Nodes, rows: NDArray[np.intp] | None = None) -> None:
        """With rows, only these are right: what others have been asked for is not copied."""
        nodes = nodes.whole
        super().__init__(nodes._state)
        # A what-if of a what-if starts from the rows as they would be there.
        requested = nodes._requested
        self._requested = requested.copy() if rows is None else requested.copy_at(rows)
        self.requested = self._requested.array
        self._nonzero = nodes._nonzero
        self.nonzero_requested = freeze(self._nonzero.array)
        self._own_nonzero = False
        self._ledgers: LedgerLayer = nodes._ledgers.layer()
        self.volume_use = nodes.volume_use.layer()
        self.extended: ExtendedLayer = nodes.extended.layer()

    def add_pod(self, pod: Pod, row: int) -> None:
        self._count(pod, row, 1)
        self.extended.add_pod(pod, row)
        self._ledgers.add_pod(pod, row)

    def remove_pod(self, pod: Pod, row: int) -> None:
        self._count(pod, row, -1)
        self.extended.remove_pod(pod, row)
        self._ledgers.remove_pod(pod, row)

    def shift(self, rows: NDArray[np.intp], usage: Usage) -> None:
        """Changes what is used on many rows at once; a place of `usage` is one of `rows`.

        That is what filters count of pods; what these count for in scoring stays as it is.
        """
        self._requested.shift(rows, usage.requests)
        self._ledgers.shift(rows, usage.counts)

    def _count(self, pod: Pod, row: int, amount: int) -> None:
        held = pod.held
        add_requests(self._requested, self.resources, held, row, amount)
        add_nonzero(self._writable_nonzero(), held, row, amount)
        if pod.spec.volumes:
            self.volume_use.count(pod, row, amount)

    def _writable_nonzero(self) -> Sums:
        if not self._own_nonzero:
            self._nonzero = self._nonzero.copy()
            self.nonzero_requested = self._nonzero.array
            self._own_nonzero = True
        return self._nonzero


def predict_facts_with_pods(
    nodes: Nodes, row: int, gone: Iterable[Pod], come: Iterable[Pod]
) -> RowFacts | None:
    """Returns a row in plain numbers without some pods and with others; None if a sum is too large.

    What pods count for in scoring stays as it is.
    """
    known, resources = nodes.facts(row), nodes.resources
    if MOST_SUM in known.requested:
        return None
    requested = known.requested.copy()
    for pods, amount in ((gone, -1), (come, 1)):
        for pod in pods:
            for name, request in pod.held.requests:
                at = resources.get(name)
                if at is not None:
                    requested[at] += amount * request
            requested[PODS_PLACE] += amount
    return RowFacts(row, known.allocatable, requested, known.nonzero_requested)


class BareNodes(Nodes):
    """The nodes as if nothing ran there and no image was present, for scoring.

    That is what kube-scheduler knows of nodes that an extender has sent back. What is counted over
    whole domains counts the pods all the same.
    """

    def __init__(self, nodes: Nodes) -> None:
        super().__init__(nodes.whole._state)
        self.requested = freeze(np.zeros_like(nodes.requested))
        self.nonzero_requested = freeze(np.zeros_like(nodes.nonzero_requested))

    def pods(self, row: int) -> Mapping[str, Pod]:
        return {}

    def image(self, name: str) -> tuple[Image, Mask] | None:
        return None

    def matching_pods(self, match: PodMatch) -> NDArray[np.int32]:
        return np.zeros(len(self.alive), np.int32)
