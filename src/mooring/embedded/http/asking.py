"""What the query of a request asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mooring.embedded.errors import bad_request, forbidden_field
from mooring.embedded.kinds import Kind
from mooring.embedded.listing import Page
from mooring.embedded.options import Write, dry_run_of, invalid_options
from mooring.embedded.selection import Selection, read_fields, read_labels

Query = Mapping[str, str]
_TRUE = ("1", "true", "True", "TRUE", "t", "T")
_FALSE = ("", "0", "false", "False", "FALSE", "f", "F")

# More than this many digits is no number that anyone means.
_LONGEST_NUMBER = 18
_LONGEST_MANAGER = 128


@dataclass(frozen=True, slots=True)
class Watching:
    """How a watch is to start and to end."""

    version: str = ""
    bookmarks: bool = False
    initial: bool = False
    timeout_seconds: int = 0


def flag(query: Query, name: str) -> bool:
    text = query.get(name, "")
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise bad_request(f"invalid value for {name}: {text!r}")


def number(query: Query, name: str) -> int:
    text = query.get(name, "")
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > _LONGEST_NUMBER:
        raise bad_request(f"invalid value for {name}: {text!r}")
    return int(text)


def selection(query: Query, kind: Kind, namespace: str, name: str = "") -> Selection:
    labels, orders = read_labels(query.get("labelSelector", ""))
    fields = read_fields(query.get("fieldSelector", ""), kind.position)
    if name:
        fields = (*fields, (0, name, True))
    return Selection(namespace, labels, orders, fields)


def page(query: Query) -> Page:
    token, version = query.get("continue", ""), query.get("resourceVersion", "")
    match = query.get("resourceVersionMatch", "")
    if match not in ("", "Exact", "NotOlderThan"):
        raise bad_request(f"invalid value for resourceVersionMatch: {match!r}")
    if match and not version and not token:
        detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        fault = forbidden_field("resourceVersionMatch", detail)
        raise invalid_options("ListOptions", fault)
    if token and version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    return Page(number(query, "limit"), token, version, match)


def watching(query: Query) -> Watching:
    initial = flag(query, "sendInitialEvents")
    if initial and query.get("resourceVersionMatch") != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        fault = forbidden_field("resourceVersionMatch", detail)
        raise invalid_options("ListOptions", fault)
    return Watching(
        query.get("resourceVersion", ""),
        flag(query, "allowWatchBookmarks"),
        initial,
        number(query, "timeoutSeconds"),
    )


def write(query: Query, agent: str = "", subresource: str = "") -> Write:
    dry, manager = query.get("dryRun"), query.get("fieldManager", "")
    if len(manager) > _LONGEST_MANAGER or not manager.isprintable():
        raise bad_request(f"fieldManager must be printable and of {_LONGEST_MANAGER} bytes at most")
    return Write(
        dry_run=dry_run_of([dry] if dry else [], "CreateOptions"),
        manager=manager or agent,
        named=bool(manager),
        subresource=subresource,
        force=flag(query, "force"),
    )
