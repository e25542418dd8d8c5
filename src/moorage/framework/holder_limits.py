"""What a plugin declares that limits the nodes of a namespace's exclusive pods."""

from __future__ import annotations


class LimitHolders:
    """Shows people the limit that a plugin keeps; it influences no decision."""

    #: How many nodes exclusive pods of a namespace without a label may hold; None is any number.
    most: int | None = None
