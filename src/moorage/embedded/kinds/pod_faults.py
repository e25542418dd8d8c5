"""What is wrong with the fields of a pod that scheduling reads, and with updates of pods."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from moorage.embedded.api.decoding import part
from moorage.embedded.api.names import (
    label_key_faults,
    label_name_faults,
    label_selector_faults,
    label_value_faults,
    node_selector_faults,
    node_term_faults,
    subdomain_faults,
)
from moorage.embedded.request_refusals import (
    Fault,
    absent,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    unsupported,
)
from moorage.embedded.store.object_store import Json
from moorage.objects.daemons import MIRROR

FIELD = "coexistPolicy"
POLICIES = ("Any", "DaemonsetAndStaticPods")


def drop_disabled(spec: Json, old: Json | None, *, enabled: bool) -> None:
    """Drops the field while its gate is off, unless the stored object has it already."""
    if not enabled and not (old or {}).get(FIELD):
        spec.pop(FIELD, None)


def coexist_faults(path: str, spec: Json) -> Iterator[Fault]:
    policy = spec.get(FIELD)
    if policy is not None and policy not in POLICIES:
        yield unsupported(f"{path}.{FIELD}", policy, POLICIES)


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def affinity_faults(at: str, affinity: Json) -> Iterator[Fault]:
    if "nodeAffinity" in affinity:
        yield from _node_faults(f"{at}.nodeAffinity", affinity["nodeAffinity"])
    for name in ("podAffinity", "podAntiAffinity"):
        if name in affinity:
            yield from _pod_faults(f"{at}.{name}", affinity[name])


def _node_faults(at: str, affinity: Json) -> Iterator[Fault]:
    if _REQUIRED in affinity:
        yield from node_selector_faults(f"{at}.{_REQUIRED}", affinity[_REQUIRED])
    for index, each in enumerate(affinity.get(_PREFERRED) or ()):
        where = f"{at}.{_PREFERRED}[{index}]"
        yield from _weight_faults(where, each)
        yield from node_term_faults(f"{where}.preference", part(each, "preference"))


def _pod_faults(at: str, affinity: Json) -> Iterator[Fault]:
    for index, each in enumerate(affinity.get(_REQUIRED) or ()):
        yield from _term_faults(f"{at}.{_REQUIRED}[{index}]", each)
    for index, each in enumerate(affinity.get(_PREFERRED) or ()):
        where = f"{at}.{_PREFERRED}[{index}]"
        yield from _weight_faults(where, each)
        yield from _term_faults(f"{where}.podAffinityTerm", part(each, "podAffinityTerm"))


def _weight_faults(at: str, weighted: Json) -> Iterator[Fault]:
    weight = weighted.get("weight", 0)
    if not 1 <= weight <= 100:
        yield invalid_value(f"{at}.weight", weight, "must be in the range 1-100")


def _term_faults(at: str, term: Json) -> Iterator[Fault]:
    yield from label_selector_faults(f"{at}.labelSelector", term.get("labelSelector"))
    yield from label_selector_faults(f"{at}.namespaceSelector", term.get("namespaceSelector"))
    for name in term.get("namespaces") or ():
        yield from label_name_faults(f"{at}.namespaces", name)
    key = term.get("topologyKey", "")
    if not key:
        yield required(f"{at}.topologyKey", "can not be empty")
    else:
        yield from label_key_faults(f"{at}.topologyKey", key)


_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS = ("Equal", "Exists", "Gt", "Lt")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")


def toleration_faults(at: str, tolerations: list[Json]) -> Iterator[Fault]:
    for index, each in enumerate(tolerations):
        yield from _toleration_faults(f"{at}[{index}]", each)


def _toleration_faults(at: str, toleration: Json) -> Iterator[Fault]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    effect, value = toleration.get("effect", ""), toleration.get("value", "")
    if key:
        yield from label_key_faults(f"{at}.key", key)
    elif operator != "Exists":
        detail = (
            "operator must be Exists when `key` is empty, which means "
            '"match all values and all keys"'
        )
        yield invalid_value(f"{at}.operator", operator, detail)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid_value(f"{at}.effect", effect, detail)
    if operator in ("", "Equal"):
        yield from label_value_faults(f"{at}.value", value)
    elif operator == "Exists" and value:
        yield invalid_value(
            f"{at}.operator", value, "value must be empty when `operator` is 'Exists'"
        )
    elif operator not in _TOLERATION_OPERATORS:
        yield unsupported(f"{at}.operator", operator, _TOLERATION_OPERATORS)
    if effect and effect not in _EFFECTS:
        yield unsupported(f"{at}.effect", effect, _EFFECTS)


def taint_faults(at: str, taints: list[Json]) -> Iterator[Fault]:
    seen = set()
    for index, each in enumerate(taints):
        where, key, effect = f"{at}[{index}]", each.get("key", ""), each.get("effect", "")
        yield from label_key_faults(f"{where}.key", key)
        yield from label_value_faults(f"{where}.value", each.get("value", ""))
        if not effect:
            yield required(f"{where}.effect")
        elif effect not in _EFFECTS:
            yield unsupported(f"{where}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            detail = "taints must be unique by key and effect pair"
            yield Fault(where, "FieldValueDuplicate", f"Duplicate value: {each}: {detail}")
        seen.add((key, effect))


def spread_faults(at: str, constraints: list[Json]) -> Iterator[Fault]:
    seen = set()
    for index, each in enumerate(constraints):
        where = f"{at}[{index}]"
        yield from _constraint_faults(where, each)
        pair = (each.get("topologyKey"), each.get("whenUnsatisfiable"))
        if pair in seen:
            text = f"{{{pair[0]}, {pair[1]}}}"
            yield duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", text)
        seen.add(pair)


def _constraint_faults(at: str, constraint: Json) -> Iterator[Fault]:
    skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
    otherwise, least = constraint.get("whenUnsatisfiable", ""), constraint.get("minDomains")
    if skew <= 0:
        yield invalid_value(f"{at}.maxSkew", skew, "must be greater than zero")
    if not key:
        yield required(f"{at}.topologyKey", "can not be empty")
    else:
        yield from label_key_faults(f"{at}.topologyKey", key)
    if otherwise not in _UNSATISFIABLE:
        yield unsupported(f"{at}.whenUnsatisfiable", otherwise, _UNSATISFIABLE)
    if least is not None and least <= 0:
        yield invalid_value(f"{at}.minDomains", least, "must be greater than 0")
    if least is not None and otherwise != "DoNotSchedule":
        detail = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
        yield invalid_value(f"{at}.minDomains", least, detail)
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if constraint.get(name) is not None and constraint[name] not in _POLICIES:
            yield unsupported(f"{at}.{name}", constraint[name], _POLICIES)
    yield from label_selector_faults(f"{at}.labelSelector", constraint.get("labelSelector"))


def gate_faults(at: str, gates: list[Json]) -> Iterator[Fault]:
    seen = set()
    for index, each in enumerate(gates):
        name = each.get("name", "")
        yield from label_key_faults(f"{at}[{index}].name", name)
        if name in seen:
            yield duplicate(f"{at}[{index}]", name)
        seen.add(name)


_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")
_BOTH = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
_NEITHER = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
_CONTAINERS = ("initContainers", "containers")


def pod_claim_faults(at: str, spec: Json) -> Iterator[Fault]:
    """Yields what is wrong with the references to claims in the spec of a pod."""
    names: set[str] = set()
    for index, reference in enumerate(spec.get("resourceClaims") or ()):
        where, name = f"{at}.resourceClaims[{index}]", reference.get("name", "")
        yield from label_name_faults(f"{where}.name", name)
        if name in names:
            yield duplicate(f"{where}.name", name)
        names.add(name)
        yield from _source_faults(where, reference)
    for field in _CONTAINERS:
        for place, container in enumerate(spec.get(field) or ()):
            claims = part(container, "resources").get("claims") or []
            yield from _use_faults(f"{at}.{field}[{place}].resources.claims", claims, names)


def _source_faults(at: str, reference: Json) -> Iterator[Fault]:
    given = [each for each in _SOURCES if reference.get(each) is not None]
    if len(given) != 1:
        yield invalid_value(at, reference, _BOTH if given else _NEITHER)
    for each in given:
        yield from subdomain_faults(f"{at}.{each}", reference[each])


def _use_faults(at: str, uses: list[Json], names: set[str]) -> Iterator[Fault]:
    seen = set()
    for index, use in enumerate(uses):
        name, request = use.get("name", ""), use.get("request", "")
        if not name:
            yield required(f"{at}[{index}].name")
        elif name not in names:
            listed = ": " + ", ".join(sorted(names)) if names else " which is empty"
            missing = absent(f"{at}[{index}]", name)
            detail = (
                f"{missing.detail}: must be one of the names in pod.spec.resourceClaims{listed}"
            )
            yield Fault(missing.field, missing.reason, detail)
        if (name, request) in seen:
            yield duplicate(f"{at}[{index}]", f"{name}/{request}" if request else name)
        seen.add((name, request))


_CHANGES_ALLOWED = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def pod_update_faults(item: Json, old: Json) -> Iterator[Fault]:
    """Yields what an update changes although it may not."""
    yield from _mirror_change_faults(item, old)
    spec, before = item["spec"], old["spec"]
    yield from _toleration_change_faults(spec, before)
    yield from _deadline_change_faults(spec, before)
    yield from _gate_change_faults(spec, before)
    allowed = _with_allowed_changes(spec, before)
    if allowed != spec:
        yield forbidden_field("spec", _CHANGES_ALLOWED)


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


def _mirror_change_faults(item: Json, old: Json) -> Iterator[Fault]:
    now, then = (part(each["metadata"], "annotations").get(MIRROR) for each in (item, old))
    if now != then:
        what = "add" if then is None else "remove or update"
        detail = f"may not {what} mirror pod annotation"
        yield forbidden_field(f"metadata.annotations[{MIRROR}]", detail)


def _toleration_change_faults(spec: Json, before: Json) -> Iterator[Fault]:
    """Yields a fault if present tolerations change in more than their time."""
    now = [_without_time(each) for each in spec.get("tolerations") or ()]
    if any(_without_time(each) not in now for each in before.get("tolerations") or ()):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden_field("spec.tolerations", detail)


def _without_time(toleration: Json) -> Json:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _deadline_change_faults(spec: Json, before: Json) -> Iterator[Fault]:
    now, then = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if then is not None and now is None:
        detail = "must not update from a positive integer to nil value"
        yield invalid_value("spec.activeDeadlineSeconds", now, detail)
    elif then is not None and now is not None and now > then:
        detail = "must be less than or equal to previous value"
        yield invalid_value("spec.activeDeadlineSeconds", now, detail)


def _gate_change_faults(spec: Json, before: Json) -> Iterator[Fault]:
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
