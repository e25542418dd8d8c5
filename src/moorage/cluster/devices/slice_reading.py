"""How slices are read, which differs between versions of Kubernetes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SliceReading:
    """What counts of slices, and what is added to them."""

    #: Whether DeviceTaintRules put taints on devices.
    follows_taint_rules: bool = False
    #: Whether every node sees the slices that have counters, whichever node they are for.
    shows_counters_to_all: bool = True
    #: Whether slices count although their devices have compatibility groups.
    ignores_compatibility_groups: bool = True


DEFAULT_READING = SliceReading()
