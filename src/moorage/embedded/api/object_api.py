"""The verbs of the API on stored objects, for HTTP and for code in the same process.

Every write is checked, defaulted and versioned here. Nothing awaits, so a
write is atomic. Objects that are handed in are not kept; those that are handed out may be changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from moorage.embedded.request_refusals import (
    Fault,
    already_exists,
    bad_request,
    forbidden,
    invalid,
    not_found,
    required,
)
from moorage.embedded.store.object_store import Json, ObjectStore, StoredObject, encode

from .decoding import now_text
from .kind import ServedKind, ServedKinds
from .managed_fields import FieldManager, note_update
from .metadata import (
    adopt_identity,
    complete,
    differs_beside_status,
    finalizer_faults,
    generate_name,
    keep_identity,
    metadata_faults,
)
from .request_options import (
    DeleteOptions,
    WriteOptions,
    expect_before_delete,
    expect_name,
    expect_namespace,
    expect_uid,
    expect_version,
)
from .schema import shape_of

Clock = Callable[[], datetime]
Edit = Callable[[Json], Json]
BeforeCreate = Callable[[ServedKind, Json, WriteOptions], None]

# With five random letters a second collision is already rare.
_NAME_ATTEMPTS = 8

KEEP = WriteOptions()
DELETE = DeleteOptions()

_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Deletion:
    """The outcome of a deletion: the object, and whether it is gone already."""

    entry: StoredObject
    gone: bool


class ObjectApi:
    """Creates, reads, replaces and removes objects of the kinds that are served."""

    def __init__(self, store: ObjectStore, kinds: ServedKinds, clock: Clock = utc_now) -> None:
        self.store = store
        self.kinds = kinds
        self.clock = clock
        #: Refuses or counts an object that is about to be created.
        self.before_create: BeforeCreate | None = None
        for kind in kinds:
            store.open_table(kind.table, kind.fields_of)

    def find(self, kind: ServedKind, namespace: str, name: str) -> StoredObject | None:
        """Returns the object of a name; None if there is none."""
        return self.store.table(kind.table).entries.get(key_of(namespace, name))

    def get(self, kind: ServedKind, namespace: str, name: str) -> StoredObject:
        entry = self.find(kind, namespace, name)
        if entry is None:
            raise not_found(kind.resource, name)
        return entry

    def create(
        self, kind: ServedKind, namespace: str, raw: Json, options: WriteOptions = KEEP
    ) -> StoredObject:
        """Stores a new object."""
        item = kind.read(raw)
        metadata, rules = item.setdefault("metadata", {}), kind.rules
        expect_namespace(kind, metadata, namespace)
        if metadata.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        self._name(kind, namespace, metadata)
        name = metadata["name"]
        complete(item, namespace, self.clock(), counted=rules.generation)
        rules.default(item)
        rules.complete_new(item)
        rules.drop_disabled(item, None)
        if kind.namespaced:
            self._expect_alive(kind, namespace, name)
        rules.admit(kind, self.store, item, None)
        faults = [*rules.name_faults(name), *metadata_faults(metadata), *rules.faults(item)]
        _accept(kind, name, [*faults, *rules.creation_faults(item)])
        if self.find(kind, namespace, name):
            raise already_exists(kind.resource, name)
        if self.before_create is not None:
            self.before_create(kind, item, options)
        return self._put(kind, key_of(namespace, name), item, options)

    def adopt(self, kind: ServedKind, namespace: str, raw: Json) -> StoredObject:
        """Stores an object of another API server as it is there: uid, times and status stay.

        Nothing but the object itself is looked at: that server has admitted it.
        """
        item = kind.read(raw)
        metadata, rules = item.setdefault("metadata", {}), kind.rules
        adopt_identity(metadata, namespace, self.clock(), counted=rules.generation)
        name = metadata.get("name", "")
        rules.default(item)
        rules.drop_disabled(item, None)
        faults = [*rules.name_faults(name), *metadata_faults(metadata), *rules.faults(item)]
        _accept(kind, name, faults)
        return self._put(kind, key_of(namespace, name), item, KEEP)

    def update(
        self, kind: ServedKind, namespace: str, name: str, raw: Json, options: WriteOptions = KEEP
    ) -> StoredObject:
        """Replaces an object; a status with its own subresource stays."""
        item, entry = kind.read(raw), self.get(kind, namespace, name)
        old, rules = self._read_expected(kind, entry, item), kind.rules
        if rules.status:
            _take(item, old, "status")
        rules.default(item)
        rules.keep_on_update(item, old)
        if options.subresource:
            rules.keep_on_part_update(item, old, options.subresource)
        rules.drop_disabled(item, old)
        rules.admit(kind, self.store, item, old)
        if rules.generation and differs_beside_status(item, old):
            item["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        faults = list(rules.faults(item))
        if not options.subresource:
            faults += rules.update_faults(item, old)
        _accept(kind, name, faults)
        return self._replace(kind, entry, item, old, options)

    def update_status(
        self, kind: ServedKind, namespace: str, name: str, raw: Json, options: WriteOptions = KEEP
    ) -> StoredObject:
        """Replaces the status of an object, and the metadata that the kind allows."""
        item, entry = kind.read(raw), self.get(kind, namespace, name)
        old = self._read_expected(kind, entry, item)
        if kind.rules.status_keeps_metadata:
            item["metadata"] = {**old["metadata"]}
        for part in (item.keys() | old.keys()) - {"metadata", "status"}:
            _take(item, old, part)
        kind.rules.keep_on_status_update(item, old)
        _accept(kind, name, kind.rules.status_faults(item, old))
        return self._replace(kind, entry, item, old, options)

    def edit(
        self,
        kind: ServedKind,
        namespace: str,
        name: str,
        change: Edit,
        options: WriteOptions = KEEP,
    ) -> StoredObject:
        """Changes an object by a function, without the rules for updates."""
        entry = self.get(kind, namespace, name)
        return self._put(kind, entry.key, change(entry.object), options, entry)

    def remove(
        self,
        kind: ServedKind,
        entry: StoredObject,
        options: WriteOptions = KEEP,
        last: Json | None = None,
    ) -> StoredObject:
        """Removes an object at once, in spite of finalizers; `last` is its last state."""
        if options.dry_run:
            return entry
        return self.store.remove(kind.table, entry.key, last or entry.object)

    def delete(
        self, kind: ServedKind, namespace: str, name: str, options: DeleteOptions = DELETE
    ) -> Deletion:
        """Deletes an object; one with finalizers or grace is only marked."""
        entry = self.get(kind, namespace, name)
        item = entry.object
        expect_before_delete(kind, entry, item, options.uid, options.version)
        kind.rules.admit_deletion(item)
        _mark(kind, item, options, self.clock())
        metadata = item["metadata"]
        write = WriteOptions(dry_run=options.dry_run)
        waits = metadata.get("finalizers") or metadata["deletionGracePeriodSeconds"]
        if not waits and not kind.rules.is_held(item):
            last = item if kind.rules.shows_deleted else entry.object
            return Deletion(self.remove(kind, entry, write, last), gone=True)
        kept = self.edit(kind, namespace, name, lambda _: item, write)
        return Deletion(kept, gone=False)

    def delete_all(
        self, kind: ServedKind, entries: Iterable[StoredObject], options: DeleteOptions
    ) -> None:
        """Deletes objects that were listed."""
        each = replace(options, uid="", version="")
        for entry in entries:
            self.delete(kind, entry.namespace, entry.name, each)

    def _expect_alive(self, kind: ServedKind, namespace: str, name: str) -> None:
        """Refuses new objects in a namespace that is absent or being deleted."""
        entry = self.store.table("namespaces").entries.get(namespace)
        if entry is None:
            raise not_found("namespaces", namespace)
        if "deletionTimestamp" in entry.object["metadata"]:
            why = (
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated"
            )
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            raise forbidden(kind.resource, name, why, [cause])

    def _name(self, kind: ServedKind, namespace: str, metadata: Json) -> None:
        if metadata.get("name"):
            return
        prefix = metadata.get("generateName")
        if not prefix:
            fault = required("metadata.name", "name or generateName is required")
            raise invalid(kind.group, kind.kind, "", [fault])
        for _ in range(_NAME_ATTEMPTS):
            metadata["name"] = generate_name(prefix)
            if self.find(kind, namespace, metadata["name"]) is None:
                return

    def _read_expected(self, kind: ServedKind, entry: StoredObject, item: Json) -> Json:
        """Returns the stored object; raises if the request does not expect this one."""
        metadata, old = item.setdefault("metadata", {}), entry.object
        expect_name(metadata, entry.name)
        expect_namespace(kind, metadata, entry.namespace)
        expect_version(kind, entry, metadata.get("resourceVersion", ""))
        expect_uid(kind, old, metadata.get("uid", ""))
        keep_identity(item, old)
        if "managedFields" not in metadata and "managedFields" in old["metadata"]:
            metadata["managedFields"] = old["metadata"]["managedFields"]
        return old

    def _replace(
        self, kind: ServedKind, entry: StoredObject, item: Json, old: Json, options: WriteOptions
    ) -> StoredObject:
        metadata = item["metadata"]
        faults = [*metadata_faults(metadata), *finalizer_faults(metadata, old["metadata"])]
        _accept(kind, entry.name, faults)
        self._note_manager(kind, item, old, options)
        if is_finished(kind, item) and not options.dry_run:
            return self.store.remove(kind.table, entry.key, item)
        return self._put(kind, entry.key, item, options, entry)

    def _note_manager(self, kind: ServedKind, item: Json, old: Json, options: WriteOptions) -> None:
        """Notes which fields the writer owns, for objects with managed fields."""
        if item["metadata"].get("managedFields") is None:
            return
        name, now = options.manager or "unknown", now_text(self.clock())
        writer = FieldManager(
            name, "Update", options.subresource, kind.api_version, now, frozenset()
        )
        note_update(item, old, shape_of(kind.schema), writer)

    def _put(
        self,
        kind: ServedKind,
        key: str,
        item: Json,
        options: WriteOptions,
        entry: StoredObject | None = None,
    ) -> StoredObject:
        if entry is not None:
            item["metadata"]["resourceVersion"] = str(entry.version)
            # A write that changes nothing gives no new version and no event.
            if item == entry.object:
                return entry
        if options.dry_run:
            return StoredObject(key, entry.version if entry else 0, encode(item), {}, ())
        return self.store.put(kind.table, key, item)


def key_of(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def is_finished(kind: ServedKind, item: Json) -> bool:
    """Whether a deleted object can be removed."""
    metadata = item["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not kind.rules.is_held(item)
    )


def _accept(kind: ServedKind, name: str, faults: Iterable[Fault]) -> None:
    found = list(faults)
    if found:
        raise invalid(kind.group, kind.kind, name, found)


def _take(item: Json, old: Json, part: str) -> None:
    """Restores a field that the request may not change."""
    if part in old:
        item[part] = old[part]
    else:
        item.pop(part, None)


def _mark(kind: ServedKind, item: Json, options: DeleteOptions, now: datetime) -> None:
    """Sets the deletion time of an object; a later request can only make it earlier."""
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
    metadata["deletionTimestamp"] = now_text(now + timedelta(seconds=grace))
    metadata["deletionGracePeriodSeconds"] = grace
    if kind.rules.generation and marked is None:
        metadata["generation"] = metadata.get("generation", 0) + 1
    kind.rules.mark_deletion(item)
