"""The metadata that every Kubernetes object carries."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec


class Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A value as the API writes it: camelCase names, unknown fields skipped."""


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
    def key(self) -> str:
        """The name, with the namespace if there is one."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if one does."""
        return next((owner for owner in self.owner_references or () if owner.controller), None)


def seconds(moment: datetime | None) -> float | None:
    """A timestamp as seconds since the epoch; one without a zone is UTC."""
    if moment is None:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def decode_hook(wanted: type, raw: Any) -> Any:
    """Teaches msgspec the types that are ours: whatever has a `parse`."""
    parse = getattr(wanted, "parse", None)
    if parse is None:
        raise NotImplementedError(wanted)
    if not isinstance(raw, str | int | float) or isinstance(raw, bool):
        raise ValueError(f"expected a quantity, got {type(raw).__name__}")
    return parse(raw)
