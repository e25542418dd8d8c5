"""Checks the invariant behind every test: a cluster equals one rebuilt from its objects."""

from .rows import check

__all__ = [
    "check",
]
