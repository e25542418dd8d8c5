"""Groups of pods that are placed together, and the workloads that they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from mooring.embedded.api.column import NAME, age_column, field_column
from mooring.embedded.api.decoding import part
from mooring.embedded.api.kind import STATUS, KindRules, ServedKind, StatusRules, built_in
from mooring.embedded.refusals import Fault, invalid_value, required
from mooring.embedded.store.table import Json


class PodGroupRules(StatusRules):
    """The rules of pod groups; how a group is placed cannot change."""

    status_keeps_metadata = True

    def faults(self, item: Json) -> Iterator[Fault]:
        yield from _policy_faults("spec", part(item, "spec"))

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        policy = part(part(item, "spec"), "schedulingPolicy")
        if policy != part(part(old, "spec"), "schedulingPolicy"):
            yield invalid_value("spec.schedulingPolicy", policy, "field is immutable")


class WorkloadRules(KindRules):
    def faults(self, item: Json) -> Iterator[Fault]:
        templates = part(item, "spec").get("podGroupTemplates") or []
        if not templates:
            yield required("spec.podGroupTemplates")
        for index, each in enumerate(templates):
            yield from _policy_faults(f"spec.podGroupTemplates[{index}]", each)


def _policy_faults(at: str, spec: Json) -> Iterator[Fault]:
    policy = part(spec, "schedulingPolicy")
    if not policy.keys() & {"basic", "gang"}:
        yield required(f"{at}.schedulingPolicy", "must specify one of: `basic`, `gang`")
    gang = policy.get("gang")
    if gang is not None and gang.get("minCount", 0) < 1:
        detail = "must be greater than or equal to 1"
        yield invalid_value(f"{at}.schedulingPolicy.gang.minCount", gang.get("minCount", 0), detail)


def group_kinds() -> Iterator[ServedKind]:
    """Yields pod groups and workloads, as Kubernetes 1.36 has them."""
    alpha = partial(built_in, "scheduling.k8s.io", "scheduling.v1alpha2")
    least = field_column("MinCount", "spec.schedulingPolicy.gang.minCount", "")
    yield alpha(
        "PodGroup",
        "podgroups",
        PodGroupRules(),
        parts=(STATUS,),
        columns=(NAME, least, age_column()),
    )
    yield alpha("Workload", "workloads", WorkloadRules())
