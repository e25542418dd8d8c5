"""Subresources: bindings of pods, scales, and finalizers of namespaces."""

from __future__ import annotations

from dataclasses import replace

from mooring.embedded.api.column import NAME, age_column
from mooring.embedded.api.decoding import decode_known, now_text, part
from mooring.embedded.api.kind import ServedKind
from mooring.embedded.api.metadata import set_condition
from mooring.embedded.api.names import selector_text
from mooring.embedded.api.object_api import ObjectApi, is_finished
from mooring.embedded.api.request_options import (
    WriteOptions,
    expect_name,
    expect_precondition,
    expect_uid,
    expect_version,
)
from mooring.embedded.request_refusals import (
    bad_request,
    conflict,
    invalid,
    invalid_value,
    required,
    unsupported,
)
from mooring.embedded.store.table import Json, StoredObject

from .workload_kinds import number_column

_TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def bind(api: ObjectApi, namespace: str, name: str, raw: Json, options: WriteOptions) -> None:
    """Assigns a pod to a node; refuses if it has one."""
    binding = decode_known("core.v1.Binding", raw, 'Binding in version "v1"')
    metadata, target = part(binding, "metadata"), part(binding, "target")
    if metadata.get("name", "") != name:
        raise bad_request("name in URL does not match name in Binding object")
    _check_target(name, target)
    kind = api.kinds["pods"]
    entry = api.get(kind, namespace, name)
    pod = entry.object
    expect_uid(kind, pod, metadata.get("uid", ""))
    expect_precondition(kind, entry, metadata.get("resourceVersion", ""))
    why = _unbindable(pod)
    if why:
        raise conflict("pods/binding", name, why)
    api.edit(kind, namespace, name, lambda stored: _assign(api, stored, metadata, target), options)


def _assign(api: ObjectApi, pod: Json, given: Json, target: Json) -> Json:
    metadata, node = pod["metadata"], target["name"]
    pod["spec"]["nodeName"] = node
    labels = {**_node_labels(api, node), **part(given, "labels")}
    for field, added in (("annotations", part(given, "annotations")), ("labels", labels)):
        if added:
            metadata[field] = {**part(metadata, field), **added}
    status = pod.setdefault("status", {})
    # Where the pod was expected to go says nothing any more.
    status.pop("nominatedNodeName", None)
    set_condition(status, now_text(api.clock()), type="PodScheduled", status="True")
    return pod


def _unbindable(pod: Json) -> str:
    name, spec = pod["metadata"]["name"], pod["spec"]
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _check_target(name: str, target: Json) -> None:
    faults = []
    if target.get("kind", "") not in ("", "Node"):
        faults.append(unsupported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        faults.append(required("target.name"))
    if faults:
        raise invalid("", "Binding", name, faults)


def _node_labels(api: ObjectApi, node: str) -> Json:
    entry = api.find(api.kinds["nodes"], "", node)
    labels = entry.labels if entry else {}
    return {key: labels[key] for key in _TOPOLOGY_LABELS if key in labels}


_SCALE_COLUMNS = (
    NAME,
    number_column("Desired", "spec.replicas"),
    number_column("Available", "status.replicas"),
    age_column(),
)
#: Scales are never stored, but have a form of their own.
SCALES = ServedKind(
    group="autoscaling",
    version="v1",
    kind="Scale",
    plural="scales",
    columns=_SCALE_COLUMNS,
)

_KEPT_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(kind: ServedKind, item: Json) -> Json:
    """Returns the scale of an object."""
    spec, status, metadata = part(item, "spec"), part(item, "status"), item["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in _KEPT_METADATA if key in metadata},
        "spec": {"replicas": spec["replicas"]} if spec.get("replicas") else {},
        "status": {
            "replicas": status.get("replicas", 0),
            "selector": selector_text(spec.get("selector")),
        },
    }


def set_scale(
    api: ObjectApi, kind: ServedKind, namespace: str, name: str, raw: Json, options: WriteOptions
) -> StoredObject:
    """Sets how many replicas an object should have."""
    scale = decode_known("autoscaling.v1.Scale", raw, 'Scale in version "v1"')
    metadata = part(scale, "metadata")
    entry = api.get(kind, namespace, name)
    expect_name(metadata, name)
    expect_version(kind, entry, metadata.get("resourceVersion", ""))
    replicas = part(scale, "spec").get("replicas", 0)
    if replicas < 0:
        fault = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid("autoscaling", "Scale", name, [fault])
    item = entry.object
    if not isinstance(item.get("spec"), dict):
        raise bad_request(f"{kind.resource} {name} has no spec to scale")
    item["spec"]["replicas"] = replicas
    return api.update(kind, namespace, name, item, replace(options, subresource=""))


def finalize(api: ObjectApi, name: str, raw: Json, options: WriteOptions) -> StoredObject:
    """Replaces the finalizers of a namespace; a deleted one without any is removed."""
    kind = api.kinds["namespaces"]
    given, entry = kind.read(raw), api.get(kind, "", name)
    item, metadata = entry.object, given.setdefault("metadata", {})
    expect_name(metadata, name)
    expect_version(kind, entry, metadata.get("resourceVersion", ""))
    expect_uid(kind, item, metadata.get("uid", ""))
    item["spec"] = part(given, "spec")
    kept = api.edit(kind, "", name, lambda _: item, options)
    return api.remove(kind, kept, options) if is_finished(kind, item) else kept
