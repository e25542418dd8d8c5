"""What a write needs to know of other objects: its namespace, its priority, its storage class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .addresses import Addresses
from .errors import forbidden, not_found
from .kinds import Kind
from .store import Store
from .tables import Entry
from .wire import Json

_SYSTEM_NAMESPACES = frozenset(("default", "kube-system", "kube-public"))
_IS_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
# How long pods stay on a node that is not ready or cannot be reached.
_TOLERATED_SECONDS = 300
_NODE_TROUBLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class Admission:
    """The admission that every write passes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._addresses = Addresses(store)

    def create(self, kind: Kind, namespace: str, item: Json) -> None:
        if kind.namespaced:
            self._alive(kind, namespace, item)
        if kind.table == "pods":
            self._prioritize(item)
            _tolerate_trouble(item["spec"])
        elif kind.table == "persistentvolumeclaims":
            self._choose_class(item["spec"])
        elif kind.table == "services":
            self._addresses.assign(kind, item)

    def update(self, kind: Kind, item: Json, old: Json) -> None:
        if kind.table == "pods":
            _keep_priority(item["spec"], old["spec"])
            _tolerate_trouble(item["spec"])
        elif kind.table == "services":
            self._addresses.assign(kind, item, old)

    def delete(self, kind: Kind, item: Json) -> None:
        name = item["metadata"]["name"]
        if kind.table == "namespaces" and name in _SYSTEM_NAMESPACES:
            raise forbidden("namespaces", name, "this namespace may not be deleted")

    def _alive(self, kind: Kind, namespace: str, item: Json) -> None:
        entry = self._store.table("namespaces").entries.get(namespace)
        if entry is None:
            raise not_found("namespaces", namespace)
        if "deletionTimestamp" in entry.object["metadata"]:
            why = (
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated"
            )
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            raise forbidden(kind.resource, item["metadata"]["name"], why, [cause])

    def _prioritize(self, item: Json) -> None:
        spec, name = item["spec"], item["metadata"]["name"]
        named = spec.get("priorityClassName", "")
        chosen = self._priority_class(name, named)
        value = chosen.get("value", 0)
        if spec.get("priority", value) != value:
            why = (
                f"the integer value of priority ({spec['priority']}) must not be provided in pod "
                f"spec; priority admission controller computed {value} from the given "
                "PriorityClass name"
            )
            raise forbidden("pods", name, why)
        policy = chosen.get("preemptionPolicy", "PreemptLowerPriority")
        if spec.get("preemptionPolicy", policy) != policy:
            why = (
                f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be "
                f"provided in pod spec; priority admission controller computed {policy} from the "
                "given PriorityClass name"
            )
            raise forbidden("pods", name, why)
        spec |= {"priority": value, "preemptionPolicy": policy}
        if chosen:
            spec["priorityClassName"] = chosen["metadata"]["name"]

    def _priority_class(self, pod: str, named: str) -> Json:
        classes = self._store.table("priorityclasses.scheduling.k8s.io").entries
        if named:
            entry = classes.get(named)
            if entry is None:
                raise forbidden("pods", pod, f"no PriorityClass with name {named} was found")
            return entry.object
        marked = [each for each in _objects(classes) if each.get("globalDefault")]
        return min(marked, key=lambda each: each["value"], default={})

    def _choose_class(self, spec: Json) -> None:
        if spec.get("storageClassName") is not None or spec.get("volumeName"):
            return
        classes = self._store.table("storageclasses.storage.k8s.io").entries
        marked = [each["metadata"] for each in _objects(classes) if _is_default(each)]
        newest = sorted(marked, key=lambda each: each["name"])
        newest.sort(key=lambda each: each["creationTimestamp"], reverse=True)
        if newest:
            spec["storageClassName"] = newest[0]["name"]


def _objects(entries: Mapping[str, Entry]) -> Iterator[Json]:
    return (entry.object for entry in entries.values())


def _is_default(item: Json) -> bool:
    notes = item["metadata"].get("annotations") or {}
    return any(notes.get(key) == "true" for key in _IS_DEFAULT_CLASS)


def _keep_priority(spec: Json, old: Json) -> None:
    for field in ("priority", "preemptionPolicy"):
        if field in old:
            spec.setdefault(field, old[field])


def _tolerate_trouble(spec: Json) -> None:
    """A pod leaves a node in trouble only after a while, unless it says otherwise."""
    tolerations = spec.setdefault("tolerations", [])
    for key in _NODE_TROUBLE:
        told = any(
            each.get("key", "") in ("", key) and each.get("effect", "") in ("", "NoExecute")
            for each in tolerations
        )
        if not told:
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATED_SECONDS,
                }
            )
