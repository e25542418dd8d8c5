"""Pods: complete when they are created, hardly changed after that, deleted with grace."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.embedded.api.column import (
    NAME,
    NONE,
    age_column,
    at,
    text_column,
)
from moorage.embedded.api.decoding import part
from moorage.embedded.api.kind import (
    CREATE_ONLY,
    READ_WRITE,
    STATUS,
    KindRules,
    ServedKind,
    Subresource,
    make_known_kind,
)
from moorage.embedded.request_refusals import (
    Fault,
    forbidden,
)
from moorage.embedded.store.object_store import Json, ObjectStore
from moorage.objects.pod_defaults import fill_spec
from moorage.objects.quantity import Quantity

from .cluster_kinds import apply_runtime_class, find_priority_class
from .limit_ranges import limit_pod
from .pod_faults import drop_disabled, pod_update_faults, resize
from .pod_spec_rules import containers, creation_faults, default_pod_spec, pod_faults

_DEFAULT_GRACE_SECONDS = 30
# The fields that follow from the priority class, as messages name them.
_COMPUTED_TITLES = {
    "priority": "integer value of priority",
    "preemptionPolicy": "string value of PreemptionPolicy",
}
_QOS_RESOURCES = ("cpu", "memory")
# How long pods stay on a node that is not ready or cannot be reached.
_TOLERATED_SECONDS = 300
_NODE_TROUBLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_ENDED = ("Succeeded", "Failed")
_POD_PARTS = (
    STATUS,
    Subresource("binding", CREATE_ONLY, "", "v1", "Binding"),
    Subresource("eviction", CREATE_ONLY, "policy", "v1", "Eviction"),
    Subresource("log", ("get",)),
    Subresource("exec", ("create", "get"), "", "v1", "PodExecOptions"),
    Subresource("attach", ("create", "get"), "", "v1", "PodAttachOptions"),
    Subresource("portforward", ("create", "get"), "", "v1", "PodPortForwardOptions"),
    Subresource("ephemeralcontainers", READ_WRITE),
    Subresource("resize", READ_WRITE),
)
_POD_FIELDS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)


class PodRules(KindRules):
    """The rules of pods."""

    status = True
    generation = True
    shows_deleted = True

    def __init__(self, *, coexist: bool = True) -> None:
        self._coexist = coexist

    def drop_disabled(self, item: Json, old: Json | None) -> None:
        drop_disabled(item["spec"], old and old["spec"], enabled=self._coexist)

    def default(self, item: Json) -> None:
        spec = item.setdefault("spec", {})
        spec.setdefault("enableServiceLinks", True)
        default_pod_spec(spec)
        # Only what the pod itself says counts, so the labels are merged once, on creation.
        item["spec"] = dict(fill_spec(spec, {}))

    def complete_new(self, item: Json) -> None:
        labels = part(item["metadata"], "labels")
        item["spec"] = spec = dict(fill_spec(item["spec"], labels))
        _merge_spread_labels(spec, labels)
        if spec["terminationGracePeriodSeconds"] < 0:
            spec["terminationGracePeriodSeconds"] = 1
        item["status"] = {"phase": "Pending", "qosClass": quality_of_service(spec)}
        if spec.get("schedulingGates"):
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": item["metadata"]["creationTimestamp"],
            }
            item["status"]["conditions"] = [condition]

    def keep_on_status_update(self, item: Json, old: Json) -> None:
        owners = old["metadata"].get("ownerReferences")
        item["metadata"].pop("ownerReferences", None)
        if owners:
            item["metadata"]["ownerReferences"] = owners
        status = item.setdefault("status", {})
        if "qosClass" in part(old, "status"):
            status["qosClass"] = old["status"]["qosClass"]

    def admit(self, kind: ServedKind, store: ObjectStore, item: Json, old: Json | None) -> None:
        if old is None:
            _prioritize(store, item)
            apply_runtime_class(store, item)
            if limit_pod(store, item):
                item["status"]["qosClass"] = quality_of_service(item["spec"])
        else:
            for field in ("priority", "preemptionPolicy"):
                if field in old["spec"]:
                    item["spec"].setdefault(field, old["spec"][field])
        _tolerate_trouble(item["spec"])

    def faults(self, item: Json) -> Iterator[Fault]:
        yield from pod_faults(item)

    def creation_faults(self, item: Json) -> Iterator[Fault]:
        yield from creation_faults(item)

    def keep_on_part_update(self, item: Json, old: Json, name: str) -> None:
        if name == "resize":
            item["spec"] = resize(item, old)

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        yield from pod_update_faults(item, old)

    def grace_seconds(self, item: Json, asked: int | None) -> int:
        """Returns the grace period of a pod; 0 if no kubelet runs it."""
        spec = item["spec"]
        if not spec.get("nodeName") or part(item, "status").get("phase") in ("Succeeded", "Failed"):
            return 0
        if asked is not None:
            return asked
        own: int = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS)
        return own if own >= 0 else 1


def _prioritize(store: ObjectStore, item: Json) -> None:
    """Gives a pod the priority of its class."""
    spec, name = item["spec"], item["metadata"]["name"]
    chosen = find_priority_class(store, "pods", name, spec.get("priorityClassName", ""))
    computed = {
        "priority": chosen.get("value", 0),
        "preemptionPolicy": chosen.get("preemptionPolicy", "PreemptLowerPriority"),
    }
    for field, title in _COMPUTED_TITLES.items():
        value = computed[field]
        if spec.get(field, value) != value:
            why = (
                f"the {title} ({spec[field]}) must not be provided in pod spec; priority admission "
                f"controller computed {value} from the given PriorityClass name"
            )
            raise forbidden("pods", name, why)
    spec |= computed
    if chosen:
        spec["priorityClassName"] = chosen["metadata"]["name"]


def _tolerate_trouble(spec: Json) -> None:
    """Adds tolerations by which a pod stays on a troubled node for a while."""
    tolerations = spec.setdefault("tolerations", [])
    for key in _NODE_TROUBLE:
        tolerated = any(
            each.get("key", "") in ("", key) and each.get("effect", "") in ("", "NoExecute")
            for each in tolerations
        )
        if not tolerated:
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATED_SECONDS,
                }
            )


def quality_of_service(spec: Json) -> str:
    """Returns the quality-of-service class of a pod."""
    needs = [part(each, "resources") for each in containers(spec)]
    pod_level = part(spec, "resources")
    if pod_level.get("requests") or pod_level.get("limits"):
        needs = [pod_level]
    if not any(_amount(each, kind, name) for each in needs for kind, name in _RESOURCE_FIELDS):
        return "BestEffort"
    guaranteed = all(
        _amount(each, "limits", name)
        and _amount(each, "limits", name) == _amount(each, "requests", name)
        for each in needs
        for name in _QOS_RESOURCES
    )
    return "Guaranteed" if guaranteed else "Burstable"


_RESOURCE_FIELDS = tuple((kind, name) for kind in ("requests", "limits") for name in _QOS_RESOURCES)


def _amount(resources: Json, kind: str, name: str) -> int:
    return Quantity.parse(part(resources, kind).get(name, 0))


def _merge_spread_labels(spec: Json, labels: Json) -> None:
    """Adds the labels of matchLabelKeys to the selectors of spread constraints."""
    for constraint in spec.get("topologySpreadConstraints") or ():
        selector = constraint.get("labelSelector")
        keys = constraint.get("matchLabelKeys") or ()
        added = [
            {"key": key, "operator": "In", "values": [labels[key]]} for key in keys if key in labels
        ]
        if added and selector is not None:
            constraint["labelSelector"] = {
                **selector,
                "matchExpressions": [*(selector.get("matchExpressions") or ()), *added],
            }


def _statuses(item: Json, name: str) -> list[Json]:
    listed = at(item, f"status.{name}", [])
    return listed if isinstance(listed, list) else []


def _ready(item: Json) -> str:
    sidecars = {
        each.get("name")
        for each in at(item, "spec.initContainers", [])
        if each.get("restartPolicy") == "Always"
    }
    containers = len(at(item, "spec.containers", [])) + len(sidecars)
    ready = sum(1 for each in _statuses(item, "containerStatuses") if each.get("ready"))
    ready += sum(
        1
        for each in _statuses(item, "initContainerStatuses")
        if each.get("ready") and each.get("name") in sidecars
    )
    return f"{ready}/{containers}"


def _status(item: Json) -> str:
    phase = at(item, "status.phase", "Unknown")
    if "deletionTimestamp" in item["metadata"] and phase not in _ENDED:
        lost = at(item, "status.reason", "") == "NodeLost"
        return "Unknown" if lost else "Terminating"
    return next(_reasons(item), at(item, "status.reason", phase))


def _reasons(item: Json) -> Iterator[str]:
    """Yields the reasons in the statuses of containers, init containers first."""
    for name, prefix in (("initContainerStatuses", "Init:"), ("containerStatuses", "")):
        for each in _statuses(item, name):
            waiting = at(each, "state.waiting.reason", "")
            ended = at(each, "state.terminated", {})
            if waiting and not (prefix and waiting == "PodInitializing"):
                yield f"{prefix}{waiting}"
            elif ended and (not prefix or ended.get("exitCode", 0) != 0):
                yield prefix + _exit_text(ended)
    for each in at(item, "status.conditions", []):
        if each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated":
            yield "SchedulingGated"


def _exit_text(ended: Json) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended['exitCode']}"


def _restarts(item: Json) -> str:
    return str(sum(each.get("restartCount", 0) for each in _statuses(item, "containerStatuses")))


def _gates(item: Json) -> str:
    wanted = [each.get("conditionType") for each in at(item, "spec.readinessGates", [])]
    if not wanted:
        return NONE
    true = {
        each.get("type")
        for each in at(item, "status.conditions", [])
        if each.get("status") == "True"
    }
    return f"{len([each for each in wanted if each in true])}/{len(wanted)}"


_POD_COLUMNS = (
    NAME,
    text_column("Ready", _ready),
    text_column("Status", _status),
    text_column("Restarts", _restarts),
    age_column(),
    text_column("IP", lambda item: at(item, "status.podIP"), wide=True),
    text_column("Node", lambda item: at(item, "spec.nodeName"), wide=True),
    text_column("Nominated Node", lambda item: at(item, "status.nominatedNodeName"), wide=True),
    text_column("Readiness Gates", _gates, wide=True),
)


def pod_kinds(*, coexist: bool) -> Iterator[ServedKind]:
    """Yields pods, and the bindings that assign them."""
    yield make_known_kind(
        "Pod",
        PodRules(coexist=coexist),
        parts=_POD_PARTS,
        short_names=("po",),
        categories=("all",),
        fields=_POD_FIELDS,
        columns=_POD_COLUMNS,
    )
    yield make_known_kind("Binding", verbs=CREATE_ONLY)
