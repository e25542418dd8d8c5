"""What a request asks for: its address, its query, its content types, its body and its patch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from moorage.documents.errors import InputError
from moorage.documents.yaml_text import documents
from moorage.embedded.api.decoding import expect_shallow, unknown_fields
from moorage.embedded.api.kind import ServedKind, ServedKinds
from moorage.embedded.api.patches import json_patch, merge_patch, strategic_merge
from moorage.embedded.api.protobuf import is_numbered, read_protobuf
from moorage.embedded.api.request_options import WriteOptions, dry_run_of, refuse_options
from moorage.embedded.kinds.catalogue import NOT_SERVED
from moorage.embedded.request_refusals import (
    Fault,
    RequestRefused,
    bad_request,
    forbidden_field,
    invalid_value,
    no_such_path,
    not_acceptable,
    too_long,
    unsupported,
    unsupported_media,
)
from moorage.embedded.store.object_store import Json, decode
from moorage.embedded.store.queries import ListRequest, Selection, read_fields, read_labels

Query = Mapping[str, str]
# What says no; whatever else a flag is set to, also to nothing, says yes.
_FALSE = ("0", "false")

_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
# More than this many digits is no number that anyone means.
_LONGEST_NUMBER = 18
_LONGEST_MANAGER = 128
_MATCH = "resourceVersionMatch"
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What a watch request asks for."""

    version: str = ""
    bookmarks: bool = False
    #: Whether it begins with the objects that exist; None leaves that to the version.
    initial: bool | None = None
    timeout_seconds: int = 0


def read_flag(query: Query, name: str) -> bool:
    return name in query and query[name].lower() not in _FALSE


def read_number(query: Query, name: str) -> int:
    text = query.get(name, "")
    if not text:
        return 0
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        raise bad_request(f"invalid value for {name}: {text!r}")
    return int(text)


def read_selection(query: Query, kind: ServedKind, namespace: str, name: str = "") -> Selection:
    labels, orders = read_labels(query.get("labelSelector", ""))
    fields = read_fields(query.get("fieldSelector", ""), kind.position)
    if name:
        fields = (*fields, (0, name, True))
    return Selection(namespace, labels, orders, fields)


def read_list_request(query: Query) -> ListRequest:
    """Reads which page of a list is asked for, and of which version."""
    refuse_options("ListOptions", _list_faults(query))
    token, version = query.get("continue", ""), query.get("resourceVersion", "")
    if token and version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    # A list is never so long in the making that it would have to give up.
    read_number(query, "timeoutSeconds")
    return ListRequest(max(read_number(query, "limit"), 0), token, version, query.get(_MATCH, ""))


def read_watch_request(query: Query) -> WatchRequest:
    refuse_options("ListOptions", _watch_faults(query))
    return WatchRequest(
        query.get("resourceVersion", ""),
        read_flag(query, "allowWatchBookmarks"),
        read_flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
        max(read_number(query, "timeoutSeconds"), 0),
    )


def _list_faults(query: Query) -> Iterator[Fault]:
    match, version = query.get(_MATCH, ""), query.get("resourceVersion", "")
    if match and not version:
        detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        yield forbidden_field(_MATCH, detail)
    if match and query.get("continue"):
        yield forbidden_field(_MATCH, "resourceVersionMatch is forbidden when continue is provided")
    if match not in ("", "Exact", "NotOlderThan"):
        yield unsupported(_MATCH, match, ("Exact", "NotOlderThan", ""))
    if match == "Exact" and version == "0":
        detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        yield forbidden_field(_MATCH, detail)
    if "sendInitialEvents" in query:
        yield forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list")


def _watch_faults(query: Query) -> Iterator[Fault]:
    match, initial = query.get(_MATCH, ""), "sendInitialEvents" in query
    if initial and match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        yield forbidden_field(_MATCH, detail)
    if match and not initial:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        yield forbidden_field(_MATCH, detail)
    if match not in ("", "NotOlderThan"):
        yield unsupported(_MATCH, match, ("NotOlderThan",))
    if match and query.get("continue"):
        yield forbidden_field(_MATCH, "resourceVersionMatch is forbidden when continue is provided")


def read_write_options(
    query: Query, options: str = "CreateOptions", *, agent: str = "", subresource: str = ""
) -> WriteOptions:
    """Reads the options of a write; `options` is their name in Kubernetes."""
    refuse_options(options, _write_faults(query))
    dry, manager = query.get("dryRun"), query.get("fieldManager", "")
    return WriteOptions(
        dry_run=dry_run_of([dry] if dry else [], options),
        manager=manager or agent,
        named=bool(manager),
        subresource=subresource,
        force=read_flag(query, "force"),
    )


def _write_faults(query: Query) -> Iterator[Fault]:
    manager, validation = query.get("fieldManager", ""), query.get("fieldValidation", "")
    if len(manager.encode("utf-8", "surrogateescape")) > _LONGEST_MANAGER:
        yield too_long("fieldManager", _LONGEST_MANAGER)
    if not manager.isprintable():
        yield invalid_value("fieldManager", manager, "should only contain printable characters")
    if validation not in _VALIDATIONS:
        yield unsupported("fieldValidation", validation, _VALIDATIONS)


# So many warnings are enough.
_MOST_WARNINGS = 20


def check_type(kind: ServedKind, raw: Json) -> None:
    """Refuses a body of another kind or version."""
    version, named = raw.get("apiVersion"), raw.get("kind")
    if version not in (None, "", kind.api_version):
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({kind.api_version})"
        )
    if named not in (None, "", kind.kind):
        raise bad_request(
            f"the object provided is unrecognized: kind {named!r} does not match {kind.kind!r}"
        )


def check_fields(query: Query, kind: ServedKind, raw: Json) -> list[str]:
    """Returns warnings about unknown fields; refuses them if the client is strict."""
    how = query.get("fieldValidation", "")
    if how == "Ignore":
        return []
    unknown = [f'unknown field "{path}"' for path in unknown_fields(raw, kind.known(raw))]
    if unknown and how == "Strict":
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"strict decoding error: {', '.join(unknown)}"
        )
    return unknown[:_MOST_WARNINGS]


@dataclass(frozen=True, slots=True)
class Address:
    """The kind, object and subresource that a path names."""

    kind: ServedKind
    namespace: str = ""
    name: str = ""
    part: str = ""


def locate(kinds: ServedKinds, path: str) -> Address:
    """Reads the address in a path such as /api/v1/... or /apis/group/version/..."""
    steps = path.strip("/").split("/")
    if steps[0] == "api" and len(steps) > 2:
        group, version, rest = "", steps[1], steps[2:]
    elif steps[0] == "apis" and len(steps) > 3:
        group, version, rest = steps[1], steps[2], steps[3:]
    else:
        raise no_such_path()
    _refuse_not_served(group, rest)
    if len(rest) > 2 and rest[0] == "namespaces":
        below = kinds.at(group, version, rest[2])
        if below is not None and below.namespaced:
            return _address(below, rest[1], rest[3:])
    kind = kinds.at(group, version, rest[0])
    if kind is None or (kind.namespaced and len(rest) > 1):
        raise no_such_path()
    return _address(kind, "", rest[1:])


def _address(kind: ServedKind, namespace: str, rest: list[str]) -> Address:
    if len(rest) > 2 or "" in rest:
        raise no_such_path()
    name, part = (*rest, "", "")[:2]
    if part and part not in kind.subresources:
        raise no_such_path()
    return Address(kind, namespace, name, part)


def _refuse_not_served(group: str, steps: list[str]) -> None:
    """Refuses a known kind that is not served, and says why."""
    plural = steps[2] if len(steps) > 2 and steps[0] == "namespaces" else steps[0]
    resource = f"{plural}.{group}" if group else plural
    why = NOT_SERVED.get(resource)
    if why is not None:
        raise RequestRefused(404, "NotFound", f"{resource} are not served here: {why}")


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
