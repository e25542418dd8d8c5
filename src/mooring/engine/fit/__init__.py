"""What if: how many pods would fit, where, and what runs out first.

Asked of an engine of its own, which is made for the question and thrown away after it.
"""

from .data import Comparison, Fit, KindShare, Left, Move, NodeShare, RunsOut
from .fit import Question, UnknownNode, compare, fit
from .scene import Scene

__all__ = [
    "Comparison",
    "Fit",
    "KindShare",
    "Left",
    "Move",
    "NodeShare",
    "Question",
    "RunsOut",
    "Scene",
    "UnknownNode",
    "compare",
    "fit",
]
