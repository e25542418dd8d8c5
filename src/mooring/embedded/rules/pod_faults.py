"""What is wrong with a pod, as far as anyone relies on it."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.embedded.errors import Fault, required

from .plain import Json, part


def pod_faults(item: Json) -> Iterator[Fault]:
    spec = part(item, "spec")
    if not spec.get("containers"):
        yield required("spec.containers")


def pod_update_faults(item: Json, old: Json) -> Iterator[Fault]:
    yield from ()
