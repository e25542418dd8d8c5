"""The fence around each event and each attempt: an exception in one stops no other.

An object that raises an exception may have been counted in part. It is left out, and the cluster is
counted anew from all other objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from traceback import extract_tb
from typing import Any

from moorage.cluster import Cluster
from moorage.cluster.recount import Identity, recount
from moorage.documents.errors import STOPPED
from moorage.objects.pod import Pod
from moorage.queue import Queue

from .actions import Action, Report
from .attempts import Attempts
from .classes.classes import Classes
from .events import Applied, Bound, Event, Evicted, EvictionFailed, Removed
from .intake import Intake


@dataclass(slots=True)
class Fence:
    """Repairs the engine after an exception, and reports it."""

    cluster: Cluster
    queue: Queue
    intake: Intake
    attempts: Attempts
    classes: Iterable[Classes]
    emit: Callable[[Action], None]
    #: How many exceptions were caught, by what raised them: the kind of an object, the name of an
    #: outcome, or "attempt".
    caught: Counter[str] = field(default_factory=Counter)

    def catch(self, event: Event, error: BaseException, now: float) -> None:
        """Handles an exception that an event raised."""
        if isinstance(event, Applied | Removed):
            self.leave_out(event.object, error)
        else:
            self._drop_outcome(event, error, now)

    def leave_out(self, item: Any, error: BaseException) -> None:
        """Leaves out an object that could not be taken in, until it changes."""
        kind = type(item).__name__
        self._tell(f"{kind} {getattr(item, 'key', '') or item.name}", kind, error)
        try:
            if isinstance(item, Pod):
                self._forget(item)
        except STOPPED as again:  # the cluster must be put in order all the same
            self._report(f"{item.key} is not forgotten", again)
        self._recount(item)

    def _drop_outcome(self, event: Event, error: BaseException, now: float) -> None:
        """Drops an outcome that could not be taken in: its pod is tried again."""
        uid = getattr(event, "preemptor_uid", "") or getattr(event, "uid", "")
        self.caught[type(event).__name__] += 1
        self._report(f"the outcome {type(event).__name__} of pod {uid} is ignored", error)
        self._recount(None)
        if isinstance(event, Bound):
            # The pod's own event confirms it.
            return
        if not isinstance(event, Evicted | EvictionFailed):
            self._take_back(uid)
        self.attempts.evictions.drop(uid)
        self.queue.done(uid)
        pod = self.intake.pending.get(uid)
        if pod is not None and self.cluster.pod(uid) is None:
            self.queue.add(pod, now)

    def end_attempt(self, uid: str) -> None:
        """Ends the placement of a pod whose attempt raised an exception."""
        self.caught["attempt"] += 1
        for each in self.classes:
            # What it reused may be up to date in part.
            each.forget()
        self._take_back(uid)

    def end_group_attempt(self, uids: Iterable[str]) -> None:
        """Ends an attempt for a group that raised an exception, and undoes it."""
        self.caught["attempt"] += 1
        for uid in list(uids):
            self.attempts.drop(uid)
            if self.cluster.is_assumed(uid):
                self.cluster.nodes.reservations.release(uid)
                self.cluster.forget(uid)
        self._recount(None)

    def _take_back(self, uid: str) -> None:
        self.attempts.drop(uid)
        if self.cluster.is_assumed(uid):
            self.cluster.nodes.reservations.release(uid)
            self._recount(self.cluster.pod(uid))

    def _forget(self, pod: Pod) -> None:
        self.attempts.drop(pod.uid)
        self.attempts.evictions.forget(pod.uid)
        self.queue.delete(self.intake.pending.pop(pod.uid, pod))
        self.queue.done(pod.uid)

    def _recount(self, without: Any) -> None:
        for each in self.classes:
            each.forget()
        try:
            others: Mapping[Identity, Exception] = recount(self.cluster, without)
        except Exception as error:  # noqa: BLE001 - what is counted so far is better than nothing
            self._report("the cluster could not be counted anew", error)
            return
        for (kind, name), why in others.items():
            self._tell(f"{kind} {name}", kind, why)
            if kind == Pod.__name__:
                self.attempts.drop(name)

    def _tell(self, what: str, kind: str, error: BaseException) -> None:
        self.caught[kind] += 1
        self._report(f"{what} is left out until it changes", error)

    def _report(self, what: str, error: BaseException) -> None:
        self.emit(Report("", f"{what}: {describe(error)}"))


def describe(error: BaseException) -> str:
    """Describes an exception and where it was raised."""
    frames = extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"
