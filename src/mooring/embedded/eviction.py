"""Eviction: a pod is deleted if its disruption budget allows that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from mooring.objects.selector import LabelSelector, SelectorError, compile_selector

from .api import Api
from .conditions import set_condition
from .deleting import delete
from .errors import Refused, bad_request, forbidden, too_many_requests
from .expecting import expect_before_delete
from .options import Delete, Write
from .rules.plain import part
from .tables import Entry
from .wire import Json, checked, now_text

_ENDED = ("Succeeded", "Failed")
_BUDGETS = "poddisruptionbudgets.policy"
_REFUSAL = "Cannot evict pod as it would violate the pod's disruption budget."

# What a client is told to wait while a budget was changed and nobody has looked at it yet.
_RETRY_SECONDS = 10

# More evictions than these, none of them confirmed, mean that nobody looks after the budget.
_MOST_DISRUPTED = 2000


def evict(api: Api, namespace: str, name: str, raw: Json, options: Write) -> None:
    """Deletes a pod if its disruption budget allows that now."""
    eviction = checked("policy.v1.Eviction", raw, 'Eviction in version "v1"')
    if part(eviction, "metadata").get("name", "") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    how = Delete.read(part(eviction, "deleteOptions"), dry_run=options.dry_run)
    kind = api.kinds["pods"]
    entry = api.get(kind, namespace, name)
    pod = entry.object
    if not _is_unguarded(pod):
        _spend(api, entry, pod, how)
    expect_before_delete(kind, entry, pod, how.uid, how.version)
    if not how.dry_run:
        api.edit(kind, namespace, name, lambda stored: _disrupted(api, stored))
    delete(api, kind, namespace, name, replace(how, uid="", version=""))


def _is_unguarded(pod: Json) -> bool:
    phase = part(pod, "status").get("phase")
    return phase in (*_ENDED, "Pending") or "deletionTimestamp" in pod["metadata"]


def _disrupted(api: Api, pod: Json) -> Json:
    set_condition(
        pod.setdefault("status", {}),
        now_text(api.clock()),
        type="DisruptionTarget",
        status="True",
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
    )
    return pod


def _spend(api: Api, entry: Entry, pod: Json, how: Delete) -> None:
    """Takes one disruption off the pod's budget, if it has one and the pod counts in it."""
    budgets = list(_budgets_of(api, entry))
    if len(budgets) > 1:
        message = (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support."
        )
        raise Refused(500, "", message)
    for budget in budgets:
        if _is_ready(pod) or not _spares_unready(budget):
            _check(budget)
            if not how.dry_run:
                _note(api, budget, entry.name)


def _budgets_of(api: Api, entry: Entry) -> Iterator[Json]:
    for each in api.store.table(_BUDGETS).in_order(entry.namespace):
        budget = each.object
        try:
            written = msgspec.convert(part(budget, "spec").get("selector"), LabelSelector | None)
            selector = compile_selector(written)
        except (msgspec.ValidationError, SelectorError):
            continue
        if selector is not None and selector.matches(entry.labels):
            yield budget


def _is_ready(pod: Json) -> bool:
    conditions = part(pod, "status").get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _spares_unready(budget: Json) -> bool:
    """Whether a pod that is not ready may go without counting as a disruption."""
    if part(budget, "spec").get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = part(budget, "status")
    desired = status.get("desiredHealthy", 0)
    return desired > 0 and status.get("currentHealthy", 0) >= desired


def _check(budget: Json) -> None:
    name, status = budget["metadata"]["name"], part(budget, "status")
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        told = f"The disruption budget {name} is still being processed by the server."
        raise _refused(told, _RETRY_SECONDS)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise forbidden(_BUDGETS, name, "pdb disruptions allowed is negative")
    if len(part(status, "disruptedPods")) > _MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden(_BUDGETS, name, why)
    if allowed == 0:
        raise _refused(_why_none(name, status), 0)


def _why_none(name: str, status: Json) -> str:
    desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if current <= desired:
        return (
            f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )
    return f"The disruption budget {name} does not allow evicting pods currently"


def _note(api: Api, budget: Json, pod: str) -> None:
    """Tells the budget's controller that a pod is about to go."""

    def spent(stored: Json) -> Json:
        status = stored["status"]
        status["disruptionsAllowed"] -= 1
        status["disruptedPods"] = {**part(status, "disruptedPods"), pod: now_text(api.clock())}
        return stored

    metadata = budget["metadata"]
    api.edit(api.kinds[_BUDGETS], metadata["namespace"], metadata["name"], spent)


def _refused(cause: str, retry_seconds: int) -> Refused:
    return too_many_requests(
        _REFUSAL, retry_seconds, {"reason": "DisruptionBudget", "message": cause}
    )
