"""NodePorts: two pods on one node cannot listen on the same port of it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Change, Mask, RowFacts, Rows, Scope, View
from moorage.cluster.host_ports import HOST_PORTS, conflicting, find_taken
from moorage.framework.advice import Advice, Advise, find_pods, group_by_failures, name_nodes
from moorage.framework.edits import DropHostPort
from moorage.framework.plugin import (
    INFEASIBLE,
    UPDATED,
    Filter,
    PreFilter,
    Rescore,
    Sign,
)
from moorage.framework.status import Reason
from moorage.framework.verdict import Verdict
from moorage.framework.wakeups import Action, Resource, Topics, Wakeup, on
from moorage.objects.container import HostPort, ports_conflict
from moorage.objects.pod import Pod

_TAKEN = Reason("node(s) didn't have free ports for the requested pod ports")

Ports = tuple[HostPort, ...]


class NodePorts(PreFilter[Ports], Filter[Ports], Sign, Advise[Ports]):
    """Rejects nodes on which a host port of the pod is taken."""

    name = "NodePorts"
    reads = Change.PORTS
    scope = Scope.ROW

    def sign(self, pod: Pod, nodes: View) -> Hashable:
        return pod.spec.host_ports

    def pre_filter(self, pod: Pod, nodes: View) -> Ports | None:
        return pod.spec.host_ports or None

    def filter(self, prepared: Ports, nodes: View, rows: Rows) -> Verdict:
        return Verdict.rejecting(find_taken(nodes.ledger(HOST_PORTS), prepared)[rows], _TAKEN)

    def recheck(self, prepared: Ports, nodes: View, row: RowFacts) -> Rescore:
        held = nodes.ledger(HOST_PORTS)
        taken = any(held.of(key)[row.number] for key in conflicting(prepared))
        return INFEASIBLE if taken else UPDATED

    def advise(
        self, pod: Pod, prepared: Ports | None, nodes: View, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        held = nodes.ledger(HOST_PORTS)
        taken: dict[DropHostPort, Mask] = {
            DropHostPort(*port): find_taken(held, [port])[rows] for port in pod.spec.host_ports
        }
        for edits, there in group_by_failures(taken, rows):
            wanted = [(edit.address, edit.protocol, edit.port) for edit in edits]

            def holds(other: Pod, wanted: list[HostPort] = wanted) -> bool:
                held = other.spec.host_ports
                return other.uid != pod.uid and any(
                    ports_conflict(one, has) for one in wanted for has in held
                )

            names = ", ".join(edit.text.removeprefix("it did not take ") for edit in edits)
            problem = f"{names} taken on {name_nodes(there, nodes)}"
            yield Advice(problem, edits, find_pods(there, nodes, holds), kind="ports")

    def wakeups(self) -> tuple[Wakeup, ...]:
        return (
            on(
                Resource.POD,
                Action.DELETE,
                self._after_pod_is_gone,
                alike=True,
                topics=Topics(_find_freed, _ports_of),
            ),
            on(Resource.NODE, Action.ADD),
        )

    def _after_pod_is_gone(self, pod: Pod, old: Pod, new: None) -> bool:
        if not old.has_place:
            return False
        # By number first: pods with thousands of ports are compared as quickly as others.
        freed: dict[int, list[HostPort]] = {}
        for port in old.spec.host_ports:
            freed.setdefault(port[2], []).append(port)
        return any(
            ports_conflict(wanted, each)
            for wanted in pod.spec.host_ports
            for each in freed.get(wanted[2], ())
        )


def _ports_of(pod: Pod) -> set[int]:
    return {number for _, _, number in pod.spec.host_ports}


def _find_freed(old: Pod, new: None) -> set[int]:
    return _ports_of(old) if old.has_place else set()
