"""The sockets: a certificate of the server's own, and HTTP in which every error is a Status."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mooring.embedded.request_refusals import RequestRefused, bad_request

from .answers import refuse

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
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mooring embedded cluster")])
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


_LOG = logging.getLogger(__name__)

#: What the largest request may have.
MAX_BODY_BYTES = 3 * 1024 * 1024

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
