"""`moorage simulate` with extenders in its configuration: left out with a note, or asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from moorage.cli import app
from tests.builders import node_manifest, pod_manifest


class Picky(BaseHTTPRequestHandler):
    """Keeps the node whose label says that it is liked."""

    asked: list[Any]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)  # type: ignore[attr-defined]
        kept = [each for each in body["Nodes"]["items"] if each["metadata"]["labels"].get("liked")]
        answer = json.dumps({"nodes": {"items": kept}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), Picky)
    made.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def run(folder: Path, url: str, *options: str) -> tuple[dict[str, str], str]:
    """Where pods go, and what is noted."""
    config = folder / "config.yaml"
    extender = {"urlPrefix": url, "filterVerb": "filter"}
    header = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    config.write_text(yaml.safe_dump({**header, "extenders": [extender]}))
    cluster = folder / "cluster.yaml"
    nodes = [node_manifest(f"n{at}", labels={"liked": "y"} if at == 7 else {}) for at in range(9)]
    pods = [pod_manifest(name, cpu=1) for name in ("a", "b")]
    cluster.write_text(yaml.safe_dump_all([*nodes, *pods]))
    options = (f"--config={config}", "--output=json", *options)
    result = CliRunner().invoke(app, ["simulate", str(cluster), *options])
    assert result.exit_code == 0, result.output
    placed = json.loads(result.stdout)["placements"]
    return {each["pod"]: each["node"] for each in placed}, result.stderr


def test_extenders_are_left_out_with_a_note(tmp_path: Path, server: ThreadingHTTPServer) -> None:
    url = f"http://127.0.0.1:{server.server_port}"

    placed, notes = run(tmp_path, url)

    assert set(placed.values()) != {"n7"}
    assert f"note: extenders are not asked, and may decide otherwise: {url}" in notes
    assert server.asked == []  # type: ignore[attr-defined]


def test_extenders_are_asked_on_request(tmp_path: Path, server: ThreadingHTTPServer) -> None:
    placed, notes = run(tmp_path, f"http://127.0.0.1:{server.server_port}", "--extenders=ask")

    assert set(placed.values()) == {"n7"}
    assert "not asked" not in notes
    sent = server.asked[0]["Pod"]  # type: ignore[attr-defined]
    assert sent["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
