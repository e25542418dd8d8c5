"""`mooring run` as its own process, as users start it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import yaml


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


class MooringProcess:
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

    async def logged(self, text: str, seconds: float = 30.0) -> None:
        """Waits until the log has a text."""
        async with asyncio.timeout(seconds):
            while text not in self.log:
                assert self._process.returncode is None, self.log[-2000:]
                await asyncio.sleep(0.05)

    async def settled(self, look: Callable[[], Awaitable[object]], seconds: float = 30.0) -> None:
        """Waits until there is something to see."""
        async with asyncio.timeout(seconds):
            while not await look():
                assert self._process.returncode is None, self.log[-2000:]
                await asyncio.sleep(0.05)

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
        return await asyncio.wait_for(self._process.wait(), 30)

    async def wait(self) -> int:
        return await asyncio.wait_for(self._process.wait(), 60)


async def start(
    log: Path, kubeconfig: Path, *options: str, most_descriptors: int | None = None
) -> MooringProcess:
    """Starts `mooring run`."""
    limited = () if most_descriptors is None else ("prlimit", f"--nofile={most_descriptors}")
    # Tests that want endpoints say where.
    command = ("run", f"--kubeconfig={kubeconfig}", "--secure-port=0", *options)
    return await start_command(log, *limited, sys.executable, "-m", "mooring", *command)


async def start_command(log: Path, *command: str | Path) -> MooringProcess:
    """Starts any command, with a file for what it prints."""
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(*command, stdout=output, stderr=output)
    return MooringProcess(process, log)


@asynccontextmanager
async def running(log: Path, *command: str | Path) -> AsyncIterator[MooringProcess]:
    """Any command for the length of a test: another scheduler, or one of Mooring's that watches."""
    process = await start_command(log, *command)
    try:
        yield process
    finally:
        if not process.has_ended:
            await process.kill()


@asynccontextmanager
async def mooring(
    log: Path, kubeconfig: Path, *options: str, most_descriptors: int | None = None
) -> AsyncIterator[MooringProcess]:
    """A scheduler for the length of a test."""
    process = await start(log, kubeconfig, *options, most_descriptors=most_descriptors)
    try:
        yield process
    finally:
        if process._process.returncode is None:
            await process.kill()
