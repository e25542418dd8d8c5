"""The answers of plugins: values that the engine carries out. They are checked when they are made.

Authors import them from `moorage.framework.plugin`, with the extension points.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from moorage.objects.pod import Pod

from .device_writes import ClaimRelease, DeviceWrites
from .status import Code, check_code, check_items, check_seconds, check_text, check_texts

F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Narrowed(Generic[F]):
    """A prepared value, together with the only nodes worth looking at."""

    prepared: F
    node_names: frozenset[str]

    def __post_init__(self) -> None:
        if not isinstance(self.node_names, frozenset):
            raise TypeError(
                f"Narrowed.node_names is {type(self.node_names).__name__}, expected a frozenset"
            )
        for name in self.node_names:
            check_text("Narrowed.node_names", name)


class Rescore(Enum):
    """What a plugin can answer for a row that changed, without looking at the others."""

    #: The row does not take such a pod any more.
    INFEASIBLE = "infeasible"
    #: The row takes such a pod; its score is up to date.
    UPDATED = "updated"
    #: The plugin has to be asked in the ordinary way.
    UNKNOWN = "unknown"


#: Looked up once, because that takes long for an enum, and plugins answer for every changed row.
INFEASIBLE, UPDATED = Rescore.INFEASIBLE, Rescore.UPDATED


@dataclass(frozen=True, slots=True)
class Remedy:
    """What a post-filter found: where the pod will fit once its victims are gone."""

    node_name: str
    victims: tuple[Pod, ...] = ()
    #: How many of the evictions a disruption budget does not allow.
    violations: int = 0
    #: What the message of the pod says about it.
    text: str = ""

    def __post_init__(self) -> None:
        check_text("Remedy.node_name", self.node_name)
        check_text("Remedy.text", self.text)
        check_items("Remedy.victims", self.victims, Pod)


@dataclass(frozen=True, slots=True)
class NoRemedy:
    """A post-filter found no remedy. `clears_nomination` ends the pod's nomination, if any.

    `partial` means that the search stopped early: for a like pod it may have another result.
    """

    code: Code
    reasons: tuple[str, ...]
    clears_nomination: bool = False
    partial: bool = False
    #: A claim that releases its devices, so that the next attempt may find better ones.
    release: ClaimRelease | None = None

    def __post_init__(self) -> None:
        check_code("NoRemedy.code", self.code)
        check_texts("NoRemedy.reasons", self.reasons)


@dataclass(frozen=True, slots=True)
class ProposedEviction:
    """A node on which evicting pods would help: the victims, and how many of them break a budget.

    The most important victim comes first.
    """

    node_name: str
    victims: tuple[Pod, ...]
    violations: int = 0


class Reduction(Enum):
    """What normalising depends on besides the row's own number."""

    NOTHING = "nothing"
    #: The largest number among the feasible rows, as in `normalize_scores`.
    LARGEST = "largest"
    #: Which rows are feasible, and all their numbers.
    EVERYTHING = "everything"


#: The answer of a plugin that cannot say what it reads of a pod.
UNSIGNABLE = object()


@dataclass(frozen=True, slots=True)
class Wait:
    """A permit that is given later, or refused when the time is up."""

    seconds: float

    def __post_init__(self) -> None:
        check_seconds("Wait.seconds", self.seconds)


@dataclass(frozen=True, slots=True)
class PendingPermit:
    """A pod that waits for a permit, and the node that is kept for it meanwhile."""

    pod: Pod
    node_name: str


@dataclass(frozen=True, slots=True)
class ClaimWrite:
    """A claim to be provisioned for a node: its annotation is to name that node."""

    namespace: str
    name: str
    node_name: str

    def __post_init__(self) -> None:
        for value in (self.namespace, self.name, self.node_name):
            check_text("ClaimWrite", value)


@dataclass(frozen=True, slots=True)
class VolumeWrite:
    """A volume to be bound to a claim: its claimRef is to name that claim."""

    name: str
    claim_namespace: str
    claim_name: str
    claim_uid: str

    def __post_init__(self) -> None:
        for value in (self.name, self.claim_namespace, self.claim_name, self.claim_uid):
            check_text("VolumeWrite", value)


@dataclass(frozen=True, slots=True)
class Preparation:
    """What must be written, and then become true, before a pod may be bound."""

    volumes: tuple[VolumeWrite, ...] = ()
    claims: tuple[ClaimWrite, ...] = ()
    timeout_seconds: float = 600.0
    devices: DeviceWrites | None = None

    def __post_init__(self) -> None:
        check_items("Preparation.volumes", self.volumes, VolumeWrite)
        check_items("Preparation.claims", self.claims, ClaimWrite)
        check_seconds("Preparation.timeout_seconds", self.timeout_seconds)
        if self.devices is not None and not isinstance(self.devices, DeviceWrites):
            raise TypeError("Preparation.devices is no DeviceWrites")
