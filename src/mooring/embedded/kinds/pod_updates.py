"""Updates of pods: which fields may change after creation."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from mooring.embedded.api.decoding import part
from mooring.embedded.request_refusals import Fault, forbidden_field, invalid_value
from mooring.embedded.store.table import Json
from mooring.objects.coexist import MIRROR

_FORBIDDEN = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def pod_update_faults(item: Json, old: Json) -> Iterator[Fault]:
    """Yields what an update changes although it may not."""
    yield from _mirror_faults(item, old)
    spec, before = item["spec"], old["spec"]
    yield from _toleration_faults(spec, before)
    yield from _deadline_faults(spec, before)
    yield from _gate_faults(spec, before)
    allowed = _with_allowed_changes(spec, before)
    if allowed != spec:
        yield forbidden_field("spec", _FORBIDDEN)


def _with_allowed_changes(spec: Json, before: Json) -> Json:
    """Returns the old spec with the changes that are allowed."""
    result = deepcopy(before)
    for name in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        _take(result, spec, name)
    was_negative = before.get("terminationGracePeriodSeconds", 0) < 0
    if was_negative and spec.get("terminationGracePeriodSeconds") == 1:
        result["terminationGracePeriodSeconds"] = 1
    for name in ("containers", "initContainers"):
        mine, theirs = result.get(name) or (), spec.get(name) or ()
        for one, other in zip(mine, theirs, strict=False):
            _take(one, other, "image")
    if before.get("schedulingGates"):
        # The nodes of a gated pod may still be narrowed.
        _take(result, spec, "nodeSelector")
        if "nodeAffinity" in part(spec, "affinity"):
            result["affinity"] = {
                **part(result, "affinity"),
                "nodeAffinity": spec["affinity"]["nodeAffinity"],
            }
    return result


def _mirror_faults(item: Json, old: Json) -> Iterator[Fault]:
    now, then = (part(each["metadata"], "annotations").get(MIRROR) for each in (item, old))
    if now != then:
        what = "add" if then is None else "remove or update"
        detail = f"may not {what} mirror pod annotation"
        yield forbidden_field(f"metadata.annotations[{MIRROR}]", detail)


def _toleration_faults(spec: Json, before: Json) -> Iterator[Fault]:
    """Yields a fault if present tolerations change in more than their time."""
    now = [_without_time(each) for each in spec.get("tolerations") or ()]
    if any(_without_time(each) not in now for each in before.get("tolerations") or ()):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden_field("spec.tolerations", detail)


def _without_time(toleration: Json) -> Json:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _deadline_faults(spec: Json, before: Json) -> Iterator[Fault]:
    now, then = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if then is not None and now is None:
        detail = "must not update from a positive integer to nil value"
        yield invalid_value("spec.activeDeadlineSeconds", now, detail)
    elif then is not None and now is not None and now > then:
        detail = "must be less than or equal to previous value"
        yield invalid_value("spec.activeDeadlineSeconds", now, detail)


def _gate_faults(spec: Json, before: Json) -> Iterator[Fault]:
    had = {each.get("name") for each in before.get("schedulingGates") or ()}
    for index, each in enumerate(spec.get("schedulingGates") or ()):
        if each.get("name") not in had:
            detail = f'only deletion is allowed, but found new scheduling gate "{each.get("name")}"'
            yield forbidden_field(f"spec.schedulingGates[{index}].name", detail)
    selector, was = part(spec, "nodeSelector"), part(before, "nodeSelector")
    if before.get("schedulingGates") and any(selector.get(key) != was[key] for key in was):
        yield invalid_value("spec.nodeSelector", selector, "only additions are allowed")


def _take(target: Json, source: Json, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def resize(item: Json, old: Json) -> Json:
    """Returns the old spec with the resources of the new one."""
    spec = deepcopy(old["spec"])
    _take(spec, item["spec"], "resources")
    for name in ("containers", "initContainers"):
        wanted = {each.get("name"): each for each in item["spec"].get(name) or ()}
        for each in spec.get(name) or ():
            if each["name"] in wanted:
                _take(each, wanted[each["name"]], "resources")
                _take(each, wanted[each["name"]], "resizePolicy")
    return spec
