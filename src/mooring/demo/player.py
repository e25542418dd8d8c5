"""The chapters of the demo, in order, and how they are played."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from mooring.app.observations import Observations
from mooring.engine import Engine

from . import resource_chapters, workload_chapters
from .demo_client import PodView, connect_client
from .resource_chapters import DEVICES
from .stage import Chapter, Narrator, Stage
from .workload_chapters import GANGS

CHAPTERS = (
    workload_chapters.DEPLOYMENT,
    workload_chapters.JOB,
    workload_chapters.EXCLUSIVE,
    resource_chapters.GPUS,
    DEVICES,
    GANGS,
    resource_chapters.DISKS,
    resource_chapters.PREEMPTION,
    resource_chapters.EXPLANATION,
)


async def play_story(
    kubeconfig: Path, engine: Engine, observations: Observations, narrator: Narrator, pace: float
) -> None:
    """Plays all chapters on a cluster that is ready; raises BrokenPromise."""
    async with connect_client(kubeconfig) as client:
        pods = PodView(client.api)
        stage = Stage(
            client=client,
            pods=pods,
            narrator=narrator,
            engine=engine,
            observations=observations,
            pace=pace,
        )
        watching = asyncio.create_task(pods.follow())
        try:
            await play_chapters(stage, CHAPTERS)
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching


async def play_chapters(stage: Stage, chapters: tuple[Chapter, ...]) -> None:
    """Plays chapters one after the other."""
    for number, chapter in enumerate(chapters, 1):
        stage.narrator.show_chapter(number, len(chapters), chapter.title, chapter.about)
        await stage.pause()
        await chapter.play(stage)
        await stage.pause()
