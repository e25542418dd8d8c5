"""The rules of kinds that have none of their own, from which the others differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from mooring.embedded.errors import Fault
from mooring.embedded.names import subdomain_faults

Json = dict[str, Any]


class Rules:
    """What is filled in, refused and kept when objects of a kind are written."""

    #: Whether the status has its own address, so that other writes leave it alone.
    status: bool = False
    #: Whether changes of anything but metadata and status are counted.
    generation: bool = False
    #: Whether a write to the status leaves metadata alone.
    status_keeps_metadata: bool = True
    #: Whether who deletes an object is answered with it rather than with a Status.
    shows_deleted: bool = False

    def default(self, item: Json) -> None:
        """Fills in what was left out."""

    def created(self, item: Json) -> None:
        """Makes a new object complete, after its defaults."""

    def updated(self, item: Json, old: Json) -> None:
        """Keeps what an update may not touch."""

    def part_updated(self, item: Json, old: Json, name: str) -> None:
        """Keeps all but one part of an object that has an address of its own."""

    def status_updated(self, item: Json, old: Json) -> None:
        """Keeps what a write to the status may not touch."""

    def drop_disabled(self, item: Json, old: Json | None) -> None:
        """Drops fields whose feature gate is off, unless the stored object uses them."""

    def name_faults(self, name: str) -> Iterator[Fault]:
        """What is wrong with a name."""
        yield from subdomain_faults("metadata.name", name)

    def creation_faults(self, item: Json) -> Iterator[Fault]:
        """What a new object must not have although an older one may."""
        yield from ()

    def faults(self, item: Json) -> Iterator[Fault]:
        """What is wrong with an object by itself."""
        yield from ()

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        """What must not have been changed."""
        yield from ()

    def status_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        """What is wrong with a status."""
        yield from ()

    def is_held(self, item: Json) -> bool:
        """Whether an object that is deleted waits for more than its finalizers."""
        return False

    def deleted(self, item: Json) -> None:
        """Notes in an object that it is being deleted."""

    def grace_seconds(self, item: Json, asked: int | None) -> int:
        """How long an object that is deleted stays for others to let go of it."""
        return 0

    def pruned(self, raw: Any) -> Json:
        """A custom resource with the fields that its definition knows."""
        raise NotImplementedError

    def columns(self) -> Sequence[Any]:
        """What a table shows of a custom resource."""
        return ()

    def described(self) -> Json:
        """The schema of a custom resource, for clients."""
        raise NotImplementedError


class Plain(Rules):
    """Stored as they come."""


class WithStatus(Rules):
    """A status of its own, and a generation that counts changes of the rest."""

    status = True
    generation = True
    #: What nobody has looked at yet is like.
    first_status: ClassVar[Mapping[str, Any]] = {}

    def created(self, item: Json) -> None:
        item["status"] = dict(self.first_status)


def part(item: Mapping[str, Any], name: str) -> Json:
    """A mapping in a mapping; empty if there is none."""
    value = item.get(name)
    return value if isinstance(value, dict) else {}


def fill(item: Json, **values: Any) -> None:
    """Sets the fields that are absent."""
    for name, value in values.items():
        item.setdefault(name, value)
