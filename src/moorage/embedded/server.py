"""The API server: its settings, its certificate and its sockets, how it starts and how it stops."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import logging
import secrets
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from moorage.documents.errors import ListenError
from moorage.embedded.api.kind import ServedKinds
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.http.answers import refuse
from moorage.embedded.http.router import MAX_BODY_BYTES, Router
from moorage.embedded.kinds.catalogue import catalogue
from moorage.embedded.kinds.cluster_kinds import SYSTEM_PRIORITIES
from moorage.embedded.kinds.custom_resources import serve_custom_resources
from moorage.embedded.kinds.quotas import enforce_quotas
from moorage.embedded.kinds.stored_kinds import ROOT_CERTIFICATE, ROOT_CERTIFICATE_NAMESPACE
from moorage.embedded.request_refusals import RequestRefused, bad_request
from moorage.embedded.store.journal import SqliteJournal
from moorage.embedded.store.object_store import HISTORY_LIMIT, Json, ObjectStore

LOOPBACK = "127.0.0.1"

_LOG = logging.getLogger(__name__)

# It is made anew at every start, so this only has to outlast one run.
_VALID = timedelta(days=365)
_SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The certificate that clients trust, and the TLS context of the server."""

    pem: bytes
    context: ssl.SSLContext


def sign_own(host: str) -> Certificate:
    """Makes a certificate for a host and for the loopback addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "moorage embedded cluster")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName(_alternatives(host)), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return Certificate(pem, _context(pem, secret))


def _context(pem: bytes, secret: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # The ssl module reads keys from files only; the folder is ours alone and goes at once.
    with tempfile.TemporaryDirectory() as folder:
        both = Path(folder, "both.pem")
        both.touch(0o600)
        both.write_bytes(secret + pem)
        context.load_cert_chain(both)
    return context


def _alternatives(host: str) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    addresses = {ipaddress.ip_address(each) for each in ("127.0.0.1", "::1")}
    try:
        addresses.add(ipaddress.ip_address(host))
    except ValueError:
        names.append(x509.DNSName(host))
    return [*names, *(x509.IPAddress(each) for each in sorted(addresses, key=str))]


Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class _Connection(web.RequestHandler):
    """A connection; requests that cannot be read get a Status, too."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("an answer is under way already")
        if status < 500:
            _LOG.debug("unreadable request: %s", message)
            response = refuse(bad_request("the request is not HTTP that can be read"))
        else:
            _LOG.error("a connection failed", exc_info=exc)
            response = refuse(RequestRefused(500, "InternalError", "Internal error occurred"))
        response.force_close()
        return response


class HttpServer(web.Server):
    """Passes requests to the function that answers them."""

    def __init__(self, answer: Answer) -> None:
        # A client that goes away takes its request with it, so that no watch outlives it.
        super().__init__(answer, request_factory=_request, handler_cancellation=True)

    def __call__(self) -> web.RequestHandler:
        # No log of accesses: aiohttp documents None for that, and types it otherwise.
        silent: Any = None
        return _Connection(self, loop=asyncio.get_running_loop(), access_log=silent)


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(
        message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Settings of the API server."""

    host: str = LOOPBACK
    #: 0 takes a free one.
    port: int = 0
    #: A client with this token may do everything, others nothing.
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    #: kubectl sends its token over TLS only.
    tls: bool = True
    #: Keeps objects across restarts; without it they live in memory.
    data_dir: Path | None = None
    #: The gate of `spec.coexistPolicy`.
    coexist: bool = True
    history_limit: int = HISTORY_LIMIT
    #: How often a quiet watch sends a bookmark.
    bookmark_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running API server."""

    api: ObjectApi
    settings: ServerSettings
    port: int
    certificate: Certificate | None
    _runner: web.ServerRunner
    _journal: SqliteJournal | None

    @property
    def url(self) -> str:
        host = self.settings.host
        host_text = f"[{host}]" if ":" in host else host
        return f"{'https' if self.certificate else 'http'}://{host_text}:{self.port}"

    @property
    def kubeconfig(self) -> dict[str, Any]:
        """The kubeconfig of the server."""
        cluster: dict[str, Any] = {"server": self.url}
        if self.certificate:
            pem = base64.b64encode(self.certificate.pem).decode()
            cluster["certificate-authority-data"] = pem
        context = {"cluster": "moorage", "user": "moorage", "namespace": "default"}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "moorage", "cluster": cluster}],
            "users": [{"name": "moorage", "user": {"token": self.settings.token}}],
            "contexts": [{"name": "moorage", "context": context}],
            "current-context": "moorage",
        }

    async def stop(self) -> None:
        """Stops the server; watches end."""
        await self._runner.cleanup()
        if self._journal is not None:
            await self._journal.close()


async def serve(settings: ServerSettings) -> Server:
    """Starts a server and returns once it listens."""
    journal = SqliteJournal(settings.data_dir) if settings.data_dir else None
    limit = settings.history_limit
    store = journal.restore(limit) if journal else ObjectStore(history_limit=limit)
    if journal:
        journal.attach(store)
    api = ObjectApi(store, ServedKinds(catalogue(coexist=settings.coexist)))
    serve_custom_resources(api)
    enforce_quotas(api)
    make_initial_objects(api)
    await store.until_safe(store.version)
    certificate = sign_own(settings.host) if settings.tls else None
    runner = web.ServerRunner(
        HttpServer(Router(api, settings.token, settings.bookmark_seconds)), shutdown_timeout=1.0
    )
    await runner.setup()
    context = certificate.context if certificate else None
    site = web.TCPSite(runner, settings.host, settings.port, ssl_context=context)
    try:
        await site.start()
    except OSError as error:
        await runner.cleanup()
        raise ListenError(settings.host, settings.port, error) from error
    port = runner.addresses[0][1]
    publish_server(api, settings.host, port, certificate.pem.decode() if certificate else "")
    await store.until_safe(store.version)
    return Server(api, settings, port, certificate, runner, journal)


# The namespaces of every cluster.
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")

_SERVICE = "kubernetes"
_PORT = {"name": "https", "protocol": "TCP"}


def make_initial_objects(api: ObjectApi) -> None:
    """Makes the namespaces and priority classes that every cluster has."""
    namespaces, classes = api.kinds["namespaces"], api.kinds["priorityclasses.scheduling.k8s.io"]
    for name in _NAMESPACES:
        if api.find(namespaces, "", name) is None:
            api.create(namespaces, "", {"metadata": {"name": name}})
    for name, value in SYSTEM_PRIORITIES.items():
        if api.find(classes, "", name) is None:
            api.create(classes, "", {"metadata": {"name": name}, "value": value})


def publish_server(api: ObjectApi, host: str, port: int, certificate: str) -> None:
    """Makes the Service of the API server, its endpoints, and the certificate that clients trust.

    A server that starts anew may have another port and has another certificate.
    """
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{**_PORT, "port": 443, "targetPort": port}]
    spec = {"clusterIP": "10.96.0.1", "ports": ports, "type": "ClusterIP"}
    _publish(api, "services", "default", {"metadata": {"labels": labels}, "spec": spec})
    address = _address(host)
    ready: Json = {"addresses": [{"ip": address}], "ports": [{**_PORT, "port": port}]}
    _publish(api, "endpoints", "default", {"metadata": {}, "subsets": [ready]})
    piece = {
        "metadata": {"labels": {"kubernetes.io/service-name": _SERVICE}},
        "addressType": "IPv6" if ":" in address else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{**_PORT, "port": port}],
    }
    _publish(api, "endpointslices.discovery.k8s.io", "default", piece)
    data = {"metadata": {"name": ROOT_CERTIFICATE}, "data": {"ca.crt": certificate}}
    _publish(api, "configmaps", ROOT_CERTIFICATE_NAMESPACE, data)


def _publish(api: ObjectApi, resource: str, namespace: str, item: Json) -> None:
    """Makes an object, or changes the one that is there."""
    kind = api.kinds[resource]
    name = item["metadata"].setdefault("name", _SERVICE)
    found = api.find(kind, namespace, name)
    if found is None:
        api.create(kind, namespace, item)
        return
    stored = found.object
    merged = {**stored, **item, "metadata": {**stored["metadata"], **item["metadata"]}}
    if "spec" in item:
        merged["spec"] = {**stored["spec"], **item["spec"]}
    api.update(kind, namespace, name, merged)


def _address(host: str) -> str:
    """Returns a host as an address; endpoints cannot have names."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return "127.0.0.1"
