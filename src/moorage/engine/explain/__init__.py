"""Explanations: the answers from which decisions are made, as data.

Nothing here decides or changes anything. The command line and the page show an `Explanation` as it
is.
"""

from .explain_gang import GangExplanation, explain_gang
from .explain_pod import NoSuchNode, explain, explain_in_steps
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
from .queue_view import view_queue
from .steps import Steps, finish

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
    "Steps",
    "Suggestion",
    "explain",
    "explain_gang",
    "explain_in_steps",
    "finish",
    "view_queue",
]
