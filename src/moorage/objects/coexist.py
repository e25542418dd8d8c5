"""CoexistPolicy: with which other pods a pod shares its node.

The one definition of it. The scheduler's plugin counts pods by it, and hollow nodes ask
`admit`, which refuses a pod that was bound around the scheduler. Whether the feature gate is on is
up to the caller: what a pod says is kept either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from .daemons import is_ordinary
from .pod import NO_STAMP, Pod
from .pod_group import GROUP_LABEL
from .pod_refusal import PodRefusal

#: Says the same as `spec.coexistPolicy`, which an API server that does not know it drops.
ANNOTATION = "scheduling.moorage.dev/coexist-policy"

#: What a scheduler puts on a pod with a policy when it binds it: the pod's uid.
PLACED = "scheduling.moorage.dev/placed"

#: On a namespace, with the value TRUSTED: its exclusive pods count as such on whichever way they
#: came to their node.
NAMESPACE_LABEL = ANNOTATION
TRUSTED = "trusted"

#: Says with which pods of its namespace a pod shares a node all the same: those with the same
#: controller (JOB), pod group (POD_GROUP), or value of a label (LABEL and its key).
GROUP = "scheduling.moorage.dev/coexist-group"
JOB, POD_GROUP, LABEL = "Job", "PodGroup", "label:"

#: On a namespace: how many nodes its exclusive pods may hold.
LIMIT_LABEL = "scheduling.moorage.dev/max-exclusive-nodes"

ANY = "Any"
DAEMONSET_AND_STATIC_PODS = "DaemonsetAndStaticPods"

#: Why a pod does not go with those on a node.
EXCLUSIVE_THERE = "failed CoexistPolicy: an exclusive pod runs there"
OTHERS_THERE = "failed CoexistPolicy: the pod is exclusive and other pods run there"

replace = msgspec.structs.replace

# Enough of a value to recognise it in a message.
_MOST_SHOWN = 40


def policy_of(pod: Pod) -> str:
    """Returns the pod's policy, valid or not: the field, else the annotation, else `Any`."""
    return pod.spec.coexist_policy or pod.annotations.get(ANNOTATION, ANY)


def is_exclusive(pod: Pod) -> bool:
    """Whether it tolerates no pods but those of daemonsets and static ones."""
    policy = pod.spec.coexist_policy or pod.annotations.get(ANNOTATION)
    return policy == DAEMONSET_AND_STATIC_PODS


def group_of(pod: Pod) -> str | None:
    """Returns the group whose members tolerate each other on a node; None if the pod is in none.

    Members say so themselves, each by the annotation: nobody is let in who did not ask for it.
    """
    said = pod.annotations.get(GROUP)
    if said is None:
        return None
    value: str | None = None
    if said == JOB and pod.owner is not None:
        value = pod.owner.uid or f"{pod.owner.kind}/{pod.owner.name}"
    elif said == POD_GROUP:
        value = pod.group_name or pod.labels.get(GROUP_LABEL)
    elif said.startswith(LABEL):
        value = pod.labels.get(said.removeprefix(LABEL))
    return f"{pod.namespace}/{said}/{value}" if value else None


def are_together(pod: Pod, other: Pod) -> bool:
    """Whether two pods are of one group, and so share a node whatever their policies are."""
    group = group_of(pod)
    return group is not None and group == group_of(other)


def is_trusted(namespace_labels: Mapping[str, str]) -> bool:
    """Whether all exclusive pods of a namespace count, by its labels."""
    return namespace_labels.get(NAMESPACE_LABEL) == TRUSTED


def stamp_of(pod: Pod) -> Mapping[str, str]:
    """Returns what a scheduler with the policy puts on a pod with one when it binds it.

    It writes the pod's uid, which nobody knows before the API server has created the pod. So a
    manifest with a node name cannot claim it.
    """
    if pod.spec.coexist_policy or ANNOTATION in pod.annotations:
        return {PLACED: pod.uid}
    return NO_STAMP


def is_placed(pod: Pod) -> bool:
    """Whether a scheduler with the policy bound the pod."""
    return pod.annotations.get(PLACED) == pod.uid != ""


def as_counted(pod: Pod, *, trusted: bool) -> Pod:
    """Returns the pod as others on its node must see it.

    An exclusive pod keeps others off its node. One that came around the scheduler, by a node name
    in its manifest or by another scheduler, would take any node away from everybody. So it counts
    as an ordinary pod, unless its namespace is trusted.
    """
    if not pod.node_name or not is_exclusive(pod) or trusted or is_placed(pod):
        return pod
    annotations = {key: value for key, value in pod.annotations.items() if key != ANNOTATION}
    spec = replace(pod.spec, coexist_policy="") if pod.spec.coexist_policy else pod.spec
    return replace(pod, annotations=annotations, spec=spec)


def unknown_policy(pod: Pod) -> str | None:
    """Returns what is wrong with the policy; None if it exists."""
    policy = policy_of(pod)
    if policy not in (ANY, DAEMONSET_AND_STATIC_PODS):
        where = "spec.coexistPolicy" if pod.spec.coexist_policy else f"annotation {ANNOTATION}"
        return _refuse(where, f"{ANY} or {DAEMONSET_AND_STATIC_PODS}", policy)
    group = pod.annotations.get(GROUP)
    if group in (None, JOB, POD_GROUP) or (group.startswith(LABEL) and group != LABEL):
        return None
    return _refuse(f"annotation {GROUP}", f"{JOB}, {POD_GROUP} or {LABEL}KEY", group)


def _refuse(where: str, expected: str, found: str) -> str:
    shown = found if len(found) <= _MOST_SHOWN else f"{found[:_MOST_SHOWN]}…"
    text = msgspec.json.encode(shown).decode()
    return f"failed CoexistPolicy: {where} must be {expected}, got {text}"


def conflict(pod: Pod, present: Pod) -> str | None:
    """Returns why a pod cannot come to a node where another is; None if it can."""
    if are_together(pod, present):
        return None
    if is_ordinary(pod) and is_exclusive(present):
        return EXCLUSIVE_THERE
    if is_exclusive(pod) and is_ordinary(present):
        return OTHERS_THERE
    return None


def admit(
    pod: Pod,
    present: Iterable[Pod],
    *,
    enabled: bool,
    trusts: Callable[[str], bool] = lambda namespace: False,
) -> PodRefusal | None:
    """Returns why a kubelet rejects a pod bound to its node, given the pods there; else None."""
    if not enabled:
        return None
    message = unknown_policy(pod)
    for other in present:
        if message is not None:
            break
        if other.uid != pod.uid and not other.is_finished:
            why = conflict(pod, as_counted(other, trusted=trusts(other.namespace)))
            message = why and f"{why}: {other.key}"
    return None if message is None else PodRefusal("CoexistPolicy", message)
