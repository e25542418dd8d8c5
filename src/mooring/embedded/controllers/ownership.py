"""Who made what: references to controllers, and pods made from templates."""

from __future__ import annotations

from copy import deepcopy

import msgspec

from mooring.embedded.wire import Json
from mooring.objects.selector import LabelSelector, Selector, compile_selector

from .items import Item, Owner

# The longest name that leaves room for a suffix.
_LONGEST_PREFIX = 57


def reference(owner: Json) -> Json:
    """The reference that makes an owner the controller of an object."""
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def written(owner: Owner) -> Json:
    """A reference as it is written."""
    return msgspec.to_builtins(owner)


def pod_of(owner: Json, template: Json) -> Json:
    """A pod made from a template, without a name of its own yet."""
    metadata = deepcopy(template.get("metadata") or {})
    kept = {
        key: metadata[key] for key in ("labels", "annotations", "finalizers") if key in metadata
    }
    return {
        "metadata": {
            **kept,
            "generateName": f"{owner['metadata']['name'][:_LONGEST_PREFIX]}-",
            "ownerReferences": [reference(owner)],
        },
        "spec": deepcopy(template["spec"]),
    }


def selector_of(owner: Json) -> Selector | None:
    """The pods, or sets of pods, that an owner selects."""
    return compile_selector(msgspec.convert(owner["spec"].get("selector"), LabelSelector | None))


def is_managed_by(item: Item, uid: str) -> bool:
    manager = item.controller
    return manager is not None and manager.uid == uid
