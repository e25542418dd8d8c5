"""Pods that wait: the order in which they are tried, their backoff, and what wakes them.

What waits is an entity: a pod, or a gang of pods that are tried together. Time comes in with each
call. The queue does not know what plugins decide, which pods are nominated, or what is written to
the API.
"""

from .entity import Backoff, Entity, EntityKey, FailedAttempt, Gang, Place
from .queue import Queue

__all__ = [
    "Backoff",
    "Entity",
    "EntityKey",
    "FailedAttempt",
    "Gang",
    "Place",
    "Queue",
]
