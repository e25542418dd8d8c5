"""An embedded API server in a process of its own, so that its work is not the harness's.

Started as `python -m mooring.bench.live.api_server KUBECONFIG`; ends with its standard input.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import uvloop

from mooring.bench.problems import WorkloadError

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
    # Here, because whoever starts the process needs none of it.
    from mooring.embedded.serving import serve
    from mooring.embedded.settings import Settings

    running = await serve(Settings())
    try:
        # In one go, because somebody waits for the file to be there.
        half = kubeconfig.with_suffix(".part")
        half.touch(0o600)
        half.write_bytes(msgspec.json.encode(running.kubeconfig))
        os.replace(half, kubeconfig)
        await asyncio.to_thread(sys.stdin.read)
    finally:
        await running.stop()


if __name__ == "__main__":
    uvloop.run(_serve(Path(sys.argv[1])))
