"""Workloads as written in git: makes the pods that their controllers would make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from moorage.engine.explain.explanation import ExplanationPart
from moorage.objects.node import Node
from moorage.objects.node_selector import NodeTerm, compile_term
from moorage.objects.placement_rules import is_tolerated
from moorage.objects.pod import Pod
from moorage.objects.pod_group import V1BETA1, PodGroup
from moorage.objects.storage import PersistentVolumeClaim
from moorage.objects.workload import owner_names

from .manifests import Manifest
from .pod_templates import PodTemplate, find_templates, has_signs_of_pods

Raw = Mapping[str, Any]

# One workload of more pods than this is a mistake, or an attack on the reader's memory.
_MOST_PODS = 100_000
# What a Deployment allows during a rollout unless it says otherwise.
_QUARTER = "25%"


# What the daemonset controller lets every pod tolerate.
_DAEMON_TAINTS = (
    *(
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
    ),
    *(
        (f"node.kubernetes.io/{name}", "NoSchedule")
        for name in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    ),
)


class NotUnderstood(ExplanationPart, frozen=True):
    """An object, or a pod template in it, of which it is not known how many pods it makes."""

    #: Kind, namespace and name.
    object: str
    why: str
    #: The pod template; empty if the whole object is meant.
    path: str = ""
    file: str = ""
    line: int = 0

    @property
    def text(self) -> str:
        return f"{self.object}{self.path and f', {self.path}'}: {self.why}"


@dataclass(frozen=True, slots=True)
class WantedWorkload:
    """A workload and the pods that it wants."""

    kind: str
    namespace: str
    name: str
    pods: tuple[Pod, ...] = ()
    #: The claims that are made for the pods.
    claims: tuple[PersistentVolumeClaim, ...] = ()
    #: The group that the pods are placed with.
    group: PodGroup | None = None
    #: How many pods more, and fewer, than wanted there may be while it is rolled out.
    surge: int = 0
    unavailable: int = 0
    #: Where it is written; the first line is 1, and 0 is not known.
    file: str = ""
    line: int = 0

    @property
    def text(self) -> str:
        return f"{self.kind.lower()} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class WorkloadTemplate:
    """A workload as it is written, before its pods are made."""

    manifest: Manifest
    workload: WantedWorkload
    templates: tuple[PodTemplate, ...]
    #: How a Job wants its pods placed together.
    scheduling: Raw | None = None

    @property
    def count(self) -> int:
        return sum(each.count for each in self.templates)

    @property
    def is_idle(self) -> bool:
        """Whether it is suspended or finished, so that its controller makes no pods now."""
        spec, status = (_mapping(self.manifest.raw.get(part)) for part in ("spec", "status"))
        conditions = status.get("conditions")
        return spec.get("suspend") is True or any(
            each.get("type") in _ENDED and each.get("status") == "True"
            for each in (conditions if isinstance(conditions, list) else ())
            if isinstance(each, Mapping)
        )

    @property
    def doubts(self) -> Iterator[NotUnderstood]:
        """Which numbers of pods are not certain."""
        for each in self.templates:
            if each.doubt:
                yield _not_understood(self.manifest, each.doubt, each.path)

    @property
    def group_name(self) -> str:
        return "" if self.scheduling is None else f"{self.workload.name}-pgt-0"

    def describe_group(self) -> Raw | None:
        """Returns the group that the job controller makes for the pods; None if it makes none."""
        if self.scheduling is None or not self.count:
            return None
        policy = self.scheduling.get("schedulingPolicy") or {"basic": {}}
        if "gang" in policy:
            least = self.manifest.raw["spec"].get("parallelism", 1)
            policy = {"gang": {"minCount": (policy["gang"] or {}).get("minCount") or least}}
        return {
            "apiVersion": V1BETA1,
            "kind": "PodGroup",
            "metadata": {"name": self.group_name, "namespace": self.workload.namespace},
            "spec": {**self.scheduling, "schedulingPolicy": policy},
        }

    def make_manifests(self, nodes: tuple[str, ...]) -> Iterator[Manifest]:
        """Yields the pods as a controller would write them, each after its claims.

        A DaemonSet has one pod per node.
        """
        for each in self.templates:
            if self.workload.kind == "DaemonSet":
                pods = [self._pod(each, number, node) for number, node in enumerate(nodes)]
            else:
                pods = [self._pod(each, each.first + at, "") for at in range(each.count)]
            for pod in pods:
                for claim in (*_stable_claims(each, pod), *ephemeral_claims(pod)):
                    yield replace(self.manifest, kind="PersistentVolumeClaim", raw=claim)
                yield replace(self.manifest, kind="Pod", raw=pod)

    def pod_anywhere(self) -> Raw:
        """Returns a pod of the workload that names no certain node."""
        return self._pod(self.templates[0], 0, "")

    def _pod(self, template: PodTemplate, number: int, node: str) -> Raw:
        metadata = _mapping(template.raw.get("metadata"))
        spec = _mapping(template.raw.get("spec"))
        name = "-".join(filter(None, (self.workload.name, template.name, node or str(number))))
        owner = {
            "apiVersion": self.manifest.raw["apiVersion"],
            "kind": self.workload.kind,
            "name": self.workload.name,
            "uid": self.workload.text,
            "controller": True,
        }
        made = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **metadata,
                "name": name,
                "namespace": self.workload.namespace,
                "uid": f"new/{self.workload.text}/{template.name}/{number}",
                "ownerReferences": [owner],
            },
            "spec": self._join(_pin(spec, node) if node else spec),
        }
        return _mount_claims(template, made) if template.claims else made

    def _join(self, spec: Raw) -> Raw:
        """Returns the spec of a pod that names its group."""
        name = self.group_name
        return {**spec, "schedulingGroup": {"podGroupName": name}} if name else spec


# Conditions of workloads whose pods have ended.
_ENDED = frozenset(("Complete", "Completed", "Failed", "Succeeded", "Finished"))


def read_workload(manifest: Manifest) -> WorkloadTemplate | NotUnderstood | None:
    """Reads what makes pods; None if the object makes none.

    Raises InputError naming the field that is wrong.
    """
    if manifest.is_workload:
        return _read_known(manifest)
    if not manifest.is_foreign:
        return None
    templates = find_templates(manifest.raw, manifest.group)
    if templates:
        return _read_foreign(manifest, templates)
    if has_signs_of_pods(manifest.raw):
        return _not_understood(manifest, "it may make pods, but has no pod template")
    return None


def _not_understood(manifest: Manifest, why: str, path: str = "") -> NotUnderstood:
    place = manifest.place
    return NotUnderstood(manifest.title, why, path, place.file, place.line)


def _read_foreign(manifest: Manifest, templates: list[PodTemplate]) -> WorkloadTemplate:
    workload = _start(manifest)
    count = sum(each.count for each in templates)
    if count > _MOST_PODS:
        raise manifest.error("spec", f"wants {count:,} pods, more than {_MOST_PODS:,}")
    return WorkloadTemplate(manifest, replace(workload, unavailable=count), tuple(templates))


def _start(manifest: Manifest) -> WantedWorkload:
    metadata = _mapping(manifest.raw.get("metadata"))
    # What is created under a new name each time has the beginning of it.
    name = metadata.get("name") or str(metadata.get("generateName") or "").removesuffix("-")
    if not isinstance(name, str) or not name:
        raise manifest.error("metadata.name", "is required")
    return WantedWorkload(
        manifest.kind,
        metadata.get("namespace") or "default",
        name,
        file=manifest.place.file,
        line=manifest.place.line,
    )


def _read_known(manifest: Manifest) -> WorkloadTemplate:
    """Reads one of Kubernetes' own workloads, whose mistakes are named."""
    workload, spec = _start(manifest), _mapping(manifest.raw.get("spec"))
    path = "spec.template"
    if manifest.kind == "CronJob":
        spec = _mapping(_mapping(spec.get("jobTemplate")).get("spec"))
        path = "spec.jobTemplate.spec.template"
    template = spec.get("template")
    if not isinstance(template, Mapping):
        raise manifest.error("spec.template", "is required")
    count = _count(manifest, spec)
    rollout = _mapping(_mapping(spec.get("strategy")).get("rollingUpdate"))
    if manifest.kind == "Deployment" and _mapping(spec.get("strategy")).get("type") != "Recreate":
        surge = _share(manifest, "maxSurge", rollout, count, lambda part: -int(-part // 1))
        unavailable = _share(manifest, "maxUnavailable", rollout, count, int)
        workload = replace(workload, surge=surge, unavailable=unavailable)
    elif manifest.kind != "DaemonSet":
        workload = replace(workload, unavailable=count)
    found = PodTemplate("", path, template, count, *_read_stable(manifest, spec))
    return WorkloadTemplate(manifest, workload, (found,), _scheduling(manifest, template))


def _read_stable(manifest: Manifest, spec: Raw) -> tuple[tuple[Raw, ...], int]:
    """Returns the claims that each pod of a StatefulSet keeps, and the number of the first pod."""
    if manifest.kind != "StatefulSet":
        return (), 0
    claims, first = spec.get("volumeClaimTemplates"), _mapping(spec.get("ordinals")).get("start")
    wrong = not isinstance(claims, list) or not all(isinstance(each, Mapping) for each in claims)
    if claims is not None and wrong:
        raise manifest.error("spec.volumeClaimTemplates", "must be a list of claims")
    return tuple(claims or ()), first if isinstance(first, int) else 0


def _stable_claims(template: PodTemplate, pod: Raw) -> Iterator[Raw]:
    """Yields the claims that a pod finds again when it is replaced."""
    at = pod["metadata"]
    for each in template.claims:
        yield _claim(each, f"{_name_of(each)}-{at['name']}", at["namespace"])


def ephemeral_claims(pod: Raw) -> Iterator[Raw]:
    """Yields the claims that are made for a pod as it is written, and deleted with it."""
    metadata, volumes = _mapping(pod.get("metadata")), _mapping(pod.get("spec")).get("volumes")
    owner = {"apiVersion": "v1", "kind": "Pod", "controller": True}
    for each in volumes if isinstance(volumes, list) else ():
        template = _mapping(_mapping(_mapping(each).get("ephemeral")).get("volumeClaimTemplate"))
        if template:
            name, namespace = metadata.get("name"), metadata.get("namespace") or "default"
            uid = metadata.get("uid") or f"{namespace}/{name}"
            made = _claim(template, f"{name}-{each.get('name')}", namespace)
            owners = [{**owner, "name": name, "uid": uid}]
            yield {**made, "metadata": {**made["metadata"], "ownerReferences": owners}}


def _claim(template: Raw, name: str, namespace: str) -> Raw:
    metadata = {**_mapping(template.get("metadata")), "name": name, "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": _mapping(template.get("spec")),
    }


def _mount_claims(template: PodTemplate, pod: Raw) -> Raw:
    """Returns the pod with its claims as volumes, in place of volumes of these names."""
    name = pod["metadata"]["name"]
    mounted = {
        _name_of(each): {
            "name": _name_of(each),
            "persistentVolumeClaim": {"claimName": f"{_name_of(each)}-{name}"},
        }
        for each in template.claims
    }
    volumes = pod["spec"].get("volumes")
    kept = [
        each
        for each in (volumes if isinstance(volumes, list) else ())
        if _mapping(each).get("name") not in mounted
    ]
    return {**pod, "spec": {**pod["spec"], "volumes": [*kept, *mounted.values()]}}


def _name_of(claim: Raw) -> str:
    return str(_mapping(claim.get("metadata")).get("name") or "")


def _scheduling(manifest: Manifest, template: Raw) -> Raw | None:
    """Returns how a Job wants its pods placed together; other workloads make no groups."""
    if manifest.kind != "Job" or _mapping(template.get("spec")).get("schedulingGroup"):
        return None
    asked = manifest.raw["spec"].get("scheduling")
    if not asked:
        return None
    policy = asked.get("schedulingPolicy") if isinstance(asked, Mapping) else None
    gang = policy.get("gang") if isinstance(policy, Mapping) else None
    for path, value in (
        ("", asked),
        (".schedulingPolicy", policy),
        (".schedulingPolicy.gang", gang),
    ):
        if value is not None and not isinstance(value, Mapping):
            raise manifest.error(f"spec.scheduling{path}", "must be a mapping")
    least = _mapping(gang).get("minCount")
    if least is not None and (not isinstance(least, int) or isinstance(least, bool) or least < 1):
        path = "spec.scheduling.schedulingPolicy.gang.minCount"
        raise manifest.error(path, "must be a number of at least 1")
    return _mapping(asked)


def _count(manifest: Manifest, spec: Raw) -> int:
    field = "parallelism" if manifest.kind in ("Job", "CronJob") else "replicas"
    count = spec.get(field, 1)
    if field == "parallelism" and isinstance(spec.get("completions"), int):
        count = min(count, spec["completions"]) if isinstance(count, int) else count
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= _MOST_PODS:
        raise manifest.error(f"spec.{field}", f"must be a number from 0 to {_MOST_PODS:,}")
    return count


def _share(
    manifest: Manifest, field: str, rollout: Raw, count: int, rounded: Callable[[float], int]
) -> int:
    """Returns a number of pods, or a percentage of them."""
    value = rollout.get(field, _QUARTER)
    if isinstance(value, int) and value >= 0:
        return value
    number = value.removesuffix("%") if isinstance(value, str) else ""
    if not number.isdecimal() or not str(value).endswith("%"):
        path = f"spec.strategy.rollingUpdate.{field}"
        raise manifest.error(path, "must be a number or a percentage")
    return rounded(count * int(number) / 100)


def _pin(spec: Raw, node: str) -> Raw:
    """Returns the spec of a daemon for one node."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = _mapping(spec.get("affinity"))
    chosen = dict(_mapping(affinity.get("nodeAffinity")))
    chosen["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": [{"matchFields": [field]}]
    }
    tolerations = [
        {"key": key, "operator": "Exists", "effect": effect} for key, effect in _DAEMON_TAINTS
    ]
    return {
        **spec,
        "affinity": {**affinity, "nodeAffinity": chosen},
        "tolerations": [*(spec.get("tolerations") or ()), *tolerations],
    }


def workload_names(pod: Pod) -> Iterator[tuple[str, str]]:
    """Yields the workloads that a pod belongs to, as kinds in small letters, and names.

    Controllers that make pods by way of Jobs label them with their own name: as
    jobset.sigs.k8s.io/jobset-name or leaderworkerset.sigs.k8s.io/name.
    """
    for kind, name in owner_names(pod).items():
        yield kind.lower(), name
    for key, value in pod.labels.items():
        domain, slash, last = key.partition("/")
        if slash and last == "name":
            yield domain.partition(".")[0], value
        elif slash and last.endswith("-name"):
            yield last.removesuffix("-name"), value


def wants_node(template: Pod, node: Node) -> bool:
    """Whether a DaemonSet with such pods has one on the node."""
    spec = template.spec
    if any(node.labels.get(key) != value for key, value in (spec.node_selector or {}).items()):
        return False
    rule = spec.node_affinity.required
    terms = [compile_term(each) for each in rule.node_selector_terms] if rule is not None else []
    if rule is not None and not any(
        isinstance(term, NodeTerm) and term.matches(node.labels, node.name) for term in terms
    ):
        return False
    daemon = {key for key, _ in _DAEMON_TAINTS}
    return all(
        taint.key in daemon
        or taint.effect == "PreferNoSchedule"
        or is_tolerated(taint, spec.tolerations or ())
        for taint in node.taints
    )


def _mapping(value: Any) -> Raw:
    return value if isinstance(value, Mapping) else {}
