"""The address of the API server, and the credentials for it."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from moorage.documents.errors import InputError

_LOG = logging.getLogger(__name__)

# Kubernetes renews a mounted token well before it expires; its own clients look once a minute.
REFRESH_SECONDS = 60.0

#: Tells the value of the Authorization header ("" for none); whether the last one was rejected.
Authorize = Callable[[bool], Awaitable[str]]


class CredentialsError(InputError):
    """Credentials that cannot be used. The text names the file and the field."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a server. `ssl` is None for plain HTTP."""

    server: str
    ssl: ssl.SSLContext | None = None
    server_hostname: str | None = None
    proxy: str | None = None

    @property
    def keeps_secrets(self) -> bool:
        """Whether nobody on the way can read what is sent: with TLS, or within this machine."""
        parts = urlsplit(self.server)
        if parts.scheme == "https":
            return True
        return not self.proxy and _is_loopback(parts.hostname or "")


class Connection:
    """A server, and headers that follow the rotation of tokens."""

    def __init__(
        self,
        endpoint: Endpoint,
        authorize: Authorize | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint = endpoint
        self._authorize = authorize
        self._clock = clock
        self._headers: Mapping[str, str] = {}
        self._fresh_until = float("-inf")
        self._rejected = False
        self._renewing = asyncio.Lock()

    @property
    def server(self) -> str:
        return self.endpoint.server

    @property
    def ssl(self) -> ssl.SSLContext | None:
        return self.endpoint.ssl

    async def headers(self) -> Mapping[str, str]:
        """Returns headers, the same mapping until the token changes.

        Raises CredentialsError if there is no token.
        """
        if self._authorize is None or self._clock() < self._fresh_until:
            return self._headers
        # The old token mostly works for some minutes yet, so nobody waits for the new one.
        if self._headers and self._renewing.locked() and not self._rejected:
            return self._headers
        async with self._renewing:
            if self._clock() >= self._fresh_until:
                await self._renew(self._authorize)
        return self._headers

    def rejected(self, headers: Mapping[str, str]) -> None:
        """Notes that the server did not accept these headers; new ones are made next time."""
        if headers is self._headers:
            self._rejected = True
            self._fresh_until = float("-inf")

    async def _renew(self, authorize: Authorize) -> None:
        try:
            value = self._check_value(await authorize(self._rejected))
        except CredentialsError as error:
            if not self._headers:
                raise
            _LOG.warning("keeping the old token: %s", error)
        else:
            if value != self._headers.get("Authorization", ""):
                self._headers = {"Authorization": value} if value else {}
        self._rejected = False
        self._fresh_until = self._clock() + REFRESH_SECONDS

    def _check_value(self, value: str) -> str:
        if value and not self.endpoint.keeps_secrets:
            raise CredentialsError(
                f"{self.server}: credentials are not sent over plain HTTP, where anybody on the way"
                " can read them: use https, or an address of this machine without a proxy"
            )
        return value


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
