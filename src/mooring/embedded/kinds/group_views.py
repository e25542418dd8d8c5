"""Pod groups and workloads as Kubernetes 1.37 shows them; they are stored as 1.36 has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mooring.embedded.api.kind import KindView
from mooring.embedded.store.table import Json
from mooring.objects.pod_group import V1ALPHA2, V1BETA1

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
