"""The control plane that workloads run on: an API server and a loop to talk to it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from moorage.bench.cases import RunFailed, WorkloadError
from moorage.bench.custom_kinds import DEFINITION, custom_kind
from moorage.bench.templates import Manifest
from moorage.client import Api, ApiError, ClientError, connect
from moorage.objects.custom import CustomKind
from moorage.objects.kinds import KINDS
from moorage.objects.meta import ObjectKind, Wire

from .object_writer import has_any

# An API server serves a kind some time after it was defined.
_LOOKS = 400
_LOOK_SECONDS = 0.05


async def define(api: Api, definition: Manifest, serves: CustomKind) -> bool:
    """Makes a kind known and waits until it is served; False if it was known already."""
    is_new = True
    try:
        await api.post(DEFINITION.path(), msgspec.json.encode(definition))
    except ApiError as error:
        if not error.is_already_exists:
            raise
        is_new = False
    for _ in range(_LOOKS):
        try:
            await api.get(serves.path(), {"limit": 1})
            return is_new
        except ApiError as error:
            if not error.is_not_found:
                raise
        await asyncio.sleep(_LOOK_SECONDS)
    raise RunFailed(f"{serves.plural}.{serves.group} was defined but is not served")


async def undefine(api: Api, name: str) -> None:
    """Takes a kind away, and its objects with it."""
    await api.delete(DEFINITION.path(name=name))


_T = TypeVar("_T")

# On two cores, an API server under load may take its time.
_TIMEOUT_SECONDS = 120.0


class _Version(Wire, frozen=True):
    git_version: str = "unknown"


class ControlPlane:
    """An API server. Requests and watches make progress only within `run`."""

    def __init__(self, kubeconfig: Path, loop: asyncio.AbstractEventLoop, api: Api) -> None:
        self.kubeconfig = kubeconfig
        self.api = api
        self._loop = loop
        #: Where objects are kept whose kinds were defined here, by kind.
        self.custom: dict[str, ObjectKind] = {DEFINITION.kind: DEFINITION}
        self._defined: list[str] = []

    def version(self) -> str:
        """Returns which release of Kubernetes the API server is, or is like."""
        text = self.run(self.api.get("/version"))
        return msgspec.json.decode(text, type=_Version).git_version

    def define(self, definitions: Iterable[Manifest]) -> None:
        """Makes custom kinds known, unless they are.

        They stay until the end: schedulers do not start without those that they read.
        """
        for manifest in definitions:
            kind = custom_kind(manifest)
            if kind.kind not in self.custom:
                if self.run(define(self.api, manifest, kind)):
                    self._defined.append(manifest["metadata"]["name"])
                self.custom[kind.kind] = kind

    def undefine(self) -> None:
        """Takes away the kinds that were not there before."""
        for name in self._defined:
            self.run(undefine(self.api, name))

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Runs a coroutine, while everything else that is under way goes on."""
        try:
            return self._loop.run_until_complete(work)
        except ClientError as error:
            raise RunFailed(f"{self.kubeconfig}: {error}") from error

    def task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Starts a task that makes progress whenever something is run."""
        return self._loop.create_task(work)


@contextmanager
def open_control_plane(kubeconfig: Path) -> Iterator[ControlPlane]:
    """Connects to an API server that has neither nodes nor pods.

    On any other, figures would mean nothing, and the measured scheduler would place foreign pods.
    """
    loop = asyncio.new_event_loop()
    try:
        connection = loop.run_until_complete(connect(str(kubeconfig)))
        api = Api(connection, user_agent="moorage-bench", timeout=_TIMEOUT_SECONDS)
        loop.run_until_complete(api.__aenter__())
        try:
            loop.run_until_complete(_check_empty(api, kubeconfig))
            plane = ControlPlane(kubeconfig, loop, api)
            try:
                yield plane
            finally:
                plane.undefine()
        finally:
            loop.run_until_complete(api.__aexit__(None, None, None))
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _check_empty(api: Api, kubeconfig: Path) -> None:
    for kind in ("Node", "Pod"):
        resource = KINDS[kind]
        try:
            is_used = await has_any(api, resource.path())
        except ClientError as error:
            raise WorkloadError(kubeconfig, error) from None
        if is_used:
            text = f"has {resource.plural} already: benchmarks need a cluster of their own"
            raise WorkloadError(kubeconfig, text)
