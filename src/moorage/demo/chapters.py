"""The chapters of the demo, in order, and how they run."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from moorage.app.observations import Observations
from moorage.engine import Engine

from . import resource_chapters, workload_chapters
from .demo_client import PodView, connect_client
from .demo_context import Chapter, DemoContext, DemoDisplay
from .resource_chapters import DEVICES
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


async def run_all_chapters(
    kubeconfig: Path, engine: Engine, observations: Observations, display: DemoDisplay, pace: float
) -> None:
    """Runs all chapters on a cluster that is ready; raises CheckFailed."""
    async with connect_client(kubeconfig) as client:
        pods = PodView(client.api)
        demo = DemoContext(
            client=client,
            pods=pods,
            display=display,
            engine=engine,
            observations=observations,
            pace=pace,
        )
        watching = asyncio.create_task(pods.follow())
        try:
            await run_chapters(demo, CHAPTERS)
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching


async def run_chapters(demo: DemoContext, chapters: tuple[Chapter, ...]) -> None:
    """Runs chapters one after the other."""
    for number, chapter in enumerate(chapters, 1):
        demo.display.show_chapter(number, len(chapters), chapter.title, chapter.about)
        await demo.pause()
        await chapter.run(demo)
        await demo.pause()
