"""What controllers remember of objects: little, since there are many of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from mooring.embedded.tables import Entry
from mooring.objects.meta import Wire

ENDED = ("Succeeded", "Failed")


class Owner(Wire, frozen=True):
    """A reference to an owner."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


class NodeTaint(Wire, frozen=True):
    """A mark that repels pods, and since when."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An object: who it is, whose it is, whether it is going."""

    table: str
    entry: Entry
    uid: str
    created: float
    terminating: bool
    owners: tuple[Owner, ...]
    finalizers: tuple[str, ...]

    @property
    def key(self) -> str:
        return self.entry.key

    @property
    def namespace(self) -> str:
        return self.entry.namespace

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.entry.labels

    @property
    def controller(self) -> Owner | None:
        """The owner that manages this object, if one does."""
        for each in self.owners:
            if each.controller:
                return each
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodItem(Item):
    """A pod: where it is and how it does."""

    node: str
    phase: str
    ready: bool
    #: When it became ready, or ceased to be; 0 if it never said.
    ready_changed: float

    @property
    def active(self) -> bool:
        """Whether it counts as one that is wanted: neither ended nor going."""
        return not self.terminating and self.phase not in ENDED

    @property
    def is_stopping(self) -> bool:
        """Whether it is going, and still there."""
        return self.terminating and self.phase not in ENDED

    def is_available(self, now: float, least_ready_seconds: int) -> bool:
        """Whether it has been ready for long enough."""
        return self.ready and self.ready_changed + least_ready_seconds <= now


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeItem(Item):
    """A node: what repels pods from it."""

    taints: tuple[NodeTaint, ...]
    unschedulable: bool
    #: The status of its Ready condition; empty if it has none.
    ready: str
    conditions: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageItem(Item):
    """A volume or a claim: its class and its other half."""

    storage_class: str
    #: The claim of a volume, as namespace/name.
    claim: str
    volume: str
    phase: str
    #: What a volume offers, in nano-units of a byte.
    size: int
