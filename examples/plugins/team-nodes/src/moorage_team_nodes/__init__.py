"""TeamNodes: nodes that belong to teams take only pods of those teams.

A node belongs to a team when it has the label `team.example.com/<team>`, whatever its value; it
may belong to several. A pod's team is its label `team`. A node without such a label takes all pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator

import numpy as np
from numpy.typing import NDArray

from moorage.plugin import (
    MAX_SCORE,
    Action,
    Advice,
    Advise,
    Change,
    Code,
    Labels,
    Node,
    NodeFilter,
    NodeScore,
    NodeView,
    Pod,
    Reason,
    Resource,
    Scope,
    SetLabel,
    Sign,
    View,
    Wakeup,
    on,
)

OWNER_PREFIX = "team.example.com/"
TEAM = "team"


class TeamNodes(NodeFilter, NodeScore, Sign, Advise[Pod]):
    """Asks node by node: whose is it, and does the pod belong to them?"""

    name = "TeamNodes"
    reads = Change.LABELS
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return team_of(pod)

    def filter_node(self, pod: Pod, node: NodeView) -> Reason | None:
        teams = owners(node.labels)
        if not teams or team_of(pod) in teams:
            return None
        # Evicting pods does not make the node ours, so preemption need not try it.
        return Reason(f"node(s) belong to {', '.join(teams)}", Code.UNRESOLVABLE)

    def score_node(self, pod: Pod, node: NodeView) -> int:
        # A team's own nodes first, so that the shared ones are left to those who have none.
        return MAX_SCORE if team_of(pod) in owners(node.labels) else 0

    def advise(
        self, pod: Pod, prepared: Pod | None, nodes: View, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        """Which team's pod it would have to be; the team with the most nodes first."""
        labels = (nodes.node(row).labels for row in rows.tolist())
        teams = Counter(team for each in labels for team in owners(each))
        for team, count in teams.most_common():
            yield Advice(f"{count} node{'s' * (count > 1)} of team {team}", (SetLabel(TEAM, team),))

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._after_node_change),
            on(Resource.POD, Action.UPDATE_POD_LABEL, self._after_pod_change),
        )

    def _after_node_change(self, pod: Pod, old: Node | None, new: Node) -> bool:
        teams = owners(new.labels)
        return not teams or team_of(pod) in teams

    def _after_pod_change(self, pod: Pod, old: Pod | None, new: Pod) -> bool:
        return new.uid == pod.uid


def owners(labels: Labels) -> list[str]:
    """The teams that a node belongs to."""
    return sorted(key.removeprefix(OWNER_PREFIX) for key in labels if key.startswith(OWNER_PREFIX))


def team_of(pod: Pod) -> str | None:
    return pod.labels.get(TEAM)
