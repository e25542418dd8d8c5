"""The states in which another scheduler may have decided a pod.

It decides in the order of its queue and assumes what it has decided; it binds later, in any order.
When it decided the pod, it had read the watch of pods up to some point between the pod's arrival
and its binding, and the watches of other kinds up to points of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from itertools import islice

from moorage.cluster.recount import Identity
from moorage.engine.events import Applied, Removed
from moorage.objects.kinds import Object
from moorage.objects.node import Node
from moorage.objects.pod import Pod

from .shadow_history import RECENT_SECONDS, HistoryEntry, QueueTurn, ShadowHistory

# The other may be so many changes of nodes, or of other kinds, behind or ahead.
_MOST_CUTS = 32
# So many names are listed for each sort of change.
_MOST_NAMED = 3

_POD, _NODE = Pod.__name__, Node.__name__


class _Order(Enum):
    """Whether a pod was decided before or after the pod in question."""

    EARLIER = auto()
    LATER = auto()
    #: Earlier if it had been heard of: its priority is higher, but it came later.
    OVERTAKES = auto()
    UNKNOWN = auto()


@dataclass(slots=True)
class _PastPod:
    """A pod that came to a node, changed there or left since the pod in question was seen."""

    entries: list[HistoryEntry]
    order: _Order = _Order.EARLIER
    #: The turn of one that came from the queue, and under which number it came.
    turn: QueueTurn | None = None
    came: int = 0

    @property
    def present(self) -> Object | None:
        """Its present form."""
        return self.entries[-1].after

    def seen_before(self, number: int) -> Object | None:
        """Returns its form as seen just before a number."""
        before = (each.after for each in reversed(self.entries) if each.number < number)
        return next(before, self.entries[0].before)

    def form_at(self, heard: int) -> Object | None:
        """Returns its form as the other scheduler saw it, if it was decided."""
        # One that is not bound yet is assumed where it will be.
        return self.seen_before(max(heard, self.came) + 1)


@dataclass(slots=True, frozen=True)
class _State:
    """The values in which one state differs from others."""

    #: The number up to which pods had been heard of.
    heard: int
    #: The pods of unknown order that had not been decided.
    undecided: frozenset[str]
    #: How many of the changes of nodes, and of other kinds, had been heard of.
    nodes: int
    others: int


class PastStates:
    """The states in which a pod may have been decided. The engine shows one at a time."""

    def __init__(
        self, history: ShadowHistory, uid: str, turn: QueueTurn, bound: int, now: float
    ) -> None:
        """`bound` is the number of the event that bound the pod."""
        self._engine, self._now = history.engine, now
        self._uid, self._turn, self._bound = uid, turn, bound
        self._pods: dict[str, _PastPod] = {}
        self._nodes: list[HistoryEntry] = []
        self._others: list[HistoryEntry] = []
        #: What is there now of all that has changed.
        self._present: dict[Identity, Object | None] = {}
        #: What the engine shows instead.
        self._shown: dict[Identity, Object | None] = {}
        for entry in history.recent:
            if now - entry.at <= RECENT_SECONDS:
                self._sort_in(entry)
        for each, past in self._pods.items():
            past.order = self._find_order(each, past)

    def _sort_in(self, entry: HistoryEntry) -> None:
        kind, name = entry.what
        if kind == _NODE:
            self._nodes.append(entry)
        elif kind != _POD:
            self._others.append(entry)
        elif entry.number <= self._turn.seen:
            return
        elif name in self._pods:
            self._pods[name].entries.append(entry)
        else:
            self._pods[name] = _PastPod([entry])
        if entry.turn is not None:
            self._pods[name].turn, self._pods[name].came = entry.turn, entry.number
        self._present[entry.what] = entry.after

    def _find_order(self, uid: str, past: _PastPod) -> _Order:
        turn, mine = past.turn, self._turn
        if uid == self._uid:
            return _Order.LATER
        if turn is None:
            return _Order.EARLIER
        if turn.is_open or mine.is_open:
            return _Order.UNKNOWN
        if turn.arrival < mine.arrival:
            return _Order.EARLIER if turn.priority >= mine.priority else _Order.UNKNOWN
        return _Order.LATER if turn.priority <= mine.priority else _Order.OVERTAKES

    def find(self, is_so: Callable[[], bool], most: int) -> str | None:
        """Tries that many states, the latest first, until a condition holds; describes it."""
        try:
            for state in islice(self._list_states(), most):
                self._show(self._compare(state))
                if is_so():
                    return self._describe(state)
            return None
        finally:
            self._show({})

    def _list_states(self) -> Iterator[_State]:
        heard = self._list_heard()
        all_unknown = self._list_unknown()
        # One whose binding had been heard of had been decided.
        unknown = [[uid for uid, came in all_unknown if came > each] for each in heard]
        nodes, others = self._list_cuts(self._nodes), self._list_cuts(self._others)
        furthest = len(heard) + max(map(len, unknown)) + len(nodes) + len(others)
        # Those that are a step further off than the ones before.
        for steps in range(furthest):
            for at in range(min(steps + 1, len(heard))):
                for node in range(min(steps - at + 1, len(nodes))):
                    for other in range(min(steps - at - node + 1, len(others))):
                        back = steps - at - node - other
                        if back <= len(unknown[at]):
                            undecided = frozenset(unknown[at][:back])
                            yield _State(heard[at], undecided, nodes[node], others[other])

    def _list_cuts(self, entries: list[HistoryEntry]) -> list[int]:
        """Yields how many of the changes may have been heard of, the state at the binding first."""
        seen = _count_before(entries, self._bound)
        cuts = sorted(range(len(entries) + 1), key=lambda cut: (abs(cut - seen), cut))
        return cuts[:_MOST_CUTS]

    def _list_heard(self) -> list[int]:
        """Yields the numbers up to which pods may have been heard of: a few first, then all."""
        # The other had not heard of a binding before it decided the pod.
        later = (each.came for each in self._pods.values() if each.order is _Order.LATER)
        last = min((self._bound, *(came for came in later if came))) - 1
        numbers = {last}
        for past in self._pods.values():
            if past.order is _Order.OVERTAKES and past.turn is not None:
                numbers.add(past.turn.arrival - 1)
            for entry in past.entries:
                if entry.turn is None or past.order is _Order.UNKNOWN:
                    numbers.add(entry.number - 1)
        found = sorted((at for at in numbers if self._turn.seen <= at <= last), reverse=True)
        # Few changes matter for a pod, so that between two of them most places are as good.
        return [found[at] for at in _order_places(len(found))]

    def _list_unknown(self) -> list[tuple[str, int]]:
        """Returns pods that may or may not have been decided, the last in turn first."""
        found = [
            (past.turn.place, uid, past.came)
            for uid, past in self._pods.items()
            if past.order is _Order.UNKNOWN and past.turn is not None
        ]
        return [(uid, came) for _, uid, came in sorted(found, reverse=True)]

    def _compare(self, state: _State) -> dict[Identity, Object | None]:
        """Yields the differences between a state and the present."""
        found: dict[Identity, Object | None] = {}
        for uid, past in self._pods.items():
            then = past.form_at(state.heard) if _was_decided(uid, past, state) else None
            if then is not past.present:
                found[_POD, uid] = then
        for entries, heard in ((self._nodes, state.nodes), (self._others, state.others)):
            found |= {each.what: each.before for each in reversed(entries[heard:])}
        return found

    def _show(self, wanted: dict[Identity, Object | None]) -> None:
        """Makes the engine show other objects than there are."""
        for what in {**self._shown, **wanted}:
            old = self._shown.get(what, self._present[what])
            new = wanted.get(what, self._present[what])
            if new is old:
                continue
            if new is not None:
                self._engine.handle(Applied(new), self._now)
            elif old is not None:
                self._engine.handle(Removed(old), self._now)
        self._shown = wanted

    def _describe(self, state: _State) -> str:
        """Describes how a state differs from the one in which the binding was seen."""
        found: dict[str, list[str]] = {}
        for uid, past in self._pods.items():
            then = past.form_at(state.heard) if _was_decided(uid, past, state) else None
            seen = past.seen_before(self._bound)
            item = then or seen
            if then is not seen and isinstance(item, Pod):
                found.setdefault(self._name_difference(past, then, seen), []).append(item.key)
        for entries, cut in ((self._nodes, state.nodes), (self._others, state.others)):
            known = _count_before(entries, self._bound)
            how = "before {} changes" if cut < known else "after {} changes"
            for entry in entries[min(cut, known) : max(cut, known)]:
                found.setdefault(how, []).append(" ".join(entry.what))
        texts = (f"{how.format(len(names))} ({_list_names(names)})" for how, names in found.items())
        return ", ".join(texts) or "as it is"

    def _name_difference(self, past: _PastPod, then: Object | None, seen: Object | None) -> str:
        if then is None:
            return "without {} pods that were decided later"
        if seen is not None:
            return "before changes of {} pods"
        if past.came >= self._bound:
            return "with {} pods that were bound later"
        return "with {} pods that had gone"


def _order_places(length: int) -> list[int]:
    """Yields the positions 0, 1, 2, 4, 8 and so on, then all others."""
    some = [0, *(1 << power for power in range(length.bit_length()) if 1 << power < length)]
    return list(dict.fromkeys((*some[:length], *range(length))))


def _was_decided(uid: str, past: _PastPod, state: _State) -> bool:
    """Whether a pod had been decided, or placed by others, in a state."""
    if past.order is _Order.LATER:
        return False
    if past.order is _Order.UNKNOWN:
        return past.came <= state.heard or uid not in state.undecided
    if past.order is _Order.OVERTAKES and past.turn is not None:
        return past.turn.arrival <= state.heard
    return True


def _count_before(entries: list[HistoryEntry], number: int) -> int:
    return sum(each.number < number for each in entries)


def _list_names(names: list[str]) -> str:
    more = len(names) > _MOST_NAMED
    return ", ".join((*names[:_MOST_NAMED], *("…",) * more))
