"""What every Kubernetes object has: a kind, a place in the API and metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import msgspec


class Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A value as the API writes it: camelCase names, unknown fields skipped."""


class ObjectKind(msgspec.Struct, frozen=True):
    """A kind of objects and where the API keeps them. The core group is the empty one."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """As objects of this kind write it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Returns the path of an object or of all; without a namespace, those of all namespaces."""
        parts = ["/apis" if self.group else "/api", self.api_version]
        if namespace is not None and self.namespaced:
            parts += "namespaces", _segment(namespace)
        parts.append(self.plural)
        if name is not None:
            parts.append(_segment(name))
        if subresource is not None:
            parts.append(subresource)
        return "/".join(parts)

    @property
    def listing(self) -> tuple[str, Mapping[str, str]]:
        """Where to list and watch its objects, and with which parameters."""
        return self.path(), {}


def _segment(name: str) -> str:
    # A name from the cluster must not lead elsewhere: what is special in a path is escaped, and
    # Kubernetes forbids the two names that this would leave.
    if name in (".", "..", ""):
        raise ValueError(f"{name!r} is not a name")
    return _SPECIAL.sub(_escape, name)


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


_SPECIAL = re.compile(r"[^A-Za-z0-9_.~:-]")


class OwnerReference(Wire, frozen=True):
    """Who an object belongs to."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None


class ObjectMeta(Wire, frozen=True):
    """Name, identity and labels of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    resource_version: str = ""
    generation: int = 0

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if one does."""
        return next((owner for owner in self.owner_references or () if owner.controller), None)


def seconds(moment: datetime | None) -> float | None:
    """Returns a timestamp as seconds since the epoch; one without a zone is UTC."""
    if moment is None:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class Condition(Wire, frozen=True):
    """A condition of a pod or a node."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


def failure_to_place(conditions: Iterable[Condition] | None) -> str | None:
    """Returns why a pod was not placed when it was last tried; None if it did not fail."""
    for condition in conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message or ""
    return None
