"""The demo of `moorage up --demo`: what a cluster does, shown while it happens.

Chapters do what a user could do with kubectl, through the API server, and check what their text
says. A display shows them to the user; nothing is printed here.
"""

from .chapters import run_all_chapters
from .demo_client import CLUSTER, GATES, MANIFESTS, SCHEDULER
from .demo_context import CheckFailed, DemoContext, DemoDisplay

__all__ = [
    "CLUSTER",
    "GATES",
    "MANIFESTS",
    "SCHEDULER",
    "CheckFailed",
    "DemoContext",
    "DemoDisplay",
    "run_all_chapters",
]
