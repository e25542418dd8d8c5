"""What a plugin may say about the nodes that it rejects: an extension point beside the others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Nodes
from mooring.framework.edits import AnyEdit, Edit, PodAt
from mooring.framework.plugin import F, Plugin
from mooring.framework.status import check_items, check_text
from mooring.objects.pod import Pod

#: What stands in the way; `plugin` is what a plugin of others has to say.
Kind = Literal[
    "resources",
    "pods",
    "taint",
    "cordon",
    "node-labels",
    "node-name",
    "ports",
    "pod-affinity",
    "pod-anti-affinity",
    "spread",
    "volumes",
    "coexist",
    "gpu",
    "disk",
    "priority",
    "gates",
    "scheduler",
    "plugin",
    "several",
]


@dataclass(frozen=True, slots=True)
class Advice:
    """What stands in the way of a pod on some nodes, and edits that may help there.

    Without edits it only says so. A problem that says more than the reason does is worth most.
    """

    problem: str
    edits: tuple[AnyEdit, ...] = ()
    #: Some of the pods that stand in the way.
    blockers: tuple[PodAt, ...] = ()
    kind: Kind = "plugin"

    def __post_init__(self) -> None:
        check_text("Advice.problem", self.problem)
        check_items("Advice.edits", self.edits, Edit)
        check_items("Advice.blockers", self.blockers, PodAt)
        if self.kind not in get_args(Kind):
            raise TypeError(f"Advice.kind is {self.kind!r}, expected one of {get_args(Kind)}")


class Advise(Plugin, Generic[F]):
    """Says what would help where the plugin rejects nodes.

    It needs no place in the configuration: a profile that has the plugin's filter has its advice.
    """

    @abstractmethod
    def advise(
        self, pod: Pod, prepared: F | None, nodes: Nodes, rows: NDArray[np.intp]
    ) -> Iterable[Advice]:
        """The most helpful first, about rows that the plugin rejects.

        `prepared` is what `filter` gets. It is None where `pre_filter` rejected the pod as a whole;
        then the rows are all there are. Advice is tried before it is told, so it may be a guess.
        """
