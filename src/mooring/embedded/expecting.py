"""What a write assumes about the object it replaces, and the refusal if that does not hold."""

from __future__ import annotations

from .errors import bad_request, conflict
from .kinds import Kind
from .tables import Entry
from .wire import Json

_MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def expect_namespace(kind: Kind, metadata: Json, namespace: str) -> None:
    """An object goes where the request was sent."""
    if kind.namespaced and metadata.setdefault("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def expect_name(metadata: Json, name: str) -> None:
    """An object says its name, and it is that of the request."""
    if not metadata.get("name"):
        raise bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if metadata["name"] != name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL "
            f"({name})"
        )


def expect_version(kind: Kind, entry: Entry, version: str) -> None:
    """Nobody else has written since."""
    if version and version != str(entry.version):
        raise conflict(kind.resource, entry.name, _MODIFIED)


def expect_uid(kind: Kind, old: Json, uid: str) -> None:
    """It is still the same object, not another of the same name."""
    actual = old["metadata"]["uid"]
    if uid and uid != actual:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {actual}"
        raise conflict(kind.resource, old["metadata"]["name"], why)


def expect_before_delete(kind: Kind, entry: Entry, old: Json, uid: str, version: str) -> None:
    """What is deleted is what the request means."""
    title = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    actual = old["metadata"]["uid"]
    if uid and uid != actual:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({actual}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(title, entry.name, why)
    if version and version != str(entry.version):
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the "
            f"ResourceVersion in record ({entry.version}). The object might have been modified"
        )
        raise conflict(title, entry.name, why)


def expect_precondition(kind: Kind, entry: Entry, version: str) -> None:
    """The version that a request names outright is the current one."""
    if version and version != str(entry.version):
        why = (
            f"Precondition failed: ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {entry.version}"
        )
        raise conflict(kind.resource, entry.name, why)
