"""Observers of deciding: how long things take, and what comes of them.

Nothing that an observer returns alters a decision. It brings the clock, because there is none
here, and only durations are made of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, Self

from .plugin import NoRemedy, Wait
from .status import Rejected

Clock = Callable[[], float]

# Extension points and statuses, by kube-scheduler's names.
PRE_ENQUEUE: Final = "PreEnqueue"
PRE_FILTER: Final = "PreFilter"
FILTER: Final = "Filter"
POST_FILTER: Final = "PostFilter"
GROUP_POST_FILTER: Final = "PodGroupPostFilter"
PLACEMENT_GENERATE: Final = "PlacementGenerate"
PLACEMENT_SCORE: Final = "PlacementScore"
PRE_SCORE: Final = "PreScore"
SCORE: Final = "Score"
NORMALIZE: Final = "ScoreExtensionNormalize"
RESERVE: Final = "Reserve"
UNRESERVE: Final = "Unreserve"
PERMIT: Final = "Permit"
# These three are reported by what performs bindings.
PRE_BIND: Final = "PreBind"
BIND: Final = "Bind"
POST_BIND: Final = "PostBind"
SUCCESS: Final = "Success"
SKIP: Final = "Skip"
ERROR: Final = "Error"

#: Where an answer of None means that the plugin has no say, and not that it agrees.
_SKIPPING = (PRE_FILTER, PRE_SCORE)


class Durations(Protocol):
    """Takes durations in seconds, one by one.

    For what most pods go through: to add to an array takes a fraction of the time of a call.
    """

    def append(self, seconds: float, /) -> None: ...


_NOWHERE: Durations = deque(maxlen=0)


class Observer:
    """Ignores everything. Subclasses override hooks, which must not raise or keep their arguments.

    Names of profiles and plugins are plain strings. Times are seconds of the observer's own clock,
    unless said otherwise.
    """

    def __init__(self, clock: Clock = float) -> None:
        # Called as a function of no arguments, float is the quickest clock that stands still.
        self.clock = clock
        #: When the attempt under way began.
        self.began = 0.0
        #: Whether it is one in which every plugin call is timed, and Reserve as a whole.
        self.is_sampling = False

    # Attempts

    def attempt_began(self) -> float:
        """Called when an attempt begins; returns the time, which the hooks at its end take."""
        return self.began

    def batch_durations(self, profile: str) -> Durations:
        """Takes the durations of decisions that were made by the ranking of a class."""
        return _NOWHERE

    def decision_made(self, profile: str, served: bool, found: bool) -> None:
        """Called for other decisions; `served` if the answers for like pods were enough."""

    def step_ended(self) -> None:
        """Called when a step ends, after some decisions."""

    def attempt_failed(self, began: float) -> None:
        """Called when an attempt ends without a placement."""

    def pod_failed(self, profile: str, result: str, began: float) -> None:
        """Called when a pod goes back to the queue; the result is `unschedulable` or `error`."""

    def pod_scheduled(
        self, profile: str, began: float, attempts: int, waited: float | None
    ) -> None:
        """Called when a pod is bound. `waited` is by the clock of events, since it was queued."""

    def group_tried(self, profile: str, result: str, began: float) -> None:
        """Called when an attempt to place a group of pods ends."""

    def group_decided(self, began: float) -> None:
        """Called when it was decided where the members of a group go."""

    def domains_found(self, profile: str, count: int) -> None:
        """Called with the number of domains in which a group may be placed."""

    def domains_counted(self, profile: str, feasible: int, infeasible: int) -> None:
        """Called when it was counted which domains take a group."""

    def domain_tried(self, profile: str, is_feasible: bool, began: float) -> None:
        """Called when a group was tried in a domain."""

    def flush_helped(self) -> None:
        """Called if the pod just scheduled was tried only because it had waited for too long."""

    # Extension points

    def point_ran(self, point: str, status: str, profile: str, began: float) -> None:
        """Called when all plugins of a point ran."""

    def plugin_asked(self, point: str, plugin: str, status: str, began: float) -> None:
        """Called for each call of a plugin, only while sampling."""

    def plugins_evaluated(self, profile: str, point: str, plugins: Iterable[str]) -> None:
        """Called with the plugins of a point that did not skip themselves."""

    def answers_stored(self, profile: str, began: float) -> None:
        """Called when answers were kept for pods like the one at hand."""

    # What follows

    def permit_waited(self, status: str, seconds: float) -> None:
        """Called when a wait for a permit ends; the seconds are by the clock of events."""

    def devices_waited(
        self, profile: str, drivers: Iterable[str], status: str, seconds: float
    ) -> None:
        """Called when a wait for devices to be made ready ends, with the driver of each device.

        The status is success, failed, timeout or error; the seconds are by the clock of events.
        """

    def remedy_sought(self) -> None:
        """Called when post-filters were asked for a pod."""

    def victims_sought(self, preemptor: str, result: str, began: float) -> None:
        """Called when victims were looked for, with the code of what was found."""

    def victims_found(
        self, preemptor: str, victims: int, disruptions: int, violations: int
    ) -> None:
        """Called when preemption found its victims.

        Disruptions are victims of groups; one that is evicted whole counts once. Violations are
        victims beyond what a budget allows.
        """

    def victims_left(self, preemptor: str, result: str, seconds: float) -> None:
        """Called when all victims were asked to go; the seconds are by the clock of events."""

    # Events

    def hint_answered(self, plugin: str, event: str, hint: str, began: float) -> None:
        """Called for each answer to an event: Queue, QueueSkip or Error."""

    def hint_broke(self, plugin: str, pod: str, event: str, error: BaseException) -> None:
        """Called when a hint breaks; the pod (by namespace and name) is tried again."""

    def event_handled(self, event: str, began: float) -> None:
        """Called when an event was taken in."""


#: Who needs room.
POD: Final = "pod"
PODGROUP: Final = "podgroup"

#: The observer of engines that are not observed.
UNOBSERVED: Final = Observer()


class PointTimer:
    """Times one run of all plugins of a point."""

    __slots__ = ("_began", "_observer", "_point", "_profile", "status")

    def __init__(self, observer: Observer, point: str, profile: str) -> None:
        self._observer, self._point, self._profile = observer, point, profile
        #: What came of it, unless something is raised: then it is an error.
        self.status = SUCCESS

    def __enter__(self) -> Self:
        self._began = self._observer.clock()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        status = self.status if kind is None else ERROR
        self._observer.point_ran(self._point, status, self._profile, self._began)


class Named(Protocol):
    """Something with a name, such as a plugin."""

    @property
    def name(self) -> str: ...


#: Calls a plugin's method with arguments.
Caller = Callable[..., Any]


def make_caller(observer: Observer, point: str) -> Caller:
    """Returns a function that calls the plugins of a point; while sampling, it times each call."""
    if not observer.is_sampling:
        return call_plainly

    def ask(plugin: Named, method: Callable[..., Any], *args: Any) -> Any:
        began = observer.clock()
        try:
            answer = method(*args)
        except BaseException:
            observer.plugin_asked(point, plugin.name, ERROR, began)
            raise
        observer.plugin_asked(point, plugin.name, status_of(answer, point), began)
        return answer

    return ask


def call_plainly(plugin: Named, method: Callable[..., Any], *args: Any) -> Any:
    """Calls a method of a plugin, without timing it."""
    return method(*args)


def status_of(answer: Any, point: str) -> str:
    """Returns the status for the metrics of an answer."""
    if answer is None:
        return SKIP if point in _SKIPPING else SUCCESS
    if isinstance(answer, Rejected | NoRemedy):
        return answer.code.value
    return "Wait" if isinstance(answer, Wait) else SUCCESS
