"""What a request says beside the object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .errors import Fault, Refused, bad_request, invalid, unsupported
from .wire import Json, checked

Propagation = Literal["Background", "Foreground", "Orphan"]
_POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class Write:
    """How an object is to be written."""

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
class Delete:
    """How an object is to be deleted, and on what conditions."""

    dry_run: bool = False
    grace_seconds: int | None = None
    uid: str = ""
    version: str = ""
    propagation: Propagation = "Background"

    @classmethod
    def read(cls, raw: Json, *, dry_run: bool = False) -> Delete:
        """Reads DeleteOptions."""
        given = checked("meta.v1.DeleteOptions", raw, 'DeleteOptions in version "v1"')
        grace = given.get("gracePeriodSeconds")
        if grace is not None and grace < 0:
            raise bad_request("gracePeriodSeconds must not be negative")
        conditions = given.get("preconditions") or {}
        return cls(
            dry_run=dry_run or dry_run_of(given.get("dryRun") or []),
            grace_seconds=grace,
            uid=conditions.get("uid", ""),
            version=conditions.get("resourceVersion", ""),
            propagation=_policy(given),
        )


def dry_run_of(values: list[str], kind: str = "DeleteOptions") -> bool:
    """Whether nothing is to be kept."""
    if any(value != "All" for value in values):
        raise invalid_options(kind, unsupported("dryRun", values, ("All",)))
    return bool(values)


def _policy(given: Json) -> Propagation:
    policy, orphan = given.get("propagationPolicy"), given.get("orphanDependents")
    if policy is not None and orphan is not None:
        raise bad_request("orphanDependents and deletionPropagation cannot be both set")
    if policy is None:
        return "Orphan" if orphan else "Background"
    match policy:
        case "Background" | "Foreground" | "Orphan":
            return policy
        case _:
            fault = unsupported("propagationPolicy", policy, _POLICIES)
            raise invalid_options("DeleteOptions", fault)


def invalid_options(kind: str, fault: Fault) -> Refused:
    """Options of a request that make no sense."""
    return invalid("meta.k8s.io", kind, "", [fault])
