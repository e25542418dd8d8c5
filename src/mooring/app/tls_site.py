"""An HTTPS server for as long as it is needed, whose certificate is followed when it changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from .certificates import Certificates, CertificateSettings
from .connections import ConnectionLimits, accepting
from .logs import named

LOG = named("mooring.serving")

#: Where kube-scheduler serves.
SECURE_PORT = 10259

# How often the files of the certificate are looked at.
_REFRESH_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ServingSettings:
    """Where to serve. Port 0 takes any that is free."""

    bind_address: str = "0.0.0.0"
    secure_port: int = SECURE_PORT
    certificate: CertificateSettings = field(default_factory=CertificateSettings)
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)


@asynccontextmanager
async def tls_site(app: web.Application, settings: ServingSettings) -> AsyncIterator[int]:
    """Serves for as long as the context lasts; gives the port."""
    certificates = Certificates(settings.certificate)
    address = settings.bind_address, settings.secure_port
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(
            accepting(app, address, settings.limits, certificates.context)
        )
        refreshing = asyncio.create_task(_keep_fresh(certificates))
        stack.callback(refreshing.cancel)
        LOG.info("Serving securely", address=settings.bind_address, port=port)
        yield port


async def _keep_fresh(certificates: Certificates) -> None:
    while True:
        await asyncio.sleep(_REFRESH_SECONDS)
        certificates.refresh()
