"""Other forms of objects: tables for people, metadata alone for those who need no more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from mooring.embedded.columns import columns_of
from mooring.embedded.columns.column import Column
from mooring.embedded.errors import bad_request
from mooring.embedded.kinds import Kind
from mooring.embedded.listing import Listed
from mooring.embedded.tables import Entry, encode
from mooring.embedded.wire import Json

from .answers import body_of, json_answer
from .asking import Query
from .media import Wanted
from .streams import Shown

_INCLUDES = ("", "None", "Metadata", "Object")


def send_form(
    query: Query, kind: Kind, want: Wanted, entries: Sequence[Entry], listed: Listed | None = None
) -> web.Response:
    """Objects in the form that the client wants."""
    if want.form == "Table":
        return json_answer(_table(query, kind, want, entries, listed))
    items = [_metadata_only(each.object, want) for each in entries]
    if listed is None:
        return json_answer(items[0])
    return json_answer(
        {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{want.version}",
            "metadata": _list_metadata(listed),
            "items": items,
        }
    )


def shown_as(query: Query, kind: Kind, want: Wanted) -> Shown:
    """How the objects of a watch are sent."""
    if want.form == "Table":
        return lambda entry: encode(_table(query, kind, want, [entry], None))
    if want.form:
        return lambda entry: encode(_metadata_only(entry.object, want))
    return lambda entry: body_of(kind, entry)


def _table(
    query: Query, kind: Kind, want: Wanted, entries: Sequence[Entry], listed: Listed | None
) -> Json:
    include = query.get("includeObject", "")
    if include not in _INCLUDES:
        raise bad_request(f"unrecognized includeObject value: {include!r}")
    columns, now = columns_of(kind), datetime.now(UTC)
    metadata = _list_metadata(listed) if listed else {"resourceVersion": str(entries[0].version)}
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{want.version}",
        "metadata": metadata,
        "columnDefinitions": [each.definition for each in columns],
        "rows": [_row(kind, columns, each, include, now) for each in entries],
    }


def _row(kind: Kind, columns: Sequence[Column], entry: Entry, include: str, now: datetime) -> Json:
    item = entry.object
    row: dict[str, Any] = {"cells": [each.cell(item, now) for each in columns]}
    if include == "Object":
        row["object"] = kind.view.outward(item) if kind.view else item
    elif include != "None":
        row["object"] = _metadata_only(item, Wanted())
    return row


def _metadata_only(item: Json, want: Wanted) -> Json:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{want.version}",
        "metadata": item["metadata"],
    }


def _list_metadata(listed: Listed) -> Json:
    metadata: Json = {"resourceVersion": str(listed.version)}
    if listed.token:
        metadata["continue"] = listed.token
    if listed.remaining is not None:
        metadata["remainingItemCount"] = listed.remaining
    return metadata
