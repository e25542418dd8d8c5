"""What the API server fills in: manifests written by hand leave it out, its own output has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mooring.objects.meta import ObjectMeta, Wire
from mooring.objects.nesting import DEEPEST
from mooring.objects.pod_defaults import filled_spec, mapping, with_part

from .storage_defaults import filled_claim, filled_class, filled_volume

Raw = Mapping[str, Any]


class PriorityClass(Wire, frozen=True):
    """A name for a priority."""

    metadata: ObjectMeta
    value: int
    global_default: bool = False
    preemption_policy: str | None = None


class UnknownPriorityClass(LookupError):
    """A pod names a priority class that nobody has defined."""


_SYSTEM = (
    PriorityClass(metadata=ObjectMeta(name="system-cluster-critical"), value=2_000_000_000),
    PriorityClass(metadata=ObjectMeta(name="system-node-critical"), value=2_000_001_000),
)

# Where users choose the keys; a null there is a mistake, not a field that was left out.
_FREE_KEYS = frozenset(("annotations", "labels", "matchLabels", "nodeSelector"))


@dataclass(frozen=True, slots=True)
class Defaults:
    """Fills in objects. Whatever has a wrong type is left alone: decoding will refuse it."""

    classes: Mapping[str, PriorityClass]
    #: The class of claims that name none.
    storage_class: str = ""

    @classmethod
    def given(cls, classes: Iterable[PriorityClass], storage_class: str = "") -> Defaults:
        return cls({each.metadata.name: each for each in (*_SYSTEM, *classes)}, storage_class)

    def fill(self, kind: str, raw: Raw) -> Raw:
        """The object as the API server would keep it; the given one stays as it is."""
        match kind:
            case "Pod":
                return self._pod(raw)
            case "Node":
                return with_part(raw, "status", _allocatable)
            case "PersistentVolume":
                return filled_volume(raw)
            case "PersistentVolumeClaim":
                return filled_claim(raw, self.storage_class)
            case "StorageClass":
                return filled_class(raw)
            case _:
                return raw

    def _pod(self, raw: Raw) -> Raw:
        labels = mapping(mapping(raw.get("metadata")).get("labels"))
        return with_part(raw, "spec", lambda spec: self._spec(spec, labels), even_empty=True)

    def _spec(self, spec: Raw, labels: Raw) -> Raw:
        return self._prioritized(filled_spec(spec, labels))

    def _prioritized(self, spec: Raw) -> Raw:
        name = spec.get("priorityClassName")
        if spec.get("priority") is not None or not isinstance(name, str | None):
            return spec
        chosen = self.classes.get(name) if name else self._global_default()
        if chosen is None:
            if name:
                raise UnknownPriorityClass(name)
            return spec
        policy = spec.get("preemptionPolicy") or chosen.preemption_policy
        return {
            **spec,
            "priorityClassName": chosen.metadata.name,
            "priority": chosen.value,
            **({"preemptionPolicy": policy} if policy else {}),
        }

    def _global_default(self) -> PriorityClass | None:
        marked = [each for each in self.classes.values() if each.global_default]
        return min(marked, key=lambda each: (each.value, each.metadata.name), default=None)


def without_nulls(raw: Any, levels: int = DEEPEST) -> Any:
    """The object without the fields that are null, which is to leave them out.

    What is nested deeper than those levels is nothing that anybody reads, and stays as it is.
    """
    if not levels:
        return raw
    if isinstance(raw, list):
        return [without_nulls(each, levels - 1) for each in raw]
    if not isinstance(raw, Mapping):
        return raw
    return {
        key: value if key in _FREE_KEYS else without_nulls(value, levels - 1)
        for key, value in raw.items()
        if value is not None
    }


def _allocatable(status: Raw) -> Raw:
    if status.get("allocatable") is not None or status.get("capacity") is None:
        return status
    return {**status, "allocatable": status["capacity"]}
