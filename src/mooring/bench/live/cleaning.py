"""Taking away what a run has made, and nothing else, so that the next one finds a cluster as new.

There are no controllers that would empty a namespace, and no kubelets that would end a pod. What
schedulers told in events stays until it expires: nobody reads it, and to delete it would take as
long as everything else together.
"""

from __future__ import annotations

from itertools import groupby

import msgspec

from mooring.client import Api, ApiError

from .writing import Key, Writer, refused


class _List(msgspec.Struct):
    items: list[msgspec.Raw]


async def clean(api: Api, writer: Writer) -> None:
    """Deletes pods first, then whatever they use, then nodes, then namespaces."""
    order = sorted(reversed(writer.made), key=_rank)
    for _, keys in groupby(order, key=_rank):
        await writer.each(list(keys), lambda key: _delete(api, writer, key))


def _rank(key: Key) -> int:
    return {"Pod": 0, "Node": 2, "Namespace": 3}.get(key.kind, 1)


async def _delete(api: Api, writer: Writer, key: Key) -> None:
    await writer.delete(key, for_good=True)
    if key.kind == "Namespace":
        await _finalize(api, key)


async def _finalize(api: Api, namespace: Key) -> None:
    """Says that a namespace that is being deleted is empty."""
    body = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": namespace.name},
        "spec": {"finalizers": []},
    }
    try:
        await api.put(f"{namespace.path}/finalize", msgspec.json.encode(body))
    except ApiError as error:
        if not error.is_not_found:
            raise refused(namespace, error) from error


async def has_any(api: Api, path: str) -> bool:
    """Whether there is an object at all."""
    return bool(msgspec.json.decode(await api.get(path, {"limit": 1}), type=_List).items)
