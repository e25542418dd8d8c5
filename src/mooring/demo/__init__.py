"""The demo of `mooring up --demo`: a story of a cluster, told while it happens.

Chapters do what a user could do with kubectl, through the API server, and every promise of their
text is checked. A narrator shows the story; nothing is printed here.
"""

from .cluster_view import CLUSTER, MANIFESTS, SCHEDULER
from .stage import BrokenPromise, Narrator, Stage
from .story import play_story

__all__ = ["CLUSTER", "MANIFESTS", "SCHEDULER", "BrokenPromise", "Narrator", "Stage", "play_story"]
