"""How slices are read, which differs between versions of Kubernetes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SliceReading:
    """What counts of slices, and what is added to them."""

    #: Whether DeviceTaintRules put taints on devices.
    follows_taint_rules: bool = False


DEFAULT_READING = SliceReading()
