"""Gives an engine the recorded events, and compares its actions with the recorded ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from moorage.documents.errors import DecodeError, InputError
from moorage.engine import Engine
from moorage.engine.actions import (
    Action,
    AskExtender,
    BindPod,
    EvictPod,
    PatchPodGroupStatus,
    PatchPodStatus,
    RecordEvent,
    Report,
    WriteVolumes,
    encode,
)
from moorage.engine.events import (
    Applied,
    BindingFailed,
    Event,
    EvictionFailed,
    ExtenderAnswered,
    Removed,
)
from moorage.framework.stamps import find_stamp
from moorage.objects.custom import CustomKind
from moorage.objects.decode import from_json
from moorage.objects.kinds import READ_KINDS, Object
from moorage.objects.pod import NO_STAMP, Pod
from moorage.world.shadow_report import JudgedPlacement

from .format import OUTCOMES, RecordLine, find_object_key
from .judgement_check import JudgementCheck
from .reader import Segment

# Of so many differences the details are kept; all are counted.
_MOST_KEPT = 1_000

_ACTION: msgspec.json.Decoder[Action] = msgspec.json.Decoder(Action)
_ACTIONS: msgspec.json.Decoder[tuple[Action, ...]] = msgspec.json.Decoder(tuple[Action, ...])

_NOT_RECORDED = "the recording knows nothing of this"


@dataclass(frozen=True, slots=True)
class StepDifference:
    """Actions of a step about one pod that differ. Without a pod the whole step differs."""

    where: str
    at: float
    pod: str
    recorded: tuple[Action | JudgedPlacement, ...] = ()
    replayed: tuple[Action | JudgedPlacement, ...] = ()
    #: What failed, where something did.
    recorded_error: str = ""
    replayed_error: str = ""


class ReplayListener:
    """Follows a replay. The methods here do nothing."""

    def on_event(self, at: float, event: Event) -> None:
        """Called before the engine handles an event."""

    def on_step(self, at: float, actions: Sequence[Action]) -> None:
        """Called after the engine has made a step."""


@dataclass(slots=True)
class ReplayCounts:
    """What a replay has counted and found so far."""

    events: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    differences: list[StepDifference] = field(default_factory=list)
    difference_count: int = 0
    #: How often a pod failed once more that waits now behind one like it.
    untried_count: int = 0
    began: float | None = None
    now: float = 0.0
    #: Why the recording ends, if its last line says so.
    end: str = ""


class Replayer:
    """Drives an engine with recorded events, and compares.

    Whatever the engine decides, the next event is the recorded one. A different decision is taken
    back, so that differences do not spread.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        placements_only: bool,
        listener: ReplayListener,
        is_beside: bool = False,
    ) -> None:
        """With `placements_only`, it compares only which pods go where and which are evicted.

        `is_beside` says that another scheduler decided.
        """
        self.engine = engine
        # What plugins said to waiting pods is among what was recorded.
        engine.on_answer = lambda event: None
        self.counts = ReplayCounts()
        self._placements_only = placements_only
        self._listener = listener
        #: Judges the placements of another scheduler, if one decided.
        self.check = JudgementCheck(engine, placements_only=placements_only) if is_beside else None
        self._known: dict[tuple[str, str], Object] = {}

    def begin(self, segment: Segment, number: int, line: RecordLine) -> None:
        """Takes in an object that was known when the segment began."""
        where, header = segment.where(number), segment.header
        if line.apply is None:
            raise InputError(where, f"must be one of {header.objects} objects that are known")
        if self.counts.began is None:
            self.counts.began = header.at
        item = self._read_object(where, line.apply, line)
        if isinstance(item, Pod) and item.uid in header.assumed:
            # It is on its way, and nobody is to decide about it again.
            profile = self.engine.profiles.get(item.spec.scheduler_name)
            stamp = NO_STAMP if profile is None else find_stamp(profile, item)
            item = item.on(header.assumed[item.uid], stamp)
        self.counts.events["known"] += 1
        self._handle(where, header.at if line.at is None else line.at, Applied(item))

    def take(self, segment: Segment, number: int, line: RecordLine) -> None:
        """Takes in any other line. Raises InputError if it is not valid."""
        where = segment.where(number)
        if line.at is None:
            raise InputError(where, "at: is required")
        counts = self.counts
        if counts.began is None:
            counts.began = line.at
        counts.now = line.at
        counts.end = line.end or ""
        if line.end is not None:
            return
        if line.step is not None:
            self._step(where, line.at, line)
        elif line.judged is not None:
            self._compare_judged(where, line.at, line.judged)
        else:
            self._handle(where, line.at, self._read_event(where, line))

    @property
    def decisions(self) -> int:
        if self.check is not None:
            return self.check.shadow.counts.total()
        return sum(each.statistics.decisions for each in self.engine.classes.values())

    @property
    def seconds(self) -> float:
        """How many seconds have passed since the recording began."""
        began = self.counts.began
        return 0.0 if began is None else self.counts.now - began

    # Events

    def _read_event(self, where: str, line: RecordLine) -> Event:
        if line.apply is not None:
            self.counts.events["applied"] += 1
            return Applied(self._read_object(where, line.apply, line))
        if line.remove is not None:
            self.counts.events["removed"] += 1
            return Removed(self._take_removed(where, line.remove, line.key))
        self.counts.events["outcomes"] += 1
        return _read_outcome(where, line)

    def _read_object(self, where: str, kind: str, line: RecordLine) -> Object:
        item = read_object(where, kind, line)
        self._known[kind, find_object_key(item)] = item
        return item

    def _take_removed(self, where: str, kind: str, key: str | None) -> Object:
        item = self._known.pop((kind, key or ""), None)
        if item is None:
            raise InputError(where, f"key: there is no {kind} {key!r} to remove")
        return item

    def _handle(self, where: str, at: float, event: Event) -> None:
        self._listener.on_event(at, event)
        try:
            if self.check is None:
                self.engine.handle(event, at)
            elif (judged := self.check.handle(event, at)) is not None:
                self._differ(StepDifference(where, at, judged.pod, replayed=(judged,)))
        except Exception as error:  # noqa: BLE001 - that it fails is what is to be found out
            self._differ(StepDifference(where, at, "", replayed_error=_describe(error)))

    def _compare_judged(self, where: str, at: float, recorded: JudgedPlacement) -> None:
        if self.check is None:
            raise InputError(where, "judged: the first line says that no other scheduler decided")
        made = self.check.compare(where, recorded)
        if made is not None:
            self._differ(StepDifference(where, at, recorded.pod, (recorded,), (made,)))

    # Steps

    def _step(self, where: str, at: float, line: RecordLine) -> None:
        recorded = tuple(
            _read_action(where, number, raw) for number, raw in enumerate(line.actions)
        )
        self.counts.steps += 1
        failed = ""
        replayed: list[Action] = []
        try:
            replayed = self.engine.step(at, line.step or 0)
        except Exception as error:  # noqa: BLE001 - that it fails is what is to be found out
            failed = _describe(error)
        self._listener.on_step(at, replayed)
        if failed != (line.error or ""):
            recorded_error = line.error or ""
            self._differ(
                StepDifference(where, at, "", recorded_error=recorded_error, replayed_error=failed)
            )
        if tuple(replayed) != recorded and (as_read := _read_back(replayed)) != recorded:
            self._compare(where, at, recorded, as_read)
            self._take_back(recorded, replayed, at)

    def _compare(
        self, where: str, at: float, recorded: tuple[Action, ...], replayed: tuple[Action, ...]
    ) -> None:
        if self._placements_only:
            recorded, replayed = _keep_placements(recorded), _keep_placements(replayed)
        before, after = _group_by_pod(recorded), _group_by_pod(replayed)
        pods = [pod for pod in {**before, **after} if before.get(pod) != after.get(pod)]
        for pod in pods:
            sides = tuple(before.get(pod, ())), tuple(after.get(pod, ()))
            if not sides[1] and self._is_represented(sides[0]):
                self.counts.untried_count += 1
            else:
                self._differ(StepDifference(where, at, pod, *sides))
        # Pods that were not tried again keep their turn, so that others change theirs.
        is_free = self._placements_only or self.counts.untried_count > 0
        if not pods and recorded != replayed and not is_free:
            self._differ(StepDifference(where, at, "", recorded, replayed))

    def _is_represented(self, recorded: Sequence[Action]) -> bool:
        """Whether a pod only failed again and waits. Earlier versions tried all like pods."""
        queue = self.engine.queue
        return all(
            isinstance(action, RecordEvent | PatchPodStatus)
            and queue.get(action.pod.uid) is not None
            for action in recorded
        )

    def _take_back(self, recorded: Sequence[Action], replayed: Sequence[Action], at: float) -> None:
        """Takes back actions that no recorded outcome will follow."""
        done = {action.pod.uid for action in recorded if isinstance(action, BindPod | WriteVolumes)}
        evicted = {_eviction_key(action) for action in recorded if isinstance(action, EvictPod)}
        asked = {_question_key(action) for action in recorded if isinstance(action, AskExtender)}
        for action in replayed:
            if isinstance(action, BindPod | WriteVolumes) and action.pod.uid not in done:
                self.engine.handle(BindingFailed(action.pod.uid, _NOT_RECORDED), at)
            elif isinstance(action, EvictPod) and _eviction_key(action) not in evicted:
                self.engine.handle(EvictionFailed(*_eviction_key(action), _NOT_RECORDED), at)
            elif isinstance(action, AskExtender) and _question_key(action) not in asked:
                nothing = ExtenderAnswered(*_question_key(action), failure=_NOT_RECORDED)
                self.engine.handle(nothing, at)

    def _differ(self, difference: StepDifference) -> None:
        self.counts.difference_count += 1
        if len(self.counts.differences) < _MOST_KEPT:
            self.counts.differences.append(difference)


def find_pod_key(action: Action) -> str:
    """Returns namespace and name of the pod that an action is about; empty if there is none."""
    if isinstance(action, Report):
        return ""
    about = action.group if isinstance(action, PatchPodGroupStatus) else action.pod
    return f"{about.namespace}/{about.name}"


def _keep_placements(actions: Sequence[Action]) -> tuple[Action, ...]:
    return tuple(action for action in actions if isinstance(action, BindPod | EvictPod))


def _group_by_pod(actions: Sequence[Action]) -> dict[str, list[Action]]:
    found: dict[str, list[Action]] = {}
    for action in actions:
        found.setdefault(find_pod_key(action), []).append(action)
    return found


def _eviction_key(action: EvictPod) -> tuple[str, str]:
    return action.pod.uid, action.preemptor.uid


def _question_key(action: AskExtender) -> tuple[str, int, int]:
    return action.pod.uid, action.attempt, action.number


def _read_action(where: str, number: int, raw: msgspec.Raw) -> Action:
    try:
        return _ACTION.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InputError(where, f"actions[{number}]: {error}") from None


def _read_back(actions: Sequence[Action]) -> tuple[Action, ...]:
    """Returns actions as a recording of them reads, in which every sequence is a list."""
    try:
        return _ACTIONS.decode(encode(actions))
    except Exception:  # noqa: BLE001 - plugins' texts may be anything; such a step is not recorded
        return tuple(actions)


def _read_outcome(where: str, line: RecordLine) -> Event:
    kind = OUTCOMES.get(line.told or "")
    if kind is None:
        raise InputError(where, f"told: {line.told!r} is not known")
    try:
        event: Event = msgspec.convert(line.about, kind)
    except msgspec.ValidationError as error:
        raise InputError(where, f"about: {error}") from None
    return event


def read_object(where: str, kind: str, line: RecordLine) -> Object:
    """Reads the object of a line. Raises InputError."""
    known = _find_kind(where, kind, line)
    if not line.object:
        raise InputError(where, "object: is required")
    try:
        return from_json(known, bytes(line.object))
    except (DecodeError, RecursionError) as error:
        raise InputError(where, kind, f"object: {error}") from None


def _find_kind(where: str, kind: str, line: RecordLine) -> str | CustomKind:
    """Returns how to read an object.

    The engine takes custom resources that its plugins asked for.
    """
    if line.api_version is not None:
        group, _, version = line.api_version.rpartition("/")
        return CustomKind(group, version, kind, plural="")
    if kind not in READ_KINDS:
        raise InputError(where, f"apply: kind {kind!r} is not known")
    return kind


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
