"""The field `spec.coexistPolicy` of pods: behind a gate, like every new field."""

from __future__ import annotations

from collections.abc import Iterator

from .errors import Fault, unsupported
from .wire import Json

FIELD = "coexistPolicy"
POLICIES = ("Any", "DaemonsetAndStaticPods")


def drop_disabled(spec: Json, old: Json | None, *, enabled: bool) -> None:
    """Drops the field while its gate is off, unless the stored object has it already."""
    if not enabled and not (old or {}).get(FIELD):
        spec.pop(FIELD, None)


def coexist_faults(path: str, spec: Json) -> Iterator[Fault]:
    policy = spec.get(FIELD)
    if policy is not None and policy not in POLICIES:
        yield unsupported(f"{path}.{FIELD}", policy, POLICIES)
