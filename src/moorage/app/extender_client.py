"""Asks one extender over HTTP: connections, TLS, limits, and Go's texts for errors."""

from __future__ import annotations

import asyncio
import re
import ssl
import tempfile
from io import BytesIO
from ipaddress import ip_address
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from moorage.config import Extender
from moorage.config.extenders import ExtenderTLS
from moorage.documents.errors import InputError, MoorageError
from moorage.engine.extenders.replies import describe_status

_OK = 200

# An answer repeats at most what it was asked, and has a reason for each node besides.
_MOST_BEYOND_QUESTION = 16 * 2**20

_MOST_REDIRECTS = 10

_LONG = 2**20

_LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_LATE_BODY = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
_CALLED = re.compile(r"\('([^']*)', (\d+)")


class ExtenderUnusable(InputError):
    """The certificates of an extender cannot be used. The text names the file."""


class CallFailed(MoorageError):
    """A call without a usable answer. `is_unknown` says that it may have been carried out."""

    def __init__(self, message: str, *, is_unknown: bool = False) -> None:
        super().__init__(message)
        self.is_unknown = is_unknown


class ExtenderClient:
    """Keeps the connections to one extender."""

    def __init__(self, extender: Extender, connections: int) -> None:
        """Raises ExtenderUnusable if certificates cannot be read."""
        self._extender = extender
        self._connections = connections
        self._ssl = make_context(extender)
        self._proxy = find_proxy(extender.url_prefix)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections, ssl=self._ssl),
            timeout=aiohttp.ClientTimeout(total=self._extender.timeout_seconds),
            headers={"Content-Type": "application/json", "Accept-Encoding": "gzip"},
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def post(self, verb: str, body: bytes) -> bytes:
        """Sends a request and returns the answer; raises CallFailed. The verb is a path element."""
        assert self._session is not None, "the client is open"
        url = self._extender.url(verb)
        is_begun = False
        try:
            async with self._session.post(
                url,
                # What is long goes out in parts, so that nothing else waits for it.
                data=body if len(body) < _LONG else BytesIO(body),
                proxy=self._proxy,
                server_hostname=self._extender.tls_config.server_name or None,
                max_redirects=_MOST_REDIRECTS,
            ) as response:
                if response.status != _OK:
                    raise CallFailed(describe_status(verb, url, response.status))
                is_begun = True
                return await _read(response, len(body) + _MOST_BEYOND_QUESTION)
        except TimeoutError:
            late = _LATE_BODY if is_begun else f'Post "{url}": {_LATE}'
            raise CallFailed(late, is_unknown=True) from None
        except aiohttp.ClientPayloadError:
            raise CallFailed("unexpected EOF", is_unknown=True) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # ValueError is what aiohttp raises for a URL that is none.
            is_unknown = not isinstance(error, aiohttp.ClientConnectorError)
            problem = f'Post "{url}": {_describe(error)}'
            raise CallFailed(problem, is_unknown=is_unknown) from None


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Returns the body, up to a number of bytes, decompressed."""
    parts, size, paused_at = [], 0, 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > most:
            response.close()
            raise CallFailed(f"the answer is longer than {most} bytes")
        parts.append(part)
        if size - paused_at > _LONG:
            # A long answer that is there already must not keep decisions waiting.
            paused_at = size
            await asyncio.sleep(0)
    return b"".join(parts)


def _describe(error: Exception) -> str:
    """Describes an error before the answer, in Go's words where Go has some."""
    match error:
        case aiohttp.TooManyRedirects():
            return f"stopped after {_MOST_REDIRECTS} redirects"
        case aiohttp.ServerDisconnectedError():
            return "EOF"
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
            return _describe_tls(error)
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {error.host}: no such host"
        case aiohttp.ClientConnectorError():
            return _describe_dial(error)
        case ConnectionResetError() | aiohttp.ClientOSError():
            return "EOF"
    return str(error) or type(error).__name__


def _describe_dial(error: aiohttp.ClientConnectorError) -> str:
    called = _CALLED.search(str(error.os_error))
    host, port = called.groups() if called else (error.host, error.port)
    where = f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    if isinstance(error.os_error, ConnectionRefusedError):
        return f"dial tcp {where}: connect: connection refused"
    return f"dial tcp {where}: {error.os_error.strerror or error.os_error}"


def _describe_tls(
    error: aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError,
) -> str:
    cause = (
        error.certificate_error
        if isinstance(error, aiohttp.ClientConnectorCertificateError)
        else error.os_error
    )
    if isinstance(cause, ssl.SSLCertVerificationError):
        said = cause.verify_message
        is_strange = "self-signed" in said or "issuer" in said
        why = "certificate signed by unknown authority" if is_strange else said
        return f"tls: failed to verify certificate: x509: {why}"
    if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
        return "http: server gave HTTP response to HTTPS client"
    return f"tls: {cause}"


def find_proxy(url: str) -> str | None:
    """Returns the proxy that the environment names for a URL; none for this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if _is_here(host) or proxy_bypass(host):
        return None
    return getproxies().get(parts.scheme)


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def make_context(extender: Extender) -> ssl.SSLContext:
    """Makes the TLS context; raises ExtenderUnusable."""
    tls = extender.tls_config
    context = ssl.create_default_context()
    if not extender.checks_certificates:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    at = f"extender {extender.url_prefix}: tlsConfig"
    if tls.has_ca:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        authorities = tls.ca_data or _read_file(tls.ca_file, f"{at}.caFile")
        try:
            context.load_verify_locations(cadata=authorities.decode())
        except (ssl.SSLError, ValueError) as error:
            where = "caData" if tls.ca_data else f"caFile: {tls.ca_file}"
            raise ExtenderUnusable(f"{at}.{where}: no certificate: {error}") from None
    _show_certificate(context, tls, at)
    return context


def _show_certificate(context: ssl.SSLContext, tls: ExtenderTLS, at: str) -> None:
    """Loads our own certificate and its key into the context, if there is one."""
    if not ((tls.cert_data or tls.cert_file) and (tls.key_data or tls.key_file)):
        return
    certificate = tls.cert_data or _read_file(tls.cert_file, f"{at}.certFile")
    key = tls.key_data or _read_file(tls.key_file, f"{at}.keyFile")
    # The library reads files only; this one is for the owner alone, and gone at once.
    with tempfile.NamedTemporaryFile() as both:
        both.write(certificate + b"\n" + key)
        both.flush()
        try:
            context.load_cert_chain(both.name)
        except (ssl.SSLError, ValueError) as error:
            raise ExtenderUnusable(f"{at}: no certificate with its key: {error}") from None


def _read_file(path: str, at: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ExtenderUnusable(f"{at}: {path}: {(error.strerror or str(error)).lower()}") from None
