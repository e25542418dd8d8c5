"""Advice: what a plugin's author can say to the owner of a pod that its filter keeps off nodes.

Nothing here is asked while pods are decided about. Whoever explains a pod asks, tries all that is
advised, and tells what is true.
"""

from .advise import Advice, Advise, Kind
from .counting import MOST_BLOCKERS, on_nodes, pods_on
from .grouping import MOST_EDITS, MOST_GROUPS, failing_sets, like_columns
from .shortages import NearMiss, near_misses

__all__ = [
    "MOST_BLOCKERS",
    "MOST_EDITS",
    "MOST_GROUPS",
    "Advice",
    "Advise",
    "Kind",
    "NearMiss",
    "failing_sets",
    "like_columns",
    "near_misses",
    "on_nodes",
    "pods_on",
]
