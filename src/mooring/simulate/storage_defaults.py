"""What is filled in of volumes, claims and classes when they are created, and just after that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mooring.objects.storage import BIND_COMPLETED

Raw = Mapping[str, Any]

_IS_DEFAULT = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def default_class(classes: Iterable[Raw]) -> str:
    """The class of claims that name none: the newest that is marked as such; empty without any."""
    # Stable, and names are in order, so that of several the first by name is taken.
    marked = sorted((_metadata(each) for each in classes if _is_default(each)), key=_name)
    newest = max(marked, key=lambda each: str(each.get("creationTimestamp") or ""), default={})
    return _name(newest)


def filled_class(raw: Raw) -> Raw:
    if raw.get("volumeBindingMode") is not None:
        return raw
    return {**raw, "volumeBindingMode": "Immediate"}


def filled_volume(raw: Raw) -> Raw:
    """A volume that does not say so is taken or free, as the volume controller would find it."""
    spec, status = _part(raw, "spec"), _part(raw, "status")
    if spec is None or status is None or status.get("phase") is not None:
        return raw
    phase = "Available" if spec.get("claimRef") is None else "Bound"
    return {**raw, "status": {**status, "phase": phase}}


def filled_claim(raw: Raw, default: str) -> Raw:
    """A claim that names its volume is bound to it, unless its status tells otherwise."""
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


def _part(raw: Raw, name: str) -> Raw | None:
    """A mapping in a mapping; None if something else is there, which decoding will refuse."""
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
