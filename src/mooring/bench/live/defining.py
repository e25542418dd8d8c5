"""Custom kinds on an API server: defined before a scheduler that reads them is started."""

from __future__ import annotations

import asyncio

import msgspec

from mooring.bench.kinds import DEFINITION
from mooring.bench.problems import Broken
from mooring.bench.templates import Manifest
from mooring.client import Api, ApiError, Resource
from mooring.objects.custom import CustomKind

# An API server serves a kind some time after it was defined.
_LOOKS = 400
_LOOK_SECONDS = 0.05


def resource(kind: CustomKind) -> Resource:
    """Where objects of a custom kind are kept."""
    return Resource(kind.group, kind.version, kind.plural, kind.kind, kind.namespaced)


DEFINITIONS = resource(DEFINITION)


async def define(api: Api, definition: Manifest, serves: Resource) -> bool:
    """Makes a kind known and waits until it is served; False if it was known already."""
    is_new = True
    try:
        await api.post(DEFINITIONS.path(), msgspec.json.encode(definition))
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
    raise Broken(f"{serves.plural}.{serves.group} was defined but is not served")


async def undefine(api: Api, name: str) -> None:
    """Takes a kind away, and its objects with it."""
    await api.delete(DEFINITIONS.path(name=name))
