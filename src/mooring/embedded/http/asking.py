"""What the query of a request asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mooring.embedded.errors import (
    Fault,
    bad_request,
    forbidden_field,
    invalid_value,
    too_long,
    unsupported,
)
from mooring.embedded.kinds import Kind
from mooring.embedded.listing import Page
from mooring.embedded.options import Write, dry_run_of, refuse_options
from mooring.embedded.selection import Selection, read_fields, read_labels

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
class Watching:
    """How a watch is to start and to end."""

    version: str = ""
    bookmarks: bool = False
    #: Whether it tells first what is there; None leaves that to the version.
    initial: bool | None = None
    timeout_seconds: int = 0


def flag(query: Query, name: str) -> bool:
    return name in query and query[name].lower() not in _FALSE


def number(query: Query, name: str) -> int:
    text = query.get(name, "")
    if not text:
        return 0
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        raise bad_request(f"invalid value for {name}: {text!r}")
    return int(text)


def selection(query: Query, kind: Kind, namespace: str, name: str = "") -> Selection:
    labels, orders = read_labels(query.get("labelSelector", ""))
    fields = read_fields(query.get("fieldSelector", ""), kind.position)
    if name:
        fields = (*fields, (0, name, True))
    return Selection(namespace, labels, orders, fields)


def page(query: Query) -> Page:
    """Which part of a list is asked for, as of when."""
    refuse_options("ListOptions", _list_faults(query))
    token, version = query.get("continue", ""), query.get("resourceVersion", "")
    if token and version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    # A list is never so long in the making that it would have to give up.
    number(query, "timeoutSeconds")
    return Page(max(number(query, "limit"), 0), token, version, query.get(_MATCH, ""))


def watching(query: Query) -> Watching:
    refuse_options("ListOptions", _watch_faults(query))
    return Watching(
        query.get("resourceVersion", ""),
        flag(query, "allowWatchBookmarks"),
        flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
        max(number(query, "timeoutSeconds"), 0),
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
    match, told = query.get(_MATCH, ""), "sendInitialEvents" in query
    if told and match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        yield forbidden_field(_MATCH, detail)
    if match and not told:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        yield forbidden_field(_MATCH, detail)
    if match not in ("", "NotOlderThan"):
        yield unsupported(_MATCH, match, ("NotOlderThan",))
    if match and query.get("continue"):
        yield forbidden_field(_MATCH, "resourceVersionMatch is forbidden when continue is provided")


def write(
    query: Query, options: str = "CreateOptions", *, agent: str = "", subresource: str = ""
) -> Write:
    """How an object is to be written; `options` is what Kubernetes calls such a request's."""
    refuse_options(options, _write_faults(query))
    dry, manager = query.get("dryRun"), query.get("fieldManager", "")
    return Write(
        dry_run=dry_run_of([dry] if dry else [], options),
        manager=manager or agent,
        named=bool(manager),
        subresource=subresource,
        force=flag(query, "force"),
    )


def _write_faults(query: Query) -> Iterator[Fault]:
    manager, validation = query.get("fieldManager", ""), query.get("fieldValidation", "")
    if len(manager.encode("utf-8", "surrogateescape")) > _LONGEST_MANAGER:
        yield too_long("fieldManager", _LONGEST_MANAGER)
    if not manager.isprintable():
        yield invalid_value("fieldManager", manager, "should only contain printable characters")
    if validation not in _VALIDATIONS:
        yield unsupported("fieldValidation", validation, _VALIDATIONS)
