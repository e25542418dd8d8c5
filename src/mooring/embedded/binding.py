"""Binding: a pod is assigned to a node, once."""

from __future__ import annotations

from .api import Api
from .conditions import set_condition
from .errors import bad_request, conflict, invalid, required, unsupported
from .expecting import expect_precondition, expect_uid
from .options import Write
from .rules.plain import part
from .wire import Json, checked, now_text

_TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def bind(api: Api, namespace: str, name: str, raw: Json, options: Write) -> None:
    """Assigns a pod to a node, once and for all."""
    binding = checked("core.v1.Binding", raw, 'Binding in version "v1"')
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
    api.edit(kind, namespace, name, lambda stored: _bound(api, stored, metadata, target), options)


def _bound(api: Api, pod: Json, given: Json, target: Json) -> Json:
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


def _node_labels(api: Api, node: str) -> Json:
    entry = api.find(api.kinds["nodes"], "", node)
    labels = entry.labels if entry else {}
    return {key: labels[key] for key in _TOPOLOGY_LABELS if key in labels}
