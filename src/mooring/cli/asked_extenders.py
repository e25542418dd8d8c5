"""Asking extenders on behalf of a simulation, one question at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from mooring.app.extender_calls import ExtenderCalls
from mooring.engine import Engine
from mooring.engine.actions import AskExtender
from mooring.engine.events import ExtenderAnswered
from mooring.simulate.simulation import AnswerOf
from mooring.simulate.written_manifests import WrittenManifests
from mooring.world import World


@contextmanager
def answering(engine: Engine) -> Iterator[AnswerOf | None]:
    """Answers questions by asking the extenders of the engine; None if it has none.

    Raises ExtenderUnusable if certificates cannot be read.
    """
    extenders = engine.configuration.extenders
    if not extenders:
        yield None
        return
    with asyncio.Runner() as runner:
        calls = runner.run(_open(ExtenderCalls(extenders, 1)))

        def answer(ask: AskExtender, world: World) -> ExtenderAnswered:
            calls.source = WrittenManifests(engine.cluster, world.pods)
            return runner.run(calls.answer(ask))

        try:
            yield answer
        finally:
            runner.run(calls.__aexit__(None, None, None))


async def _open(calls: ExtenderCalls) -> ExtenderCalls:
    return await calls.__aenter__()
