"""Fills in the defaults of the API server, which manifests written by hand leave out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from moorage.documents.json_text import DEEPEST
from moorage.objects.meta import ObjectMeta, Wire
from moorage.objects.pod_defaults import fill_spec, mapping, with_each, with_part
from moorage.objects.storage import BIND_COMPLETED

Raw = Mapping[str, Any]


class PriorityClass(Wire, frozen=True):
    """A name for a priority."""

    metadata: ObjectMeta
    value: int
    global_default: bool = False
    preemption_policy: str | None = None


class UnknownPriorityClass(LookupError):
    """A pod names a priority class that does not exist."""


_SYSTEM = (
    PriorityClass(metadata=ObjectMeta(name="system-cluster-critical"), value=2_000_000_000),
    PriorityClass(metadata=ObjectMeta(name="system-node-critical"), value=2_000_001_000),
)

_IS_DEFAULT = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)

# Where users choose the keys; a null there is a mistake, not a field that was left out.
_FREE_KEYS = frozenset(("annotations", "labels", "matchLabels", "nodeSelector"))


@dataclass(frozen=True, slots=True)
class Defaults:
    """Fills in defaults. Values of a wrong type are left alone: decoding refuses them."""

    classes: Mapping[str, PriorityClass]
    #: The class of claims that name none.
    storage_class: str = ""

    @classmethod
    def of(cls, classes: Iterable[PriorityClass], storage_class: str = "") -> Defaults:
        return cls({each.metadata.name: each for each in (*_SYSTEM, *classes)}, storage_class)

    def fill(self, kind: str, raw: Raw) -> Raw:
        """Returns the object as the API server would store it; the given one does not change."""
        if kind in _FILLED:
            return _FILLED[kind](raw)
        match kind:
            case "Pod":
                return self._pod(raw)
            case "PodGroup":
                return with_part(raw, "spec", self._prioritize)
            case "PersistentVolumeClaim":
                return _fill_claim(raw, self.storage_class)
            case _:
                return raw

    def _pod(self, raw: Raw) -> Raw:
        labels = mapping(mapping(raw.get("metadata")).get("labels"))
        return with_part(raw, "spec", lambda spec: self._spec(spec, labels), even_empty=True)

    def _spec(self, spec: Raw, labels: Raw) -> Raw:
        return self._prioritize(fill_spec(spec, labels))

    def _prioritize(self, spec: Raw) -> Raw:
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


def drop_nulls(raw: Any, levels: int = DEEPEST) -> Any:
    """Returns the object without null fields, which mean absent ones.

    Values nested deeper than those levels are not read by anything, and stay as they are.
    """
    if not levels:
        return raw
    if isinstance(raw, list):
        return [drop_nulls(each, levels - 1) for each in raw]
    if not isinstance(raw, Mapping):
        return raw
    return {
        key: value if key in _FREE_KEYS else drop_nulls(value, levels - 1)
        for key, value in raw.items()
        if value is not None
    }


def _allocatable(status: Raw) -> Raw:
    if status.get("allocatable") is not None or status.get("capacity") is None:
        return status
    return {**status, "allocatable": status["capacity"]}


def find_default_class(classes: Iterable[Raw]) -> str:
    """Returns the newest class that is marked as default for claims; empty if there is none."""
    # Stable, and names are in order, so that of several the first by name is taken.
    marked = sorted((_metadata(each) for each in classes if _is_default(each)), key=_name)
    newest = max(marked, key=lambda each: str(each.get("creationTimestamp") or ""), default={})
    return _name(newest)


def _fill_class(raw: Raw) -> Raw:
    if raw.get("volumeBindingMode") is not None:
        return raw
    return {**raw, "volumeBindingMode": "Immediate"}


def _fill_volume(raw: Raw) -> Raw:
    """Sets whether a volume is bound or available, as the volume controller would."""
    spec, status = _part(raw, "spec"), _part(raw, "status")
    if spec is None or status is None or status.get("phase") is not None:
        return raw
    phase = "Available" if spec.get("claimRef") is None else "Bound"
    return {**raw, "status": {**status, "phase": phase}}


def _fill_claim(raw: Raw, default: str) -> Raw:
    """Marks a claim that names its volume as bound, unless its status says otherwise."""
    metadata, spec, status = (_part(raw, name) for name in ("metadata", "spec", "status"))
    if metadata is None or spec is None or status is None:
        return raw
    if not spec.get("volumeName"):
        named = spec.get("storageClassName") is not None or not default
        return raw if named else {**raw, "spec": {**spec, "storageClassName": default}}
    notes = _part(metadata, "annotations")
    if notes is None or status.get("phase") is not None:
        return raw
    return {
        **raw,
        "metadata": {**metadata, "annotations": {BIND_COMPLETED: "yes", **notes}},
        "status": {**status, "phase": "Bound"},
    }


def _fill_requests(spec: Raw) -> Raw:
    """Sets the number of devices that a claim requests to one, if it is absent."""
    return with_part(spec, "devices", lambda devices: with_each(devices, "requests", _fill_request))


def _fill_request(request: Raw) -> Raw:
    return with_each(with_part(request, "exactly", _fill_ask), "firstAvailable", _fill_ask)


def _fill_ask(ask: Raw) -> Raw:
    mode = ask.get("allocationMode") or "ExactCount"
    filled = {**ask, "allocationMode": mode}
    if mode == "ExactCount" and not ask.get("count"):
        filled["count"] = 1
    return filled


def _part(raw: Raw, name: str) -> Raw | None:
    """Returns a mapping in a mapping; None if it is something else, which decoding refuses."""
    value = raw.get(name)
    if value is None:
        return {}
    return value if isinstance(value, Mapping) else None


def _metadata(raw: Raw) -> Raw:
    return _part(raw, "metadata") or {}


def _name(metadata: Raw) -> str:
    name = metadata.get("name")
    return name if isinstance(name, str) else ""


def _is_default(raw: Raw) -> bool:
    notes = _part(_metadata(raw), "annotations") or {}
    return any(notes.get(key) == "true" for key in _IS_DEFAULT)


def _fill_device_template(raw: Raw) -> Raw:
    return with_part(raw, "spec", lambda spec: with_part(spec, "spec", _fill_requests))


#: What is filled in whatever else there is.
_FILLED: Mapping[str, Callable[[Raw], Raw]] = {
    "Node": lambda raw: with_part(raw, "status", _allocatable),
    "PersistentVolume": _fill_volume,
    "StorageClass": _fill_class,
    "ResourceClaim": lambda raw: with_part(raw, "spec", _fill_requests),
    "ResourceClaimTemplate": _fill_device_template,
}
