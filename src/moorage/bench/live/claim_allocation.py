"""Hands out devices to claims through an API server, before any scheduler sees them."""

from __future__ import annotations

import msgspec

from moorage.bench.cases import RunFailed
from moorage.bench.device_claims import ClaimFiller
from moorage.client import MERGE_PATCH, Api, ApiError
from moorage.client.listing import list_kinds
from moorage.config import FeatureGates, default
from moorage.engine import Engine
from moorage.engine.events import Applied
from moorage.engine.registry import registry
from moorage.framework.profile import known_plugins
from moorage.objects.resource_claim import ResourceClaim

from .object_writer import ObjectKey, ObjectWriter, api_failure

# What devices are chosen by, in the order in which an engine takes it in.
_KINDS = ("Node", "DeviceClass", "ResourceSlice", "ResourceClaim")


async def allocate_claims(api: Api, writer: ObjectWriter, namespace: str) -> None:
    """Gives devices of random nodes to the claims of a namespace; an empty one is all."""
    plugins = registry()
    engine = Engine(default(known_plugins(plugins), FeatureGates()), plugins)
    for item in await list_kinds(api, _KINDS, _fail):
        engine.handle(Applied(item), 0.0)
    filled = []
    for claim in ClaimFiller(engine).fill(namespace):
        engine.handle(Applied(claim), 0.0)
        filled.append(claim)

    async def write(claim: ResourceClaim) -> None:
        await _write(api, claim)

    await writer.each(filled, write)


def _fail(kind: str, key: str, problem: str) -> None:
    raise RunFailed(f"{kind} {key}: cannot be read: {problem}")


async def _write(api: Api, claim: ResourceClaim) -> None:
    """Writes a claim as schedulers do: first its finalizer, then its devices."""
    key = ObjectKey("ResourceClaim", claim.namespace, claim.name)
    assert claim.allocation is not None
    finalizers = {"metadata": {"finalizers": claim.finalizers}}
    status = {"status": {"allocation": claim.allocation.written()}}
    try:
        await api.patch(key.path, msgspec.json.encode(finalizers), MERGE_PATCH)
        await api.patch(f"{key.path}/status", msgspec.json.encode(status), MERGE_PATCH)
    except ApiError as error:
        raise api_failure(key, error) from error
