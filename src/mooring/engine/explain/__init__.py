"""Explaining decisions: the same answers that decisions are made of, told as data.

Nothing here decides or changes anything. Whoever shows an explanation, in a terminal or over
HTTP, finds in it all there is to show.
"""

from .data import (
    Combination,
    Explanation,
    NodeAnswer,
    NodeScore,
    PermitWait,
    Preemption,
    QueueView,
    Rejection,
    Suggestion,
)
from .explain import UnknownNode, explain
from .standing import queue_view

__all__ = [
    "Combination",
    "Explanation",
    "NodeAnswer",
    "NodeScore",
    "PermitWait",
    "Preemption",
    "QueueView",
    "Rejection",
    "Suggestion",
    "UnknownNode",
    "explain",
    "queue_view",
]
