"""`moorage explain --url`: asking a scheduler at work, over real sockets and TLS."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moorage.app.authorization import Authorizer, Caller, Denied
from moorage.app.endpoints import Content, serve_endpoints
from moorage.app.https_site import CertificateSettings, ServingSettings
from moorage.engine import Engine
from moorage.web import StatusPage
from tests.builders import node, pod
from tests.cli.invoking import Moorage
from tests.engine.driver import driver
from tests.engine.gangs import drive_gangs, gang, members
from tests.patience import PATIENCE_SECONDS


class Door(Authorizer):
    """Lets in whoever has the token."""

    def __init__(self) -> None:
        pass

    async def check(self, path: str, verb: str, caller: Caller) -> None:
        if caller.authorization != "Bearer good":
            raise Denied(401, "Unauthorized: the token is not valid")


async def nothing() -> bytes:
    return b""


@contextmanager
def scheduler(engine: Engine, folder: Path, *, has_page: bool = True) -> Iterator[str]:
    """Serves in a thread, since a command has a loop of its own; gives the address."""
    content = Content(
        metrics=nothing,
        resources=lambda: iter(()),  # type: ignore[arg-type, return-value]
        configuration=lambda: b"",
        page=StatusPage(engine, clock=lambda: 1000.0) if has_page else None,
    )
    settings = ServingSettings("127.0.0.1", 0, CertificateSettings(folder=str(folder)))
    started, ports = threading.Event(), list[int]()
    loop, ending = asyncio.new_event_loop(), asyncio.Event()

    async def main() -> None:
        async with serve_endpoints(settings, content, Door()) as port:
            ports.append(port)
            started.set()
            await ending.wait()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(main())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert started.wait(PATIENCE_SECONDS)
        yield f"https://127.0.0.1:{ports[0]}"
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    driven = drive_gangs(node("n", cpu=4), pod("small", cpu=1), pod("big", cpu=9))
    driven.apply(gang("waits", 4), *members("waits", 4, cpu=1))
    driven.settle()
    with scheduler(driven.engine, tmp_path_factory.mktemp("certificates")) as address:
        yield address


ASKING = ("--token", "good", "--insecure-skip-tls-verify")


def test_a_pod_that_waits_is_explained_with_what_the_queue_knows(
    moorage: Moorage, url: str
) -> None:
    result = moorage("explain", "big", "--url", url, *ASKING)

    assert (result.code, result.err) == (1, "")
    first, second, third, *_ = result.out.splitlines()
    assert first == "pod default/big fits no node of 1"
    assert second == "in the queue: unschedulable, after 1 attempt"
    assert third.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert "it asked for 6 less cpu" in result.out


def test_a_gang_is_explained_with_its_arithmetic(moorage: Moorage, url: str) -> None:
    result = moorage("explain", "podgroup/default/waits", "--url", url, *ASKING)

    assert (result.code, result.err) == (1, "")
    assert result.out.startswith("gang default/waits does not fit: 4 pods wait\n")
    assert "4 have a node" not in result.out
    assert "Anywhere: room for 3, 1 short" in " ".join(result.out.split())

    result = moorage("explain", "podgroup/none", "--url", url, *ASKING)

    assert result.code == 2
    assert "podgroup default/none: this scheduler knows no such group" in result.err


def test_a_pod_that_runs_is_0(moorage: Moorage, url: str) -> None:
    result = moorage("explain", "default/small", "--url", url, *ASKING)

    assert result.code == 0
    assert result.out.startswith("pod default/small runs on n, and would again: 1 of 1 node")


def test_json_has_everything(moorage: Moorage, url: str) -> None:
    result = moorage("explain", "big", "--url", url, "-o", "json", *ASKING, "--node", "n")

    told = json.loads(result.out)
    assert told["queue"]["place"] == "unschedulable"
    assert told["queue"]["rejectedBy"] == ["NodeResourcesFit"]
    assert told["node"]["node"] == "n"
    assert told["suggestions"][1]["edits"] == [
        {"edit": "lowerRequest", "resource": "cpu", "by": 6000}
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(
            ("none", *ASKING), "pod default/none: this scheduler knows no such pod", id="no pod"
        ),
        pytest.param(("big", "--node=x", *ASKING), "node x: there is no such node", id="no node"),
        pytest.param(
            ("big", "--token=bad", ASKING[2]), "the token is not valid (401", id="bad token"
        ),
        pytest.param(("big", ASKING[2]), "the token is not valid (401", id="no token"),
        pytest.param(("big", "--token=good"), "its certificate is not trusted", id="not trusted"),
        pytest.param(
            ("big", "--token=a\nb: c", ASKING[2]), "--token: is not a token", id="line break"
        ),
        pytest.param(("big", *ASKING, "--token-file=x"), "not both", id="two tokens"),
        pytest.param(("big", "--token-file=absent"), "absent: no such file", id="no token file"),
        pytest.param(("big", "--certificate-authority=absent"), "absent: no such file", id="no CA"),
        pytest.param(
            ("big", "--certificate-authority=README.md"),
            "is not a certificate",
            id="no certificate",
        ),
        pytest.param(
            ("big", *ASKING, "--certificate-authority=x"), "cannot be used together", id="both"
        ),
        pytest.param(("big", "examples/demo", *ASKING), "give no other", id="manifests too"),
        pytest.param(("big", "--kubeconfig=x", *ASKING), "give no other", id="a cluster too"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    moorage: Moorage, url: str, arguments: tuple[str, ...], told: str
) -> None:
    result = moorage("explain", *arguments, "--url", url)

    assert (result.code, result.out) == (2, "")
    assert told in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("https://127.0.0.1:1", "https://127.0.0.1:1: cannot be reached: "),
        ("localhost:10259", "--url: 'localhost:10259': write it as https://HOST:PORT"),
        ("ftp://localhost", "write it as https://HOST:PORT"),
    ],
)
def test_whoever_cannot_be_reached_is_named(moorage: Moorage, address: str, told: str) -> None:
    result = moorage("explain", "big", "--url", address)

    assert (result.code, result.out) == (2, "")
    assert told in result.err


def test_its_own_certificate_can_be_trusted_and_the_token_be_in_a_file(
    moorage: Moorage, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("good\n")
    driven = driver(node("n", cpu=4), pod("small", cpu=1))
    driven.settle()
    with scheduler(driven.engine, tmp_path) as address:
        (certificate,) = tmp_path.glob("*.crt")
        result = moorage(
            *("explain", "small", "--url", address),
            *(f"--token-file={token}", f"--certificate-authority={certificate}"),
        )

    assert (result.code, result.err) == (0, "")


def test_a_server_without_explanations_is_told(moorage: Moorage, tmp_path: Path) -> None:
    driven = driver(node("n", cpu=4))
    with scheduler(driven.engine, tmp_path, has_page=False) as address:
        result = moorage("explain", "small", "--url", address, *ASKING)

    assert result.code == 2
    assert result.err == f"{address}: the server there is not a scheduler that explains\n"
