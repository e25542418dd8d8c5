"""Subresources: bindings, scales, finalizers, and evictions with the budgets that they spend."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from moorage.embedded.api.column import (
    NAME,
    age_column,
    at,
    text_column,
)
from moorage.embedded.api.decoding import decode_known, now_text, part
from moorage.embedded.api.kind import STATUS, ServedKind, StatusRules, make_known_kind
from moorage.embedded.api.metadata import set_condition
from moorage.embedded.api.names import label_selector_faults, read_selector, selector_text
from moorage.embedded.api.object_api import ObjectApi, is_finished
from moorage.embedded.api.request_options import (
    DeleteOptions,
    WriteOptions,
    expect_before_delete,
    expect_name,
    expect_precondition,
    expect_uid,
    expect_version,
)
from moorage.embedded.request_refusals import (
    Fault,
    RequestRefused,
    bad_request,
    conflict,
    forbidden,
    invalid,
    invalid_value,
    required,
    too_many_requests,
    unsupported,
)
from moorage.embedded.store.object_store import Json, StoredObject

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


_PERCENT = re.compile(r"[0-9]+%", re.ASCII)
_ENDED = ("Succeeded", "Failed")
_BUDGETS = "poddisruptionbudgets.policy"
_REFUSAL = "Cannot evict pod as it would violate the pod's disruption budget."
# How long a client waits while the controller has not seen the last change of a budget.
_RETRY_SECONDS = 10
# With more unconfirmed evictions than these, no controller works on the budget.
_MOST_DISRUPTED = 2000
_NEGATIVE = "must be greater than or equal to 0"


class BudgetRules(StatusRules):
    """The rules of disruption budgets."""

    first_status: ClassVar = {
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "disruptionsAllowed": 0,
        "expectedPods": 0,
    }

    def faults(self, item: Json) -> Iterator[Fault]:
        yield from budget_faults(part(item, "spec"))


def budget_faults(spec: Json) -> Iterator[Fault]:
    """Yields what is wrong with the spec of a budget."""
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        detail = "minAvailable and maxUnavailable cannot be both set"
        yield invalid_value("spec", spec, detail)
    for name in ("minAvailable", "maxUnavailable"):
        yield from _share_faults(f"spec.{name}", spec.get(name))
    yield from label_selector_faults("spec.selector", spec.get("selector"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    known = ("AlwaysAllow", "IfHealthyBudget")
    if policy is not None and policy not in known:
        yield unsupported("spec.unhealthyPodEvictionPolicy", policy, known)


def _share_faults(at: str, share: Any) -> Iterator[Fault]:
    if isinstance(share, str):
        if not _PERCENT.fullmatch(share):
            detail = (
                "a valid percent string must be a numeric string followed by an ending '%' "
                "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            )
            yield invalid_value(at, share, detail)
        elif int(share[:-1]) > 100:
            yield invalid_value(at, share, "must not be greater than 100%")
    elif share is not None and share < 0:
        yield invalid_value(at, share, _NEGATIVE)


def evict(api: ObjectApi, namespace: str, name: str, raw: Json, options: WriteOptions) -> None:
    """Deletes a pod if its disruption budget allows that now."""
    eviction = decode_known("policy.v1.Eviction", raw, 'Eviction in version "v1"')
    if part(eviction, "metadata").get("name", "") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    how = DeleteOptions.read(part(eviction, "deleteOptions"), dry_run=options.dry_run)
    kind = api.kinds["pods"]
    entry = api.get(kind, namespace, name)
    pod = entry.object
    if not _is_unguarded(pod):
        _spend(api, entry, pod, how)
    expect_before_delete(kind, entry, pod, how.uid, how.version)
    if not how.dry_run:
        api.edit(kind, namespace, name, lambda stored: _mark_disrupted(api, stored))
    api.delete(kind, namespace, name, replace(how, uid="", version=""))


def _is_unguarded(pod: Json) -> bool:
    phase = part(pod, "status").get("phase")
    return phase in (*_ENDED, "Pending") or "deletionTimestamp" in pod["metadata"]


def _mark_disrupted(api: ObjectApi, pod: Json) -> Json:
    set_condition(
        pod.setdefault("status", {}),
        now_text(api.clock()),
        type="DisruptionTarget",
        status="True",
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
    )
    return pod


def _spend(api: ObjectApi, entry: StoredObject, pod: Json, how: DeleteOptions) -> None:
    """Takes one disruption off the pod's budget; refuses if none is left."""
    budgets = list(_budgets_of(api, entry))
    if len(budgets) > 1:
        message = (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support."
        )
        raise RequestRefused(500, "", message)
    for budget in budgets:
        if _is_ready(pod) or not _spares_unready(budget):
            _expect_allowed(budget)
            if not how.dry_run:
                _note_disruption(api, budget, entry.name)


def _budgets_of(api: ObjectApi, entry: StoredObject) -> Iterator[Json]:
    for each in api.store.table(_BUDGETS).in_order(entry.namespace):
        budget = each.object
        selector = read_selector(part(budget, "spec").get("selector"))
        if selector is not None and selector.matches(entry.labels):
            yield budget


def _is_ready(pod: Json) -> bool:
    conditions = part(pod, "status").get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _spares_unready(budget: Json) -> bool:
    """Whether a pod that is not ready may be evicted without a disruption."""
    if part(budget, "spec").get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = part(budget, "status")
    desired = status.get("desiredHealthy", 0)
    return desired > 0 and status.get("currentHealthy", 0) >= desired


def _expect_allowed(budget: Json) -> None:
    name, status = budget["metadata"]["name"], part(budget, "status")
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        message = f"The disruption budget {name} is still being processed by the server."
        raise _refuse(message, _RETRY_SECONDS)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise forbidden(_BUDGETS, name, "pdb disruptions allowed is negative")
    if len(part(status, "disruptedPods")) > _MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden(_BUDGETS, name, why)
    if allowed == 0:
        raise _refuse(_why_none(name, status), 0)


def _why_none(name: str, status: Json) -> str:
    desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if current <= desired:
        return (
            f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )
    return f"The disruption budget {name} does not allow evicting pods currently"


def _note_disruption(api: ObjectApi, budget: Json, pod: str) -> None:
    """Notes in the budget that a pod is being evicted."""

    def spend(stored: Json) -> Json:
        status = stored["status"]
        status["disruptionsAllowed"] -= 1
        status["disruptedPods"] = {**part(status, "disruptedPods"), pod: now_text(api.clock())}
        return stored

    metadata = budget["metadata"]
    api.edit(api.kinds[_BUDGETS], metadata["namespace"], metadata["name"], spend)


def _refuse(cause: str, retry_seconds: int) -> RequestRefused:
    return too_many_requests(
        _REFUSAL, retry_seconds, {"reason": "DisruptionBudget", "message": cause}
    )


_BUDGET_COLUMNS = (
    NAME,
    text_column("Min Available", lambda item: str(at(item, "spec.minAvailable", "N/A"))),
    text_column("Max Unavailable", lambda item: str(at(item, "spec.maxUnavailable", "N/A"))),
    number_column("Allowed Disruptions", "status.disruptionsAllowed"),
    age_column(),
)


def budget_kinds() -> Iterator[ServedKind]:
    """Yields the kind of disruption budgets."""
    yield make_known_kind(
        "PodDisruptionBudget",
        BudgetRules(),
        parts=(STATUS,),
        short_names=("pdb",),
        columns=_BUDGET_COLUMNS,
    )
