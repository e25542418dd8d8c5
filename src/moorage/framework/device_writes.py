"""Writes about claims of devices: before a pod is bound, and when that is taken back."""

from __future__ import annotations

from typing import Any

import msgspec


class DeviceClaimRef(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A reference to a claim, and the form in which it was last seen."""

    namespace: str
    name: str
    uid: str
    resource_version: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class ClaimGrant(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A claim for a pod to use; it may get its devices for that."""

    claim: DeviceClaimRef
    #: As the API writes it; None if the claim has its devices already.
    allocation: dict[str, Any] | None = None
    #: What the claim has of these now.
    finalizers: tuple[str, ...] = ()
    reserved_for: tuple[dict[str, Any], ...] = ()
    #: Whom it is reserved for, as the API writes it; None if that is the pod.
    user: dict[str, Any] | None = None


class ClaimCreation(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A claim to make for the extended resources of a pod, and which request gets which device."""

    devices: dict[str, Any]
    allocation: dict[str, Any]
    mappings: tuple[dict[str, str], ...] = ()


class DeviceWrites(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """All writes about devices before a pod is bound, in this order."""

    grants: tuple[ClaimGrant, ...] = ()
    creation: ClaimCreation | None = None
    #: All claims that are or will be reserved for the pod.
    claims: tuple[DeviceClaimRef, ...] = ()
    #: For each device that has to be made ready after that, the driver that does it.
    slow_drivers: tuple[str, ...] = ()
    #: The plugin that wants it, which errors name.
    plugin: str = ""


class ClaimRelease(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A claim that frees its devices, or is deleted without its finalizer."""

    claim: DeviceClaimRef
    deletes: bool = False
