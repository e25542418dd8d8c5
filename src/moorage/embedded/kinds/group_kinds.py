"""Groups of pods that are placed together, and the workloads that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from moorage.embedded.api.column import NAME, age_column, field_column
from moorage.embedded.api.decoding import part
from moorage.embedded.api.kind import (
    STATUS,
    KindRules,
    KindView,
    ServedKind,
    StatusRules,
    make_built_in,
)
from moorage.embedded.request_refusals import Fault, forbidden, invalid_value, required
from moorage.embedded.store.object_store import Json, ObjectStore
from moorage.objects.pod_group import V1ALPHA2, V1BETA1

from .cluster_kinds import find_priority_class


class PodGroupRules(StatusRules):
    """The rules of pod groups: of how they are placed only the least number can change."""

    status_keeps_metadata = True

    def faults(self, item: Json) -> Iterator[Fault]:
        yield from policy_faults("spec", part(item, "spec"))

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        policy, before = (part(part(each, "spec"), "schedulingPolicy") for each in (item, old))
        if policy.keys() != before.keys():
            yield invalid_value("spec.schedulingPolicy", policy, "field is immutable")
        constraints = part(item, "spec").get("schedulingConstraints")
        if constraints != part(old, "spec").get("schedulingConstraints"):
            yield invalid_value("spec.schedulingConstraints", constraints, "field is immutable")

    def admit(self, kind: ServedKind, store: ObjectStore, item: Json, old: Json | None) -> None:
        """Gives a new group the priority of its class, as pods get theirs."""
        if old is not None:
            return
        spec, name = part(item, "spec"), item["metadata"]["name"]
        chosen = find_priority_class(store, kind.plural, name, spec.get("priorityClassName", ""))
        value = chosen.get("value", 0)
        if spec.get("priority", value) != value:
            why = (
                f"the integer value of priority ({spec['priority']}) must not be provided in spec; "
                f"priority admission controller computed {value} from the given PriorityClass name"
            )
            raise forbidden(kind.plural, name, why)
        spec["priority"] = value
        if chosen:
            spec["priorityClassName"] = chosen["metadata"]["name"]


class WorkloadRules(KindRules):
    def faults(self, item: Json) -> Iterator[Fault]:
        templates = part(item, "spec").get("podGroupTemplates") or []
        if not templates:
            yield required("spec.podGroupTemplates")
        for index, each in enumerate(templates):
            yield from policy_faults(f"spec.podGroupTemplates[{index}]", each)


def policy_faults(at: str, spec: Json) -> Iterator[Fault]:
    """What is wrong with how pods are to be placed together."""
    policy = part(spec, "schedulingPolicy")
    if not policy.keys() & {"basic", "gang"}:
        yield required(f"{at}.schedulingPolicy", "must specify one of: `basic`, `gang`")
    gang = policy.get("gang")
    if gang is not None and gang.get("minCount", 0) < 1:
        detail = "must be greater than or equal to 1"
        yield invalid_value(f"{at}.schedulingPolicy.gang.minCount", gang.get("minCount", 0), detail)


def group_kinds() -> Iterator[ServedKind]:
    """Yields pod groups and workloads, as Kubernetes 1.36 has them and as 1.37 does."""
    least = field_column("MinCount", "spec.schedulingPolicy.gang.minCount", "")
    columns = (NAME, least, age_column())
    group, workload = "podgroups.scheduling.k8s.io", "workloads.scheduling.k8s.io"
    alpha = partial(make_built_in, "scheduling.k8s.io", "scheduling.v1alpha2")
    yield alpha("PodGroup", "podgroups", PodGroupRules(), parts=(STATUS,), columns=columns)
    yield alpha("Workload", "workloads", WorkloadRules())
    beta = partial(make_built_in, "scheduling.k8s.io", "scheduling.v1beta1")
    yield beta(
        "PodGroup",
        "podgroups",
        PodGroupRules(),
        parts=(STATUS,),
        columns=columns,
        stored_as=group,
        view=GROUP_VIEW,
    )
    yield beta("Workload", "workloads", WorkloadRules(), stored_as=workload, view=WORKLOAD_VIEW)


_MODES: Mapping[str, Json] = {"Pod": {"single": {}}, "PodGroup": {"all": {}}}

# What is called otherwise, from 1.36 to 1.37.
_CONDITIONS = {"PodGroupScheduled": "PodGroupInitiallyScheduled"}
_OLD_CONDITIONS = {new: old for old, new in _CONDITIONS.items()}


def _show_group(item: Json) -> Json:
    shown = {**item, "apiVersion": V1BETA1}
    if item.get("spec") is not None:
        spec = _show_template(item["spec"])
        link = spec.pop("podGroupTemplateRef", None)
        workload = (link or {}).get("workload")
        if workload is not None:
            name = workload.get("podGroupTemplateName", "")
            named = {"workloadName": workload.get("workloadName", ""), "templateName": name}
            spec["workloadRef"] = named
        shown["spec"] = spec
    return _rename_conditions(shown, _CONDITIONS)


def _read_group(item: Json) -> Json:
    stored = {**item, "apiVersion": V1ALPHA2}
    if item.get("spec") is not None:
        spec = {"disruptionMode": "Pod", **_read_template(item["spec"])}
        link = spec.pop("workloadRef", None)
        if link is not None:
            name = link.get("templateName", "")
            named = {"workloadName": link.get("workloadName", ""), "podGroupTemplateName": name}
            spec["podGroupTemplateRef"] = {"workload": named}
        stored["spec"] = spec
    return _rename_conditions(stored, _OLD_CONDITIONS)


def _show_workload(item: Json) -> Json:
    return _change_templates({**item, "apiVersion": V1BETA1}, _show_template)


def _read_workload(item: Json) -> Json:
    return _change_templates({**item, "apiVersion": V1ALPHA2}, _read_template)


def _show_template(spec: Json) -> Json:
    """How a group is placed, or the template of one: who is evicted with whom is another field."""
    shown = dict(spec)
    mode = shown.pop("disruptionMode", None)
    if mode is not None:
        shown["disruptionMode"] = dict(_MODES.get(mode, {}))
    return shown


def _read_template(spec: Json) -> Json:
    stored = dict(spec)
    mode = stored.pop("disruptionMode", None)
    if mode is not None:
        stored["disruptionMode"] = "PodGroup" if "all" in mode else "Pod"
    return stored


def _change_templates(item: Json, change: Callable[[Json], Json]) -> Json:
    templates = (item.get("spec") or {}).get("podGroupTemplates")
    if templates:
        spec = {**item["spec"], "podGroupTemplates": [change(each) for each in templates]}
        return {**item, "spec": spec}
    return item


def _rename_conditions(item: Json, names: Mapping[str, str]) -> Json:
    conditions = (item.get("status") or {}).get("conditions")
    if not conditions:
        return item
    # What has no type is refused by the rules of the kind, which come next.
    renamed = [
        {**each, "type": names.get(each["type"], each["type"])} if each.get("type") else each
        for each in conditions
    ]
    return {**item, "status": {**item["status"], "conditions": renamed}}


GROUP_VIEW = KindView(_read_group, _show_group, {})
WORKLOAD_VIEW = KindView(_read_workload, _show_workload, {})
