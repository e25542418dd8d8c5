"""What is wrong with a workload, and what came of a run that cannot be measured."""

from __future__ import annotations


class WorkloadError(Exception):
    """Input that cannot be used. The text is one line: file, workload, field, what is wrong."""

    def __init__(self, *parts: object) -> None:
        super().__init__(": ".join(filter(None, map(str, parts))))


class NotPlaced(RuntimeError):
    """A run whose time means nothing, because a pod that should have a node has none."""


class Broken(RuntimeError):
    """A run that came to nothing: the API server refused, or the scheduler went away."""


class NotSupported(Exception):
    """A workload that needs what Mooring does not have; the text says what."""
