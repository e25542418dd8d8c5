"""Content types of requests and answers, bodies and patches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from mooring.documents.errors import InputError
from mooring.documents.yaml_text import documents
from mooring.embedded.api.decoding import expect_shallow
from mooring.embedded.api.json_patch import json_patch, merge_patch
from mooring.embedded.api.kind import ServedKind
from mooring.embedded.api.protobuf import is_numbered, read_protobuf
from mooring.embedded.api.strategic_merge import strategic_merge
from mooring.embedded.request_refusals import bad_request, not_acceptable, unsupported_media
from mooring.embedded.store.table import Json, decode

Form = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]

_JSON, _YAML = "application/json", "application/yaml"
_PROTOBUF = "application/vnd.kubernetes.protobuf"


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The form that a client asks for."""

    form: Form = ""
    version: str = "v1"


def read_accept(accept: str, *, tables: bool = True) -> AnswerForm:
    """Returns the first form of the Accept header that can be served."""
    if not accept:
        return AnswerForm()
    for each in accept.split(","):
        media, *rest = (part.strip() for part in each.split(";"))
        options = dict(part.split("=", 1) for part in rest if "=" in part)
        if media not in (_JSON, "*/*", "application/*"):
            continue
        match options.get("as"):
            case None:
                return AnswerForm()
            case "Table" if not tables:
                continue
            case "Table" | "PartialObjectMetadata" | "PartialObjectMetadataList" as form:
                if options.get("g") == "meta.k8s.io" and options.get("v") in ("v1", "v1beta1"):
                    return AnswerForm(form, options["v"])
            case _:
                continue
    raise not_acceptable()


def media_of(content_type: str) -> str:
    """Returns a media type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def read_object(content_type: str, body: bytes, schema: str = "") -> dict[str, Any]:
    """Reads the object in a body; protobuf needs its type, with numbers of its fields."""
    if schema and media_of(content_type) == _PROTOBUF and is_numbered(schema):
        return read_protobuf(schema, body)
    raw = read_any(content_type, body)
    if not isinstance(raw, dict):
        raise bad_request("the object provided is unrecognized (must be of type object)")
    return raw


def read_any(content_type: str, body: bytes) -> Any:
    media = media_of(content_type)
    if media in (_JSON, "") or media.endswith("+json"):
        raw = _json(body)
    elif media in (_YAML, "text/yaml") or media.endswith("+yaml"):
        raw = _yaml(body)
    else:
        raise unsupported_media((_JSON, _YAML))
    expect_shallow(raw)
    return raw


def _json(body: bytes) -> Any:
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"the body is not JSON: {error}") from error


def _yaml(body: bytes) -> Any:
    try:
        # Most of what comes as YAML is JSON, which reads a hundred times as fast.
        return decode(body)
    except RecursionError as error:
        raise bad_request(f"the body is not YAML: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        found = [value for _, value in documents(body.decode(), "the body")]
    except (InputError, UnicodeDecodeError) as error:
        raise bad_request(f"the body is not YAML: {error}") from error
    if len(found) != 1:
        raise bad_request("the body must be one document of YAML")
    return found[0]


JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = ("application/apply-patch+yaml", "application/apply-patch+json")
_ALL = (JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY[0])

#: What a patch makes of an object.
PatchFunction = Callable[[Json], Any]


def read_patch(content_type: str, body: bytes, schema: str) -> PatchFunction:
    """Reads a patch; returns the function that applies it."""
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


def apply_patch(kind: ServedKind, item: Json, change: PatchFunction) -> Json:
    """Applies a patch to a stored object, in the form of its kind."""
    result = change(kind.view.outward(item) if kind.view else item)
    if not isinstance(result, dict):
        raise bad_request("the patch leaves no object")
    return result
