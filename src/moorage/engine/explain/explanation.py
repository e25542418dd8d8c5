"""The explanation of one pod: frozen values that encode to JSON as they are."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from moorage.framework.edits import PodAt

Names = tuple[str, ...]

#: fits: a node is found now. pending: none is. preempting: none is, but evicting others helps.
#: gated, terminating, foreign (no profile serves it), error: it is not decided about at all.
State = Literal["fits", "pending", "preempting", "gated", "terminating", "foreign", "error"]

#: fits: the nodes become feasible in full, by the change alone. evicts: evicting pods that are then
#: of a lower priority makes them so. none: no change is known that makes them so.
Effect = Literal["fits", "evicts", "none"]


_STATES = {
    "gated": "is held back",
    "terminating": "is being deleted",
    "error": "cannot be decided",
}


class ExplanationPart(msgspec.Struct, frozen=True, rename="camel"):
    """A part of an answer for people; it is written in camelCase, with every field."""


class Rejection(ExplanationPart, frozen=True):
    """Nodes that one plugin was the first to reject, all for the same reasons."""

    plugin: str
    code: str
    reasons: Names
    count: int
    nodes: Names = ()


class Combination(ExplanationPart, frozen=True):
    """How many nodes exactly these plugins reject, in whatever order they are asked."""

    plugins: Names
    count: int


class ScoredNode(ExplanationPart, frozen=True):
    """The scores of a feasible node, normalised and weighted, per plugin and in total."""

    node: str
    total: int
    by_plugin: dict[str, int]


class Suggestion(ExplanationPart, frozen=True):
    """A problem on some nodes, and what would change it.

    It promises: with all `edits` made, `nodes` take the pod in the way that `effect` says.
    """

    kind: str
    plugins: Names
    #: What stands in the way.
    problem: str
    #: What would help: the text of `edits`; empty where nothing is known.
    remedy: str
    effect: Effect
    #: Each is an `Edit`, or its fields if this was read from JSON: plugins bring edits, too.
    edits: tuple[Any, ...] = ()
    #: How many nodes that would help.
    count: int = 0
    nodes: Names = ()
    #: Some of the pods that stand in the way.
    blockers: tuple[PodAt, ...] = ()


class NodeAnswer(ExplanationPart, frozen=True):
    """The answer about one node: all plugins that reject it, not only the first."""

    node: str
    feasible: bool
    refusals: tuple[Rejection, ...] = ()
    score: ScoredNode | None = None
    #: How many feasible nodes score better.
    better: int = 0


class Preemption(ExplanationPart, frozen=True):
    """Where the pod would fit once its victims are gone."""

    node: str
    victims: tuple[PodAt, ...]


class PermitWait(ExplanationPart, frozen=True):
    """A plugin whose permit is awaited, and the seconds left."""

    plugin: str
    seconds: float


class QueueView(ExplanationPart, frozen=True):
    """The state of an unbound pod in a running scheduler."""

    #: active, backoff, error backoff, unschedulable, gated, in flight.
    place: str
    attempts: int = 0
    #: Why its last attempt failed, and the plugins that said so.
    message: str = ""
    rejected_by: Names = ()
    #: For how long it is left alone yet.
    backoff_seconds: float = 0.0
    #: Where others were evicted for it.
    nominated_node: str = ""
    #: The node that was chosen, until it is bound.
    assumed_on: str = ""
    permits: tuple[PermitWait, ...] = ()


class Explanation(ExplanationPart, frozen=True):
    """Why a pod is pending, why it goes to its node, and what would change that."""

    pod: str
    scheduler: str
    state: State
    message: str = ""
    #: Where it runs, if it does; the rest is as if it did not.
    running_on: str = ""
    #: Where it would go now.
    chosen: str = ""
    #: The nodes that score as much as the best one.
    equally_good: Names = ()
    node_count: int = 0
    feasible_count: int = 0
    scores: tuple[ScoredNode, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    #: The nodes that were not looked at, because plugins named the only ones worth it.
    left_out: Rejection | None = None
    combinations: tuple[Combination, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    preemption: Preemption | None = None
    node: NodeAnswer | None = None
    #: Only a running scheduler knows it.
    queue: QueueView | None = None

    @property
    def has_place(self) -> bool:
        """Whether the pod runs, or would be placed now."""
        return bool(self.running_on) or self.state == "fits"

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        runs_on, chosen = self.running_on, self.chosen
        nodes = f"{self.feasible_count} of {self.node_count} nodes take it"
        there = f" runs on {runs_on};" if runs_on else ""
        match self.state:
            case "fits" if len(self.equally_good) > 1 and runs_on in self.equally_good:
                equals = f"one of {len(self.equally_good)} equally good nodes"
                return f"pod {self.pod} runs on {runs_on}, {equals}: {nodes}"
            case "fits" if runs_on == chosen:
                return f"pod {self.pod} runs on {runs_on}, and would again: {nodes}"
            case "fits":
                return f"pod {self.pod}{there} would go to {chosen}: {nodes}"
            case "pending":
                return f"pod {self.pod}{there} fits no node of {self.node_count}"
            case "preempting":
                without = "without evicting others"
                return f"pod {self.pod}{there} fits no node of {self.node_count} {without}"
            case "foreign":
                owner = f"belongs to another scheduler (schedulerName: {self.scheduler})"
                return f"pod {self.pod}{there} {owner}"
            case state:
                return f"pod {self.pod}{there} {_STATES[state]}"
