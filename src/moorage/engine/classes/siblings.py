"""Pods of one owner: how many could share answers, and which plugins tell the others apart."""

from __future__ import annotations

from moorage.cluster import Nodes
from moorage.objects.meta import OwnerReference
from moorage.objects.pod import Pod

from .signature import Signer
from .statistics import Statistics

# Owners whose last pod is remembered; beyond it, remembering begins anew.
_MOST_OWNERS = 4_096


class Siblings:
    """The last pod of each owner and its signature. Kept also while reuse is off."""

    def __init__(self, signer: Signer, statistics: Statistics) -> None:
        self._signer = signer
        self._statistics = statistics
        self._last: dict[str, tuple[int, Pod]] = {}

    def saw(self, pod: Pod, owner: OwnerReference, signature: int, nodes: Nodes) -> None:
        """Counts which plugins tell a pod, before it is decided, from the last one of its owner."""
        key = owner.uid or owner.name
        before = self._last.get(key)
        if before is not None and before[0] != signature:
            self._statistics.apart.update(self._signer.differing(before[1], pod, nodes))
        if before is None and len(self._last) >= _MOST_OWNERS:
            self._last.clear()
        self._last[key] = signature, pod
