"""What a kind is to the server: its names, its scope, its subresources and its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from moorage.embedded.request_refusals import Fault
from moorage.embedded.store.object_store import FieldsOf, Json, ObjectStore
from moorage.objects.kinds import KINDS

from .column import NAME, Column, age_column
from .decoding import decode_known, without_zeros
from .names import subdomain_faults


class KindRules:
    """The rules for writing objects of a kind: what is filled in, refused and kept."""

    #: Whether the status has its own address, so that other writes leave it alone.
    status: bool = False
    #: Whether changes of anything but metadata and status are counted.
    generation: bool = False
    #: Whether a write to the status leaves metadata alone.
    status_keeps_metadata: bool = False
    #: Whether a deletion is answered with the object rather than with a Status.
    shows_deleted: bool = False

    def default(self, item: Json) -> None:
        """Fills in what was left out."""

    def complete_new(self, item: Json) -> None:
        """Completes a new object, after its defaults."""

    def keep_on_update(self, item: Json, old: Json) -> None:
        """Restores the fields that an update may not change."""

    def keep_on_part_update(self, item: Json, old: Json, name: str) -> None:
        """Restores all fields but those of one subresource."""

    def keep_on_status_update(self, item: Json, old: Json) -> None:
        """Restores the fields that a write to the status may not change."""

    def admit(self, kind: ServedKind, store: ObjectStore, item: Json, old: Json | None) -> None:
        """Completes or refuses a write by what other objects say; `old` is what it replaces."""

    def admit_deletion(self, item: Json) -> None:
        """Refuses to delete an object that must stay."""

    def drop_disabled(self, item: Json, old: Json | None) -> None:
        """Drops fields whose feature gate is off, unless the stored object uses them."""

    def name_faults(self, name: str) -> Iterator[Fault]:
        """Yields what is wrong with a name."""
        yield from subdomain_faults("metadata.name", name)

    def creation_faults(self, item: Json) -> Iterator[Fault]:
        """Yields faults that only a new object must not have."""
        yield from ()

    def faults(self, item: Json) -> Iterator[Fault]:
        """Yields what is wrong with an object by itself."""
        yield from ()

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        """Yields the fields that an update changes although it may not."""
        yield from ()

    def status_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        """Yields what is wrong with a status."""
        yield from ()

    def is_held(self, item: Json) -> bool:
        """Whether a deleted object must stay for another reason than its finalizers."""
        return False

    def mark_deletion(self, item: Json) -> None:
        """Notes the deletion in the object itself."""

    def grace_seconds(self, item: Json, asked: int | None) -> int:
        """Returns how many seconds a deleted object stays."""
        return 0

    def prune(self, raw: Any) -> Json:
        """Returns a custom resource with the fields of its definition only."""
        raise NotImplementedError

    def describe(self) -> Json:
        """Returns the schema of a custom resource."""
        raise NotImplementedError


class PlainRules(KindRules):
    """The rules of a kind that is stored as it comes."""


class StatusRules(KindRules):
    """The rules of a kind with a status subresource and a generation."""

    status = True
    generation = True
    #: The status of a new object.
    first_status: ClassVar[Mapping[str, Any]] = {}

    def complete_new(self, item: Json) -> None:
        item["status"] = dict(self.first_status)


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
class KindView:
    """How objects of one kind are shown as objects of another."""

    inward: Callable[[Json], Json]
    outward: Callable[[Json], Json]
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedKind:
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
    rules: KindRules = field(default_factory=PlainRules)
    fields: tuple[str, ...] = ()
    #: Where objects are stored, if under the name of another kind.
    stored_as: str = ""
    view: KindView | None = None
    #: What a client is warned of that creates an object of a kind that nothing acts on.
    warning: str = ""
    #: What a table shows of it.
    columns: Sequence[Column] = (NAME, age_column())

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The name of the resource in messages: deployments.apps."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def table(self) -> str:
        return self.stored_as or self.resource

    @property
    def one(self) -> str:
        return self.singular or self.kind.lower()

    def read(self, raw: Any) -> Json:
        """Reads an object of this kind into the form in which it is stored."""
        known = self.known(raw)
        item = without_zeros(self.schema, known) if self.schema else known
        item |= {"kind": self.kind, "apiVersion": self.api_version}
        return self.view.inward(item) if self.view else item

    def known(self, raw: Any) -> Json:
        """Returns an object with its known fields only, in the form in which it was sent."""
        return self.rules.prune(raw) if not self.schema else self._decode(raw)

    def _decode(self, raw: Any) -> Json:
        return decode_known(self.schema, raw, f'{self.kind} in version "{self.version}"')

    def position(self, path: str) -> int | None:
        """Returns the position of a selectable field in a stored object's fields."""
        if self.view:
            path = self.view.fields.get(path, path)
        known = (*_COMMON_FIELDS, *self.fields)
        return known.index(path) if path in known else None

    @property
    def fields_of(self) -> FieldsOf:
        """A function that reads the selectable fields of an object."""
        ways = [
            ([each.split(".") for each in _ELSEWHERE.get(path, (path,))], _ABSENT.get(path, ""))
            for path in (*_COMMON_FIELDS, *self.fields)
        ]
        return lambda item: tuple([_first_value(item, places, absent) for places, absent in ways])


def make_built_in(
    group: str,
    package: str,
    kind: str,
    plural: str,
    rules: KindRules | None = None,
    parts: tuple[Subresource, ...] = (),
    **more: Any,
) -> ServedKind:
    """Makes a kind whose fields are in the table of a package such as core.v1."""
    return ServedKind(
        group=group,
        version=package.rpartition(".")[2],
        kind=kind,
        plural=plural,
        schema=f"{package}.{kind}",
        rules=rules or PlainRules(),
        subresources={part.name: part for part in parts},
        **more,
    )


def make_known_kind(
    name: str, rules: KindRules | None = None, parts: tuple[Subresource, ...] = (), **more: Any
) -> ServedKind:
    """Makes a kind of the table of kinds, which has its group, version, plural and scope."""
    kind = KINDS[name]
    package = f"{kind.group.partition('.')[0] or 'core'}.{kind.version}"
    more["namespaced"] = kind.namespaced
    return make_built_in(kind.group, package, name, kind.plural, rules, parts, **more)


class ServedKinds:
    """The kinds that are served, found by name or by address."""

    def __init__(self, kinds: Iterable[ServedKind]) -> None:
        #: How often what is served has changed.
        self.revision = 0
        self._by_address: dict[tuple[str, str, str], ServedKind] = {}
        self._by_resource: dict[str, ServedKind] = {}
        for each in kinds:
            self.serve(each)

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(self._by_address.values())

    def __getitem__(self, resource: str) -> ServedKind:
        """Returns the kind of a resource such as pods or deployments.apps."""
        return self._by_resource[resource]

    def at(self, group: str, version: str, plural: str) -> ServedKind | None:
        return self._by_address.get((group, version, plural))

    def serve(self, kind: ServedKind) -> None:
        self._by_address[kind.group, kind.version, kind.plural] = kind
        self._by_resource.setdefault(kind.resource, kind)
        self.revision += 1

    def drop(self, kind: ServedKind) -> None:
        self._by_address.pop((kind.group, kind.version, kind.plural), None)
        self._by_resource.pop(kind.resource, None)
        self.revision += 1


def _first_value(item: Json, places: list[list[str]], absent: str) -> str:
    """Returns the first value that is not empty among some places."""
    for steps in places:
        value = _value(item, steps)
        if value:
            return value
    return absent


def _value(item: Json, steps: list[str]) -> str:
    value: Any = item
    for step in steps:
        if not isinstance(value, dict) or step not in value:
            return ""
        value = value[step]
    if isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


# Fields whose value lies elsewhere than their name says, and what an absent one counts as.
_ELSEWHERE = {
    # Events of the newer form have no source.
    "source": ("source.component", "reportingComponent"),
    "status.successful": ("status.succeeded",),
}
_ABSENT = {
    "spec.hostNetwork": "false",
    "spec.unschedulable": "false",
    "status.replicas": "0",
    "status.successful": "0",
}
