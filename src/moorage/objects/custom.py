"""Custom resources: objects of kinds that only some plugin knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.documents.conversion import to_struct
from moorage.documents.errors import DecodeError
from moorage.documents.json_text import empty_below

from .meta import ObjectKind, ObjectMeta

# They have a value of their own.
_ELSEWHERE = frozenset(("apiVersion", "kind", "metadata"))

Fields = Mapping[str, Any]


class CustomKind(ObjectKind, frozen=True):
    """A kind that only some plugin knows, or a single object of one: then nothing else is read."""

    namespaced: bool = False
    #: The namespace and the name of the only object that is wanted; empty for all.
    only: tuple[str, str] | None = None
    #: What an administrator applies so that it exists and may be read; empty if not known.
    manifest: str = ""

    @property
    def resource(self) -> str:
        """The name under which plugins listen to its events, as kube-scheduler has it."""
        return f"{self.plural}.{self.version}.{self.group}"

    @property
    def whole(self) -> CustomKind:
        """The kind with all of its objects, for any caller."""
        return msgspec.structs.replace(self, only=None, manifest="")

    @property
    def listing(self) -> tuple[str, Mapping[str, str]]:
        if self.only is None:
            return super().listing
        namespace, name = self.only
        return self.path(namespace or None), {"fieldSelector": f"metadata.name={name}"}


class CustomObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object of a custom kind. `fields` is all but its metadata, as plain mappings.

    What is nested more than `json_text.DEEPEST` levels deep in there is left out.
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    fields: Fields = {}

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def title(self) -> str:
        """Kind and name, for messages."""
        return f"{self.kind} {self.key}"

    def mapping(self, *path: str) -> Fields:
        """Returns the mapping at a path, empty if it is not there.

        Raises DecodeError if it is none.
        """
        found: Any = self.fields
        for at, step in enumerate(path, 1):
            found = found.get(step)
            if found is None:
                return {}
            if not isinstance(found, Mapping):
                raise DecodeError("must be a mapping", ".".join(path[:at]))
        return found


class WireCustom(msgspec.Struct, frozen=True):
    """The metadata of a custom object as the API writes it; the rest is taken as it is."""

    metadata: ObjectMeta


class Whole:
    """An object of a kind that nobody described, as the API writes it: all its fields."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.metadata = to_struct(WireCustom, fields).metadata

    @classmethod
    def hook(cls, wanted: type, raw: Any) -> Whole:
        """Returns how msgspec makes one of what it has decoded."""
        if not isinstance(raw, dict):
            raise ValueError(f"expected an object, got {type(raw).__name__}")
        return cls(raw)


def custom_object(kind: CustomKind, raw: Fields) -> CustomObject:
    """Reads an object of a kind; raises DecodeError with the field that is wrong.

    The items of a list leave out what they are, so that may be missing.
    """
    for field, expected in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        found = raw.get(field, expected)
        if found != expected:
            raise DecodeError(f"must be {expected}", field)
    meta = to_struct(WireCustom, raw).metadata
    fields = {name: value for name, value in raw.items() if name not in _ELSEWHERE}
    # Plugins and recordings walk and compare what they get, which recurses.
    empty_below(fields)
    return CustomObject(
        api_version=kind.api_version,
        kind=kind.kind,
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        labels=meta.labels or {},
        annotations=meta.annotations or {},
        fields=fields,
    )
