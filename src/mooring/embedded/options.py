"""What a request says beside the object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from .errors import Fault, bad_request, invalid, invalid_value, unsupported
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
    """Whether nothing is to be kept."""
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
    """Refuses options of a request that make no sense."""
    told = list(faults)
    if told:
        raise invalid("meta.k8s.io", kind, "", told)
