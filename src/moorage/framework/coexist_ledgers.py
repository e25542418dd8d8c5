"""What the coexist policy counts: pods that tolerate no others, pods that must be tolerated."""

from __future__ import annotations

from moorage.cluster import Ledger
from moorage.objects.coexist import group_of, is_exclusive
from moorage.objects.daemons import is_ordinary
from moorage.objects.pod import Pod

#: The key of all pods. The other keys are groups, whose members tolerate each other.
ALL = ""

_ONE = ((ALL, 1),)

Entries = tuple[tuple[str, int], ...]


class ExclusivePods(Ledger[str]):
    """The pods that tolerate no others: all of them, and by coexist group."""

    columns = (ALL,)

    def entries(self, pod: Pod) -> Entries:
        return _find_entries(pod) if is_exclusive(pod) else ()


class OrdinaryPods(Ledger[str]):
    """The pods that are neither a daemonset's nor static: all of them, and by coexist group."""

    columns = (ALL,)

    def entries(self, pod: Pod) -> Entries:
        return _find_entries(pod) if is_ordinary(pod) else ()


class Holders(Ledger[str]):
    """The exclusive pods by namespace."""

    def entries(self, pod: Pod) -> Entries:
        return ((pod.namespace, 1),) if is_exclusive(pod) else ()


def _find_entries(pod: Pod) -> Entries:
    group = group_of(pod) if pod.annotations else None
    return _ONE if group is None else (*_ONE, (group, 1))


EXCLUSIVE_PODS, ORDINARY_PODS, HOLDERS = ExclusivePods(), OrdinaryPods(), Holders()
