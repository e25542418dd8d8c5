"""Hearing how deciding goes: how long things take and what comes of them.

An observer is told, and nothing it says is read: decisions are the same with any observer and
with none. It brings the clock, because there is none here, and only durations are made of it.
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
PRE_SCORE: Final = "PreScore"
SCORE: Final = "Score"
NORMALIZE: Final = "ScoreExtensionNormalize"
RESERVE: Final = "Reserve"
UNRESERVE: Final = "Unreserve"
PERMIT: Final = "Permit"
# Of these three whoever performs bindings tells.
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
    """Hears nothing. Subclasses hear what they want; a hook must not raise, nor keep what it gets.

    Names of profiles and plugins are plain strings, times are seconds by the observer's own clock
    unless said otherwise.
    """

    def __init__(self, clock: Clock = float) -> None:
        # Called as a function of no arguments, float is the quickest clock that stands still.
        self.clock = clock
        #: When the attempt under way began.
        self.began = 0.0
        #: Whether it is one in which every plugin call is timed, and Reserve as a whole.
        self.is_sampling = False

    @property
    def is_there(self) -> bool:
        """Whether anybody hears. What every pod goes through is spared the hooks if not."""
        return self is not UNOBSERVED

    # Attempts

    def begins(self) -> float:
        """An attempt begins; returns the time, to be given back when it ends."""
        return self.began

    def ranked(self, profile: str) -> Durations:
        """Where to tell of decisions that were made by the ranking of a class."""
        return _NOWHERE

    def decided(self, profile: str, served: bool, found: bool) -> None:
        """A decision was made otherwise; `served` if the answers for like pods were enough."""

    def settles(self) -> None:
        """Some decisions were made: time to look at their durations, if there are many."""

    def despairs(self, began: float) -> None:
        """No node was found for the attempt that began then, and no remedy either, or one was."""

    def failed(self, profile: str, result: str, began: float) -> None:
        """The attempt came to nothing: `unschedulable` or `error`."""

    def scheduled(self, profile: str, began: float, attempts: int, waited: float | None) -> None:
        """The pod is bound. `waited` is by the clock of events, since it was first let in."""

    def flushed(self) -> None:
        """The pod that was just scheduled had been woken only because it waited for too long."""

    # Extension points

    def ran(self, point: str, status: str, profile: str, began: float) -> None:
        """All plugins of a point ran."""

    def asked(self, point: str, plugin: str, status: str, began: float) -> None:
        """One plugin was asked; told only while sampling."""

    def evaluated(self, profile: str, point: str, plugins: Iterable[str]) -> None:
        """These plugins had a say."""

    def stored(self, profile: str, began: float) -> None:
        """Answers were kept for pods like the one at hand."""

    # What follows

    def permit_waited(self, status: str, seconds: float) -> None:
        """A permit that was waited for was given or refused, by the clock of events."""

    def remedy_sought(self) -> None:
        """Preemption was tried for a pod."""

    def evicting(self, victims: int) -> None:
        """Preemption found its victims."""

    # Events

    def hinted(self, plugin: str, event: str, hint: str, began: float) -> None:
        """A plugin said whether an event concerns a pod that waits: Queue, QueueSkip or Error."""

    def hint_broke(self, plugin: str, pod: str, event: str, error: BaseException) -> None:
        """A hint raised, so that the pod (by namespace and name) is tried for good measure."""

    def handled(self, event: str, began: float) -> None:
        """An event was taken in."""


#: For engines that nobody looks at.
UNOBSERVED: Final = Observer()


class Running:
    """One run of all plugins of a point, told to the observer at its end."""

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
        self._observer.ran(self._point, status, self._profile, self._began)


class Named(Protocol):
    """Whatever has a name: a plugin."""

    @property
    def name(self) -> str: ...


#: Calls a plugin's method with arguments.
Ask = Callable[..., Any]


def asking(observer: Observer, point: str) -> Ask:
    """How to call the plugins at a point: plainly, or so that the observer hears of each call."""
    if not observer.is_sampling:
        return ask_plainly

    def ask(plugin: Named, method: Callable[..., Any], *args: Any) -> Any:
        began = observer.clock()
        try:
            answer = method(*args)
        except BaseException:
            observer.asked(point, plugin.name, ERROR, began)
            raise
        observer.asked(point, plugin.name, status_of(answer, point), began)
        return answer

    return ask


def ask_plainly(plugin: Named, method: Callable[..., Any], *args: Any) -> Any:
    """Calls a plugin's method and tells nobody."""
    return method(*args)


def status_of(answer: Any, point: str) -> str:
    """The status that an answer stands for."""
    if answer is None:
        return SKIP if point in _SKIPPING else SUCCESS
    if isinstance(answer, Rejected | NoRemedy):
        return answer.code.value
    return "Wait" if isinstance(answer, Wait) else SUCCESS
