"""Makes a connection from a kubeconfig file or a pod's service account."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .connection import Connection, CredentialsError, Endpoint
from .kubeconfig import ContextChoice, choose

__all__ = ["CredentialsError", "connect"]

_HOME = Path("~/.kube/config")
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

# A program that asks somebody, or waits for a network that is down, must not hold us for ever.
_EXEC_SECONDS = 60.0


async def connect(
    kubeconfig: str | None = None, context: str | None = None, server: str | None = None
) -> Connection:
    """Connects by the kubeconfig given, $KUBECONFIG or ~/.kube/config, else as a pod of a cluster.

    A server that is given without a kubeconfig is asked without credentials. Raises
    CredentialsError.
    """
    paths = _files(kubeconfig)
    if paths:
        return await _from_kubeconfig(choose(paths, context), server)
    if context is not None:
        raise CredentialsError(f"context {context!r} was asked for, but there is no kubeconfig")
    if server is not None:
        return Connection(Endpoint(server, _trust(server)))
    return await in_cluster()


async def in_cluster(
    account: Path = _SERVICE_ACCOUNT, environ: Mapping[str, str] = os.environ
) -> Connection:
    """Connects as the service account of the pod that this process runs in."""
    # Here, because it takes seconds to load and not every run connects to a cluster.
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config import ConfigException
    from kubernetes_asyncio.config.incluster_config import InClusterConfigLoader

    token_file = account / "token"
    configuration = Configuration()
    try:
        InClusterConfigLoader(
            str(token_file), str(account / "ca.crt"), environ=dict(environ)
        ).load_and_set(configuration)
    except (ConfigException, OSError) as error:
        raise CredentialsError(
            f"no kubeconfig was found, and this is no pod of a cluster: {account}: {error}"
        ) from error

    async def authorize(rejected: bool) -> str:
        # Not the library's own hook, which lets a token that was rejected stand for a minute.
        return "Bearer " + _token(token_file)

    host = str(configuration.host)
    return await _check_token(Connection(Endpoint(host, _trust(host, configuration)), authorize))


def _files(kubeconfig: str | None) -> list[Path]:
    """Returns the files to read; none if none is named and the usual one does not exist."""
    if kubeconfig is not None:
        return [Path(kubeconfig).expanduser()]
    named = os.environ.get("KUBECONFIG", "")
    if not named:
        return [path for path in (_HOME.expanduser(),) if path.exists()]
    paths = [Path(each).expanduser() for each in named.split(os.pathsep) if each]
    found = [path for path in paths if path.exists()]
    if not found:
        raise CredentialsError(f"$KUBECONFIG names {named}: no such file")
    return found


async def _from_kubeconfig(chosen: ContextChoice, server: str | None) -> Connection:
    # Here, because it takes seconds to load and not every run connects to a cluster.
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger

    at = f"{chosen.source}: context {chosen.context}"
    if not (server or chosen.cluster.server).startswith(("http://", "https://")):
        raise CredentialsError(f"{at}: cluster.server: not a URL: {chosen.cluster.server!r}")
    configuration = Configuration()
    merged = KubeConfigMerger(chosen.source).config
    loader = KubeConfigLoader(merged, active_context=chosen.context, config_base_path=None)
    if loader._user is None:
        # The library takes the certificates of a user who is not there.
        loader._user = ConfigNode("no user", {}, chosen.source)
    await _load(loader, configuration, at)
    host = server or str(configuration.host)
    trust = _trust(host, configuration, at)

    async def authorize(rejected: bool) -> str:
        if _worth_loading(loader, chosen, rejected):
            await _load(loader, configuration, at)
            if trust is not None:
                _present(trust, configuration, at)
        return configuration.api_key.get("BearerToken", "").strip()

    return await _check_token(
        Connection(
            Endpoint(host, trust, configuration.tls_server_name, configuration.proxy), authorize
        )
    )


async def _check_token(connection: Connection) -> Connection:
    await connection.headers()
    return connection


def _worth_loading(loader: Any, chosen: ContextChoice, rejected: bool) -> bool:
    """Whether the loaded configuration may have changed."""
    if chosen.user.exec is None:
        return rejected or bool(chosen.user.token_file or chosen.user.client_certificate)
    if rejected:
        # The library would not run the program before its token has expired.
        vars(loader).pop("exec_plugin_expiry", None)
        vars(loader).pop("cert_file", None)
        return True
    return hasattr(loader, "exec_plugin_expiry")


async def _load(loader: Any, configuration: Any, at: str) -> None:
    from kubernetes_asyncio.config import ConfigException

    try:
        async with asyncio.timeout(_EXEC_SECONDS):
            await loader.load_and_set(configuration)
    except TimeoutError as error:
        raise CredentialsError(f"{at}: user.exec: no answer in {_EXEC_SECONDS:g} s") from error
    # The library checks little: these are what its own code raises when something is amiss.
    except (ConfigException, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CredentialsError(f"{at}: {error}") from error


def _trust(server: str, configuration: Any = None, at: str = "") -> ssl.SSLContext | None:
    """Makes the TLS context: the certificates to trust and to present; None for plain HTTP."""
    if not server.startswith("https://"):
        return None
    try:
        context = ssl.create_default_context(cafile=configuration and configuration.ssl_ca_cert)
    except (OSError, ssl.SSLError) as error:
        raise CredentialsError(f"{at}: cluster.certificate-authority: {error}") from error
    # Newer Pythons insist on extensions that the certificates of many clusters lack.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if configuration is not None:
        if not configuration.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        _present(context, configuration, at)
    return context


def _present(context: ssl.SSLContext, configuration: Any, at: str) -> None:
    """Loads the client certificate into a context; new connections present it."""
    if not configuration.cert_file:
        return
    try:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except (OSError, ssl.SSLError) as error:
        raise CredentialsError(f"{at}: user.client-certificate: {error}") from error


def _token(path: Path) -> str:
    try:
        token = path.read_text().strip()
    except OSError as error:
        raise CredentialsError(f"{path}: {error.strerror}") from error
    if not token:
        raise CredentialsError(f"{path}: the token is empty")
    return token
