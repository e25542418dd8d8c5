"""Namespaces, nodes, priority classes, leases and runtime classes."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.embedded.api.column import (
    NAME,
    NONE,
    UNKNOWN,
    Column,
    age_column,
    at,
    field_column,
    text_column,
)
from moorage.embedded.api.decoding import fill, part
from moorage.embedded.api.kind import (
    STATUS,
    KindRules,
    ServedKind,
    Subresource,
    make_built_in,
    make_known_kind,
)
from moorage.embedded.api.names import label_name_faults
from moorage.embedded.request_refusals import (
    Fault,
    forbidden,
    forbidden_field,
    invalid_value,
    required,
    unsupported,
)
from moorage.embedded.store.object_store import Json, ObjectStore

from .pod_faults import taint_faults, toleration_faults
from .pod_spec_rules import amount_faults, read_amounts

NAMESPACE_FINALIZER = "kubernetes"
_NAME_LABEL = "kubernetes.io/metadata.name"
_PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")
_SYSTEM_PREFIX = "system-"
_HIGHEST_PRIORITY = 1_000_000_000
#: The priorities above all that users may define.
SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_SYSTEM_NAMESPACES = frozenset(("default", "kube-system", "kube-public"))
_ROLE = "node-role.kubernetes.io/"


class NamespaceRules(KindRules):
    """The rules of namespaces; a deleted one stays until it is empty and finalized."""

    status = True

    def default(self, item: Json) -> None:
        item["metadata"].setdefault("labels", {})[_NAME_LABEL] = item["metadata"]["name"]

    def complete_new(self, item: Json) -> None:
        item["spec"] = {"finalizers": [NAMESPACE_FINALIZER]}
        item["status"] = {"phase": "Active"}

    def keep_on_update(self, item: Json, old: Json) -> None:
        item["spec"] = old.get("spec", {})

    def name_faults(self, name: str) -> Iterator[Fault]:
        yield from label_name_faults("metadata.name", name)

    def is_held(self, item: Json) -> bool:
        return bool(part(item, "spec").get("finalizers"))

    def admit_deletion(self, item: Json) -> None:
        name = item["metadata"]["name"]
        if name in _SYSTEM_NAMESPACES:
            raise forbidden("namespaces", name, "this namespace may not be deleted")

    def mark_deletion(self, item: Json) -> None:
        item["status"] = {**part(item, "status"), "phase": "Terminating"}


class NodeRules(KindRules):
    """The rules of nodes; kubelets create them with their status."""

    status = True

    def default(self, item: Json) -> None:
        spec, status = item.setdefault("spec", {}), item.setdefault("status", {})
        if not spec.get("taints"):
            spec.pop("taints", None)
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])

    def faults(self, item: Json) -> Iterator[Fault]:
        yield from taint_faults("spec.taints", item["spec"].get("taints") or [])
        for name in ("capacity", "allocatable"):
            amounts = part(part(item, "status"), name)
            yield from amount_faults(f"status.{name}", amounts, named=False)

    def status_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        yield from self.faults(item)


class PriorityClassRules(KindRules):
    generation = True

    def default(self, item: Json) -> None:
        fill(item, preemptionPolicy="PreemptLowerPriority", value=0)

    def creation_faults(self, item: Json) -> Iterator[Fault]:
        name, value = item["metadata"]["name"], item["value"]
        if name in SYSTEM_PRIORITIES and SYSTEM_PRIORITIES[name] == value:
            return
        if name.startswith(_SYSTEM_PREFIX):
            detail = "priority class names with 'system-' prefix are reserved for system use only"
            yield forbidden_field("metadata.name", detail)
        if value > _HIGHEST_PRIORITY:
            detail = f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
            yield forbidden_field("value", detail)

    def faults(self, item: Json) -> Iterator[Fault]:
        policy = item["preemptionPolicy"]
        if policy not in _PREEMPTION_POLICIES:
            yield unsupported("preemptionPolicy", policy, _PREEMPTION_POLICIES)

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        if item["value"] != old.get("value", 0):
            yield forbidden_field("value", "may not be changed in an update.")
        if item["preemptionPolicy"] != old.get("preemptionPolicy"):
            detail = "field is immutable"
            yield invalid_value("preemptionPolicy", item["preemptionPolicy"], detail)


def _node_status(item: Json) -> str:
    words = [
        "Ready" if each.get("status") == "True" else "NotReady"
        for each in at(item, "status.conditions", [])
        if each.get("type") == "Ready"
    ] or ["Unknown"]
    if at(item, "spec.unschedulable", False):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(item: Json) -> str:
    labels = at(item, "metadata.labels", {})
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE) and key != _ROLE}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(roles)) or NONE


def _address(kind: str) -> Column:
    def find(item: Json) -> str:
        addresses = at(item, "status.addresses", [])
        return next((each["address"] for each in addresses if each.get("type") == kind), NONE)

    return text_column(f"{kind.removesuffix('IP')}-IP", find, wide=True)


_NODE_COLUMNS = (
    NAME,
    text_column("Status", _node_status),
    text_column("Roles", _roles),
    age_column(),
    field_column("Version", "status.nodeInfo.kubeletVersion", ""),
    _address("InternalIP"),
    _address("ExternalIP"),
    field_column("OS-Image", "status.nodeInfo.osImage", UNKNOWN, wide=True),
    field_column("Kernel-Version", "status.nodeInfo.kernelVersion", UNKNOWN, wide=True),
    field_column(
        "Container-Runtime", "status.nodeInfo.containerRuntimeVersion", UNKNOWN, wide=True
    ),
)
_NAMESPACE_COLUMNS = (NAME, field_column("Status", "status.phase", ""), age_column())
_LEASE_COLUMNS = (NAME, field_column("Holder", "spec.holderIdentity", ""), age_column())
_PRIORITY_CLASS_COLUMNS = (
    NAME,
    text_column("Value", lambda item: at(item, "value", 0), type="integer"),
    text_column("Global-Default", lambda item: at(item, "globalDefault", False), type="boolean"),
    age_column(),
    field_column("PreemptionPolicy", "preemptionPolicy", ""),
)


def cluster_kinds() -> Iterator[ServedKind]:
    """Yields namespaces, nodes, priority classes and leases."""
    yield make_known_kind(
        "Namespace",
        NamespaceRules(),
        parts=(STATUS, Subresource("finalize", ("update",))),
        short_names=("ns",),
        fields=("status.phase",),
        columns=_NAMESPACE_COLUMNS,
    )
    yield make_known_kind(
        "Node",
        NodeRules(),
        parts=(STATUS,),
        short_names=("no",),
        fields=("spec.unschedulable",),
        columns=_NODE_COLUMNS,
    )
    yield make_known_kind(
        "PriorityClass", PriorityClassRules(), short_names=("pc",), columns=_PRIORITY_CLASS_COLUMNS
    )
    yield make_known_kind("Lease", columns=_LEASE_COLUMNS)


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


_TABLE = "runtimeclasses.node.k8s.io"


class RuntimeClassRules(KindRules):
    def faults(self, item: Json) -> Iterator[Fault]:
        if not item.get("handler"):
            yield required("handler")
        fixed = part(part(item, "overhead"), "podFixed")
        yield from amount_faults("overhead.podFixed", fixed, named=False)
        tolerations = part(item, "scheduling").get("tolerations") or []
        yield from toleration_faults("scheduling.tolerations", tolerations)

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        if item.get("handler") != old.get("handler"):
            yield invalid_value("handler", item.get("handler"), "field is immutable")


def apply_runtime_class(store: ObjectStore, item: Json) -> None:
    """Gives a new pod the overhead, node selector and tolerations of its runtime class."""
    spec, wanted = item["spec"], item["spec"].get("runtimeClassName")
    found = store.table(_TABLE).entries.get(wanted) if wanted else None
    if wanted and found is None:
        raise _reject(item, f'RuntimeClass "{wanted}" not found')
    chosen = found.object if found is not None else {}
    fixed = part(part(chosen, "overhead"), "podFixed")
    given = part(spec, "overhead")
    if given and not fixed:
        raise _reject(item, "Pod Overhead set without corresponding RuntimeClass defined Overhead")
    if given and read_amounts(given) != read_amounts(fixed):
        raise _reject(item, "Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    if fixed:
        spec["overhead"] = dict(fixed)
    _place(item, part(chosen, "scheduling"))


def _place(item: Json, scheduling: Json) -> None:
    spec = item["spec"]
    own, theirs = part(spec, "nodeSelector"), part(scheduling, "nodeSelector")
    for key, value in theirs.items():
        if own.get(key, value) != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own[key]}"
            )
            raise forbidden("pods", item["metadata"]["name"], why)
    if theirs:
        spec["nodeSelector"] = {**own, **theirs}
    tolerations = spec.get("tolerations") or []
    added = [each for each in scheduling.get("tolerations") or () if each not in tolerations]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _reject(item: Json, why: str) -> Exception:
    return forbidden("pods", item["metadata"]["name"], f"pod rejected: {why}")


def runtime_class_kinds() -> Iterator[ServedKind]:
    """Yields runtime classes."""
    yield make_built_in(
        "node.k8s.io",
        "node.v1",
        "RuntimeClass",
        "runtimeclasses",
        RuntimeClassRules(),
        namespaced=False,
        columns=(NAME, field_column("Handler", "handler", ""), age_column()),
    )
