"""Resource quotas: how many objects a namespace may have, and how much its pods may ask for.

As in Kubernetes, a quota holds once a controller has written into its status what is used; the
server adds what is created, the controller takes off what is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from moorage.embedded.api.column import NAME, age_column, text_column
from moorage.embedded.api.decoding import amount_text, part
from moorage.embedded.api.kind import STATUS, ServedKind, StatusRules, make_built_in
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.api.request_options import WriteOptions
from moorage.embedded.request_refusals import Fault, forbidden, invalid_value, unsupported
from moorage.embedded.store.object_store import Json, StoredObject

from .pod_spec_rules import Nanos, amount_faults, containers, pod_total, read_amounts

QUOTAS = "resourcequotas"
PODS, CLAIMS, SERVICES = "pods", "persistentvolumeclaims", "services"

_ONE = 10**9
# Kinds that are counted by their plain names, too.
_PLAIN = frozenset(
    (CLAIMS, SERVICES, QUOTAS, "configmaps", "replicationcontrollers", "secrets"),
)
# The names without a prefix count requests.
_REQUESTS = ("cpu", "memory", "ephemeral-storage")
_OF_CLASS = ".storageclass.storage.k8s.io/"
_ENDED = ("Succeeded", "Failed")
_POD_SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
)
_SCOPES = (*_POD_SCOPES, "VolumeAttributesClass")


def counted_table(name: str) -> str:
    """Returns the table whose objects a name of a quota counts."""
    if name.startswith("count/"):
        return name.removeprefix("count/")
    if name in _PLAIN:
        return name
    if name.startswith(f"{SERVICES}."):
        return SERVICES
    return CLAIMS if name == "requests.storage" or _OF_CLASS in name else PODS


def usage_of(table: str, item: Json) -> Nanos:
    """Returns what one object uses, by the names of quotas."""
    used = {f"count/{table}": _ONE}
    if table in _PLAIN:
        used[table] = _ONE
    if table == PODS and part(item, "status").get("phase") not in _ENDED:
        used |= _pod_usage(item["spec"])
    elif table == CLAIMS:
        used |= _claim_usage(item["spec"])
    elif table == SERVICES:
        used |= _service_usage(item["spec"])
    return used


def _pod_usage(spec: Json) -> Nanos:
    requests, limits = pod_total(spec, "requests"), pod_total(spec, "limits")
    plain = {name: requests[name] for name in _REQUESTS if name in requests}
    return {
        PODS: _ONE,
        **plain,
        **{f"requests.{name}": amount for name, amount in requests.items()},
        **{f"limits.{name}": amount for name, amount in limits.items()},
    }


def _claim_usage(spec: Json) -> Nanos:
    requests = read_amounts(part(part(spec, "resources"), "requests"))
    size, of_class = requests.get("storage", 0), spec.get("storageClassName")
    used = {"requests.storage": size}
    if of_class:
        used |= {
            f"{of_class}{_OF_CLASS}{CLAIMS}": _ONE,
            f"{of_class}{_OF_CLASS}requests.storage": size,
        }
    return used


def _service_usage(spec: Json) -> Nanos:
    ports = [each for each in spec.get("ports") or () if each.get("nodePort")]
    balanced = spec.get("type") == "LoadBalancer"
    return {
        f"{SERVICES}.nodeports": len(ports) * _ONE,
        f"{SERVICES}.loadbalancers": _ONE if balanced else 0,
    }


def applies(quota: Json, table: str, item: Json) -> bool:
    """Whether an object is in the scopes of a quota; all but pods are in those of none only."""
    spec = part(quota, "spec")
    scopes = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    scopes += part(spec, "scopeSelector").get("matchExpressions") or ()
    if not scopes:
        return True
    return table == PODS and all(_is_in(each, item) for each in scopes)


def _is_in(scope: Json, pod: Json) -> bool:
    spec = pod["spec"]
    best_effort = part(pod, "status").get("qosClass") == "BestEffort"
    terminating = spec.get("activeDeadlineSeconds") is not None
    match scope.get("scopeName"):
        case "BestEffort":
            return best_effort
        case "NotBestEffort":
            return not best_effort
        case "Terminating":
            return terminating
        case "NotTerminating":
            return not terminating
        case "PriorityClass":
            return _has_class(scope, spec.get("priorityClassName", ""))
        case "CrossNamespacePodAffinity":
            return _looks_elsewhere(part(spec, "affinity"))
        case _:
            return False


def _has_class(scope: Json, name: str) -> bool:
    values = scope.get("values") or ()
    match scope.get("operator"):
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
        case _:
            return bool(name)


def _looks_elsewhere(affinity: Json) -> bool:
    """Whether a term of pod affinity names other namespaces."""
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = part(affinity, kind).values()
        for each in (each for listed in terms for each in listed):
            term = each.get("podAffinityTerm", each)
            if term.get("namespaces") or "namespaceSelector" in term:
                return True
    return False


class QuotaRules(StatusRules):
    """The rules of quotas."""

    generation = False

    def faults(self, item: Json) -> Iterator[Fault]:
        spec = part(item, "spec")
        yield from amount_faults("spec.hard", part(spec, "hard"), named=False)
        for scope in spec.get("scopes") or ():
            if scope not in _SCOPES:
                yield unsupported("spec.scopes", scope, _SCOPES)

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        scopes = part(item, "spec").get("scopes") or []
        if sorted(scopes) != sorted(part(old, "spec").get("scopes") or []):
            yield invalid_value("spec.scopes", scopes, "field is immutable")


def enforce_quotas(api: ObjectApi) -> None:
    """Has the server refuse new objects beyond the quotas of their namespaces."""

    def charge(kind: ServedKind, item: Json, options: WriteOptions) -> None:
        entries = list(api.store.table(QUOTAS).in_order(item["metadata"].get("namespace", "")))
        if entries and kind.namespaced:
            _charge(api, entries, kind, item, options)

    api.before_create = charge


def _charge(
    api: ObjectApi, entries: list[StoredObject], kind: ServedKind, item: Json, options: WriteOptions
) -> None:
    usage = usage_of(kind.table, item)
    charged = []
    for entry in entries:
        quota = entry.object
        hard = read_amounts(part(part(quota, "status"), "hard"))
        added = {name: amount for name, amount in usage.items() if name in hard and amount}
        if not applies(quota, kind.table, item):
            continue
        if kind.table == PODS:
            _expect_said(quota, item, hard)
        if added:
            charged.append((entry, _with(quota, added, hard, kind, item)))
    if not options.dry_run:
        quotas = api.kinds[QUOTAS]
        for entry, after in charged:
            api.edit(quotas, entry.namespace, entry.name, partial(_replace, after))


def _replace(after: Json, _: Json) -> Json:
    return after


def _expect_said(quota: Json, pod: Json, hard: Mapping[str, int]) -> None:
    """Refuses a pod that does not say how much it asks for of what the quota counts."""
    unsaid = []
    for name in sorted(hard):
        what, _, rest = name.partition(".")
        field, resource = (what, rest) if what in ("requests", "limits") else ("requests", name)
        if name not in _REQUESTS and (what not in ("requests", "limits") or rest not in _REQUESTS):
            continue
        silent = [
            each["name"]
            for each in containers(pod["spec"])
            if resource not in part(part(each, "resources"), field)
        ]
        if silent and resource not in part(part(pod["spec"], "resources"), field):
            unsaid.append(f"{name} for: {','.join(silent)}")
    if unsaid:
        why = f"failed quota: {quota['metadata']['name']}: must specify {'; '.join(unsaid)}"
        raise forbidden(PODS, pod["metadata"]["name"], why)


def _with(quota: Json, added: Nanos, hard: Nanos, kind: ServedKind, item: Json) -> Json:
    """Returns a quota with what a new object uses; refuses if that is too much."""
    used = read_amounts(part(quota["status"], "used"))
    total = {name: used.get(name, 0) + amount for name, amount in added.items()}
    beyond = sorted(name for name in total if total[name] > hard[name])
    if beyond:
        lists = {"requested": added, "used": used, "limited": hard}
        texts = [f"{title}: {_list(beyond, of)}" for title, of in lists.items()]
        why = f"exceeded quota: {quota['metadata']['name']}, {', '.join(texts)}"
        raise forbidden(kind.resource, item["metadata"]["name"], why)
    shown = {name: amount_text(name, amount) for name, amount in total.items()}
    quota["status"]["used"] = {**part(quota["status"], "used"), **shown}
    return quota


def _list(names: Iterable[str], amounts: Mapping[str, int]) -> str:
    return ",".join(f"{name}={amount_text(name, amounts.get(name, 0))}" for name in names)


def _shares_text(item: Json, *, limits: bool) -> str:
    status = part(item, "status")
    hard, used = part(status, "hard"), part(status, "used")
    names = sorted(name for name in hard if name.startswith("limits.") is limits)
    return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)


def quota_kinds() -> Iterator[ServedKind]:
    """Yields resource quotas."""
    yield make_built_in(
        "",
        "core.v1",
        "ResourceQuota",
        QUOTAS,
        QuotaRules(),
        parts=(STATUS,),
        short_names=("quota",),
        columns=(
            NAME,
            text_column("Request", lambda item: _shares_text(item, limits=False)),
            text_column("Limit", lambda item: _shares_text(item, limits=True)),
            age_column(),
        ),
    )
