"""The chapters, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mooring.app.observations import Observations
from mooring.engine import Engine

from .chapters import deployment, disks, exclusive, explaining, gpus, job, preemption
from .client import connected
from .pods import Pods
from .stage import Stage, Teller


@dataclass(frozen=True)
class Chapter:
    """A part of the story. What it is about is two lines that fit any terminal."""

    title: str
    about: str
    play: Callable[[Stage], Awaitable[None]]


CHAPTERS = tuple(
    Chapter(each.TITLE, each.ABOUT, each.play)
    for each in (deployment, job, exclusive, gpus, disks, preemption, explaining)
)


async def tell(
    kubeconfig: Path, engine: Engine, observations: Observations, teller: Teller, pace: float
) -> None:
    """Tells the whole story about a cluster that is ready; raises BrokenPromise."""
    async with connected(kubeconfig) as client:
        pods = Pods(client.api)
        stage = Stage(
            client=client,
            pods=pods,
            tell=teller,
            engine=engine,
            observations=observations,
            pace=pace,
        )
        following = asyncio.create_task(pods.follow())
        try:
            await play(stage, CHAPTERS)
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following


async def play(stage: Stage, chapters: tuple[Chapter, ...]) -> None:
    """Plays chapters one after the other."""
    for number, chapter in enumerate(chapters, 1):
        stage.tell.chapter(number, len(chapters), chapter.title, chapter.about)
        await stage.pause()
        await chapter.play(stage)
        await stage.pause()
