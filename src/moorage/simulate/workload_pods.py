"""Workloads as written in git: makes the pods that their controllers would make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from moorage.objects.node import Node
from moorage.objects.node_selector import NodeTerm, compile_term
from moorage.objects.placement_rules import is_tolerated
from moorage.objects.pod import Pod
from moorage.objects.pod_group import V1BETA1, PodGroup

from .manifests import Manifest

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


@dataclass(frozen=True, slots=True)
class WantedWorkload:
    """A workload and the pods that it wants."""

    kind: str
    namespace: str
    name: str
    pods: tuple[Pod, ...] = ()
    #: The group that the pods are placed with.
    group: PodGroup | None = None
    #: How many pods more, and fewer, than wanted there may be while it is rolled out.
    surge: int = 0
    unavailable: int = 0
    #: Where it is written.
    file: str = ""

    @property
    def text(self) -> str:
        return f"{self.kind.lower()} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class WorkloadTemplate:
    """A workload as it is written, before its pods are made."""

    manifest: Manifest
    workload: WantedWorkload
    count: int
    raw: Raw
    #: How a Job wants its pods placed together.
    scheduling: Raw | None = None

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

    def pod_manifests(self, nodes: tuple[str, ...]) -> Iterator[Manifest]:
        """Yields the pods as a controller would write them; a DaemonSet has one per node."""
        names = [*nodes] if self.workload.kind == "DaemonSet" else [""] * self.count
        for number, node in enumerate(names):
            yield replace(self.manifest, kind="Pod", raw=self._pod(number, node))

    def pod_anywhere(self) -> Raw:
        """Returns a pod of the workload that names no certain node."""
        return self._pod(0, "")

    def _pod(self, number: int, node: str) -> Raw:
        metadata, spec = _mapping(self.raw.get("metadata")), _mapping(self.raw.get("spec"))
        name = f"{self.workload.name}-{node or number}"
        owner = {
            "apiVersion": self.manifest.raw["apiVersion"],
            "kind": self.workload.kind,
            "name": self.workload.name,
            "uid": self.workload.text,
            "controller": True,
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **metadata,
                "name": name,
                "namespace": self.workload.namespace,
                "uid": f"new/{self.workload.text}/{number}",
                "ownerReferences": [owner],
            },
            "spec": self._join(_pin(spec, node) if node else spec),
        }

    def _join(self, spec: Raw) -> Raw:
        """Returns the spec of a pod that names its group."""
        name = self.group_name
        return {**spec, "schedulingGroup": {"podGroupName": name}} if name else spec


def read_template(manifest: Manifest) -> WorkloadTemplate:
    """Reads a workload; raises InputError naming the field that is wrong."""
    raw = manifest.raw
    metadata, spec = _mapping(raw.get("metadata")), _mapping(raw.get("spec"))
    if not isinstance(metadata.get("name"), str):
        raise manifest.error("metadata.name", "is required")
    if manifest.kind == "CronJob":
        spec = _mapping(_mapping(spec.get("jobTemplate")).get("spec"))
    template = spec.get("template")
    if not isinstance(template, Mapping):
        raise manifest.error("spec.template", "is required")
    count = _count(manifest, spec)
    rollout = _mapping(_mapping(spec.get("strategy")).get("rollingUpdate"))
    workload = WantedWorkload(
        manifest.kind,
        metadata.get("namespace") or "default",
        metadata["name"],
        file=manifest.place.file,
    )
    if manifest.kind == "Deployment" and _mapping(spec.get("strategy")).get("type") != "Recreate":
        surge = _share(manifest, "maxSurge", rollout, count, lambda part: -int(-part // 1))
        unavailable = _share(manifest, "maxUnavailable", rollout, count, int)
        workload = replace(workload, surge=surge, unavailable=unavailable)
    elif manifest.kind != "DaemonSet":
        workload = replace(workload, unavailable=count)
    return WorkloadTemplate(manifest, workload, count, template, _scheduling(manifest, template))


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
