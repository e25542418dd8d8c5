"""The API server: its settings, how it starts and how it stops."""

from __future__ import annotations

import base64
import ipaddress
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from mooring.documents.errors import ListenError
from mooring.embedded.api.kind import ServedKinds
from mooring.embedded.api.object_api import ObjectApi
from mooring.embedded.http.listener import Certificate, HttpServer, sign_own
from mooring.embedded.http.router import Router
from mooring.embedded.kinds.catalogue import catalogue
from mooring.embedded.kinds.cluster_kinds import SYSTEM_PRIORITIES
from mooring.embedded.kinds.custom_resources import serve_custom_resources
from mooring.embedded.kinds.quotas import enforce_quotas
from mooring.embedded.kinds.stored_kinds import ROOT_CERTIFICATE, ROOT_CERTIFICATE_NAMESPACE
from mooring.embedded.store.journal import SqliteJournal
from mooring.embedded.store.object_store import ObjectStore
from mooring.embedded.store.table import HISTORY_LIMIT, Json

LOOPBACK = "127.0.0.1"


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
    furnish(api)
    await store.until_settled(store.version)
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
    await store.until_settled(store.version)
    return Server(api, settings, port, certificate, runner, journal)


# The namespaces of every cluster.
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")

_SERVICE = "kubernetes"
_PORT = {"name": "https", "protocol": "TCP"}


def furnish(api: ObjectApi) -> None:
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
