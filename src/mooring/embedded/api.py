"""The verbs of the API on stored objects, for HTTP and for whoever runs in the same process.

Every write is checked, defaulted and versioned here, whoever asks for it. Nothing awaits, so a
write is atomic. Objects that are handed in are not kept; those that are handed out may be changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from .admission import Admission
from .errors import Fault, already_exists, bad_request, invalid, not_found, required
from .expecting import expect_name, expect_namespace, expect_uid, expect_version
from .kinds import Kind, Kinds
from .metadata import (
    changed_beside_status,
    complete,
    finalizer_faults,
    generated_name,
    keep_identity,
    metadata_faults,
)
from .options import Write
from .patching.managers import Manager, note_update
from .patching.shape import shape_of
from .store import Store
from .tables import Entry, encode
from .wire import Json, now_text

Clock = Callable[[], datetime]
Edit = Callable[[Json], Json]

# With five random letters a second collision is already rare.
_NAME_ATTEMPTS = 8

KEEP = Write()


def utc_now() -> datetime:
    return datetime.now(UTC)


class Api:
    """Creates, reads, replaces and removes objects of the kinds that are served."""

    def __init__(self, store: Store, kinds: Kinds, clock: Clock = utc_now) -> None:
        self.store = store
        self.kinds = kinds
        self.clock = clock
        self.admission = Admission(store)
        for kind in kinds:
            store.open_table(kind.table, kind.fields_of)

    def find(self, kind: Kind, namespace: str, name: str) -> Entry | None:
        """The object of a name, if there is one."""
        return self.store.table(kind.table).entries.get(key_of(namespace, name))

    def get(self, kind: Kind, namespace: str, name: str) -> Entry:
        entry = self.find(kind, namespace, name)
        if entry is None:
            raise not_found(kind.resource, name)
        return entry

    def create(self, kind: Kind, namespace: str, raw: Json, options: Write = KEEP) -> Entry:
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
        rules.created(item)
        rules.drop_disabled(item, None)
        self.admission.create(kind, namespace, item)
        faults = [*rules.name_faults(name), *metadata_faults(metadata), *rules.faults(item)]
        _accept(kind, name, [*faults, *rules.creation_faults(item)])
        if self.find(kind, namespace, name):
            raise already_exists(kind.resource, name)
        return self._put(kind, key_of(namespace, name), item, options)

    def update(
        self, kind: Kind, namespace: str, name: str, raw: Json, options: Write = KEEP
    ) -> Entry:
        """Replaces an object; its status stays if it has an address of its own."""
        item, entry = kind.read(raw), self.get(kind, namespace, name)
        old, rules = self._expected(kind, entry, item), kind.rules
        if rules.status:
            _take(item, old, "status")
        rules.default(item)
        rules.updated(item, old)
        if options.subresource:
            rules.part_updated(item, old, options.subresource)
        rules.drop_disabled(item, old)
        self.admission.update(kind, item, old)
        if rules.generation and changed_beside_status(item, old):
            item["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        faults = list(rules.faults(item))
        if not options.subresource:
            faults += rules.update_faults(item, old)
        _accept(kind, name, faults)
        return self._replace(kind, entry, item, old, options)

    def update_status(
        self, kind: Kind, namespace: str, name: str, raw: Json, options: Write = KEEP
    ) -> Entry:
        """Replaces the status of an object, and of its metadata what the kind allows."""
        item, entry = kind.read(raw), self.get(kind, namespace, name)
        old = self._expected(kind, entry, item)
        if kind.rules.status_keeps_metadata:
            item["metadata"] = {**old["metadata"]}
        for part in (item.keys() | old.keys()) - {"metadata", "status"}:
            _take(item, old, part)
        kind.rules.status_updated(item, old)
        _accept(kind, name, kind.rules.status_faults(item, old))
        return self._replace(kind, entry, item, old, options)

    def edit(
        self, kind: Kind, namespace: str, name: str, change: Edit, options: Write = KEEP
    ) -> Entry:
        """Writes what a function makes of an object, without the rules for updates."""
        entry = self.get(kind, namespace, name)
        return self._put(kind, entry.key, change(entry.object), options, entry)

    def remove(
        self, kind: Kind, entry: Entry, options: Write = KEEP, last: Json | None = None
    ) -> Entry:
        """Takes an object away at once, whatever its finalizers say; `last` is its last state."""
        if options.dry_run:
            return entry
        return self.store.remove(kind.table, entry.key, last or entry.object)

    def _name(self, kind: Kind, namespace: str, metadata: Json) -> None:
        if metadata.get("name"):
            return
        prefix = metadata.get("generateName")
        if not prefix:
            fault = required("metadata.name", "name or generateName is required")
            raise invalid(kind.group, kind.kind, "", [fault])
        for _ in range(_NAME_ATTEMPTS):
            metadata["name"] = generated_name(prefix)
            if self.find(kind, namespace, metadata["name"]) is None:
                return

    def _expected(self, kind: Kind, entry: Entry, item: Json) -> Json:
        """The stored object, if the one that replaces it was made from it."""
        metadata, old = item.setdefault("metadata", {}), entry.object
        expect_name(metadata, entry.name)
        expect_namespace(kind, metadata, entry.namespace)
        expect_version(kind, entry, metadata.get("resourceVersion", ""))
        expect_uid(kind, old, metadata.get("uid", ""))
        keep_identity(item, old)
        if "managedFields" not in metadata and "managedFields" in old["metadata"]:
            metadata["managedFields"] = old["metadata"]["managedFields"]
        return old

    def _replace(self, kind: Kind, entry: Entry, item: Json, old: Json, options: Write) -> Entry:
        metadata = item["metadata"]
        faults = [*metadata_faults(metadata), *finalizer_faults(metadata, old["metadata"])]
        _accept(kind, entry.name, faults)
        self._note_manager(kind, item, old, options)
        if is_finished(kind, item) and not options.dry_run:
            return self.store.remove(kind.table, entry.key, item)
        return self._put(kind, entry.key, item, options, entry)

    def _note_manager(self, kind: Kind, item: Json, old: Json, options: Write) -> None:
        """Keeps track of who has set what, for objects that somebody has applied."""
        if item["metadata"].get("managedFields") is None:
            return
        name, now = options.manager or "unknown", now_text(self.clock())
        writer = Manager(name, "Update", options.subresource, kind.api_version, now, frozenset())
        note_update(item, old, shape_of(kind.schema), writer)

    def _put(
        self, kind: Kind, key: str, item: Json, options: Write, entry: Entry | None = None
    ) -> Entry:
        if entry is not None:
            item["metadata"]["resourceVersion"] = str(entry.version)
            # A write that changes nothing is none: no new version, nothing for watches to tell.
            if item == entry.object:
                return entry
        if options.dry_run:
            return Entry(key, entry.version if entry else 0, encode(item), {}, ())
        return self.store.put(kind.table, key, item)


def key_of(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def is_finished(kind: Kind, item: Json) -> bool:
    """Whether an object that was deleted has nothing left to wait for."""
    metadata = item["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not kind.rules.is_held(item)
    )


def _accept(kind: Kind, name: str, faults: Iterable[Fault]) -> None:
    told = list(faults)
    if told:
        raise invalid(kind.group, kind.kind, name, told)


def _take(item: Json, old: Json, part: str) -> None:
    """Puts back what the request may not change."""
    if part in old:
        item[part] = old[part]
    else:
        item.pop(part, None)
