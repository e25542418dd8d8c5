"""Cron jobs: people can make jobs from them, but nobody here watches the clock for them."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.embedded.coexist import drop_disabled
from mooring.embedded.errors import Fault, required, unsupported

from .plain import Json, WithStatus, fill, part
from .pod_faults import pod_spec_faults
from .pod_template import default_pod_spec

_POLICIES = ("Allow", "Forbid", "Replace")
_RESTARTS = ("OnFailure", "Never")
_POD = "spec.jobTemplate.spec.template.spec"


class CronJobs(WithStatus):
    def __init__(self, *, coexist: bool = True) -> None:
        self._coexist = coexist

    def default(self, item: Json) -> None:
        fill(
            item.setdefault("spec", {}),
            concurrencyPolicy="Allow",
            failedJobsHistoryLimit=1,
            successfulJobsHistoryLimit=3,
            suspend=False,
            jobTemplate={},
        )
        job = item["spec"]["jobTemplate"]
        fill(job, metadata={}, spec={})
        fill(job["spec"], template={})
        template = job["spec"]["template"]
        fill(template, metadata={}, spec={})
        default_pod_spec(template["spec"])

    def drop_disabled(self, item: Json, old: Json | None) -> None:
        drop_disabled(_pod(item), _pod(old or {}), enabled=self._coexist)

    def faults(self, item: Json) -> Iterator[Fault]:
        spec, pod = item["spec"], _pod(item)
        if not spec.get("schedule"):
            yield required("spec.schedule")
        if spec["concurrencyPolicy"] not in _POLICIES:
            yield unsupported("spec.concurrencyPolicy", spec["concurrencyPolicy"], _POLICIES)
        yield from pod_spec_faults(_POD, pod)
        if pod.get("restartPolicy") not in _RESTARTS:
            yield required(f"{_POD}.restartPolicy", 'valid values: "OnFailure", "Never"')


def _pod(item: Json) -> Json:
    for name in ("spec", "jobTemplate", "spec", "template", "spec"):
        item = part(item, name)
    return item
