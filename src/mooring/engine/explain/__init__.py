"""Explanations: the answers that decisions are made of, as data.

Nothing here decides or changes anything. The command line and the page show an `Explanation` as it
is.
"""

from .explain_pod import NoSuchNode, explain, view_queue
from .explanation import (
    Combination,
    Explanation,
    NodeAnswer,
    PermitWait,
    Preemption,
    QueueView,
    Rejection,
    ScoredNode,
    Suggestion,
)

__all__ = [
    "Combination",
    "Explanation",
    "NoSuchNode",
    "NodeAnswer",
    "PermitWait",
    "Preemption",
    "QueueView",
    "Rejection",
    "ScoredNode",
    "Suggestion",
    "explain",
    "view_queue",
]
