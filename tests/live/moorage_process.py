"""`moorage run` as its own process, as users start it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from tests.patience import PATIENCE_SECONDS, until


def kubeconfig(path: Path, server: str, token: str) -> Path:
    """Writes a kubeconfig for a server and a token."""
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [
                    {"name": "c", "cluster": {"server": server, "insecure-skip-tls-verify": True}}
                ],
                "users": [{"name": "u", "user": {"token": token}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    return path


# What the answer to SIGUSR2 begins with, whether or not there was anybody to compare with.
_COMPARED = "Compared the cache with", "Could not compare the cache with"


class MoorageProcess:
    """A scheduler that can be killed."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    @property
    def log(self) -> str:
        return self._log.read_text()

    async def logged(self, text: str) -> None:
        """Waits until the log has a text."""

        async def is_there() -> bool:
            return text in self.log

        await self.settled(is_there)

    async def settled(self, look: Callable[[], Awaitable[object]]) -> None:
        """Waits until there is something to see; it never comes once the process has ended."""

        async def look_again() -> bool:
            if await look():
                return True
            assert self._process.returncode is None, self.log[-2000:]
            return False

        await until(look_again)

    async def caught_up(self) -> None:
        """Waits until it knows which nodes and bound pods the API server has.

        Each kind of object has a watch of its own: whoever has heard of a pod need not have heard
        of a node that is older. Only for a process that has logged something: before, the signal
        would end it.
        """

        def read_answers() -> list[str]:
            lines = self.log.splitlines()
            return [line for line in lines if any(each in line for each in _COMPARED)]

        async def is_equal() -> bool:
            before = len(read_answers())
            self.signal(signal.SIGUSR2)

            async def is_told() -> bool:
                return len(read_answers()) > before

            await self.settled(is_told)
            return "differences=0" in read_answers()[-1]

        await self.settled(is_equal)

    async def kill(self) -> None:
        self._process.kill()
        await self._process.wait()

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    async def stop(self) -> int:
        """Asks for an orderly end; returns the exit code."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        return await self.wait()

    async def wait(self) -> int:
        return await asyncio.wait_for(self._process.wait(), PATIENCE_SECONDS)


async def start(
    log: Path, kubeconfig: Path, *options: str, most_descriptors: int | None = None
) -> MoorageProcess:
    """Starts `moorage run`."""
    limited = () if most_descriptors is None else ("prlimit", f"--nofile={most_descriptors}")
    # Tests that want endpoints say where.
    command = ("run", f"--kubeconfig={kubeconfig}", "--secure-port=0", *options)
    return await start_command(log, *limited, sys.executable, "-m", "moorage", *command)


async def start_command(log: Path, *command: str | Path) -> MoorageProcess:
    """Starts any command, with a file for what it prints."""
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(*command, stdout=output, stderr=output)
    return MoorageProcess(process, log)


@asynccontextmanager
async def running(log: Path, *command: str | Path) -> AsyncIterator[MoorageProcess]:
    """Any command for the length of a test: another scheduler, or one of Moorage's that watches."""
    process = await start_command(log, *command)
    try:
        yield process
    finally:
        if not process.has_ended:
            await process.kill()


@asynccontextmanager
async def moorage(
    log: Path, kubeconfig: Path, *options: str, most_descriptors: int | None = None
) -> AsyncIterator[MoorageProcess]:
    """A scheduler for the length of a test."""
    process = await start(log, kubeconfig, *options, most_descriptors=most_descriptors)
    try:
        yield process
    finally:
        if process._process.returncode is None:
            await process.kill()
