"""Asking a scheduler at work, over HTTPS."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import msgspec

from mooring.client import Api, ApiError, ClientError, Connection
from mooring.client.connection import Endpoint
from mooring.engine.explain import Explanation
from mooring.simulate.problems import InputError

_EXPLAIN = "/ui/api/explain"


@dataclass(frozen=True, slots=True)
class Asking:
    """Where a scheduler is, how to prove who asks, and by what it proves who answers."""

    url: str
    token: str = ""
    token_file: Path | None = None
    certificate_authority: Path | None = None
    insecure: bool = False

    def explain(self, key: str, node: str) -> Explanation:
        """What the scheduler says of a pod; InputError if it does not, or cannot be asked."""
        connection = self._connection()
        try:
            body = asyncio.run(_got(connection, key, node))
        except ApiError as error:
            raise InputError(self.url, _told(error)) from None
        except ClientError as error:
            raise InputError(self.url, _told_lost(error)) from None
        try:
            return msgspec.json.decode(body, type=Explanation)
        except msgspec.MsgspecError as error:
            raise InputError(self.url, f"does not answer as Mooring does: {error}") from None

    def _connection(self) -> Connection:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("--url", f"{self.url!r}: write it as https://HOST:PORT")
        token = self._bearer()
        trust = self._trust() if parts.scheme == "https" else None

        async def authorize(was_rejected: bool) -> str:
            return f"Bearer {token}" if token else ""

        return Connection(Endpoint(self.url, trust), authorize)

    def _bearer(self) -> str:
        if self.token and self.token_file is not None:
            raise InputError("--token", "give either --token or --token-file, not both")
        if self.token_file is None:
            return _checked("--token", self.token)
        try:
            return _checked(self.token_file, self.token_file.read_text().strip())
        except UnicodeDecodeError:
            raise InputError(self.token_file, "is not a token") from None

    def _trust(self) -> ssl.SSLContext:
        if self.insecure:
            if self.certificate_authority is not None:
                flag = "--insecure-skip-tls-verify"
                raise InputError(flag, "there is nothing to verify with --certificate-authority")
            trusting = ssl.create_default_context()
            trusting.check_hostname = False
            trusting.verify_mode = ssl.CERT_NONE
            return trusting
        file = self.certificate_authority
        try:
            return ssl.create_default_context(cafile=file)
        except ssl.SSLError as error:
            raise InputError(str(file), f"is not a certificate: {error}") from None
        except OSError as error:
            # It does not name the file.
            raise InputError(str(file), (error.strerror or str(error)).lower()) from None


def _checked(source: str | Path, token: str) -> str:
    # A line break would become a header of its own.
    if not token.isascii() or not token.isprintable():
        raise InputError(source, "is not a token")
    return token


async def _got(connection: Connection, key: str, node: str) -> bytes:
    namespace, _, name = key.partition("/")
    path = f"{_EXPLAIN}/{quote(namespace, safe='')}/{quote(name, safe='')}"
    async with Api(connection) as api:
        return await api.get(path, {"node": node} if node else None)


def _told(error: ApiError) -> str:
    if "page not found" in error.message:
        return "no scheduler answers there that can be asked"
    return error.message if error.is_not_found else str(error)


def _told_lost(error: ClientError) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        how = "give --certificate-authority, or --insecure-skip-tls-verify"
        return f"its certificate is not trusted: {how}"
    return f"cannot be asked: {error}"
