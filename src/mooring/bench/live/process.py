"""A scheduler as a process of its own: started, watched, and measured from outside."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from mooring.bench.problems import Broken, WorkloadError

# For whatever it does before it goes.
_GOODBYE_SECONDS = 10.0

_LOG_LINES = 15

# In /proc/PID/stat, counted from behind the name: time in the program and in the kernel.
_PROGRAM, _KERNEL = 11, 12


def filled(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The words of a command with `{name}` replaced, wherever it stands in a word."""
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
                told = (error.strerror or str(error)).lower()
                raise WorkloadError("--scheduler", command[0], told) from None
        self._processor_seconds = 0.0
        self._peak_bytes = 0

    @property
    def processor_seconds(self) -> float:
        """The time of all its threads so far."""
        try:
            told = Path(f"/proc/{self._process.pid}/stat").read_text()
        except OSError:
            return self._processor_seconds
        fields = told.rpartition(")")[2].split()
        ticks = int(fields[_PROGRAM]) + int(fields[_KERNEL])
        self._processor_seconds = ticks / os.sysconf("SC_CLK_TCK")
        return self._processor_seconds

    @property
    def peak_bytes(self) -> int:
        """The most memory that it ever had; 0 where the system does not tell."""
        try:
            told = Path(f"/proc/{self._process.pid}/status").read_text()
        except OSError:
            return self._peak_bytes
        for line in told.splitlines():
            if line.startswith("VmHWM:"):
                self._peak_bytes = int(line.split()[1]) * 1024
        return self._peak_bytes

    @property
    def log(self) -> str:
        """The end of what it has written."""
        lines = self._log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        return "\n".join(f"  {line}" for line in lines) or "  (its log is empty)"

    def check(self) -> None:
        """Raises Broken if it has gone."""
        code = self._process.poll()
        if code is not None:
            raise Broken(f"{self.name} ended with code {code}; the end of its log:\n{self.log}")

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
