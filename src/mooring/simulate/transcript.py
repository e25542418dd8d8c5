"""What a simulation has decided."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.engine.actions import Action
from mooring.engine.classes.statistics import Statistics
from mooring.objects.pod import Pod
from mooring.world import Claimed


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod and the node that was found for it."""

    pod: Pod
    node: str
    profile: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Pending:
    """A pod that has no node, and why. `reason` is one word, `message` tells it all."""

    pod: Pod
    reason: str
    message: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Preempted:
    """A pod that had to leave its node, and the namespace and name of the pod it made way for."""

    pod: Pod
    node: str
    by: str


@dataclass(frozen=True, slots=True)
class Use:
    """How much of a resource there is and is asked for, in all nodes, in native units."""

    allocatable: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Transcript:
    """The outcome, and every action on the way with its virtual time in seconds."""

    placed: tuple[Placed, ...]
    pending: tuple[Pending, ...]
    preempted: tuple[Preempted, ...]
    volumes: tuple[Claimed, ...]
    #: By resource; only those of which there is any or any is asked for.
    use: dict[str, Use]
    nodes: int
    #: By profile, what like pods shared.
    reuse: dict[str, Statistics]
    story: tuple[tuple[float, Action], ...]
