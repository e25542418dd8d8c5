"""The ledger of evictions: who is evicted for which pod or group, what was asked, what failed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from moorage.framework.observe import POD, PODGROUP, UNOBSERVED, Observer
from moorage.framework.status import Rejected, unresolvable
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.objects.workload import owner_text
from moorage.queue import EntityKey

from . import actions
from .actions import Action, EvictPod, PodRef, RecordEvent

# Preemptions that are kept for people, and victims that each of them names.
_MOST_ENTRIES = 64
_MOST_NAMED = 20

# What kube-scheduler calls a pod, and a group, that is preempted for.
_KINDS = {POD: "pod", PODGROUP: "pod group"}
_PREEMPTORS = {POD: "pod", PODGROUP: "podgroup"}


class PreemptionEntry(msgspec.Struct, frozen=True):
    """One preemption: pods are evicted for a pod or a group."""

    #: Counts all preemptions, from 1 on.
    serial: int
    #: The pod or the group as namespace/name.
    preemptor: str
    #: The workload that the pod belongs to, or the group.
    owner: str
    #: Where; empty for a group, whose victims may be on many nodes.
    node: str
    #: How many have to go, and the first of them as namespace/name.
    count: int
    victims: tuple[str, ...]


class PlannedPreemption(msgspec.Struct, frozen=True, eq=False):
    """A preemption as it was decided: the plugin of a profile makes room for a pod or a group."""

    preemptor: Pod | PodGroup
    victims: Sequence[Pod]
    plugin: str
    profile: str
    #: Empty for a group, whose victims may be on many nodes.
    node: str = ""

    @property
    def kind(self) -> str:
        return POD if isinstance(self.preemptor, Pod) else PODGROUP

    @property
    def key(self) -> EntityKey:
        """What the queue knows the preemptor by."""
        preemptor = self.preemptor
        return preemptor.uid if isinstance(preemptor, Pod) else preemptor.group_key

    @property
    def ref(self) -> PodRef:
        preemptor = self.preemptor
        return PodRef.to(preemptor) if isinstance(preemptor, Pod) else PodRef.to_group(preemptor)

    def describe(self, serial: int, count: int) -> PreemptionEntry:
        """Returns it in texts; it has that many victims, of whom some may be left out here."""
        key = self.preemptor.key
        owner = owner_text(self.preemptor) if isinstance(self.preemptor, Pod) else f"group {key}"
        named = tuple(each.key for each in self.victims)
        return PreemptionEntry(serial, key, owner, self.node, count, named)


@dataclass(slots=True)
class _UnderWay:
    """A pod or a group whose victims are still to be evicted."""

    kind: str
    uid: str
    #: The plugin that found them.
    plugin: str
    #: When they were asked for.
    since: float
    #: The event to record for each victim once it is evicted, by uid.
    events: dict[str, RecordEvent] = field(default_factory=dict)


class Evictions:
    """The preemptions that are under way, and the latest ones.

    A pod or a group is held back until the evictions for it were carried out or failed.
    """

    def __init__(self, emit: Callable[[Action], None], observer: Observer = UNOBSERVED) -> None:
        self._emit = emit
        self._observer = observer
        self._under_way: dict[EntityKey, _UnderWay] = {}
        # By uid. In manifests, a pod may have the uid of a group.
        self._groups: dict[str, EntityKey] = {}
        # With the numbers of victims. Texts are made when somebody reads them.
        self._latest: deque[tuple[PlannedPreemption, int]] = deque(maxlen=_MOST_ENTRIES)
        #: How many preemptions there were in all.
        self.count = 0

    def since(self, count: int) -> list[PreemptionEntry]:
        """Returns the preemptions after that many, as far as they are kept, the oldest first."""
        first = self.count - len(self._latest) + 1
        return [
            each.describe(serial, victims)
            for serial, (each, victims) in enumerate(self._latest, first)
            if serial > count
        ]

    def hold_back(self, key: EntityKey) -> tuple[str, Rejected] | None:
        """Returns why a pod or a group must not be tried yet: victims are still being evicted."""
        known = self._under_way.get(key)
        if known is None:
            return None
        why = f"waiting for the preemption for this {_KINDS[known.kind]} to be finished"
        return known.plugin, unresolvable(why)

    def begin(
        self,
        preemption: PlannedPreemption,
        take_back: Callable[[Pod, str, float], bool],
        now: float,
    ) -> None:
        """Asks for the eviction of victims; `take_back` undoes the placement of one not yet bound.

        It returns whether the victim was such a pod, which then needs no eviction.
        """
        self.count += 1
        named = preemption.victims[:_MOST_NAMED]
        kept = msgspec.structs.replace(preemption, victims=named)
        self._latest.append((kept, len(preemption.victims)))
        kind, ref, profile = preemption.kind, preemption.ref, preemption.profile
        key = preemption.key
        message = f"{profile}: preempting to accommodate a higher priority {_PREEMPTORS[kind]}"
        where = preemption.node, profile
        known = self._under_way.setdefault(key, _UnderWay(kind, ref.uid, preemption.plugin, now))
        if kind == PODGROUP:
            self._groups[ref.uid] = key
        for victim in preemption.victims:
            about = PodRef.to(victim)
            if take_back(victim, preemption.plugin, now):
                suffix = " (in kube-scheduler memory)." if kind == POD else ""
                self._emit(actions.make_preemption_event(about, ref, *where, suffix))
            else:
                known.events[victim.uid] = actions.make_preemption_event(about, ref, *where)
                self._emit(EvictPod(about, ref, message))
        if not known.events:
            self._observer.victims_left(kind, "success", now - known.since)
            self.forget(key)

    def evicted(self, victim_uid: str, uid: str, now: float) -> EntityKey | None:
        """Handles the eviction of a victim for the pod or the group of a uid.

        Returns that pod or group if it has no victims left to wait for.
        """
        key = self._groups.get(uid, uid)
        known = self._under_way.get(key)
        event = None if known is None else known.events.pop(victim_uid, None)
        if event is None:
            return None
        self._emit(event)
        return self._finish(key, "success", now)

    def failed(self, victim_uid: str, uid: str, now: float) -> EntityKey:
        """Handles a failed eviction; returns whom to try at once, because it needs another way."""
        key = self._groups.get(uid, uid)
        known = self._under_way.get(key)
        if known is not None:
            known.events.pop(victim_uid, None)
            self._finish(key, "error", now)
        return key

    def forget(self, key: EntityKey) -> None:
        """Forgets a pod or a group that is gone or placed."""
        known = self._under_way.pop(key, None)
        if known is not None and known.kind == PODGROUP:
            del self._groups[known.uid]

    def drop(self, uid: str) -> None:
        """Forgets whatever is under way for a uid."""
        self.forget(uid)
        self.forget(self._groups.get(uid, uid))

    def _finish(self, key: EntityKey, result: str, now: float) -> EntityKey | None:
        known = self._under_way[key]
        if known.events:
            return None
        self._observer.victims_left(known.kind, result, now - known.since)
        self.forget(key)
        return key
