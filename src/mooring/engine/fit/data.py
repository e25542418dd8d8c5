"""What is told about pods that are to be placed: frozen values that encode to JSON as they are."""

from __future__ import annotations

from mooring.engine.explain.data import Explanation, Names, Told


class NodeShare(Told, frozen=True):
    """How many of the pods a node takes."""

    node: str
    count: int


class KindShare(Told, frozen=True):
    """How many of the pods like nodes take: by their instance type, else by what they have."""

    kind: str
    node_count: int
    #: How many of the nodes take some.
    used: int
    count: int


class Left(Told, frozen=True):
    """Pods that find no node, all for the same reason."""

    message: str
    count: int
    pods: Names


class Move(Told, frozen=True):
    """A pod that is there already: where it was and where it goes; empty is nowhere."""

    pod: str
    before: str
    after: str


class RunsOut(Told, frozen=True):
    """Why nodes that took such pods at first take no more."""

    reasons: Names
    count: int
    nodes: Names


class Fit(Told, frozen=True):
    """The outcome of placing some pods, one after the other, without evicting any."""

    node_count: int
    asked: int
    placed: int
    nodes: tuple[NodeShare, ...] = ()
    kinds: tuple[KindShare, ...] = ()
    left: tuple[Left, ...] = ()
    #: Only for copies of one pod: they all want the same.
    runs_out: tuple[RunsOut, ...] = ()
    #: Only for pods that are there already.
    moves: tuple[Move, ...] = ()
    #: About the first that finds no node.
    why: Explanation | None = None


class Comparison(Told, frozen=True):
    """The outcome as things are and as they would be, and whom that makes a difference to."""

    before: Fit
    after: Fit
    changed: tuple[Move, ...] = ()
