"""Processes of a benchmark: a scheduler, and an embedded API server.

The API server is a process of its own so that its work is not counted as the harness's. It is
started as `python -m moorage.bench.live.processes KUBECONFIG` and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import uvloop

from moorage.bench.cases import RunFailed, WorkloadError

# For whatever it does before it goes.
_GOODBYE_SECONDS = 10.0

_LOG_LINES = 15

# In /proc/PID/stat, counted from behind the name: time in the program and in the kernel.
_PROGRAM, _KERNEL = 11, 12


def fill_placeholders(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Returns the words of a command with `{name}` replaced, wherever it stands in a word."""
    words = list(command)
    for name, value in values.items():
        words = [word.replace(f"{{{name}}}", value) for word in words]
    return words


class SchedulerProcess:
    """One run of a scheduler. Its output goes to a file."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self._log = log
        with log.open("wb") as output:
            try:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
                )
            except OSError as error:
                text = (error.strerror or str(error)).lower()
                raise WorkloadError("--scheduler", command[0], text) from None
        self._processor_seconds = 0.0
        self._peak_bytes = 0

    @property
    def processor_seconds(self) -> float:
        """The time of all its threads so far."""
        try:
            text = Path(f"/proc/{self._process.pid}/stat").read_text()
        except OSError:
            return self._processor_seconds
        fields = text.rpartition(")")[2].split()
        ticks = int(fields[_PROGRAM]) + int(fields[_KERNEL])
        self._processor_seconds = ticks / os.sysconf("SC_CLK_TCK")
        return self._processor_seconds

    @property
    def peak_bytes(self) -> int:
        """The most memory that it ever had; 0 where the system does not tell."""
        try:
            text = Path(f"/proc/{self._process.pid}/status").read_text()
        except OSError:
            return self._peak_bytes
        for line in text.splitlines():
            if line.startswith("VmHWM:"):
                self._peak_bytes = int(line.split()[1]) * 1024
        return self._peak_bytes

    @property
    def log(self) -> str:
        """The end of what it has written."""
        lines = self._log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        return "\n".join(f"  {line}" for line in lines) or "  (its log is empty)"

    def check(self) -> None:
        """Raises RunFailed if it has gone."""
        code = self._process.poll()
        if code is not None:
            raise RunFailed(f"{self.name} ended with code {code}; the end of its log:\n{self.log}")

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_START_SECONDS = 60.0
_LOOK_SECONDS = 0.05


@contextmanager
def embedded_server(folder: Path) -> Iterator[Path]:
    """Starts one; the kubeconfig to reach it is in the folder."""
    kubeconfig, log = folder / "kubeconfig", folder / "api-server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            (sys.executable, "-m", __name__, str(kubeconfig)),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    assert process.stdin is not None
    try:
        until = time.monotonic() + _START_SECONDS
        while not kubeconfig.exists():
            if process.poll() is not None or time.monotonic() > until:
                raise WorkloadError("the embedded API server did not start", log.read_text())
            time.sleep(_LOOK_SECONDS)
        yield kubeconfig
    finally:
        process.stdin.close()
        process.wait()


async def _serve(kubeconfig: Path) -> None:
    # Here, because the process that starts the server does not need it.
    from moorage.embedded.controllers.resource_claims import ResourceClaimController
    from moorage.embedded.controllers.runner import run_controllers
    from moorage.embedded.server import ServerSettings, serve

    running = await serve(ServerSettings())
    # As in scheduler_perf, claims are made from templates. Other controllers are not wanted.
    controllers = asyncio.create_task(run_controllers(running.api, (ResourceClaimController,)))
    try:
        # In one go, because somebody waits for the file to be there.
        half = kubeconfig.with_suffix(".part")
        half.touch(0o600)
        half.write_bytes(msgspec.json.encode(running.kubeconfig))
        os.replace(half, kubeconfig)
        await asyncio.to_thread(sys.stdin.read)
    finally:
        controllers.cancel()
        await asyncio.gather(controllers, return_exceptions=True)
        await running.stop()


if __name__ == "__main__":
    uvloop.run(_serve(Path(sys.argv[1])))
