"""Pods that wait: the order in which they are tried, their backoff, and what wakes them.

Time comes in with each call. The queue does not know what plugins decide, which pods are nominated,
or what is written to the API.
"""

from .group_backoff import GroupReturn
from .grouped_queue import GroupedQueue
from .queue import Queue
from .queued_group import QueuedGroup
from .queued_pod import Backoff, FailedAttempt, Place, QueuedPod, SharedFailure

__all__ = [
    "Backoff",
    "FailedAttempt",
    "GroupReturn",
    "GroupedQueue",
    "Place",
    "Queue",
    "QueuedGroup",
    "QueuedPod",
    "SharedFailure",
]
