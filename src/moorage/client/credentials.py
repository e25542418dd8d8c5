"""Makes a connection from a kubeconfig file or a pod's service account.

Kubeconfig files are checked, so that an error names the file and the field.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from moorage.documents.conversion import to_struct
from moorage.documents.errors import DecodeError
from moorage.documents.yaml_text import read_document

from .connection import Connection, CredentialsError, Endpoint


class KubeconfigCluster(msgspec.Struct, frozen=True, rename="kebab"):
    """The address of a server, and how to verify it."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class ExecProgram(msgspec.Struct, frozen=True, rename="camel"):
    """The program that prints credentials."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[dict[str, str]] | None = None


class KubeconfigUser(msgspec.Struct, frozen=True, rename="kebab"):
    """The credentials of a user. It has only the fields that are checked here."""

    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: ExecProgram | None = None
    impersonate: str = msgspec.field(name="as", default="")


class _Context(msgspec.Struct, frozen=True):
    cluster: str
    user: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: KubeconfigCluster


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: KubeconfigUser | None = None


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: _Context


class _Document(msgspec.Struct, frozen=True, rename="kebab"):
    current_context: str = ""
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


@dataclass(frozen=True, slots=True)
class ContextChoice:
    """The cluster and the user of one context."""

    source: str
    context: str
    cluster: KubeconfigCluster
    user: KubeconfigUser


def choose(paths: Sequence[Path], context: str | None) -> ContextChoice:
    """Reads files and follows a context.

    If files contradict each other, the first one counts.
    """
    source = ":".join(map(str, paths))
    documents = [_read(path) for path in paths]
    chosen = context or next(
        (each.current_context for each in documents if each.current_context), ""
    )
    if not chosen:
        raise CredentialsError(f"{source}: current-context: not set, and no context was asked for")
    followed = _find_named(
        [each.contexts for each in documents], chosen, f"{source}: contexts"
    ).context
    at = f"{source}: contexts[name={chosen}].context"
    cluster = _find_named(
        [each.clusters for each in documents], followed.cluster, f"{at}.cluster"
    ).cluster
    user = KubeconfigUser()
    if followed.user:
        user = (
            _find_named([each.users for each in documents], followed.user, f"{at}.user").user
            or user
        )
    if user.impersonate:
        raise CredentialsError(f"{source}: users[name={followed.user}].user.as: not supported")
    return ContextChoice(source, chosen, cluster, user)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_N = TypeVar("_N", bound=_Named)


def _find_named(lists: Sequence[list[_N] | None], name: str, at: str) -> _N:
    for each in (entry for entries in lists for entry in entries or ()):
        if each.name == name:
            return each
    raise CredentialsError(f"{at}: there is none named {name!r}")


def _read(path: Path) -> _Document:
    try:
        return to_struct(_Document, read_document(path.read_bytes()) or {})
    except OSError as error:
        raise CredentialsError(f"{path}: {error.strerror}") from error
    except DecodeError as error:
        raise CredentialsError(f"{path}: {error}") from error


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
