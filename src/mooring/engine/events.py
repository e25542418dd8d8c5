"""What the engine is told: objects seen or gone, and the outcomes of its actions."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.objects.decode import Object


@dataclass(frozen=True, slots=True)
class Applied:
    """An object exists in this form now: new or changed."""

    object: Object


@dataclass(frozen=True, slots=True)
class Removed:
    """An object is gone. Its last known form comes along."""

    object: Object


@dataclass(frozen=True, slots=True)
class Bound:
    """A BindPod action succeeded."""

    uid: str


@dataclass(frozen=True, slots=True)
class BindingFailed:
    """A BindPod action failed; the pod will be tried again."""

    uid: str
    message: str


@dataclass(frozen=True, slots=True)
class Permitted:
    """A plugin that let a pod wait now lets it go on."""

    uid: str
    plugin: str


@dataclass(frozen=True, slots=True)
class PermitRefused:
    """A plugin that let a pod wait refuses it."""

    uid: str
    plugin: str
    message: str


@dataclass(frozen=True, slots=True)
class Evicted:
    """An EvictPod action succeeded: the victim's deletion was asked for."""

    uid: str
    preemptor_uid: str


@dataclass(frozen=True, slots=True)
class EvictionFailed:
    """An EvictPod action failed."""

    uid: str
    preemptor_uid: str
    message: str


Event = (
    Applied | Removed | Bound | BindingFailed | Permitted | PermitRefused | Evicted | EvictionFailed
)
