"""The groups of pods that jobs make: a Workload, a PodGroup, and pods that name it.

As the job controller of Kubernetes 1.37 does it for jobs with `spec.scheduling`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from moorage.embedded.api.decoding import part
from moorage.embedded.request_refusals import RequestRefused
from moorage.embedded.store.object_store import Json

from .controller import ControllerApi
from .event_recorder import EventRecorder
from .ownership import reference

WORKLOADS = "workloads.scheduling.k8s.io"
POD_GROUPS = "podgroups.scheduling.k8s.io"

_VERSION = "scheduling.k8s.io/v1alpha2"

# No vowels and nothing that looks like another letter, so that no words come out.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_HASH_LENGTH = 10
_LONGEST_NAME = 253


@dataclass(frozen=True, slots=True)
class JobGroups:
    """Makes the groups of jobs."""

    cluster: ControllerApi
    recorder: EventRecorder

    def ensure(self, job: Json, *, is_new: bool) -> Json | None:
        """The group of a job's pods, made if the job is new; None for a job without one."""
        if not _wants_group(job):
            return None
        names = _GroupNames.of(job)
        workload = self._ensure_workload(job, names, is_new)
        if workload is None:
            return None
        group = self._find(POD_GROUPS, job, names.group)
        if group is None and is_new:
            group = self._create_group(job, names, workload)
        if group is not None:
            self._follow_count(job, workload, group)
        return group

    def _ensure_workload(self, job: Json, names: _GroupNames, is_new: bool) -> Json | None:
        known = self._find(WORKLOADS, job, names.workload)
        if known is not None or not is_new:
            return known
        template = {"name": names.template, **_group_spec(job)}
        owner = {"apiGroup": "batch", "kind": "Job", "name": job["metadata"]["name"]}
        item = {
            "metadata": {"name": names.workload, "ownerReferences": [reference(job)]},
            "spec": {"controllerRef": owner, "podGroupTemplates": [template]},
        }
        return self._create(WORKLOADS, "Workload", job, item)

    def _create_group(self, job: Json, names: _GroupNames, workload: Json) -> Json:
        to_workload = _plain_reference(workload, "Workload")
        link = {"workloadName": names.workload, "podGroupTemplateName": names.template}
        item = {
            "metadata": {
                "name": names.group,
                "ownerReferences": [reference(job), to_workload],
            },
            "spec": {"podGroupTemplateRef": {"workload": link}, **_group_spec(job)},
        }
        return self._create(POD_GROUPS, "PodGroup", job, item)

    def _find(self, table: str, job: Json, name: str) -> Json | None:
        """The object of a name, if the job made it."""
        item = self.cluster.read(table, f"{job['metadata']['namespace']}/{name}")
        owners = [] if item is None else item["metadata"].get("ownerReferences") or []
        uids = [each["uid"] for each in owners if each.get("controller")]
        return item if job["metadata"]["uid"] in uids else None

    def _create(self, table: str, kind: str, job: Json, item: Json) -> Json:
        metadata = job["metadata"]
        try:
            made = self.cluster.create(table, metadata["namespace"], item)
        except RequestRefused as refusal:
            text = f"Failed to create {kind} for Job {metadata['name']}: {refusal.message}"
            self.recorder.record(job, f"Failed{kind}Create", text, "Warning")
            raise
        text = f"Created {kind} {made.name} for Job {metadata['name']}"
        self.recorder.record(job, f"{kind}Created", text)
        return made.object

    def _follow_count(self, job: Json, workload: Json, group: Json) -> None:
        """Writes another least number of pods to both objects."""
        gang = _group_spec(job)["schedulingPolicy"].get("gang")
        if gang is None:
            return
        template = workload["spec"]["podGroupTemplates"][0]
        for table, item, spec in (
            (WORKLOADS, workload, template),
            (POD_GROUPS, group, group["spec"]),
        ):
            known = part(spec, "schedulingPolicy").get("gang")
            if known is not None and known != gang:
                spec["schedulingPolicy"]["gang"] = dict(gang)
                self.cluster.update(table, item)


def join_group(pod: Json, group: Json | None) -> Json:
    """Makes a pod of a job a member of the job's group."""
    if group is not None:
        name = group["metadata"]["name"]
        pod["spec"]["schedulingGroup"] = {"podGroupName": name}
        pod["metadata"]["ownerReferences"].append(_plain_reference(group, "PodGroup"))
    return pod


def _wants_group(job: Json) -> bool:
    """Whether a job asks for a group, has no other, and is nobody's part."""
    spec = job["spec"]
    if not spec.get("scheduling") or part(part(spec, "template"), "spec").get("schedulingGroup"):
        return False
    owners = job["metadata"].get("ownerReferences") or ()
    return not any(each.get("controller") for each in owners)


def _group_spec(job: Json) -> Json:
    """What a job says of how its pods are placed together, in the words of groups."""
    asked = job["spec"]["scheduling"]
    policy = asked.get("schedulingPolicy") or {"basic": {}}
    if "gang" in policy:
        # A job that is to run no pods yet still has a group, which needs at least one.
        least = policy["gang"].get("minCount") or max(1, job["spec"].get("parallelism", 1))
        policy = {"gang": {"minCount": least}}
    mode = asked.get("disruptionMode") or {}
    spec: Json = {
        "schedulingPolicy": policy,
        "disruptionMode": "PodGroup" if "all" in mode else "Pod",
    }
    for name in ("schedulingConstraints", "resourceClaims"):
        if asked.get(name):
            spec[name] = asked[name]
    named = job["spec"]["template"]["spec"].get("priorityClassName")
    return {**spec, "priorityClassName": named} if named else spec


@dataclass(frozen=True, slots=True)
class _GroupNames:
    """What the objects of a job are called."""

    workload: str
    template: str
    group: str

    @classmethod
    def of(cls, job: Json) -> _GroupNames:
        metadata = job["metadata"]
        ending = _hash(metadata["uid"])
        workload = f"{metadata['name'][: _LONGEST_NAME - len(ending) - 1]}-{ending}"
        template = f"{metadata['name']}-pgt-0"
        ending = _hash(workload + template)
        most = _LONGEST_NAME - len(ending) - 2
        # A name that is short leaves the rest to the other.
        first = workload[: max(most - most // 2, most - len(template))]
        second = template[: most - len(first)]
        return cls(workload, template, f"{first}-{second}-{ending}")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()[:_HASH_LENGTH]
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest)


def _plain_reference(owner: Json, kind: str) -> Json:
    """A reference to an owner that is not the controller."""
    metadata = owner["metadata"]
    return {
        "apiVersion": _VERSION,
        "kind": kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
