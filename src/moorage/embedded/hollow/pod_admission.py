"""Admission of pods by kubelets, with the kubelet's own messages.

A scheduler has asked the same before, so that only what was bound around it, or at the same time,
is rejected. The order is the kubelet's; the first of several reasons counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.store.object_store import Json
from moorage.objects.container import ports_conflict
from moorage.objects.daemons import is_static_pod
from moorage.objects.node import Node
from moorage.objects.placement_rules import is_tolerated
from moorage.objects.pod import Pod
from moorage.objects.pod_refusal import Admit, PodRefusal
from moorage.objects.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended

_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
_PORTS = "node(s) didn't have free ports for the requested pod ports"
_TAINTS = "node(s) had taints that the pod didn't tolerate"

# The others follow by name.
_FIRST = {PODS: 0, CPU: 1, MEMORY: 2, EPHEMERAL_STORAGE: 3}


def admit(
    pod: Pod, node: Node, present: Collection[Pod], policies: Iterable[Admit] = ()
) -> PodRefusal | None:
    """Returns why a pod cannot run beside those that are present; None admits it."""
    for refusal in _refusals(pod, node, present):
        return refusal
    answers = (admits(pod, present) for admits in policies)
    return next((answer for answer in answers if answer is not None), None)


def _refusals(pod: Pod, node: Node, present: Collection[Pod]) -> Iterator[PodRefusal]:
    yield from _shortages(pod, node, present)
    if not pod.spec.chooses(node.name, node.labels):
        yield _fail("NodeAffinity", _AFFINITY)
    taken = [port for other in present for port in other.spec.host_ports]
    if any(ports_conflict(port, other) for port in pod.spec.host_ports for other in taken):
        yield _fail("NodePorts", _PORTS)
    # Of taints only those that would drive the pod away again count, and never for static pods.
    repelling = [taint for taint in node.taints if taint.effect == "NoExecute"]
    accepted = pod.spec.tolerations or ()
    if not is_static_pod(pod) and any(not is_tolerated(taint, accepted) for taint in repelling):
        yield _fail("TaintToleration", _TAINTS)


def _shortages(pod: Pod, node: Node, present: Collection[Pod]) -> Iterator[PodRefusal]:
    """Yields a refusal for each resource that is short, in the kubelet's order."""
    has = dict(node.allocatable)
    used: Counter[str] = Counter({PODS: len(present)})
    for other in present:
        for name, amount in other.held.requests:
            used[name] += amount
    asked = {PODS: 1, **dict(pod.spec.requests)}
    for name in sorted(asked, key=lambda each: (_FIRST.get(each, len(_FIRST)), each)):
        amount, whole = asked[name], has.get(name)
        if whole is None and is_extended(name):
            # Such a resource may be one of the cluster rather than of its nodes.
            continue
        if amount and amount > (whole or 0) - used[name]:
            text = (
                f"Node didn't have enough resource: {name}, "
                f"requested: {amount}, used: {used[name]}, capacity: {whole or 0}"
            )
            yield PodRefusal(f"OutOf{name}", text)


def _fail(predicate: str, text: str) -> PodRefusal:
    return PodRefusal(predicate, f"Predicate {predicate} failed: {text}")


_CLAIMS = "resourceclaims.resource.k8s.io"


class ClaimRights:
    """Asks the claims of pods who may use them."""

    def __init__(self, api: ObjectApi) -> None:
        self._api = api
        self._kind = api.kinds[_CLAIMS]

    def refusal(self, pod: Json) -> str:
        """Returns why a pod may not use its claims; empty if it may."""
        metadata, status = pod["metadata"], pod.get("status") or {}
        names = {
            each["name"]: each.get("resourceClaimName", "")
            for each in status.get("resourceClaimStatuses") or ()
        }
        for reference in pod["spec"].get("resourceClaims") or ():
            name = reference.get("resourceClaimName")
            if name is None:
                name = names.get(reference["name"])
            if name is None:
                whole = f"{metadata['namespace']}/{metadata['name']}"
                return f'pod "{whole}": ResourceClaim not created yet'
            # A reference may be left without a claim on purpose.
            problem = self._problem(metadata, name) if name else ""
            if problem:
                return problem
        extended = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
        return self._problem(metadata, extended) if extended else ""

    def _problem(self, pod: Json, name: str) -> str:
        entry = self._api.find(self._kind, pod["namespace"], name)
        if entry is None:
            return (
                f"failed to fetch ResourceClaim {name} referenced by pod {pod['name']}: "
                f'{_CLAIMS} "{name}" not found'
            )
        claim = entry.object
        users = (claim.get("status") or {}).get("reservedFor") or ()
        if any(each.get("uid") == pod["uid"] for each in users):
            return ""
        return (
            f"pod {pod['name']} ({pod['uid']}) is not allowed to use ResourceClaim {name} "
            f"({claim['metadata']['uid']})"
        )
