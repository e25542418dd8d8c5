"""Knows the pods on each node, to enforce the coexist policy when the API server asks.

A guard knows which pods are on which node, and which bindings it has admitted but not seen yet, so
that only one of two simultaneous bindings passes. It is best effort: it knows a pod when the watch
delivers it, and guards of other replicas do not know its reservations.

A reservation closes a node to others, so it is made only for a pod that exists and waits. A pod has
at most one reservation; the next one replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import monotonic

import msgspec

from mooring.objects.coexist import CoexistRefusal, admit, is_trusted
from mooring.objects.kinds import Object
from mooring.objects.pod import Pod
from mooring.objects.workload import Namespace

from . import logs

_log = logs.make_log(__name__)

# A binding that was let in and is not seen by then was not made.
_RESERVED_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _Reservation:
    pod: Pod
    node: str
    until: float


class CoexistGuard:
    """The pods of each node, as a watch delivers them."""

    def __init__(self, *, enabled: bool = True, clock: Callable[[], float] = monotonic) -> None:
        self._enabled = enabled
        self._clock = clock
        self._pods: dict[str, Pod] = {}
        self._placed: dict[str, dict[str, Pod]] = {}
        self._reserved: dict[str, _Reservation] = {}
        self._trusted: set[str] = set()

    def find(self, namespace: str, name: str) -> Pod | None:
        """Returns the pod of that name, as last seen."""
        return self._pods.get(f"{namespace}/{name}")

    def pods_on(self, node: str) -> Iterable[Pod]:
        """The pods on a node, as last seen."""
        return self._placed.get(node, {}).values()

    def review(self, pod: Pod, node: str) -> CoexistRefusal | None:
        """Why a pod may not go to a node; None if it may."""
        return admit(pod, self._present(node), enabled=self._enabled, trusts=self._trusts)

    def reserve(self, pod: Pod, node: str) -> None:
        """Counts an existing pod without a node on this node, until the watch shows it there."""
        if self._enabled:
            until = self._clock() + _RESERVED_SECONDS
            self._reserved[pod.uid] = _Reservation(pod, node, until)

    def _trusts(self, namespace: str) -> bool:
        return namespace in self._trusted

    def _present(self, node: str) -> Iterator[Pod]:
        yield from self._placed.get(node, {}).values()
        now = self._clock()
        for uid, reserved in list(self._reserved.items()):
            if reserved.until <= now:
                del self._reserved[uid]
            elif reserved.node == node:
                yield reserved.pod

    # What the watch delivers

    def applied(self, item: Object, raw: bytes | msgspec.Raw) -> None:
        if isinstance(item, Namespace):
            (self._trusted.add if is_trusted(item.labels) else self._trusted.discard)(item.name)
        if not isinstance(item, Pod):
            return
        self._forget(self._pods.get(item.key))
        self._pods[item.key] = item
        if item.node_name or item.is_finished:
            self._reserved.pop(item.uid, None)
        if item.node_name and not item.is_finished:
            self._placed.setdefault(item.node_name, {})[item.uid] = item

    def removed(self, item: Object) -> None:
        if isinstance(item, Namespace):
            self._trusted.discard(item.name)
        if isinstance(item, Pod):
            self._forget(self._pods.pop(item.key, None))
            self._reserved.pop(item.uid, None)

    def unreadable(self, kind: str, key: str, problem: str) -> None:
        _log.error("Left out an object that cannot be read", kind=kind, object=key, problem=problem)

    def _forget(self, pod: Pod | None) -> None:
        """Takes a pod off its node; an earlier pod of the same name may have had another uid."""
        if pod is None:
            return
        there = self._placed.get(pod.node_name, {})
        there.pop(pod.uid, None)
        if not there:
            self._placed.pop(pod.node_name, None)
