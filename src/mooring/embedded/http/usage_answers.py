"""Answers requests for what pods and nodes use."""

from __future__ import annotations

from aiohttp import web

from mooring.embedded.api.object_api import ObjectApi
from mooring.embedded.kinds.usage_kinds import node_usage, pod_usage
from mooring.embedded.refusals import method_not_allowed, not_found
from mooring.embedded.store.queries import list_entries
from mooring.embedded.store.selection import Selection
from mooring.embedded.store.table import Json, StoredObject

from .answers import json_answer
from .media import read_accept
from .parameters import Address, read_selection


def answer_usage(api: ObjectApi, request: web.BaseRequest, at: Address) -> web.StreamResponse:
    """Answers a request for the usage of nodes or pods."""
    if request.method != "GET" or "watch" in request.query:
        raise method_not_allowed(at.kind.resource, request.method)
    read_accept(request.headers.get("Accept", ""), tables=False)
    measured = api.kinds[at.kind.plural]
    selection = read_selection(request.query, measured, at.namespace, at.name)
    listed = list_entries(api.store, measured.table, selection)
    if at.kind.plural == "pods":
        found = [pod_usage(api, each) for each in listed.entries]
        items = [each for each in found if each is not None]
    else:
        items = _nodes(api, listed.entries)
    if not at.name:
        head = {"kind": f"{at.kind.kind}List", "apiVersion": at.kind.api_version}
        return json_answer({**head, "metadata": {}, "items": items})
    if not items:
        raise not_found(at.kind.resource, at.name)
    return json_answer(items[0])


def _nodes(api: ObjectApi, entries: list[StoredObject]) -> list[Json]:
    pods = api.kinds["pods"]
    place = pods.position("spec.nodeName") or 0
    by_node: dict[str, list[StoredObject]] = {}
    for each in list_entries(api.store, pods.table, Selection()).entries:
        by_node.setdefault(each.fields[place], []).append(each)
    return [node_usage(api, each, by_node.get(each.name, ())) for each in entries]
