"""Options and preconditions of a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from moorage.embedded.request_refusals import (
    Fault,
    bad_request,
    conflict,
    invalid,
    invalid_value,
    unsupported,
)
from moorage.embedded.store.object_store import Json, StoredObject

from .decoding import decode_known
from .kind import ServedKind

Propagation = Literal["Background", "Foreground", "Orphan"]
_POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a write."""

    dry_run: bool = False
    #: Who writes, for server-side apply.
    manager: str = ""
    #: Whether the request itself says so.
    named: bool = False
    #: Which part of the object is written.
    subresource: str = ""
    #: Takes over fields that others have applied.
    force: bool = False


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options and preconditions of a deletion."""

    dry_run: bool = False
    grace_seconds: int | None = None
    uid: str = ""
    version: str = ""
    propagation: Propagation = "Background"

    @classmethod
    def read(cls, raw: Json, *, dry_run: bool = False) -> DeleteOptions:
        """Reads DeleteOptions."""
        given = decode_known("meta.v1.DeleteOptions", raw, 'DeleteOptions in version "v1"')
        if given.get("kind") not in (None, "", "DeleteOptions"):
            raise bad_request(f"the body is no DeleteOptions but of kind {given['kind']!r}")
        grace = given.get("gracePeriodSeconds")
        conditions = given.get("preconditions") or {}
        return cls(
            dry_run=dry_run or dry_run_of(given.get("dryRun") or []),
            # Less than no time is a second, as kube-apiserver has it.
            grace_seconds=1 if grace is not None and grace < 0 else grace,
            uid=conditions.get("uid", ""),
            version=conditions.get("resourceVersion", ""),
            propagation=_policy(given),
        )


def dry_run_of(values: list[str], kind: str = "DeleteOptions") -> bool:
    """Whether the request is a dry run."""
    if any(value != "All" for value in values):
        refuse_options(kind, [unsupported("dryRun", values, ("All",))])
    return bool(values)


def _policy(given: Json) -> Propagation:
    policy, orphan = given.get("propagationPolicy"), given.get("orphanDependents")
    refuse_options("DeleteOptions", _policy_faults(policy, orphan))
    if policy is None:
        return "Orphan" if orphan else "Background"
    return policy


def _policy_faults(policy: str | None, orphan: bool | None) -> Iterator[Fault]:
    if policy is not None and orphan is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        yield invalid_value("propagationPolicy", policy, detail)
    if policy is not None and policy not in _POLICIES:
        yield unsupported("propagationPolicy", policy, (*_POLICIES, "nil"))


def refuse_options(kind: str, faults: Iterable[Fault]) -> None:
    """Refuses invalid options of a request."""
    found = list(faults)
    if found:
        raise invalid("meta.k8s.io", kind, "", found)


# A write with one of these replaces whatever is there.
_ANY_VERSION = ("", "0")
_MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def expect_namespace(kind: ServedKind, metadata: Json, namespace: str) -> None:
    """Refuses an object whose namespace is not that of the request."""
    if kind.namespaced and metadata.setdefault("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def expect_name(metadata: Json, name: str) -> None:
    """Refuses an object whose name is not that of the request."""
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


def expect_version(kind: ServedKind, entry: StoredObject, version: str) -> None:
    """Refuses a write to an object that has changed since it was read."""
    if version not in _ANY_VERSION and version != str(entry.version):
        raise conflict(kind.resource, entry.name, _MODIFIED)


def expect_uid(kind: ServedKind, old: Json, uid: str) -> None:
    """Refuses a write to another object of the same name."""
    actual = old["metadata"]["uid"]
    if uid and uid != actual:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {actual}"
        raise conflict(kind.resource, old["metadata"]["name"], why)


def expect_before_delete(
    kind: ServedKind, entry: StoredObject, old: Json, uid: str, version: str
) -> None:
    """Refuses to delete an object that does not meet the preconditions."""
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


def expect_precondition(kind: ServedKind, entry: StoredObject, version: str) -> None:
    """Refuses a write whose precondition names another version."""
    if version and version != str(entry.version):
        why = (
            f"Precondition failed: ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {entry.version}"
        )
        raise conflict(kind.resource, entry.name, why)
