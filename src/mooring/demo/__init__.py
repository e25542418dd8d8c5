"""A story of a cluster, told while it happens: `mooring up --demo`.

Chapters do what a user could do with kubectl, through the API server, and every promise of their
text is checked. How the story looks is left to whoever tells it; nothing is printed here.
"""

from .cast import CLUSTER, MANIFESTS, SCHEDULER
from .promises import BrokenPromise
from .stage import Stage, Teller
from .story import tell

__all__ = ["CLUSTER", "MANIFESTS", "SCHEDULER", "BrokenPromise", "Stage", "Teller", "tell"]
