"""Ports for processes that cannot be asked which one they got."""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from pathlib import Path
from random import sample
from typing import IO

# Below the ports that the system gives to connections, one of which could take a port between its
# choice and its use, or while an API server is away.
_PORTS = range(20_000, 30_000)
_LOCKS = Path(tempfile.gettempdir()) / f"moorage-test-ports-{os.getuid()}"

#: Held until this process ends, so that no other test gets the same port.
_held: dict[int, IO[str]] = {}


def free_port() -> int:
    """A port of this machine that no other process of tests gets as long as this one lives."""
    _LOCKS.mkdir(exist_ok=True)
    for port in sample(_PORTS, len(_PORTS)):
        if port not in _held and _lock(port) and _is_free(port):
            return port
    raise OSError("no port is free")


def _lock(port: int) -> bool:
    file = (_LOCKS / str(port)).open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return False
    _held[port] = file
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
