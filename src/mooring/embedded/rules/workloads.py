"""Controllers of pods: deployments, sets, jobs, and the budgets that guard their pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from mooring.embedded.coexist import drop_disabled
from mooring.embedded.errors import Fault, forbidden_field, invalid_value, required, unsupported

from .plain import Json, Rules, WithStatus, fill, part
from .pod_template import default_pod_spec
from .workload_faults import (
    budget_faults,
    count_faults,
    selecting_faults,
    template_faults,
    unchanged_faults,
)

_PROGRESS_SECONDS = 600
_HISTORY = 10
_STRATEGIES = ("Recreate", "RollingUpdate")


class Templated(WithStatus):
    """A kind whose spec has a template of pods. Its controller notes things in annotations, too."""

    status_keeps_metadata = False

    def __init__(self, *, coexist: bool = True) -> None:
        self._coexist = coexist

    def drop_disabled(self, item: Json, old: Json | None) -> None:
        template = part(part(item, "spec"), "template")
        before = part(part(old or {}, "spec"), "template")
        drop_disabled(part(template, "spec"), part(before, "spec"), enabled=self._coexist)

    def default(self, item: Json) -> None:
        spec = item.setdefault("spec", {})
        template = spec.get("template")
        if isinstance(template, dict):
            default_pod_spec(template.setdefault("spec", {}))
            template.setdefault("metadata", {})
        self.default_spec(item, spec)

    def default_spec(self, item: Json, spec: Json) -> None:
        """Fills in the spec beside its template."""

    def faults(self, item: Json) -> Iterator[Fault]:
        spec = item["spec"]
        yield from count_faults(spec, "replicas", "minReadySeconds", "revisionHistoryLimit")
        yield from selecting_faults(item["kind"].lower(), spec)
        yield from template_faults(spec, ("Always",))

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        yield from unchanged_faults(item, old, "selector")


class PodTemplates(Rules):
    """A template by itself, which nobody makes pods of."""

    generation = True
    shows_deleted = True

    def __init__(self, *, coexist: bool = True) -> None:
        self._coexist = coexist

    def drop_disabled(self, item: Json, old: Json | None) -> None:
        template, before = part(item, "template"), part(old or {}, "template")
        drop_disabled(part(template, "spec"), part(before, "spec"), enabled=self._coexist)

    def default(self, item: Json) -> None:
        template = item.setdefault("template", {})
        template.setdefault("metadata", {})
        default_pod_spec(template.setdefault("spec", {}))


class Deployments(Templated):
    def status_updated(self, item: Json, old: Json) -> None:
        labels = old["metadata"].get("labels")
        item["metadata"].pop("labels", None)
        if labels is not None:
            item["metadata"]["labels"] = labels

    def faults(self, item: Json) -> Iterator[Fault]:
        yield from super().faults(item)
        strategy = item["spec"]["strategy"]
        if strategy["type"] not in _STRATEGIES:
            yield unsupported("spec.strategy", strategy, _STRATEGIES)
        elif strategy["type"] == "Recreate" and strategy.get("rollingUpdate"):
            detail = "may not be specified when strategy `type` is 'Recreate'"
            yield forbidden_field("spec.strategy.rollingUpdate", detail)

    def default_spec(self, item: Json, spec: Json) -> None:
        fill(
            spec,
            progressDeadlineSeconds=_PROGRESS_SECONDS,
            replicas=1,
            revisionHistoryLimit=_HISTORY,
            strategy={},
        )
        strategy = spec["strategy"]
        fill(strategy, type="RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            fill(strategy, rollingUpdate={})
            fill(strategy["rollingUpdate"], maxSurge="25%", maxUnavailable="25%")


class ReplicaSets(Templated):
    first_status: ClassVar = {"replicas": 0}

    def default_spec(self, item: Json, spec: Json) -> None:
        fill(spec, replicas=1)


class ReplicationControllers(Templated):
    first_status: ClassVar = {"replicas": 0}

    def default_spec(self, item: Json, spec: Json) -> None:
        labels = part(part(part(spec, "template"), "metadata"), "labels")
        if labels:
            fill(spec, selector=dict(labels))
            fill(item["metadata"], labels=dict(labels))
        fill(spec, replicas=1)

    def faults(self, item: Json) -> Iterator[Fault]:
        spec = item["spec"]
        yield from count_faults(spec, "replicas", "minReadySeconds")
        chosen, labels = part(spec, "selector"), part(spec, "template")
        if not chosen:
            yield required("spec.selector")
        given = part(part(labels, "metadata"), "labels")
        if any(given.get(key) != value for key, value in chosen.items()):
            detail = "`selector` does not match template `labels`"
            yield invalid_value("spec.template.metadata.labels", given, detail)
        yield from template_faults(spec, ("Always",))

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        yield from ()


class StatefulSets(Templated):
    first_status: ClassVar = {"replicas": 0, "availableReplicas": 0}

    def default_spec(self, item: Json, spec: Json) -> None:
        fill(
            spec,
            podManagementPolicy="OrderedReady",
            replicas=1,
            revisionHistoryLimit=_HISTORY,
            updateStrategy={},
            persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain", "whenScaled": "Retain"},
        )
        strategy = spec["updateStrategy"]
        fill(strategy, type="RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            fill(strategy, rollingUpdate={})
            fill(strategy["rollingUpdate"], partition=0)


class DaemonSets(Templated):
    first_status: ClassVar = {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    }

    def default_spec(self, item: Json, spec: Json) -> None:
        fill(spec, revisionHistoryLimit=_HISTORY, updateStrategy={})
        strategy = spec["updateStrategy"]
        fill(strategy, type="RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            fill(strategy, rollingUpdate={})
            fill(strategy["rollingUpdate"], maxSurge=0, maxUnavailable=1)


class Jobs(Templated):
    """Jobs choose their pods by labels that the server makes up."""

    def default_spec(self, item: Json, spec: Json) -> None:
        if spec.get("parallelism") is None and spec.get("completions") is None:
            spec["completions"] = 1
        # With a limit for each index, or rules for failures, other values are meant.
        per_index, ruled = spec.get("backoffLimitPerIndex"), spec.get("podFailurePolicy")
        fill(
            spec,
            backoffLimit=6 if per_index is None else 2**31 - 1,
            completionMode="NonIndexed",
            manualSelector=False,
            parallelism=1,
            podReplacementPolicy="TerminatingOrFailed" if ruled is None else "Failed",
            suspend=False,
        )

    def created(self, item: Json) -> None:
        super().created(item)
        metadata, spec = item["metadata"], item["spec"]
        template = spec.get("template")
        if spec["manualSelector"] or not isinstance(template, dict):
            return
        uid = metadata["uid"]
        own = {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": metadata["name"],
            "controller-uid": uid,
            "job-name": metadata["name"],
        }
        described = template.setdefault("metadata", {})
        described["labels"] = {**(described.get("labels") or {}), **own}
        fill(metadata, labels=dict(described["labels"]))
        chosen = "batch.kubernetes.io/controller-uid"
        spec["selector"] = {"matchLabels": {chosen: own[chosen]}}

    def faults(self, item: Json) -> Iterator[Fault]:
        spec = item["spec"]
        yield from count_faults(spec, "parallelism", "completions", "backoffLimit")
        if spec.get("completionMode") not in ("Indexed", "NonIndexed"):
            modes = ("Indexed", "NonIndexed")
            yield unsupported("spec.completionMode", spec.get("completionMode"), modes)
        yield from selecting_faults("job", spec)
        yield from template_faults(spec, None)
        policy = part(part(spec, "template"), "spec").get("restartPolicy")
        if policy not in ("OnFailure", "Never"):
            detail = 'valid values: "OnFailure", "Never"'
            yield required("spec.template.spec.restartPolicy", detail)

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        yield from unchanged_faults(item, old, "completionMode", "selector")
        if not part(old, "spec").get("suspend"):
            yield from unchanged_faults(item, old, "template")


class Budgets(WithStatus):
    """Disruption budgets; their status is a controller's."""

    status_keeps_metadata = False
    first_status: ClassVar = {
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "disruptionsAllowed": 0,
        "expectedPods": 0,
    }

    def faults(self, item: Json) -> Iterator[Fault]:
        yield from budget_faults(part(item, "spec"))
