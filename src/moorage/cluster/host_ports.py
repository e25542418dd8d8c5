"""The host ports that pods hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from moorage.objects.container import ANY_ADDRESS, HostPort
from moorage.objects.per_template import once_per_template
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodSpec

from .changes import Change
from .ledger import Counts, Ledger

#: A port as it is written; without an address it stands for all users of the port.
Port = tuple[str | None, str, int]


class HostPorts(Ledger[Port]):
    """How many pods hold each port of each address, and on whichever address."""

    def entries(self, pod: Pod) -> tuple[tuple[Port, int], ...]:
        return _find_entries(pod.spec)

    def removals(self, pod: Pod, row: int, counts: Counts[Port]) -> Iterator[tuple[Port, int]]:
        # As in kube-scheduler, where a node's ports are a set: they are free, whoever holds them.
        for port in pod.spec.host_ports:
            held = counts.of(port)[row]
            yield port, held
            yield (None, *port[1:]), held


@once_per_template
def _find_entries(spec: PodSpec) -> tuple[tuple[Port, int], ...]:
    return tuple((key, 1) for port in spec.host_ports for key in (port, (None, *port[1:])))


HOST_PORTS = HostPorts(Change.PORTS)


def conflicting(wanted: Iterable[HostPort]) -> Iterator[Port]:
    """Yields the keys whose users are in the way of a pod that wants some ports."""
    for address, protocol, number in wanted:
        if address == ANY_ADDRESS:
            yield None, protocol, number
        else:
            yield ANY_ADDRESS, protocol, number
            yield address, protocol, number


def find_taken(held: Counts[Port], wanted: Iterable[HostPort]) -> NDArray[np.bool_]:
    """Returns on which rows any of some ports is taken."""
    taken: NDArray[np.bool_] = np.zeros(held.capacity, np.bool_)
    for key in conflicting(wanted):
        taken |= held.column(key) > 0
    return taken
