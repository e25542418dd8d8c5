"""Deleting: with grace, finalizers and preconditions, one object or many."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from .api import Api
from .expecting import expect_before_delete
from .kinds import Kind
from .options import Delete, Write
from .tables import Entry
from .wire import Json, now_text

_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


@dataclass(frozen=True, slots=True)
class Deleted:
    """The object that was deleted, and whether it is gone already."""

    entry: Entry
    gone: bool


def delete(api: Api, kind: Kind, namespace: str, name: str, options: Delete) -> Deleted:
    """Removes an object, or marks it so that others let go of it first."""
    entry = api.get(kind, namespace, name)
    item = entry.object
    expect_before_delete(kind, entry, item, options.uid, options.version)
    api.admission.delete(kind, item)
    _mark(api, kind, item, options)
    metadata = item["metadata"]
    write = Write(dry_run=options.dry_run)
    waits = metadata.get("finalizers") or metadata["deletionGracePeriodSeconds"]
    if not waits and not kind.rules.is_held(item):
        last = item if kind.rules.shows_deleted else entry.object
        return Deleted(api.remove(kind, entry, write, last), gone=True)
    kept = api.edit(kind, namespace, name, lambda _: item, write)
    return Deleted(kept, gone=False)


def delete_all(api: Api, kind: Kind, entries: list[Entry], options: Delete) -> list[Deleted]:
    """Deletes objects that were listed."""
    each = replace(options, uid="", version="")
    return [delete(api, kind, entry.namespace, entry.name, each) for entry in entries]


def _mark(api: Api, kind: Kind, item: Json, options: Delete) -> None:
    """Notes when the object is to be gone; a later request can only bring that forward."""
    metadata = item["metadata"]
    finalizer = _FINALIZERS.get(options.propagation)
    if finalizer and "deletionTimestamp" not in metadata:
        finalizers = metadata.setdefault("finalizers", [])
        if finalizer not in finalizers:
            finalizers.append(finalizer)
    grace = kind.rules.grace_seconds(item, options.grace_seconds)
    marked = metadata.get("deletionGracePeriodSeconds")
    if "deletionTimestamp" in metadata and marked is not None and grace >= marked:
        return
    metadata["deletionTimestamp"] = now_text(api.clock() + timedelta(seconds=grace))
    metadata["deletionGracePeriodSeconds"] = grace
    if kind.rules.generation and marked is None:
        metadata["generation"] = metadata.get("generation", 0) + 1
    kind.rules.deleted(item)
