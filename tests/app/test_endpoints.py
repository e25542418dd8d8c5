"""The endpoints over real sockets and TLS."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from moorage.app import https_site
from moorage.app.authorization import Authorizer
from moorage.app.endpoints import Content, configz, serve_endpoints
from moorage.app.https_site import CertificateSettings, ServingSettings, make_self_signed
from moorage.app.metric_text import pod_resources
from moorage.app.metrics import Metrics
from moorage.app.observations import Observations
from moorage.config import default
from moorage.engine import Engine
from moorage.engine.events import Applied
from moorage.framework.profile import known_plugins
from moorage.plugins import REGISTRY
from moorage.web import StatusPage
from tests.app.reviews import Reviews
from tests.builders import pod
from tests.client_certificates import ClientAuthority
from tests.patience import open_session

READER = {"Authorization": "Bearer good"}
PATHS = ("/metrics", "/metrics/resources", "/configz", "/readyz/informer-sync", "/readyz/none", "/")
DATA = (
    *("/ui/api/snapshot", "/ui/api/stream", "/ui/static/none"),
    *("/ui/api/pods/default/web", "/ui/api/explain/default/web"),
)


def content() -> Content:
    observations = Observations()
    engine = Engine(default(known_plugins(REGISTRY)), REGISTRY, observer=observations)
    engine.handle(Applied(pod("web", cpu=1)), 0.0)
    return Content(
        metrics=Metrics(engine, observations).text,
        resources=partial(pod_resources, engine),
        configuration=partial(configz, engine.configuration),
        readyz={"shutdown": lambda: None, "informer-sync": lambda: "pods are not listed yet"},
        texts={"/statusz": lambda: "well"},
        page=StatusPage(engine),
    )


class Server:
    """Reads from a server that is not known to anybody."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session = session
        self.port = port

    async def get(
        self,
        path: str,
        headers: dict[str, str] | None = None,
        method: str = "GET",
        shown: tuple[Path, Path] | None = None,
    ) -> tuple[int, str, str]:
        """Asks, and shows a client certificate if there is one."""
        url = f"https://127.0.0.1:{self.port}{path}"
        context = _trusting()
        if shown is not None:
            context.load_cert_chain(*shown)
        asked = self._session.request(method, url, headers=headers, ssl=context)
        async with asked as response:
            return response.status, response.headers["Content-Type"], await response.text()


def _trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@asynccontextmanager
async def server(
    reviews: Reviews, certificate: CertificateSettings | None = None
) -> AsyncIterator[Server]:
    settings = ServingSettings("127.0.0.1", 0, certificate or CertificateSettings())
    async with (
        reviews.serving() as api,
        serve_endpoints(settings, content(), Authorizer(api)) as port,
        open_session(connector=aiohttp.TCPConnector(force_close=True)) as session,
    ):
        yield Server(session, port)


@pytest.fixture
def reviews() -> Reviews:
    return Reviews({"good": "prometheus"}, {("prometheus", path) for path in (*PATHS, *DATA)})


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/healthz", 200, "ok"),
        ("/livez?verbose", 200, "[+]ping ok\nlivez check passed\n"),
        (
            "/readyz",
            500,
            "[+]shutdown ok\n[-]informer-sync failed: reason withheld\nreadyz check failed\n",
        ),
        (
            "/readyz?verbose&exclude=informer-sync&exclude=x",
            200,
            "[+]shutdown ok\n[+]informer-sync excluded: ok\n"
            'warn: some health checks cannot be excluded: no matches for "x"\n'
            "readyz check passed\n",
        ),
    ],
)
async def test_health_is_open_to_everybody(
    reviews: Reviews, path: str, status: int, text: str
) -> None:
    async with server(reviews) as served:
        found = await served.get(path)

    assert found == (status, "text/plain; charset=utf-8", text)
    assert reviews.asked == []


@pytest.mark.parametrize("path", [*PATHS, *DATA])
async def test_everything_else_is_closed(reviews: Reviews, path: str) -> None:
    reviews.users["other"] = "nobody"
    async with server(reviews) as served:
        for headers, status in (
            ({}, 401),
            ({"Authorization": "Bearer wrong"}, 401),
            ({"Authorization": "Bearer other"}, 403),
        ):
            found, _, text = await served.get(path, headers)
            assert found == status
            assert "scheduler" not in text


@pytest.mark.parametrize("path", [*PATHS, *DATA])
async def test_nobody_gets_in_while_the_api_server_is_away(reviews: Reviews, path: str) -> None:
    reviews.broken = 500
    async with server(reviews) as served:
        status, _, text = await served.get(path, READER)

    assert status == 503
    assert text.startswith("access cannot be reviewed")


async def test_what_readers_read(reviews: Reviews) -> None:
    async with server(reviews) as served:
        metrics = await served.get("/metrics", READER)
        resources = await served.get("/metrics/resources", READER)
        configuration = await served.get("/configz", READER)
        check = await served.get("/readyz/informer-sync", READER)
        nothing = await served.get("/", READER)
        none = await served.get("/readyz/none", READER)

    text = "text/plain; version=0.0.4; charset=utf-8"
    assert metrics[:2] == resources[:2] == (200, text)
    assert 'scheduler_pending_pods{queue="active"} 1.0' in metrics[2]
    assert 'pod="web"' in resources[2]
    assert configuration[:2] == (200, "application/json")
    assert '"componentconfig"' in configuration[2]
    assert (check[0], check[2]) == (500, "internal server error: pods are not listed yet\n")
    assert (nothing[0], nothing[2]) == (none[0], none[2]) == (404, "404 page not found\n")


async def test_the_page_is_for_everybody_and_its_data_for_readers(reviews: Reviews) -> None:
    async with server(reviews) as served:
        page = await served.get("/ui/")
        script = await served.get("/ui/static/main.js")
        assert reviews.asked == []
        pod_detail = await served.get("/ui/api/pods/default/web", READER)

    assert [page[0], script[0]] == [200, 200]
    assert pod_detail[:2] == (200, "application/json")
    assert '"state":"active"' in pod_detail[2]


async def test_nothing_can_be_written(reviews: Reviews) -> None:
    async with server(reviews) as served:
        status, _, _ = await served.get("/metrics", READER, method="POST")

    assert status == 405
    assert reviews.asked[-1]["spec"]["nonResourceAttributes"]["verb"] == "post"


async def test_plain_http_is_not_served(reviews: Reviews) -> None:
    async with server(reviews) as served, open_session() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"http://127.0.0.1:{served.port}/healthz")


async def test_a_new_certificate_is_served_without_a_restart(
    reviews: Reviews, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(https_site, "_REFRESH_SECONDS", 0.0)
    files = CertificateSettings(str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"))
    first = _write(files)
    async with server(reviews, files) as served:
        before = await _served(served.port)
        second = _write(files)
        os.utime(files.certificate_file, (1, 1))
        after = before
        while after == before:
            after = await _served(served.port)

    assert (before, after) == (first, second)


def _write(files: CertificateSettings) -> bytes:
    key, certificate = make_self_signed(("localhost",))
    Path(files.key_file).write_bytes(key)
    Path(files.certificate_file).write_bytes(certificate)
    return ssl.PEM_cert_to_DER_cert(certificate.decode())


async def _served(port: int) -> bytes:
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=_trusting())
    try:
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        assert isinstance(found, bytes)
        return found
    finally:
        writer.close()
        await writer.wait_closed()


async def test_a_client_certificate_says_who_asks(reviews: Reviews, tmp_path: Path) -> None:
    authority = ClientAuthority(tmp_path / "authority")
    reader, other = authority.sign("prometheus", "monitors"), authority.sign("other")
    trusts = CertificateSettings(client_ca_file=str(authority.file))

    async with server(reviews, trusts) as served:
        assert (await served.get("/metrics", shown=reader))[0] == 200
        assert (await served.get("/metrics", shown=other))[0] == 403
        assert (await served.get("/metrics", READER))[0] == 200
        assert (await served.get("/metrics"))[0] == 401

    first = reviews.asked[0]["spec"]
    assert (first["user"], first["groups"]) == ("prometheus", ["monitors", "system:authenticated"])


async def test_a_page_of_text_needs_a_token(reviews: Reviews) -> None:
    reviews.allowed.add(("prometheus", "/statusz"))
    async with server(reviews) as served:
        assert (await served.get("/statusz"))[0] == 401
        assert await served.get("/statusz", READER) == (200, "text/plain; charset=utf-8", "well")
        assert (await served.get("/flagz", READER))[0] == 403
