"""Explanations: the answers that decisions are made of, as data.

Nothing here decides or changes anything. The command line and the page show an `Explanation` as it
is.
"""

from .explain_gang import GangExplanation, explain_gang
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
    "GangExplanation",
    "NoSuchNode",
    "NodeAnswer",
    "PermitWait",
    "Preemption",
    "QueueView",
    "Rejection",
    "ScoredNode",
    "Suggestion",
    "explain",
    "explain_gang",
    "view_queue",
]
