"""`moorage top`: nodes and waiting pods, live in the terminal."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import (
    AnswerFormat,
    ContextOption,
    KubeconfigOption,
    MasterOption,
    OutputOption,
    PathsArgument,
)
from .rendering import print_data

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import AsyncIterator, Callable, Coroutine

    from .inputs import ConnectionOptions
    from .top_picture import TopPicture

    Look = Callable[[], TopPicture]

SortOption = Annotated[
    str,
    typer.Option(metavar="RESOURCE|name", help="Nodes that use most of this resource come first."),
]
EveryOption = Annotated[
    float, typer.Option("--every", metavar="SECONDS", min=0.1, help="Seconds between two updates.")
]
OnceOption = Annotated[bool, typer.Option("--once", help="Print one snapshot and exit.")]


def top(  # noqa: PLR0913 - one for each flag
    paths: PathsArgument = None,
    sort: SortOption = "cpu",
    every: EveryOption = 1.0,
    once: OnceOption = False,
    output: OutputOption = AnswerFormat.TABLE,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    master: MasterOption = None,
) -> None:
    """Show how full nodes are and which pods wait, live. The key q ends it.

    Watches the cluster of the API server. Manifests are shown once. Changes nothing.

    Exit code: 0 when stopped, 2 if the input cannot be used.
    """
    from .inputs import ConnectionOptions

    connection = ConnectionOptions(kubeconfig, context, master)
    if paths:
        _print(_read(paths, connection), sort, output)
    elif once or output is not AnswerFormat.TABLE or not sys.stdout.isatty():
        _print(_look_once(connection), sort, output)
    else:
        _follow(connection, sort, every)


def _read(paths: list[str], connection: ConnectionOptions) -> TopPicture:
    from .inputs import EngineOptions, read_cluster
    from .top_picture import FollowedCluster

    followed = FollowedCluster(EngineOptions().engine())
    for item in read_cluster(paths, connection, ()):
        followed.applied(item)
    return followed.look()


def _print(picture: TopPicture, sort: str, output: str) -> None:
    from .rendering import render, terminal_width
    from .top_text import top_parts

    if not print_data(picture, output):
        print(render(top_parts(picture, min(terminal_width(), _MOST_COLUMNS), None, sort)))


# Output that goes to a file has lines of this length.
_MOST_COLUMNS = 200


def _look_once(connection: ConnectionOptions) -> TopPicture:
    import asyncio

    async def main() -> TopPicture:
        async with _watch_cluster(connection) as look:
            return look()

    return asyncio.run(main())


def _follow(connection: ConnectionOptions, sort: str, every: float) -> None:
    """Draws on the alternate screen of the terminal until it is stopped."""
    import asyncio

    from rich.console import Console, Group
    from rich.live import Live

    from .signals import StopSignal
    from .top_text import top_parts

    console = Console(highlight=False, emoji=False, markup=False)

    async def main() -> None:
        async with _watch_cluster(connection) as look:
            stop = StopSignal()
            with (
                stop.stop_on_key(b"q"),
                Live(console=console, screen=True, auto_refresh=False) as live,
            ):
                while not stop.came:
                    width, height = console.size
                    live.update(Group(*top_parts(look(), width, height, sort)), refresh=True)
                    await stop.wait(every)

    asyncio.run(main())


@asynccontextmanager
async def _watch_cluster(connection: ConnectionOptions) -> AsyncIterator[Look]:
    """Yields a function that looks at the cluster, once all of it is known.

    Raises InputError or ClientError.
    """
    from moorage.client import Api, Reflector
    from moorage.objects.kinds import KINDS

    from .inputs import EngineOptions
    from .top_picture import FollowedCluster

    followed = FollowedCluster(EngineOptions().engine())
    async with Api(await connection.reach(), may_write=lambda: False) as api:
        reflectors = [
            Reflector(api, form, followed) for kind in ("Node", "Pod") for form in KINDS[kind].forms
        ]
        async with _run_tasks(*(each.run() for each in reflectors)):
            for each in reflectors:
                await each.synced.wait()
            yield lambda: followed.look(next((each.problem for each in reflectors), ""))


@asynccontextmanager
async def _run_tasks(*work: Coroutine[Any, Any, None]) -> AsyncIterator[list[Task[None]]]:
    """Runs tasks for as long as the context lasts."""
    import asyncio

    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
