"""Which version of kube-scheduler a command follows."""

from __future__ import annotations

import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from moorage.cli.emulation import await_version, choose_version
from moorage.cli.inputs import ConnectionOptions
from moorage.config.kubernetes_versions import VERSIONS
from tests.cli.invoking import Moorage
from tests.ports import free_port

OLD, NEW = VERSIONS
GOLDEN = Path(__file__).parents[1] / "golden"


class Answers(BaseHTTPRequestHandler):
    """An API server that answers once with each of these, and with the last one for ever."""

    statuses: list[int]

    def do_GET(self) -> None:
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(b'{"major": "1", "minor": "37"}' if status == 200 else b"{}")

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[ConnectionOptions]:
    handler = type("Scripted", (Answers,), {"statuses": list(request.param)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        serve = partial(listening.serve_forever, poll_interval=0.01)
        threading.Thread(target=serve, daemon=True).start()
        yield ConnectionOptions(server=f"http://127.0.0.1:{listening.server_port}")
        listening.shutdown()


@pytest.mark.parametrize("server", [[200]], indirect=True)
def test_by_default_the_api_server_decides(server: ConnectionOptions) -> None:
    assert choose_version("", server) is NEW
    assert choose_version("1.36", server) is OLD
    assert choose_version("") is OLD


@pytest.mark.parametrize("server", [[403]], indirect=True)
def test_a_server_that_does_not_tell_is_noted(
    server: ConnectionOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    assert choose_version("", server) is OLD
    assert "1.36 is assumed (--emulation-version)" in capsys.readouterr().err


@pytest.mark.parametrize("server", [[503, 200]], indirect=True)
def test_a_scheduler_waits_for_its_api_server(
    server: ConnectionOptions,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("moorage.cli.emulation._PAUSE_SECONDS", 0.0)

    assert await_version("", server) is NEW
    assert "note: waiting for the API server" in capsys.readouterr().err


@pytest.mark.parametrize("server", [[503]], indirect=True)
def test_a_scheduler_that_waits_is_alive_and_not_ready(server: ConnectionOptions) -> None:
    """Else a kubelet restarts it meanwhile, again and again."""
    port = free_port()
    command = (sys.executable, "-m", "moorage", "run", "--master", str(server.server))
    flags = ("--bind-address=127.0.0.1", f"--secure-port={port}")
    with subprocess.Popen([*command, *flags], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            # It says so once it has asked for the first time, and serves before.
            while b"waiting for the API server" not in (line := process.stderr.readline()):
                assert line
                # That is said once, when all is served.
                assert b"Serving securely" not in line
            paths = ("/livez", "/healthz", "/readyz", "/metrics")
            assert [_ask(port, path) for path in paths] == [200, 200, 500, 503]
        finally:
            process.terminate()
        assert process.wait() == 0


def _ask(port: int, path: str) -> int:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with closing(HTTPSConnection("127.0.0.1", port, context=context)) as connection:
        connection.request("GET", path)
        with connection.getresponse() as answer:
            return answer.status


def test_a_recording_with_groups_is_not_one_of_the_older_version(moorage: Moorage) -> None:
    path = str(GOLDEN / "gangpreemption.jsonl.gz")

    assert moorage("conform", path).code == 0
    assert moorage("conform", "--version", "1.37", path).code == 0
    assert moorage("conform", "--version", "1.36", path).code == 1
    assert moorage("conform", "--version", "1.3", path).err == (
        '--version: must be 1.36 or 1.37, got "1.3"\n'
    )
