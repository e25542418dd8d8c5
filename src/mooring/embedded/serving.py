"""Starting and stopping the server."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from .api import Api
from .catalogue import catalogue
from .certificates import Certificate, self_signed
from .cluster import Cluster
from .definitions import serve_custom_resources
from .http.front import Front
from .http.listener import Listener
from .kinds import Kinds
from .persistence import SqliteJournal
from .rules.cluster import SYSTEM_PRIORITIES
from .settings import Settings
from .store import Store

# What is there before anybody has made anything.
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


@dataclass(frozen=True, slots=True)
class Running:
    """A server that listens."""

    api: Api
    settings: Settings
    port: int
    certificate: Certificate | None
    _runner: web.ServerRunner
    _journal: SqliteJournal | None

    @property
    def cluster(self) -> Cluster:
        """The cluster for whoever runs in this process."""
        return Cluster(self.api)

    @property
    def url(self) -> str:
        host = self.settings.host
        shown = f"[{host}]" if ":" in host else host
        return f"{'https' if self.certificate else 'http'}://{shown}:{self.port}"

    @property
    def kubeconfig(self) -> dict[str, Any]:
        """What kubectl needs to get here."""
        cluster: dict[str, Any] = {"server": self.url}
        if self.certificate:
            pem = base64.b64encode(self.certificate.pem).decode()
            cluster["certificate-authority-data"] = pem
        context = {"cluster": "mooring", "user": "mooring", "namespace": "default"}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "mooring", "cluster": cluster}],
            "users": [{"name": "mooring", "user": {"token": self.settings.token}}],
            "contexts": [{"name": "mooring", "context": context}],
            "current-context": "mooring",
        }

    async def stop(self) -> None:
        """Stops listening; watches end."""
        await self._runner.cleanup()
        if self._journal is not None:
            await self._journal.close()


async def serve(settings: Settings) -> Running:
    """Starts a server and returns once it listens."""
    journal = SqliteJournal(settings.data_dir) if settings.data_dir else None
    limit = settings.history_limit
    store = journal.restore(limit) if journal else Store(history_limit=limit)
    if journal:
        journal.attach(store)
    api = Api(store, Kinds(catalogue(coexist=settings.coexist)))
    serve_custom_resources(api)
    furnish(api)
    await store.until_settled(store.version)
    certificate = self_signed(settings.host) if settings.tls else None
    runner = web.ServerRunner(Listener(Front(api, settings)), shutdown_timeout=1.0)
    await runner.setup()
    context = certificate.context if certificate else None
    site = web.TCPSite(runner, settings.host, settings.port, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    return Running(api, settings, port, certificate, runner, journal)


def furnish(api: Api) -> None:
    """Makes what every cluster has, where it is missing."""
    namespaces, classes = api.kinds["namespaces"], api.kinds["priorityclasses.scheduling.k8s.io"]
    for name in _NAMESPACES:
        if api.find(namespaces, "", name) is None:
            api.create(namespaces, "", {"metadata": {"name": name}})
    for name, value in SYSTEM_PRIORITIES.items():
        if api.find(classes, "", name) is None:
            api.create(classes, "", {"metadata": {"name": name}, "value": value})
