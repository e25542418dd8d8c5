"""Reads the input of commands: an engine, manifests, an API server, a running scheduler."""

from __future__ import annotations

import asyncio
import json
import shlex
import ssl
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from moorage.config import (
    ConfigError,
    Configuration,
    FeatureGates,
    default,
    load,
    load_mapping,
)
from moorage.config.configuration import API_VERSION, KIND
from moorage.config.duration import Duration
from moorage.config.kubernetes_versions import DEFAULT_VERSION, KubernetesVersion
from moorage.documents.errors import DecodeError, InputError, Problem
from moorage.documents.yaml_text import read_document
from moorage.engine import Engine
from moorage.engine.explain import Explanation, GangExplanation
from moorage.engine.registry import RegistryError, check, registry
from moorage.engine.settings import class_settings
from moorage.framework.observe import UNOBSERVED, Observer
from moorage.framework.plugin import Plugin, Registry
from moorage.framework.profile import known_plugins
from moorage.objects.custom import CustomKind
from moorage.objects.kinds import KINDS, READ_KINDS, Object
from moorage.simulate.loading import Input, load as load_manifests
from moorage.simulate.manifests import CLAIM_TEMPLATE
from moorage.world.claim_templates import ClaimTemplates, read_claim_template

from .rendering import note

if TYPE_CHECKING:
    from moorage.client import Api, ApiError, ClientError, Connection
    from moorage.client.credentials import NamedScheduler

_ELECTION_DURATIONS = ("lease_duration", "renew_deadline", "retry_period")
T = TypeVar("T")

_EXPLAIN, _GROUPS = "/ui/api/explain", "/ui/api/podgroups"


@dataclass(frozen=True)
class EngineOptions:
    """The options that describe an engine: configuration, feature gates, plugins."""

    config: Path | None = None
    feature_gates: str = ""
    #: Python files with plugins, in addition to installed ones.
    plugins: Sequence[Path] | None = None
    election: Mapping[str, str | bool | None] = field(default_factory=dict)
    #: The version of kube-scheduler that it follows.
    version: KubernetesVersion = DEFAULT_VERSION
    #: Plugins that every profile has besides.
    extra_plugins: tuple[str, ...] = ()

    def engine(
        self,
        observer: Observer = UNOBSERVED,
        *,
        verify_share: float = 0.0,
        most_classes: int | None = None,
        asks_extenders: bool = True,
    ) -> Engine:
        """Makes an engine, as `maker` describes."""
        make = self.maker(
            observer,
            verify_share=verify_share,
            most_classes=most_classes,
            asks_extenders=asks_extenders,
        )
        return make()

    def maker(
        self,
        observer: Observer = UNOBSERVED,
        *,
        verify_share: float = 0.0,
        most_classes: int | None = None,
        asks_extenders: bool = True,
    ) -> Callable[[], Engine]:
        """Returns what makes engines; raises ConfigError, RegistryError or InputError.

        An engine that asks no extenders decides as if there were none, and a note says so.
        """
        plugins = self.registry
        configuration = _apply_election(self._configuration(plugins), self.election)
        if not asks_extenders and configuration.extenders:
            urls = ", ".join(each.url_prefix for each in configuration.extenders)
            note(f"extenders are not asked, and may decide otherwise: {urls}")
            configuration = msgspec.structs.replace(configuration, extenders=())
        settings = replace(class_settings(configuration), verify_share=verify_share)
        if most_classes is not None:
            settings = replace(settings, most_classes=most_classes)
        return partial(Engine, configuration, plugins, settings, observer)

    def configuration(self) -> Configuration:
        """Reads the configuration; raises what `engine` would raise about it."""
        return _apply_election(self._configuration(self.registry), self.election)

    @property
    def flags(self) -> str:
        """The flags that give another command the same engine, as typed in a shell."""
        files = [("--config", self.config), *(("--plugins", each) for each in self.plugins or ())]
        given = [f" {flag} {shlex.quote(str(file))}" for flag, file in files if file is not None]
        gates = f" --feature-gates {shlex.quote(self.feature_gates)}" if self.feature_gates else ""
        return "".join(given) + gates

    @cached_property
    def gates(self) -> FeatureGates:
        """Raises ConfigError that names every wrong gate."""
        return FeatureGates.from_text(self.feature_gates, version=self.version)

    @cached_property
    def text(self) -> str | bytes | None:
        """The configuration as text; None means the default one.

        Without a configuration file, all plugins of `plugins` are enabled.
        """
        if self.config is not None:
            return read_bytes(self.config)
        enabled = [{"name": plugin.name} for plugin in self._own_plugins]
        if not enabled:
            return None
        profile = {"plugins": {"multiPoint": {"enabled": enabled}}}
        return json.dumps({"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]})

    @cached_property
    def registry(self) -> Registry:
        """All plugins by name; raises RegistryError or InputError."""
        return registry(self._own_plugins)

    @cached_property
    def _own_plugins(self) -> tuple[type[Plugin], ...]:
        return load_plugins(self.plugins or ())

    def _configuration(self, plugins: Mapping[str, type[Plugin]]) -> Configuration:
        known, gates, source = known_plugins(plugins), self.gates, str(self.config or "--plugins")
        if self.extra_plugins:
            raw = _enable(self.text, self.extra_plugins)
            return load_mapping(raw, known=known, source=source, gates=gates)
        if self.text is None:
            return default(known, gates)
        return load(self.text, known=known, source=source, gates=gates)


def _enable(text: str | bytes | None, plugins: Iterable[str]) -> dict[str, Any]:
    """Returns a valid configuration with more plugins enabled in all its profiles."""
    raw: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
    if text is not None:
        raw = dict(read_document(text))
    profiles = []
    for profile in raw.get("profiles") or [{}]:
        points = dict(profile.get("plugins") or {})
        everywhere = dict(points.get("multiPoint") or {})
        enabled = list(everywhere.get("enabled") or ())
        named = {each.get("name") for each in enabled}
        enabled += [{"name": name} for name in plugins if name not in named]
        points["multiPoint"] = {**everywhere, "enabled": enabled}
        profiles.append({**profile, "plugins": points})
    return {**raw, "profiles": profiles}


def read_bytes(path: Path) -> bytes:
    """Reads a file; raises InputError that names it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(path, (error.strerror or str(error)).lower()) from error


def _apply_election(
    configuration: Configuration, flags: Mapping[str, str | bool | None]
) -> Configuration:
    """Applies the --leader-elect flags; raises ConfigError that names the flag."""
    values: dict[str, object] = {name: value for name, value in flags.items() if value is not None}
    problems: list[Problem] = []
    for name in values.keys() & _ELECTION_DURATIONS:
        try:
            values[name] = Duration.parse(str(values[name]))
        except ValueError as error:
            flag = f"--leader-elect-{name.replace('_', '-')}"
            problems.append(Problem(flag, str(error)))
    if problems:
        raise ConfigError(tuple(problems), "command line")
    election = msgspec.structs.replace(configuration.leader_election, **values)
    wrong = tuple(Problem(f"leaderElection.{where}", what) for where, what in election.problems())
    if wrong:
        raise ConfigError(wrong, "command line")
    return msgspec.structs.replace(configuration, leader_election=election)


def load_plugins(files: Iterable[Path]) -> tuple[type[Plugin], ...]:
    """Returns the plugin classes that Python files define, except those named with a `_`."""
    return tuple(plugin for file in files for plugin in _plugins_in(file))


def _plugins_in(file: Path) -> list[type[Plugin]]:
    module = _import(file)
    plugins = [
        check(each, str(file), name)
        for name, each in vars(module).items()
        if isinstance(each, type)
        and issubclass(each, Plugin)
        # A class that the file imports is a base class, or a plugin of another package.
        and each.__module__ == module.__name__
        and not name.startswith("_")
    ]
    if not plugins:
        raise RegistryError(f"{file}: has no Plugin class")
    return plugins


def _import(file: Path) -> ModuleType:
    # The path is the module's name, so that errors about its classes say where they are.
    spec = spec_from_file_location(str(file), file)
    if spec is None or spec.loader is None:
        raise RegistryError(f"{file}: must be a Python file, ending in .py")
    module = module_from_spec(spec)
    # Dataclasses look up the module that they are in.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except OSError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        raise RegistryError(f"{file}: cannot be loaded: {text}") from error
    return module


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The options that say how to reach an API server."""

    kubeconfig: Path | None = None
    context: str | None = None
    server: str | None = None

    @property
    def is_given(self) -> bool:
        return any(each is not None for each in (self.kubeconfig, self.context, self.server))

    def with_default(self, kubeconfig: str) -> ConnectionOptions:
        """Returns these options with a kubeconfig, unless they have one; an empty name is none."""
        if self.kubeconfig is not None or not kubeconfig:
            return self
        return replace(self, kubeconfig=Path(kubeconfig))

    def find_scheduler(self) -> NamedScheduler | None:
        """Returns the running scheduler that the kubeconfig names, as that of `moorage up` does."""
        from moorage.client.credentials import find_scheduler

        if self.server is not None:
            return None
        return find_scheduler(
            None if self.kubeconfig is None else str(self.kubeconfig), self.context
        )

    def warn_of_options(self, given: EngineOptions) -> None:
        """Prints a note if the cluster's scheduler has options that are not given."""
        known = self.find_scheduler()
        if known is not None and known.flags and not given.flags:
            note(f"this cluster's scheduler has other options; add them: {known.flags}")

    async def connect(self) -> Connection:
        """Reads the kubeconfig; raises CredentialsError."""
        # Here, because manifests do not need the client, which takes long to load.
        from moorage.client import connect

        file = None if self.kubeconfig is None else str(self.kubeconfig)
        return await connect(file, self.context, self.server)

    async def reach(self) -> Connection:
        """Connects as `connect` does, for commands that watch until they are stopped.

        Raises Unreachable.
        """
        from moorage.client import Api, ApiError

        connection = await self.connect()
        async with Api(connection) as api:
            # A user who may not read the version may still watch.
            with suppress(ApiError):
                await api.get("/version")
        return connection


def read_cluster(
    paths: Sequence[str], connection: ConnectionOptions, kinds: Iterable[CustomKind]
) -> tuple[Object, ...]:
    """Reads the objects of a cluster from manifests, or without any from the API server."""
    return read_cluster_input(paths, connection, kinds).objects


def read_cluster_input(
    paths: Sequence[str], connection: ConnectionOptions, kinds: Iterable[CustomKind]
) -> Input:
    """Reads a cluster as `read_cluster` does, with what it fills into new objects."""
    found = find_cluster(paths, connection, kinds)
    for text in found.notes:
        note(text)
    return found


def find_cluster(
    paths: Sequence[str], connection: ConnectionOptions, kinds: Iterable[CustomKind]
) -> Input:
    """Reads a cluster as `read_cluster` does, and returns its notes to the caller."""
    if not paths:
        objects, templates = _list_cluster(connection, kinds)
        return Input(objects, claim_templates=templates)
    if connection.is_given:
        raise InputError(", ".join(paths), "give either manifests or a cluster, not both")
    return load_manifests(paths, kinds)


def read_manifests(paths: Sequence[str], kinds: Iterable[CustomKind] = ()) -> tuple[Object, ...]:
    """Reads the objects of manifests and prints a note about those that are ignored."""
    return _read_input(paths, kinds).objects


def _read_input(paths: Sequence[str], kinds: Iterable[CustomKind]) -> Input:
    found = load_manifests(paths, kinds)
    for text in found.notes:
        note(text)
    return found


def _list_cluster(
    connection: ConnectionOptions, kinds: Iterable[CustomKind]
) -> tuple[tuple[Object, ...], ClaimTemplates]:
    # Here, because the client takes long to load.
    from moorage.client import Api
    from moorage.client.listing import list_kinds

    async def main() -> tuple[tuple[Object, ...], ClaimTemplates]:
        async with Api(await connection.connect()) as api:
            found = await list_kinds(api, (*sorted(READ_KINDS), *kinds), _note_unreadable)
            return tuple(found), await _list_claim_templates(api)

    return asyncio.run(main())


async def _list_claim_templates(api: Api) -> ClaimTemplates:
    """Returns the templates for claims of new pods; none if the cluster has no such kind."""
    from moorage.client.api_errors import ApiError

    templates = ClaimTemplates()
    try:
        text = await api.get(KINDS[CLAIM_TEMPLATE].path())
    except ApiError as error:
        if not error.is_not_found:
            note(f"left out all {CLAIM_TEMPLATE}, which cannot be read: {error}")
        return templates
    for raw in msgspec.json.decode(text)["items"]:
        try:
            templates.add(read_claim_template(raw))
        except DecodeError as error:
            key = f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"
            _note_unreadable(CLAIM_TEMPLATE, key, str(error))
    return templates


def _note_unreadable(kind: str, key: str, problem: str) -> None:
    what = f"{kind} {key}" if key else f"some {kind}"
    note(f"left out {what}, which cannot be read: {problem}")


@dataclass(frozen=True, slots=True)
class RemoteScheduler:
    """A running scheduler: its address, the token to send, and how to check its certificate."""

    url: str
    token: str = ""
    token_file: Path | None = None
    certificate_authority: Path | None = None
    insecure: bool = False

    def explain(self, key: str, node: str) -> Explanation:
        """Asks the scheduler to explain a pod; raises InputError if it does not answer."""
        return self._ask(_EXPLAIN, key, {"node": node} if node else None, Explanation)

    def explain_gang(self, key: str) -> GangExplanation:
        """Asks the scheduler to explain a group of pods, as `explain` does for a pod."""
        return self._ask(_GROUPS, key, None, GangExplanation)

    def _ask(self, root: str, key: str, query: Mapping[str, str] | None, kind: type[T]) -> T:
        from moorage.client import ApiError, ClientError

        connection = self._connection()
        try:
            body = asyncio.run(_fetch_answer(connection, root, key, query))
        except ApiError as error:
            raise InputError(self.url, _refusal(error)) from None
        except ClientError as error:
            raise InputError(self.url, _failure(error)) from None
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.MsgspecError as error:
            raise InputError(self.url, f"does not answer as Moorage does: {error}") from None

    def _connection(self) -> Connection:
        from moorage.client import Connection
        from moorage.client.connection import Endpoint

        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("--url", f"{self.url!r}: write it as https://HOST:PORT")
        token = self._read_token()
        tls = self._tls() if parts.scheme == "https" else None

        async def authorize(was_rejected: bool) -> str:
            return f"Bearer {token}" if token else ""

        return Connection(Endpoint(self.url, tls), authorize)

    def _read_token(self) -> str:
        if self.token and self.token_file is not None:
            raise InputError("--token", "give either --token or --token-file, not both")
        if self.token_file is None:
            return _check_token("--token", self.token)
        try:
            return _check_token(self.token_file, self.token_file.read_text().strip())
        except UnicodeDecodeError:
            raise InputError(self.token_file, "is not a token") from None

    def _tls(self) -> ssl.SSLContext:
        if self.insecure:
            if self.certificate_authority is not None:
                flag = "--insecure-skip-tls-verify"
                raise InputError(flag, "cannot be used together with --certificate-authority")
            unchecked = ssl.create_default_context()
            unchecked.check_hostname = False
            unchecked.verify_mode = ssl.CERT_NONE
            return unchecked
        file = self.certificate_authority
        try:
            return ssl.create_default_context(cafile=file)
        except ssl.SSLError as error:
            raise InputError(str(file), f"is not a certificate: {error}") from None
        except OSError as error:
            # The error does not name the file.
            raise InputError(str(file), (error.strerror or str(error)).lower()) from None


def _check_token(source: str | Path, token: str) -> str:
    # A line break would start another header.
    if not token.isascii() or not token.isprintable():
        raise InputError(source, "is not a token")
    return token


async def _fetch_answer(
    connection: Connection, root: str, key: str, query: Mapping[str, str] | None
) -> bytes:
    from moorage.client import Api

    namespace, _, name = key.partition("/")
    path = f"{root}/{quote(namespace, safe='')}/{quote(name, safe='')}"
    async with Api(connection) as api:
        return await api.get(path, query)


def _refusal(error: ApiError) -> str:
    if "page not found" in error.message:
        return "the server there is not a scheduler that explains"
    return error.message if error.is_not_found else str(error)


def _failure(error: ClientError) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        flags = "--certificate-authority or --insecure-skip-tls-verify"
        return f"its certificate is not trusted: give {flags}"
    return f"cannot be reached: {error}"
