"""What a kind is to the server: its names, its scope, its subresources and its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .rules.plain import Plain, Rules
from .tables import FieldsOf
from .wire import Json, checked

#: The verbs of stored objects, as discovery lists them.
STORED = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)
CREATE_ONLY = ("create",)

#: The fields that every kind can be selected by.
_COMMON_FIELDS = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A part of an object with its own address."""

    name: str
    verbs: tuple[str, ...]
    #: Group, version and kind of what is sent and answered, where it is not the object itself.
    group: str = ""
    version: str = ""
    kind: str = ""


READ_WRITE = ("get", "patch", "update")
STATUS = Subresource("status", READ_WRITE)
SCALE = Subresource("scale", READ_WRITE, "autoscaling", "v1", "Scale")


@dataclass(frozen=True, slots=True)
class View:
    """Another form of objects that are stored in the form of another kind."""

    inward: Callable[[Json], Json]
    outward: Callable[[Json], Json]
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of object and how it is served."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    verbs: tuple[str, ...] = STORED
    #: The type of its fields; empty for custom resources, which bring their own.
    schema: str = ""
    rules: Rules = field(default_factory=Plain)
    fields: tuple[str, ...] = ()
    #: Where objects are stored, if under the name of another kind.
    stored_as: str = ""
    view: View | None = None

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The resource as messages name it: deployments.apps."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def table(self) -> str:
        return self.stored_as or self.resource

    @property
    def one(self) -> str:
        return self.singular or self.kind.lower()

    def read(self, raw: Any) -> Json:
        """An object of this kind as it is stored: known fields, right types."""
        item = {**self.known(raw), "kind": self.kind, "apiVersion": self.api_version}
        return self.view.inward(item) if self.view else item

    def known(self, raw: Any) -> Json:
        """What of an object is known, in the form in which it was sent."""
        return self.rules.pruned(raw) if not self.schema else self._checked(raw)

    def _checked(self, raw: Any) -> Json:
        return checked(self.schema, raw, f'{self.kind} in version "{self.version}"')

    def position(self, path: str) -> int | None:
        """Where the value of a selectable field is found in an entry."""
        if self.view:
            path = self.view.fields.get(path, path)
        known = (*_COMMON_FIELDS, *self.fields)
        return known.index(path) if path in known else None

    @property
    def fields_of(self) -> FieldsOf:
        """Reads the values of the selectable fields of a stored object."""
        ways = [
            (_ELSEWHERE.get(path, path).split("."), _ABSENT.get(path, ""))
            for path in (*_COMMON_FIELDS, *self.fields)
        ]
        return lambda item: tuple([_value(item, steps, absent) for steps, absent in ways])


def built_in(
    group: str,
    package: str,
    kind: str,
    plural: str,
    rules: Rules | None = None,
    parts: tuple[Subresource, ...] = (),
    **more: Any,
) -> Kind:
    """A kind whose fields are in a table of a package such as core.v1."""
    return Kind(
        group=group,
        version=package.rpartition(".")[2],
        kind=kind,
        plural=plural,
        schema=f"{package}.{kind}",
        rules=rules or Plain(),
        subresources={part.name: part for part in parts},
        **more,
    )


class Kinds:
    """The kinds that are served, found by name or by address."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        #: How often what is served has changed.
        self.revision = 0
        self._by_address: dict[tuple[str, str, str], Kind] = {}
        self._by_resource: dict[str, Kind] = {}
        for each in kinds:
            self.serve(each)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_address.values())

    def __getitem__(self, resource: str) -> Kind:
        """The kind of a resource such as pods or deployments.apps, in its first version."""
        return self._by_resource[resource]

    def at(self, group: str, version: str, plural: str) -> Kind | None:
        return self._by_address.get((group, version, plural))

    def serve(self, kind: Kind) -> None:
        self._by_address[kind.group, kind.version, kind.plural] = kind
        self._by_resource.setdefault(kind.resource, kind)
        self.revision += 1

    def drop(self, kind: Kind) -> None:
        self._by_address.pop((kind.group, kind.version, kind.plural), None)
        self._by_resource.pop(kind.resource, None)
        self.revision += 1


def _value(item: Json, steps: list[str], absent: str) -> str:
    value: Any = item
    for step in steps:
        if not isinstance(value, dict) or step not in value:
            return absent
        value = value[step]
    if isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


# Fields whose value lies elsewhere than their name says, and what an absent one counts as.
_ELSEWHERE = {"source": "source.component", "status.successful": "status.succeeded"}
_ABSENT = {
    "spec.hostNetwork": "false",
    "spec.unschedulable": "false",
    "status.replicas": "0",
    "status.successful": "0",
}
