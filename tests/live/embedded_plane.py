"""The embedded API server in the place of a real one, where there are no binaries."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.patience import PATIENCE_SECONDS

from .control_plane import ADMIN_TOKEN, ControlPlane

_SERVER = """
import asyncio, sys
from pathlib import Path
from moorage.embedded.server import ServerSettings, serve

async def main(port, token, folder):
    await serve(ServerSettings(port=int(port), tls=False, token=token, data_dir=Path(folder)))
    await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


class EmbeddedPlane(ControlPlane):
    """An API server that can be killed and started again; one token may do everything."""

    @property
    def server(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.start_api_server()

    def start_api_server(self) -> None:
        data = self.folder / "data"
        with (self.folder / "kube-apiserver.log").open("ab") as log:
            self._api_server = subprocess.Popen(
                [sys.executable, "-c", _SERVER, str(self.port), ADMIN_TOKEN, str(data)],
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + PATIENCE_SECONDS
        while not self._answers():
            assert self._api_server.poll() is None, self.log()
            assert time.monotonic() < until, self.log()
            time.sleep(0.05)

    def _answers(self) -> bool:
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        request = urllib.request.Request(f"{self.server}/readyz", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False


@contextmanager
def embedded_plane() -> Iterator[ControlPlane]:
    """A running embedded API server in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="moorage-live-") as folder:
        plane = EmbeddedPlane(Path(folder), Path(folder), "AlwaysAllow", ())
        try:
            plane.start()
            yield plane
        finally:
            plane.stop()
