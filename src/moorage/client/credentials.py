"""Makes a connection from a kubeconfig file or a pod's service account.

Kubeconfig files are checked, so that an error names the file and the field.
"""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from moorage.documents.conversion import to_struct
from moorage.documents.errors import DecodeError
from moorage.documents.yaml_text import read_document

from .connection import Connection, CredentialsError, Endpoint
from .exec_program import ExecProgram, Execution


class _NamedExtension(msgspec.Struct, frozen=True):
    name: str
    extension: Any = None


class KubeconfigCluster(msgspec.Struct, frozen=True, rename="kebab"):
    """The address of a server, and how to verify it."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[_NamedExtension] | None = None


class KubeconfigUser(msgspec.Struct, frozen=True, rename="kebab"):
    """The credentials of a user."""

    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: ExecProgram | None = None
    impersonate: str = msgspec.field(name="as", default="")
    auth_provider: Any = None


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
    """The cluster and the user of one context, and the folders that their paths start from."""

    #: The files and the context, for errors.
    at: str
    cluster: KubeconfigCluster
    cluster_folder: Path
    user: KubeconfigUser
    user_folder: Path


def choose(paths: Sequence[Path], context: str | None) -> ContextChoice:
    """Reads files and follows a context.

    If files contradict each other, the first one counts.
    """
    source = ":".join(map(str, paths))
    documents = [(path.absolute().parent, _read(path)) for path in paths]
    chosen = context or next(
        (each.current_context for _, each in documents if each.current_context), ""
    )
    if not chosen:
        raise CredentialsError(f"{source}: current-context: not set, and no context was asked for")
    contexts = [(folder, each.contexts) for folder, each in documents]
    followed = _find_named(contexts, chosen, f"{source}: contexts")[1].context
    at = f"{source}: contexts[name={chosen}].context"
    clusters = [(folder, each.clusters) for folder, each in documents]
    cluster_folder, cluster = _find_named(clusters, followed.cluster, f"{at}.cluster")
    user, user_folder = KubeconfigUser(), cluster_folder
    if followed.user:
        users = [(folder, each.users) for folder, each in documents]
        user_folder, named = _find_named(users, followed.user, f"{at}.user")
        user = named.user or user
    for field, value in (("as", user.impersonate), ("auth-provider", user.auth_provider)):
        if value:
            raise CredentialsError(
                f"{source}: users[name={followed.user}].user.{field}: not supported"
            )
    at = f"{source}: context {chosen}"
    return ContextChoice(at, cluster.cluster, cluster_folder, user, user_folder)


#: The extension of a cluster in a kubeconfig that names its scheduler, as `moorage up` writes it.
SCHEDULER = "moorage.dev/scheduler"


class NamedScheduler(msgspec.Struct, frozen=True):
    """A running scheduler that a kubeconfig names, and the flags that stand for its options."""

    url: str
    flags: str = ""
    #: That of the kubeconfig's user.
    token: str = ""

    def encode(self) -> dict[str, Any]:
        """Returns the extension of a cluster in a kubeconfig."""
        return {"name": SCHEDULER, "extension": {"url": self.url, "flags": self.flags}}


def find_scheduler(kubeconfig: str | None, context: str | None) -> NamedScheduler | None:
    """Returns the scheduler that the kubeconfig names, if it names one."""
    try:
        paths = _files(kubeconfig)
        chosen = choose(paths, context) if paths else None
        for each in (chosen.cluster.extensions or ()) if chosen else ():
            if each.name == SCHEDULER and chosen is not None:
                found = to_struct(NamedScheduler, each.extension)
                return msgspec.structs.replace(found, token=chosen.user.token)
    except (CredentialsError, DecodeError):
        # Who connects to the cluster hears of it.
        return None
    return None


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_N = TypeVar("_N", bound=_Named)


def _find_named(
    lists: Sequence[tuple[Path, list[_N] | None]], name: str, at: str
) -> tuple[Path, _N]:
    for folder, entries in lists:
        for each in entries or ():
            if each.name == name:
                return folder, each
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
    at = "no kubeconfig was found, and this is no pod of a cluster"
    host, port = (environ.get(f"KUBERNETES_SERVICE_{each}", "") for each in ("HOST", "PORT"))
    if not host or not port:
        raise CredentialsError(f"{at}: KUBERNETES_SERVICE_HOST and _PORT are not set")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    trust = _trust(server, _read_file(account / "ca.crt", at))

    async def authorize(rejected: bool) -> str:
        return "Bearer " + _read_token(account / "token", at)

    return await _check_token(Connection(Endpoint(server, trust), authorize))


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
    cluster, user, at = chosen.cluster, chosen.user, chosen.at
    host = (server or cluster.server).rstrip("/")
    if not host.startswith(("http://", "https://")):
        raise CredentialsError(f"{at}: cluster.server: not a URL: {cluster.server!r}")
    authority = _read_pem(
        cluster.certificate_authority_data,
        cluster.certificate_authority,
        chosen.cluster_folder,
        f"{at}: cluster.certificate-authority",
    )
    trust = _trust(host, authority, at, is_checked=not cluster.insecure_skip_tls_verify)
    execution = None
    if user.exec is not None:
        execution = Execution(user.exec, chosen.user_folder, f"{at}: user.exec")

    async def authorize(rejected: bool) -> str:
        if execution is None:
            _present(trust, *_read_certificate(chosen), at)
            return _authorization(chosen)
        output = await execution.run(rejected)
        _present(trust, output.client_certificate_data, output.client_key_data, at)
        return f"Bearer {output.token.strip()}" if output.token else ""

    return await _check_token(
        Connection(
            Endpoint(host, trust, cluster.tls_server_name or None, cluster.proxy_url or None),
            authorize,
        )
    )


async def _check_token(connection: Connection) -> Connection:
    await connection.headers()
    return connection


def _authorization(chosen: ContextChoice) -> str:
    user = chosen.user
    if user.token_file:
        path = chosen.user_folder / user.token_file
        return "Bearer " + _read_token(path, f"{chosen.at}: user.tokenFile")
    if user.token:
        return f"Bearer {user.token.strip()}"
    if user.username and user.password:
        pair = f"{user.username}:{user.password}".encode()
        return "Basic " + base64.b64encode(pair).decode()
    return ""


def _read_certificate(chosen: ContextChoice) -> tuple[str, str]:
    """Returns the client certificate and its key; empty if the user has none."""
    user, folder, at = chosen.user, chosen.user_folder, f"{chosen.at}: user"
    return (
        _read_pem(
            user.client_certificate_data,
            user.client_certificate,
            folder,
            f"{at}.client-certificate",
        ),
        _read_pem(user.client_key_data, user.client_key, folder, f"{at}.client-key"),
    )


def _read_pem(data: str, file: str, folder: Path, at: str) -> str:
    """Returns what a kubeconfig gives inline or as a path; the former takes precedence."""
    if not data:
        return _read_file(folder / file, at) if file else ""
    try:
        return base64.b64decode(data).decode()
    except ValueError as error:
        raise CredentialsError(f"{at}-data: no base64 of PEM: {error}") from error


def _trust(
    server: str, authority: str = "", at: str = "", *, is_checked: bool = True
) -> ssl.SSLContext | None:
    """Makes the TLS context; None for plain HTTP. Without an authority the system's are trusted."""
    if not server.startswith("https://"):
        return None
    # Bundles have names in any alphabet as comments.
    trusted = authority.encode("ascii", "replace").decode()
    try:
        context = ssl.create_default_context(cadata=trusted or None)
    except (OSError, ValueError) as error:
        raise CredentialsError(f"{at}: cluster.certificate-authority: {error}") from error
    # Newer Pythons insist on extensions that the certificates of many clusters lack.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not is_checked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _present(context: ssl.SSLContext | None, certificate: str, key: str, at: str) -> None:
    """Loads the client certificate into a context; new connections present it."""
    if context is None or not certificate:
        return
    # OpenSSL reads it from a file only.
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(f"{certificate}\n{key}\n")
        file.flush()
        try:
            context.load_cert_chain(file.name)
        except (OSError, ValueError) as error:
            raise CredentialsError(f"{at}: user.client-certificate: {error}") from error


def _read_token(path: Path, at: str) -> str:
    token = _read_file(path, at).strip()
    if not token:
        raise CredentialsError(f"{at}: {path}: the token is empty")
    return token


def _read_file(path: Path, at: str) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise CredentialsError(f"{at}: {path}: {error.strerror}") from error
    except UnicodeError as error:
        raise CredentialsError(f"{at}: {path}: {error}") from error
