"""Controllers of pods: deployments and sets, with the templates that they make pods from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from moorage.embedded.api.column import (
    NAME,
    NONE,
    Column,
    age_column,
    at,
    text_column,
)
from moorage.embedded.api.decoding import fill, part
from moorage.embedded.api.kind import (
    SCALE,
    STATUS,
    KindRules,
    ServedKind,
    StatusRules,
    make_built_in,
    make_known_kind,
)
from moorage.embedded.api.names import (
    label_faults,
    label_selector_faults,
    read_selector,
    selector_text,
)
from moorage.embedded.request_refusals import (
    Fault,
    forbidden_field,
    invalid_value,
    required,
    unsupported,
)
from moorage.embedded.store.object_store import Json

from .pod_faults import drop_disabled
from .pod_spec_rules import default_pod_spec, pod_spec_faults

_PROGRESS_SECONDS = 600
_HISTORY = 10
_STRATEGIES = ("Recreate", "RollingUpdate")
_NEGATIVE = "must be greater than or equal to 0"


def count_faults(spec: Json, *names: str) -> Iterator[Fault]:
    """Yields counts of a spec that are negative."""
    for name in names:
        count = spec.get(name)
        if count is not None and count < 0:
            yield invalid_value(f"spec.{name}", count, _NEGATIVE)


def selecting_faults(kind: str, spec: Json) -> Iterator[Fault]:
    """Yields a fault if the selector does not match the template."""
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
    elif not (selector.get("matchLabels") or selector.get("matchExpressions")):
        detail = f"empty selector is invalid for {kind}"
        yield invalid_value("spec.selector", selector, detail)
    else:
        found = list(label_selector_faults("spec.selector", selector))
        yield from found
        labels = part(part(part(spec, "template"), "metadata"), "labels")
        if not found and not _selects(selector, labels):
            detail = "`selector` does not match template `labels`"
            yield invalid_value("spec.template.metadata.labels", labels, detail)


def _selects(selector: Json, labels: Json) -> bool:
    compiled = read_selector(selector)
    return compiled is not None and compiled.matches(labels)


def template_faults(spec: Json, restart_policies: tuple[str, ...] | None) -> Iterator[Fault]:
    """Yields what is wrong with a template of pods."""
    template = part(spec, "template")
    at = "spec.template"
    labels = part(part(template, "metadata"), "labels")
    yield from label_faults(f"{at}.metadata.labels", labels)
    pod = part(template, "spec")
    claimed = [
        part(each, "metadata").get("name", "") for each in spec.get("volumeClaimTemplates") or ()
    ]
    yield from pod_spec_faults(f"{at}.spec", pod, claimed)
    policy = pod.get("restartPolicy", "Always")
    if restart_policies is not None and policy not in restart_policies:
        yield unsupported(f"{at}.spec.restartPolicy", policy, restart_policies)


def unchanged_faults(item: Json, old: Json, *names: str) -> Iterator[Fault]:
    """Yields immutable fields of a spec that changed."""
    spec, before = part(item, "spec"), part(old, "spec")
    for name in names:
        if spec.get(name) != before.get(name):
            yield invalid_value(f"spec.{name}", spec.get(name), "field is immutable")


class TemplateRules(StatusRules):
    """The rules of kinds with a template of pods."""

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


class PodTemplateRules(KindRules):
    """The rules of templates by themselves."""

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


class DeploymentRules(TemplateRules):
    def keep_on_status_update(self, item: Json, old: Json) -> None:
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


class ReplicaSetRules(TemplateRules):
    first_status: ClassVar = {"replicas": 0}

    def default_spec(self, item: Json, spec: Json) -> None:
        fill(spec, replicas=1)


class ReplicationControllerRules(TemplateRules):
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


class StatefulSetRules(TemplateRules):
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


class DaemonSetRules(TemplateRules):
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


def number_column(name: str, path: str) -> Column:
    return text_column(name, lambda item: at(item, path, 0), type="integer")


def template_columns() -> tuple[Column, ...]:
    """Returns the columns with the containers of a template."""
    return (
        text_column("Containers", lambda item: _join_fields(item, "name"), wide=True),
        text_column("Images", lambda item: _join_fields(item, "image"), wide=True),
    )


def _join_fields(item: Json, field: str) -> str:
    return ",".join(str(each.get(field, "")) for each in _containers(item))


def _containers(item: Json) -> list[Json]:
    return at(item, "spec.template.spec.containers", [])


_SELECTOR = text_column(
    "Selector", lambda item: selector_text(at(item, "spec.selector", None)) or NONE, wide=True
)
TEMPLATE_COLUMNS = (*template_columns(), _SELECTOR)


def _of(ready: str, wanted: str, default: int) -> Any:
    return lambda item: f"{at(item, ready, 0)}/{at(item, wanted, default)}"


_DEPLOYMENT_COLUMNS = (
    NAME,
    text_column("Ready", _of("status.readyReplicas", "spec.replicas", 1)),
    text_column("Up-to-date", lambda item: str(at(item, "status.updatedReplicas", 0))),
    text_column("Available", lambda item: str(at(item, "status.availableReplicas", 0))),
    age_column(),
    *TEMPLATE_COLUMNS,
)
_REPLICA_SET_COLUMNS = (
    NAME,
    number_column("Desired", "spec.replicas"),
    number_column("Current", "status.replicas"),
    number_column("Ready", "status.readyReplicas"),
    age_column(),
    *TEMPLATE_COLUMNS,
)
_STATEFUL_SET_COLUMNS = (
    NAME,
    text_column("Ready", _of("status.readyReplicas", "spec.replicas", 1)),
    age_column(),
    *template_columns(),
)
_DAEMON_SET_COLUMNS = (
    NAME,
    number_column("Desired", "status.desiredNumberScheduled"),
    number_column("Current", "status.currentNumberScheduled"),
    number_column("Ready", "status.numberReady"),
    number_column("Up-to-date", "status.updatedNumberScheduled"),
    number_column("Available", "status.numberAvailable"),
    text_column(
        "Node Selector",
        lambda item: selector_text(at(item, "spec.template.spec.nodeSelector", None)) or NONE,
    ),
    age_column(),
    *TEMPLATE_COLUMNS,
)


def workload_kinds(*, coexist: bool) -> Iterator[ServedKind]:
    """Yields deployments, sets of pods, and what belongs to them."""
    scalable = (STATUS, SCALE)
    yield make_known_kind(
        "Deployment",
        DeploymentRules(coexist=coexist),
        parts=scalable,
        short_names=("deploy",),
        columns=_DEPLOYMENT_COLUMNS,
        categories=("all",),
    )
    yield make_known_kind(
        "ReplicaSet",
        ReplicaSetRules(coexist=coexist),
        parts=scalable,
        short_names=("rs",),
        fields=("status.replicas",),
        columns=_REPLICA_SET_COLUMNS,
        categories=("all",),
    )
    yield make_known_kind(
        "StatefulSet",
        StatefulSetRules(coexist=coexist),
        parts=scalable,
        short_names=("sts",),
        columns=_STATEFUL_SET_COLUMNS,
        categories=("all",),
    )
    yield make_known_kind(
        "DaemonSet",
        DaemonSetRules(coexist=coexist),
        parts=(STATUS,),
        short_names=("ds",),
        columns=_DAEMON_SET_COLUMNS,
        categories=("all",),
    )
    yield make_built_in("apps", "apps.v1", "ControllerRevision", "controllerrevisions")
    yield make_built_in(
        "", "core.v1", "PodTemplate", "podtemplates", PodTemplateRules(coexist=coexist)
    )
    yield make_known_kind(
        "ReplicationController",
        ReplicationControllerRules(coexist=coexist),
        parts=scalable,
        short_names=("rc",),
        categories=("all",),
        fields=("status.replicas",),
        columns=_REPLICA_SET_COLUMNS,
    )
