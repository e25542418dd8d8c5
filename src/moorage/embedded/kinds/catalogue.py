"""The kinds that are served from the start, and those that are not."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.embedded.api.kind import ServedKind

from .cluster_kinds import cluster_kinds, runtime_class_kinds
from .custom_resources import definition_kinds
from .device_kinds import device_kinds
from .event_kinds import event_kinds
from .group_kinds import group_kinds
from .job_kinds import job_kinds
from .limit_ranges import limit_range_kinds
from .pod_kind import pod_kinds
from .quotas import quota_kinds
from .services import service_kinds
from .storage_kinds import storage_kinds
from .stored_kinds import data_kinds, review_kinds, stored_kinds
from .subresources import budget_kinds
from .usage_kinds import usage_kinds
from .workload_kinds import workload_kinds

#: Kinds of Kubernetes that this server does not serve although people may look for them, and why.
NOT_SERVED = {
    "horizontalpodautoscalers.autoscaling": "nothing here measures load; set replicas by hand",
}


def catalogue(*, coexist: bool = True) -> Iterator[ServedKind]:
    """Every kind that is served from the start; the gate says whether coexistPolicy is kept."""
    yield from cluster_kinds()
    yield from pod_kinds(coexist=coexist)
    yield from limit_range_kinds()
    yield from quota_kinds()
    yield from runtime_class_kinds()
    yield from service_kinds()
    yield from event_kinds()
    yield from data_kinds()
    yield from workload_kinds(coexist=coexist)
    yield from job_kinds(coexist=coexist)
    yield from budget_kinds()
    yield from storage_kinds()
    yield from device_kinds()
    yield from group_kinds()
    yield from stored_kinds()
    yield from definition_kinds()
    yield from review_kinds()
    yield from usage_kinds()
