"""Text from elsewhere, made safe for a terminal."""

from __future__ import annotations


def plain(text: str) -> str:
    """The text in one line, with control characters written out: a name must not move a cursor."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
