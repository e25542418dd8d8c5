"""Patches as requests bring them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring.embedded.errors import bad_request, unsupported_media
from mooring.embedded.kinds import Kind
from mooring.embedded.patching.json_patch import json_patch
from mooring.embedded.patching.merge_patch import merge_patch
from mooring.embedded.patching.strategic import strategic_merge
from mooring.embedded.wire import Json

from .media import media_of, read_any

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = ("application/apply-patch+yaml", "application/apply-patch+json")
_ALL = (JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY[0])

#: What a patch makes of an object.
Change = Callable[[Json], Any]


def read_patch(content_type: str, body: bytes, schema: str) -> Change:
    """The change that a body describes."""
    media = media_of(content_type)
    if media == JSON_PATCH:
        raw = read_any(media, body)
        return lambda item: json_patch(item, raw)
    if media == MERGE_PATCH or (media == STRATEGIC and schema):
        patch = read_any(media, body)
        if not isinstance(patch, dict):
            raise bad_request("the patch must be an object")
        if media == MERGE_PATCH:
            return lambda item: merge_patch(item, patch)
        return lambda item: strategic_merge(item, patch, schema)
    raise unsupported_media([each for each in _ALL if schema or each != STRATEGIC])


def patched(kind: Kind, item: Json, change: Change) -> Json:
    """The object of a kind after a change, in the form that clients of the kind know."""
    result = change(kind.view.outward(item) if kind.view else item)
    if not isinstance(result, dict):
        raise bad_request("the patch leaves no object")
    return result
