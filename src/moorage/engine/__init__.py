"""Decisions: events come in with `handle`, decisions go out of `step` as actions.

The engine is pure and synchronous: time arrives with each call, and nothing here waits, watches or
writes.
"""

from .engine import Engine

__all__ = ["Engine"]
