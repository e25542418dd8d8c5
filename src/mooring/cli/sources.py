"""Where a cluster to ask about comes from: manifests, or an API server that is listed once."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from mooring.objects.custom import CustomKind
from mooring.objects.decode import KINDS, Object
from mooring.simulate.loading import load
from mooring.simulate.problems import InputError

from .text import plain

_CLUSTER = "Connection"

KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="How to reach the API server: else $KUBECONFIG, ~/.kube/config, in-cluster.",
        rich_help_panel=_CLUSTER,
    ),
]
ContextOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="A context of it.", rich_help_panel=_CLUSTER)
]
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="The API server, in place of its.",
        rich_help_panel=_CLUSTER,
    ),
]


@dataclass(frozen=True, slots=True)
class Connecting:
    """How to reach an API server."""

    kubeconfig: Path | None = None
    context: str | None = None
    server: str | None = None

    @property
    def is_asked_for(self) -> bool:
        return any(each is not None for each in (self.kubeconfig, self.context, self.server))


def objects(
    paths: Sequence[str], connecting: Connecting, wanted: Iterable[CustomKind]
) -> tuple[Object, ...]:
    """The objects of manifests; without any, those of a cluster."""
    if not paths:
        return _listed(connecting, wanted)
    if connecting.is_asked_for:
        raise InputError(", ".join(paths), "give either manifests or a cluster, not both")
    return read(paths, wanted)


def read(paths: Sequence[str], wanted: Iterable[CustomKind] = ()) -> tuple[Object, ...]:
    """The objects of manifests; what was ignored is told."""
    given = load(paths, wanted)
    for note in given.notes:
        print(plain(f"note: {note}"), file=sys.stderr)
    return given.objects


def _listed(connecting: Connecting, wanted: Iterable[CustomKind]) -> tuple[Object, ...]:
    # Here, because it takes long to load.
    import asyncio

    from mooring.client import Api, connect
    from mooring.client.listing import listed_kinds

    async def main() -> list[Object]:
        file = connecting.kubeconfig
        connection = await connect(
            None if file is None else str(file), connecting.context, connecting.server
        )
        async with Api(connection) as api:
            return await listed_kinds(api, (*sorted(KINDS), *wanted))

    return tuple(asyncio.run(main()))
