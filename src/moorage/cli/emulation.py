"""Chooses the version of kube-scheduler that a command follows: a given one or the API server's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING

import typer

from moorage.config.kubernetes_versions import (
    DEFAULT_VERSION,
    FLAG,
    KubernetesVersion,
    read_server_version,
    read_version,
)

from .rendering import note
from .signals import StopSignal

if TYPE_CHECKING:
    from moorage.client import Connection

    from .inputs import ConnectionOptions

# Before an API server that does not answer is asked again.
_PAUSE_SECONDS = 1.0


def choose_version(given: str, server: ConnectionOptions | None = None) -> KubernetesVersion:
    """Returns the given version, or the one nearest to the API server's, or the default.

    Raises InputError if the version is not known, and ClientError if the server cannot be reached.
    """
    if given:
        return read_version(given)
    if server is None:
        return DEFAULT_VERSION

    async def main() -> KubernetesVersion:
        return await _ask(await server.connect())

    return asyncio.run(main())


#: What is served while a command waits.
Meanwhile = Callable[[], AbstractAsyncContextManager[object]]


def await_version(
    given: str, server: ConnectionOptions, meanwhile: Meanwhile = nullcontext
) -> KubernetesVersion:
    """Chooses the version as `choose_version` does, but waits until the API server answers.

    A scheduler may start before its API server. Raises Exit if a signal stops the wait.
    """
    if given:
        return read_version(given)

    async def main() -> KubernetesVersion | None:
        connection = await server.connect()
        async with meanwhile():
            return await _ask_until_answered(connection)

    found = asyncio.run(main())
    if found is None:
        raise typer.Exit(0)
    return found


async def _ask_until_answered(connection: Connection) -> KubernetesVersion | None:
    from moorage.client import ClientError

    stop = StopSignal()
    has_failed = False
    while not stop.came:
        try:
            return await _ask(connection)
        except ClientError as error:
            if not has_failed:
                note(f"waiting for the API server, whose version decides: {error}")
            has_failed = True
        await stop.wait(_PAUSE_SECONDS)
    return None


async def _ask(connection: Connection) -> KubernetesVersion:
    from moorage.client import Api, ApiError

    try:
        async with Api(connection) as api:
            return read_server_version(await api.get("/version"))
    except ApiError as error:
        # A server that starts up answers 503 or the like for a while.
        if error.status >= 500:
            raise
        name = DEFAULT_VERSION.name
        note(f"the version of the API server cannot be read; {name} is assumed ({FLAG}): {error}")
        return DEFAULT_VERSION
