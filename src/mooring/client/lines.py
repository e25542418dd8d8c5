"""Chunks of a stream, cut into lines."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator


async def lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Whole lines without their end; a last line that was cut off is not one."""
    # Parts are joined once, so that a line of many chunks does not cost its length squared.
    begun: list[bytes] = []
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        begun.append(first)
        for other in others:
            line = b"".join(begun)
            begun = [other]
            if line:
                yield line
