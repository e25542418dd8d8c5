"""Keeps what is known about the volumes of pods, so that it is looked up once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from moorage.cluster.derived import Recent
from moorage.objects.pod import Pod

S = TypeVar("S")
T = TypeVar("T")

#: What each function returned for a pod.
Facts = dict[Callable[[Pod, S], Any], Any]

# Facts of a pod with a claim take about two kilobytes. They are kept because pods that wait are
# decided again.
_MOST_PODS = 4_096


class PodFacts(Generic[S]):
    """The facts about pods that were asked about lately, until a storage object changes.

    A decision asks many times about the volumes of one pod, and a pod may need several decisions.
    """

    def __init__(self, storage: S) -> None:
        self._storage = storage
        #: By uid, the pod and what each function returned for it.
        self._known: Recent[str, tuple[Pod, Facts[S]]] = Recent(_MOST_PODS)
        #: The pod that was asked about last, and its facts.
        self._pod: Pod | None = None
        self._facts: Facts[S] = {}

    def find(self, pod: Pod, read: Callable[[Pod, S], T]) -> T:
        """Returns what a function returns for a pod, called once.

        The function reads storage objects, and of the pod its spec, name, namespace and uid.
        """
        facts = self._facts if pod is self._pod else self._turn_to(pod)
        if read in facts:
            fact: T = facts[read]
            return fact
        fact = facts[read] = read(pod, self._storage)
        return fact

    def _turn_to(self, pod: Pod) -> Facts[S]:
        """Returns the facts about another pod than the last one."""
        known = self._known.find(pod.uid)
        if known is None or not _is_same(known[0], pod):
            known = pod, {}
            self._known.put(pod.uid, known)
        self._pod, self._facts = pod, known[1]
        return self._facts

    def forget(self) -> None:
        """Forgets all facts: a storage object changes."""
        self._known.clear()
        self._pod = None

    def sweep(self) -> None:
        """Drops the facts about pods that were not asked for since the last sweep."""
        self._known.sweep()


def _is_same(one: Pod, other: Pod) -> bool:
    """Returns whether two forms of a pod have the same spec, name and namespace."""
    return one is other or (
        one.spec is other.spec and one.name == other.name and one.namespace == other.namespace
    )
