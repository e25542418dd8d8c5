"""Reads kubeconfig files and checks them, so that an error names the file and the field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from mooring.documents.conversion import to_struct
from mooring.documents.errors import DecodeError
from mooring.documents.yaml_text import read_document

from .connection import CredentialsError


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
