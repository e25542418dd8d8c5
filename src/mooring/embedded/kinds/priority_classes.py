"""Which priority class holds for a new pod or group of pods."""

from __future__ import annotations

from mooring.embedded.refusals import forbidden
from mooring.embedded.store.object_store import ObjectStore
from mooring.embedded.store.table import Json


def find_priority_class(store: ObjectStore, resource: str, name: str, named: str) -> Json:
    """The class that an object names, or the default one; empty if there is none.

    Refuses an object that names a class which is not there.
    """
    classes = store.table("priorityclasses.scheduling.k8s.io").entries
    if named:
        entry = classes.get(named)
        if entry is None:
            raise forbidden(resource, name, f"no PriorityClass with name {named} was found")
        return entry.object
    items = [entry.object for entry in classes.values()]
    marked = [each for each in items if each.get("globalDefault")]
    return min(marked, key=lambda each: each["value"], default={})
