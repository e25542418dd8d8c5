"""Rebuilding everything from objects and comparing: the invariant behind every test."""

from .rows import check

__all__ = [
    "check",
]
