"""The metadata and the conditions that objects of all kinds carry."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from moorage.embedded.request_refusals import Fault, forbidden_field, invalid_value, required
from moorage.embedded.store.object_store import Json

from .decoding import now_text
from .names import annotation_faults, label_faults, label_key_faults

# No vowels and nothing that looks like another letter, so that no words come out.
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_LONGEST_GENERATED = 63 - _SUFFIX_LENGTH

# What is left out where there is nothing in it.
_MAY_BE_EMPTY = ("labels", "annotations", "finalizers", "ownerReferences")

#: What the server alone writes.
_KEPT = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "generateName",
)
_SET_BY_SERVER = (*_KEPT, "selfLink", "resourceVersion")


def generate_name(prefix: str) -> str:
    letters = (secrets.choice(_SUFFIX_LETTERS) for _ in range(_SUFFIX_LENGTH))
    return prefix[:_LONGEST_GENERATED] + "".join(letters)


def complete(item: Json, namespace: str, now: datetime, *, counted: bool) -> None:
    """Sets the name, uid and creation time of a new object."""
    metadata = item["metadata"]
    prefix = metadata.get("generateName")
    for field in _SET_BY_SERVER:
        metadata.pop(field, None)
    if prefix:
        metadata["generateName"] = prefix
    if namespace:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    _drop_empty(metadata)
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = now_text(now)
    if counted:
        metadata["generation"] = 1


def adopt_identity(metadata: Json, namespace: str, now: datetime, *, counted: bool) -> None:
    """Completes the metadata of an object that another server has made."""
    for field in ("selfLink", "resourceVersion", "managedFields"):
        metadata.pop(field, None)
    if namespace:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    _drop_empty(metadata)
    metadata.setdefault("uid", str(uuid.uuid4()))
    metadata.setdefault("creationTimestamp", now_text(now))
    if counted:
        metadata.setdefault("generation", 1)


def keep_identity(item: Json, old: Json) -> None:
    """Restores the metadata that only the server writes."""
    metadata, kept = item["metadata"], old["metadata"]
    metadata["name"] = kept["name"]
    if "namespace" in kept:
        metadata["namespace"] = kept["namespace"]
    else:
        metadata.pop("namespace", None)
    metadata.pop("selfLink", None)
    _drop_empty(metadata)
    for field in _KEPT:
        if field in kept:
            metadata[field] = kept[field]
        else:
            metadata.pop(field, None)


def _drop_empty(metadata: Json) -> None:
    for field in _MAY_BE_EMPTY:
        if field in metadata and not metadata[field]:
            del metadata[field]


def differs_beside_status(item: Json, old: Json) -> bool:
    """Whether anything but metadata and status differs."""
    return _beside_status(item) != _beside_status(old)


def metadata_faults(metadata: Json) -> Iterator[Fault]:
    """Yields what is wrong with the metadata of an object."""
    yield from label_faults("metadata.labels", metadata.get("labels") or {})
    yield from annotation_faults("metadata.annotations", metadata.get("annotations") or {})
    for finalizer in metadata.get("finalizers") or ():
        yield from label_key_faults("metadata.finalizers", finalizer)
    yield from _owner_faults(metadata.get("ownerReferences") or ())


def finalizer_faults(metadata: Json, old: Json) -> Iterator[Fault]:
    """Yields new finalizers of an object that is being deleted."""
    if "deletionTimestamp" not in old:
        return
    added = set(metadata.get("finalizers") or ()) - set(old.get("finalizers") or ())
    if added:
        detail = "no new finalizers can be added if the object is being deleted"
        yield forbidden_field("metadata.finalizers", f"{detail}, found new finalizers {added}")


def _owner_faults(owners: Any) -> Iterator[Fault]:
    for index, owner in enumerate(owners):
        at = f"metadata.ownerReferences[{index}]"
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield required(f"{at}.{field}", f"{field} must not be empty")
    managers = [owner.get("name") for owner in owners if owner.get("controller")]
    if len(managers) > 1:
        detail = "Only one reference can have Controller set to true"
        yield invalid_value("metadata.ownerReferences", managers, detail)


def _beside_status(item: Json) -> Json:
    return {key: value for key, value in item.items() if key not in ("metadata", "status")}


def set_condition(holder: Json, now: str, **condition: str) -> None:
    """Sets a condition; its transition time changes only with its status."""
    conditions = holder.setdefault("conditions", [])
    for at, each in enumerate(conditions):
        if each.get("type") == condition["type"]:
            same = each.get("status") == condition["status"]
            since = each.get("lastTransitionTime", now) if same else now
            conditions[at] = {**condition, "lastProbeTime": None, "lastTransitionTime": since}
            return
    conditions.append({**condition, "lastProbeTime": None, "lastTransitionTime": now})


def condition_of(status: Json, kind: str) -> Json:
    """Returns the condition of a type; an empty one if there is none."""
    found = (each for each in status.get("conditions") or () if each.get("type") == kind)
    return next(found, {})


def without_condition(status: Json, kind: str) -> list[Json]:
    return [each for each in status.get("conditions") or () if each.get("type") != kind]


def with_condition(status: Json, condition: Json, now: str) -> list[Json]:
    """Returns conditions with one replaced; its transition time changes only with its status."""
    old = condition_of(status, condition["type"])
    since = old["lastTransitionTime"] if old.get("status") == condition["status"] else now
    new = {**condition, "lastTransitionTime": since}
    conditions = status.get("conditions") or []
    if not old:
        return [*conditions, new]
    return [new if each is old else each for each in conditions]
