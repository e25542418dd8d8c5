"""Where a cluster to ask about comes from: manifests, or an API server that is listed once."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from mooring.objects.custom import CustomKind
from mooring.objects.decode import KINDS, Object
from mooring.simulate.loading import load
from mooring.simulate.problems import InputError

from .connecting import Connecting
from .text import plain


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

    from mooring.client import Api
    from mooring.client.listing import list_kinds

    async def main() -> list[Object]:
        async with Api(await connecting.connection()) as api:
            return await list_kinds(api, (*sorted(KINDS), *wanted), _note_unreadable)

    return tuple(asyncio.run(main()))


def _note_unreadable(kind: str, key: str, problem: str) -> None:
    note = f"note: left out {kind} {key}, which cannot be read: {problem}"
    print(plain(note), file=sys.stderr)
