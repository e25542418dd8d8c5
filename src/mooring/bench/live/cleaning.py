"""Taking away what a run has made, and nothing else, so that the next one finds a cluster as new.

There are no controllers that would empty a namespace, and no kubelets that would end a pod.
"""

from __future__ import annotations

from itertools import groupby

import msgspec

from mooring.client import RESOURCES, Api, ApiError, ClientError

from .writing import Key, Writer, refused

# API servers delete one after the other, and give up after a minute.
_EVENTS_AT_ONCE = 500

_EVENTS = RESOURCES["Event"]


class _List(msgspec.Struct):
    items: list[msgspec.Raw]


async def clean(api: Api, writer: Writer) -> None:
    """Deletes pods first, then whatever they use, then nodes, then namespaces."""
    order = sorted(reversed(writer.made), key=_rank)
    for _, keys in groupby(order, key=_rank):
        chosen = list(keys)
        if chosen[0].kind == "Namespace":
            await _delete_events(api, chosen)
        await writer.each(chosen, lambda key: _delete(api, writer, key))


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


async def _delete_events(api: Api, namespaces: list[Key]) -> None:
    """Deletes what schedulers told about pods: it would make the next run's store larger."""
    for namespace in namespaces:
        path = _EVENTS.path(namespace.name)
        try:
            while await has_any(api, path):
                await api.delete(path, params={"limit": _EVENTS_AT_ONCE})
        except ClientError as error:
            raise refused(f"Events of {namespace}", error) from error


async def has_any(api: Api, path: str) -> bool:
    """Whether there is an object at all."""
    return bool(msgspec.json.decode(await api.get(path, {"limit": 1}), type=_List).items)
