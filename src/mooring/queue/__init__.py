"""Pods that wait: in which order they are tried, how long they back off, what wakes them.

Time comes in with each call. What a plugin decides, what is nominated where and what is written
to the API is not known here.
"""

from .grouped_queue import GroupedQueue, GroupReturn
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
