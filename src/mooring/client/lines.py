"""Chunks of a stream, cut into lines."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

from .errors import TooLarge


async def lines(chunks: AsyncIterable[bytes], longest: int) -> AsyncIterator[bytes]:
    """Whole lines without their end; a last line that was cut off is not one.

    Raises TooLarge if a line is longer than that many bytes.
    """
    # Parts are joined once, so that a line of many chunks does not cost its length squared.
    begun: list[bytes] = []
    length = 0
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        begun.append(first)
        length += len(first)
        for other in others:
            line = b"".join(begun)
            begun, length = [other], len(other)
            if line:
                yield line
        if length > longest:
            raise TooLarge(f"a line is longer than {longest} bytes")
