"""Explanations: the answers that decisions are made of, as data.

Nothing here decides or changes anything. The command line and the page show an `Explanation` as it
is.
"""

from .explain import UnknownNode, explain, view_queue
from .explanation import (
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
    "view_queue",
]
