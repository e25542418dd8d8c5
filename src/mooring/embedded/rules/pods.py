"""Pods: complete when they are created, hardly changed after that, deleted with grace."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.embedded.coexist import drop_disabled
from mooring.embedded.errors import Fault
from mooring.objects.pod_defaults import filled_spec
from mooring.objects.quantity import Quantity

from .plain import Json, Rules, part
from .pod_faults import creation_faults, pod_faults
from .pod_template import containers, default_pod_spec
from .pod_updates import pod_update_faults, resized

_DEFAULT_GRACE_SECONDS = 30
_QOS_RESOURCES = ("cpu", "memory")


class Pods(Rules):
    """The rules of pods."""

    status = True
    generation = True
    status_keeps_metadata = False
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
        item["spec"] = dict(filled_spec(spec, {}))

    def created(self, item: Json) -> None:
        labels = part(item["metadata"], "labels")
        item["spec"] = spec = dict(filled_spec(item["spec"], labels))
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

    def status_updated(self, item: Json, old: Json) -> None:
        owners = old["metadata"].get("ownerReferences")
        item["metadata"].pop("ownerReferences", None)
        if owners:
            item["metadata"]["ownerReferences"] = owners
        status = item.setdefault("status", {})
        if "qosClass" in part(old, "status"):
            status["qosClass"] = old["status"]["qosClass"]

    def faults(self, item: Json) -> Iterator[Fault]:
        yield from pod_faults(item)

    def creation_faults(self, item: Json) -> Iterator[Fault]:
        yield from creation_faults(item)

    def part_updated(self, item: Json, old: Json, name: str) -> None:
        if name == "resize":
            item["spec"] = resized(item, old)

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        yield from pod_update_faults(item, old)

    def grace_seconds(self, item: Json, asked: int | None) -> int:
        """A pod that no node has, or that has ended, has nobody to wait for."""
        spec = item["spec"]
        if not spec.get("nodeName") or part(item, "status").get("phase") in ("Succeeded", "Failed"):
            return 0
        if asked is not None:
            return asked
        own: int = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS)
        return own if own >= 0 else 1


def quality_of_service(spec: Json) -> str:
    """How the pod ranks when a node runs short: by its requests and limits."""
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
    """Labels that a spread constraint refers to by key become part of its selector."""
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
