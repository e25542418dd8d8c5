"""The events of the engine: objects seen or gone, and the outcomes of its actions."""

from __future__ import annotations

import msgspec

from moorage.framework.device_writes import DeviceClaimRef
from moorage.objects.kinds import Object

from .extender_answers import ExtenderAnswer


class Applied(msgspec.Struct, frozen=True, gc=False):
    """An object exists in this form now: new or changed."""

    object: Object


class Removed(msgspec.Struct, frozen=True, gc=False):
    """An object is gone. Its last known form comes along."""

    object: Object


class Bound(msgspec.Struct, frozen=True, gc=False):
    """A BindPod action succeeded."""

    uid: str


class BindingFailed(msgspec.Struct, frozen=True, gc=False):
    """A BindPod action failed; the pod will be tried again."""

    uid: str
    message: str


class ClaimsWritten(msgspec.Struct, frozen=True, gc=False):
    """A WriteClaims action succeeded."""

    uid: str


class ClaimsRevoked(msgspec.Struct, frozen=True, gc=False):
    """A RevokeClaims action is done, and no earlier write can come true any more."""

    uid: str
    #: The claims that have devices all the same, in the version in which they were read.
    held: tuple[DeviceClaimRef, ...] = ()


class ReleaseFailed(msgspec.Struct, frozen=True, gc=False):
    """A ReleaseClaim action failed; its pod will be tried again."""

    uid: str
    message: str


class PodEnded(msgspec.Struct, frozen=True, gc=False):
    """A bound pod has ended or is gone, and no watch has reported it."""

    uid: str


class Unbound(msgspec.Struct, frozen=True, gc=False):
    """A bound pod has no node after all; it will be tried again."""

    uid: str


class Permitted(msgspec.Struct, frozen=True, gc=False):
    """A plugin gives its permit to a pod that waits for it."""

    uid: str
    plugin: str


class PermitRefused(msgspec.Struct, frozen=True, gc=False):
    """A plugin refuses its permit to a pod that waits for it."""

    uid: str
    plugin: str
    message: str


class Evicted(msgspec.Struct, frozen=True, gc=False):
    """An EvictPod action succeeded: the victim's deletion was asked for."""

    uid: str
    preemptor_uid: str


class EvictionFailed(msgspec.Struct, frozen=True, gc=False):
    """An EvictPod action failed."""

    uid: str
    preemptor_uid: str
    message: str


class ExtenderAnswered(msgspec.Struct, frozen=True):
    """An AskExtender action is done: the extender has answered, or failed."""

    uid: str
    attempt: int
    number: int
    #: None if there is none.
    answer: ExtenderAnswer | None = None
    #: Why there is none, in kube-scheduler's words where it has some.
    failure: str = ""


Event = (
    Applied
    | Removed
    | Bound
    | BindingFailed
    | ClaimsWritten
    | ClaimsRevoked
    | ReleaseFailed
    | PodEnded
    | Unbound
    | Permitted
    | PermitRefused
    | Evicted
    | EvictionFailed
    | ExtenderAnswered
)
