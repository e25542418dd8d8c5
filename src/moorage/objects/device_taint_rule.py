"""Taints that an administrator puts on devices, whatever their drivers publish."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from .device import DeviceTaint
from .meta import ObjectMeta, Wire

#: The driver, the pool and the name of devices; None stands for all.
TaintSelector = tuple[str | None, str | None, str | None]


class _Selector(Wire, frozen=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class _RuleSpec(Wire, frozen=True):
    device_selector: _Selector | None = None
    taint: DeviceTaint = DeviceTaint()


class _WireRule(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _RuleSpec = _RuleSpec()


class DeviceTaintRule(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A taint, and the devices that get it."""

    wire: ClassVar = _WireRule

    name: str
    selector: TaintSelector = (None, None, None)
    taint: DeviceTaint = DeviceTaint()

    @classmethod
    def of(cls, wire: _WireRule, api_version: str = "") -> DeviceTaintRule:
        # It is the same in every version.
        # The API documents that a rule without a selector taints no device. kube-scheduler takes
        # it for one that selects all of them.
        chosen = wire.spec.device_selector or _Selector()
        return cls(
            name=wire.metadata.name,
            selector=(chosen.driver, chosen.pool, chosen.device),
            taint=wire.spec.taint,
        )
