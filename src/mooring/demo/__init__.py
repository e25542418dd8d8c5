"""The demo of `mooring up --demo`: a story of a cluster, told while it happens.

Chapters do what a user could do with kubectl, through the API server, and every promise of their
text is checked. A narrator shows the story; nothing is printed here.
"""

from .demo_client import CLUSTER, GATES, MANIFESTS, SCHEDULER
from .player import play_story
from .stage import BrokenPromise, Narrator, Stage

__all__ = [
    "CLUSTER",
    "GATES",
    "MANIFESTS",
    "SCHEDULER",
    "BrokenPromise",
    "Narrator",
    "Stage",
    "play_story",
]
