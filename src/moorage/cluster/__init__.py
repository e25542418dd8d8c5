"""The cluster as columns: one row per node, one array per thing that decisions read.

`Cluster` is the only writer. `Nodes` is what the engine sees: read-only views of the same arrays,
so there is no snapshot to copy. A plugin sees a `View` of the facts that it declares. Decisions,
plugins and I/O do not live here.
"""

from .changes import EVERYWHERE, Change, ChangeLog, Scope
from .check import check
from .cluster import Cluster, UnknownNode
from .columns import Figures, RowFacts
from .extended.contract import (
    POOL,
    Admission,
    ExtendedCache,
    ExtendedResource,
    Handle,
    HandleRegistry,
    ObjectPerNode,
)
from .extended.informers import Informer
from .facts import UndeclaredFact
from .ledger import Counts, Ledger, RowCounts
from .nodes import Mask, Nodes, NodeView, Rows
from .tally import PodMatch, Tally
from .view import View
from .what_if import BareNodes, WhatIf

__all__ = [
    "EVERYWHERE",
    "POOL",
    "Admission",
    "BareNodes",
    "Change",
    "ChangeLog",
    "Cluster",
    "Counts",
    "ExtendedCache",
    "ExtendedResource",
    "Figures",
    "Handle",
    "HandleRegistry",
    "Informer",
    "Ledger",
    "Mask",
    "NodeView",
    "Nodes",
    "ObjectPerNode",
    "PodMatch",
    "RowCounts",
    "RowFacts",
    "Rows",
    "Scope",
    "Tally",
    "UndeclaredFact",
    "UnknownNode",
    "View",
    "WhatIf",
    "check",
]
