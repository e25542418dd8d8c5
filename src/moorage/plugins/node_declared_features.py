"""NodeDeclaredFeatures: a pod that needs a kubelet feature goes to nodes that declare it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from moorage.cluster import Change, Rows, Scope, View
from moorage.framework.plugin import Filter, PreFilter, Sign
from moorage.framework.status import Code, Reason
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import ITSELF, Action, Resource, Wakeup, on
from moorage.objects.node import Node
from moorage.objects.pod import Pod

RESTART_ALL = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_ON_HOST_NETWORK = "UserNamespacesHostNetworkSupport"

_RESTART_ALL_ACTION = "RestartAllContainers"

_UNDECLARED = Reason("node(s) didn't match Pod's required features", Code.UNRESOLVABLE)


@dataclass(frozen=True, slots=True)
class Undeclared:
    """Counts the needed features that a node does not declare."""

    needed: frozenset[str]

    def __call__(self, declared: frozenset[str]) -> int:
        return len(self.needed - declared)


class NodeDeclaredFeatures(PreFilter[Undeclared], Filter[Undeclared], Sign):
    """Rejects nodes that do not declare every feature that the pod needs."""

    name = "NodeDeclaredFeatures"
    reads = Change.FEATURES
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return needed_features(pod)

    def pre_filter(self, pod: Pod, nodes: View) -> Undeclared | None:
        needed = needed_features(pod)
        return Undeclared(needed) if needed else None

    def filter(self, prepared: Undeclared, nodes: View, rows: Rows) -> Verdict:
        missing = nodes.features.judge(prepared).take(nodes.feature_sets[rows])
        return Verdict.rejecting(missing > 0, _UNDECLARED)

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (
            on(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE,
                self._after_node_change,
                alike=True,
            ),
            on(Resource.POD, Action.UPDATE, self._after_pod_change, alike=True, topics=ITSELF),
        )

    def _after_node_change(self, pod: Pod, old: Node | None, new: Node) -> bool:
        return old is None or old.declared_features != new.declared_features

    def _after_pod_change(self, pod: Pod, old: Pod, new: Pod) -> bool:
        return new.uid == pod.uid and needed_features(old) != needed_features(new)


def needed_features(pod: Pod) -> frozenset[str]:
    """Returns the features that a pod needs."""
    spec = pod.spec
    needed = set()
    if any(
        rule.action == _RESTART_ALL_ACTION
        for container in spec.all_containers
        for rule in container.restart_policy_rules or ()
    ):
        needed.add(RESTART_ALL)
    if spec.host_network and spec.host_users is False:
        needed.add(USER_NAMESPACES_ON_HOST_NETWORK)
    return frozenset(needed)
