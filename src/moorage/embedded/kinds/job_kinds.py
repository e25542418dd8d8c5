"""Jobs: their defaults, what is wrong with them, and what a table shows of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from moorage.embedded.api.column import (
    NAME,
    Column,
    age_column,
    at,
    duration,
    text_column,
)
from moorage.embedded.api.decoding import fill, part
from moorage.embedded.api.kind import STATUS, ServedKind, make_known_kind
from moorage.embedded.request_refusals import (
    Fault,
    forbidden_field,
    invalid_value,
    required,
    unsupported,
)
from moorage.embedded.store.object_store import Json

from .workload_kinds import (
    TEMPLATE_COLUMNS,
    TemplateRules,
    count_faults,
    selecting_faults,
    template_faults,
    unchanged_faults,
)


class JobRules(TemplateRules):
    """The rules of jobs; the server adds the labels by which they select pods."""

    def default_spec(self, item: Json, spec: Json) -> None:
        if spec.get("parallelism") is None and spec.get("completions") is None:
            spec["completions"] = 1
        # With a limit for each index, or rules for failures, other values are meant.
        per_index, ruled = spec.get("backoffLimitPerIndex"), spec.get("podFailurePolicy")
        fill(
            spec,
            backoffLimit=6 if per_index is None else 2**31 - 1,
            completionMode="NonIndexed",
            manualSelector=False,
            parallelism=1,
            podReplacementPolicy="TerminatingOrFailed" if ruled is None else "Failed",
            suspend=False,
        )

    def complete_new(self, item: Json) -> None:
        super().complete_new(item)
        metadata, spec = item["metadata"], item["spec"]
        template = spec.get("template")
        if spec["manualSelector"] or not isinstance(template, dict):
            return
        uid = metadata["uid"]
        own = {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": metadata["name"],
            "controller-uid": uid,
            "job-name": metadata["name"],
        }
        described = template.setdefault("metadata", {})
        described["labels"] = {**(described.get("labels") or {}), **own}
        fill(metadata, labels=dict(described["labels"]))
        chosen = "batch.kubernetes.io/controller-uid"
        spec["selector"] = {"matchLabels": {chosen: own[chosen]}}

    def faults(self, item: Json) -> Iterator[Fault]:
        spec = item["spec"]
        yield from count_faults(spec, "parallelism", "completions", "backoffLimit")
        if spec.get("completionMode") not in ("Indexed", "NonIndexed"):
            modes = ("Indexed", "NonIndexed")
            yield unsupported("spec.completionMode", spec.get("completionMode"), modes)
        yield from selecting_faults("job", spec)
        yield from template_faults(spec, None)
        yield from _scheduling_faults(spec)
        policy = part(part(spec, "template"), "spec").get("restartPolicy")
        if policy not in ("OnFailure", "Never"):
            detail = 'valid values: "OnFailure", "Never"'
            yield required("spec.template.spec.restartPolicy", detail)

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        yield from unchanged_faults(item, old, "completionMode", "selector")
        fixed, before = (_fixed_scheduling(part(each, "spec")) for each in (item, old))
        if fixed != before:
            yield forbidden_field("spec.scheduling", _FIXED)
        if not part(old, "spec").get("suspend"):
            yield from unchanged_faults(item, old, "template")


_FIXED = "field is immutable, except for schedulingPolicy.gang.minCount"


def _scheduling_faults(spec: Json) -> Iterator[Fault]:
    """What is wrong with how the pods of a job are to be placed together."""
    policy = part(part(spec, "scheduling"), "schedulingPolicy")
    at = "spec.scheduling.schedulingPolicy"
    if len(policy) > 1:
        yield invalid_value(at, policy, "must specify exactly one of: `basic`, `gang`")
    least = part(policy, "gang").get("minCount")
    if least is None:
        return
    if least < 1:
        yield invalid_value(f"{at}.gang.minCount", least, "must be greater than or equal to 1")
    most = spec.get("parallelism", 1)
    if least > most:
        detail = f"must not be greater than parallelism ({most})"
        yield invalid_value(f"{at}.gang.minCount", least, detail)


def _fixed_scheduling(spec: Json) -> Json:
    """What cannot change of it."""
    asked = dict(part(spec, "scheduling"))
    asked["schedulingPolicy"] = sorted(part(asked, "schedulingPolicy"))
    return asked


def _job_status(item: Json) -> str:
    true = [
        each.get("type")
        for each in at(item, "status.conditions", [])
        if each.get("status") == "True"
    ]
    for condition, word in (("Complete", "Complete"), ("Failed", "Failed")):
        if condition in true:
            return word
    if "deletionTimestamp" in item["metadata"]:
        return "Terminating"
    for condition, word in (("Suspended", "Suspended"), ("FailureTarget", "FailureTarget")):
        if condition in true:
            return word
    return "Running"


def _completions(item: Json) -> str:
    done, wanted = at(item, "status.succeeded", 0), at(item, "spec.completions", None)
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = at(item, "spec.parallelism", 0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _job_duration(item: Json, now: datetime) -> str:
    started, ended = at(item, "status.startTime", ""), at(item, "status.completionTime", "")
    if not started:
        return ""
    end = datetime.fromisoformat(ended) if ended else now
    return duration(end - datetime.fromisoformat(started))


JOB_COLUMNS = (
    NAME,
    text_column("Status", _job_status),
    text_column("Completions", _completions),
    Column("Duration", _job_duration),
    age_column(),
    *TEMPLATE_COLUMNS,
)


def job_kinds(*, coexist: bool) -> Iterator[ServedKind]:
    """Yields the kind of jobs."""
    yield make_known_kind(
        "Job",
        JobRules(coexist=coexist),
        parts=(STATUS,),
        categories=("all",),
        fields=("status.successful",),
        columns=JOB_COLUMNS,
    )
