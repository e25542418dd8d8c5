"""What a story says must be so."""

from __future__ import annotations


class BrokenPromise(Exception):
    """Something was told that turned out not to be so."""

    def __init__(self, promised: str, seen: str) -> None:
        super().__init__(f"promised: {promised}\nseen: {seen}")
        self.promised = promised
        self.seen = seen
