"""A pod on its way to a node: the answers of reserve, permit and pre-bind plugins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from moorage.cluster import Nodes
from moorage.framework import calls
from moorage.framework.device_writes import DeviceWrites
from moorage.framework.observe import (
    ERROR,
    PERMIT,
    RESERVE,
    SUCCESS,
    UNRESERVE,
    Observer,
    PointTimer,
    make_caller,
)
from moorage.framework.plugin import (
    PendingPermit,
    PendingPermits,
    PreBind,
    Preparation,
    Reserve,
    Wait,
)
from moorage.framework.profile import Profile
from moorage.framework.status import Code, PluginError, Rejected, check_text
from moorage.objects.pod import Pod
from moorage.queue import Entity

from .concerned import find_concerned
from .diagnosis import SCHEDULER_ERROR, UNSCHEDULABLE, Failure, refusal
from .events import Event, PermitRefused, Permitted

# A permit may not be waited for longer than this, whatever its plugin says.
_LONGEST_PERMIT_WAIT = 15 * 60.0

# The status of a point whose plugins refused a pod for a reason.
_STATUSES = {UNSCHEDULABLE: Code.UNSCHEDULABLE.value, SCHEDULER_ERROR: ERROR}


#: The state of a placement, which may be taken back from each.
PlacementState = Literal[
    # On its node; reserve and permit plugins are asked.
    "assumed",
    # Waits for permits.
    "permit",
    # Waits for what pre-bind plugins had written to come true.
    "preparing",
    # Its binding is asked for.
    "binding",
]


class Placement(msgspec.Struct, eq=False, gc=False):
    """A pod on its way to a node."""

    queued: Entity
    pod: Pod
    node_name: str
    profile: Profile
    state: PlacementState = "assumed"
    #: Until when which permit is waited for, and how long that is.
    permits: dict[str, tuple[float, float]] = {}
    #: Since when a permit is waited for.
    waits_since: float = 0.0
    #: Which plugin waits for what was written to come true, and until when.
    preparing: dict[PreBind, float] = {}
    #: What is written about its claims to devices, if anything.
    device_writes: DeviceWrites | None = None
    #: Whether that is still being written.
    is_writing: bool = False
    #: Since when drivers make its devices ready.
    devices_since: float = 0.0

    @property
    def deadlines(self) -> Iterator[float]:
        yield from (until for until, _ in self.permits.values())
        yield from self.preparing.values()


@dataclass(frozen=True, eq=False, slots=True)
class PluginPermits(PendingPermits):
    """The pods that wait for a permit plugin, whose answers become events."""

    _plugin: str
    _waiting: Mapping[str, Placement]
    _tell: Callable[[Event], None]

    def __iter__(self) -> Iterator[PendingPermit]:
        # A copy, since other threads may ask while pods come and go.
        for placement in list(self._waiting.values()):
            if self._plugin in placement.permits:
                yield PendingPermit(placement.pod, placement.node_name)

    def allow(self, uid: str) -> None:
        check_text("uid", uid)
        self._tell(Permitted(uid, self._plugin))

    def refuse(self, uid: str, message: str) -> None:
        check_text("uid", uid)
        check_text("message", message)
        self._tell(PermitRefused(uid, self._plugin, message))


def reserve(placement: Placement, nodes: Nodes, observer: Observer) -> Failure | None:
    """Asks the reserve plugins to reserve what the pod needs; the first refusal counts."""
    try:
        places = find_concerned(placement.pod, placement.profile).reserve
    except PluginError as error:
        return Failure(SCHEDULER_ERROR, str(error))
    if not places and not observer.is_sampling:
        return None
    plugins = placement.profile.reserve
    if not observer.is_sampling:
        # An attempt that is a sample tells of all plugins.
        plugins = tuple(plugins[at] for at in places)
    began = observer.clock()
    refused = _ask_to_reserve(plugins, placement, nodes, observer) if plugins else None
    # This runs for every pod, so that only samples are timed.
    if observer.is_sampling:
        status = SUCCESS if refused is None else _STATUSES[refused.reason]
        observer.point_ran(RESERVE, status, placement.profile.name, began)
    return refused


def _ask_to_reserve(
    plugins: Iterable[Reserve], placement: Placement, nodes: Nodes, observer: Observer
) -> Failure | None:
    ask = make_caller(observer, RESERVE) if observer.is_sampling else None
    row = nodes.row(placement.node_name)
    assert row is not None, "a pod is assumed on a node that is not there"
    for plugin in plugins:
        try:
            answer = calls.ask_reserve(plugin, ask, placement.pod, nodes, row)
        except PluginError as error:
            return Failure(SCHEDULER_ERROR, str(error))
        if answer is not None:
            return refusal(plugin.name, answer)
    return None


def unreserve(placement: Placement, nodes: Nodes, observer: Observer) -> list[str]:
    """Asks the reserve plugins to give back what they reserved; returns errors."""
    problems: list[str] = []
    with PointTimer(observer, UNRESERVE, placement.profile.name):
        for plugin in reversed(placement.profile.reserve):
            try:
                calls.ask_unreserve(plugin, placement.pod, nodes, placement.node_name)
            except PluginError as error:
                # The others must give back what they hold.
                problems.append(str(error))
    return problems


def ask_permits(placement: Placement, observer: Observer, now: float) -> Failure | None:
    """Asks the permit plugins, and notes in the placement those to wait for."""
    if not placement.profile.permit:
        return None
    with PointTimer(observer, PERMIT, placement.profile.name) as running:
        refused = _ask_each_permit(placement, observer, now)
        if refused is not None:
            running.status = _STATUSES[refused.reason]
        elif placement.permits:
            running.status = "Wait"
    return refused


def _ask_each_permit(placement: Placement, observer: Observer, now: float) -> Failure | None:
    ask = make_caller(observer, PERMIT)
    for plugin in placement.profile.permit:
        try:
            answer = calls.ask_permit(plugin, ask, placement.pod, placement.node_name)
        except PluginError as error:
            return Failure(SCHEDULER_ERROR, str(error))
        if isinstance(answer, Wait):
            seconds = min(answer.seconds, _LONGEST_PERMIT_WAIT)
            placement.permits[plugin.name] = now + seconds, seconds
        elif answer is not None:
            return refusal(plugin.name, answer)
    return None


def prepare(placement: Placement, nodes: Nodes, now: float) -> list[Preparation] | Failure:
    """Returns what pre-bind plugins want written; notes in the placement those that wait for it."""
    work: list[Preparation] = []
    for at in find_concerned(placement.pod, placement.profile).pre_bind:
        plugin = placement.profile.pre_bind[at]
        try:
            wanted = calls.ask_prepare(plugin, placement.pod, nodes, placement.node_name)
        except PluginError as error:
            return Failure(SCHEDULER_ERROR, str(error))
        if wanted is not None:
            placement.preparing[plugin] = now + wanted.timeout_seconds
            work.append(wanted)
            if wanted.devices is not None:
                placement.device_writes, placement.is_writing = wanted.devices, True
    return work


def check_preparations(placement: Placement, nodes: Nodes, now: float) -> Failure | None:
    """Asks whether what was written has come true; a plugin that says yes is not asked again."""
    for plugin, until in list(placement.preparing.items()):
        answer: bool | Rejected = False
        try:
            if placement.is_writing and until > now:
                continue
            answer = calls.ask_is_prepared(plugin, placement.pod, nodes, placement.node_name)
        except PluginError as error:
            answer = Rejected(Code.ERROR, (str(error),))
        if isinstance(answer, Rejected):
            return Failure(SCHEDULER_ERROR, answer.message)
        if answer:
            del placement.preparing[plugin]
        elif until <= now:
            late = "device binding timeout: context deadline exceeded"
            why = "binding volumes: timed out" if placement.device_writes is None else late
            what = f'running PreBind plugin "{plugin.name}": {why}'
            return Failure(SCHEDULER_ERROR, what)
    return None


def tell_of_devices(
    placement: Placement, observer: Observer, failure: Failure | None, now: float
) -> None:
    """Tells the observer how a wait for devices ended."""
    drivers = () if placement.device_writes is None else placement.device_writes.slow_drivers
    if not drivers or placement.is_writing:
        return
    status = "success"
    if failure is not None:
        endings = ("failed", "device binding failed"), ("timeout", "device binding timeout")
        found = (status for status, text in endings if text in failure.message)
        status = next(found, "error")
    observer.devices_waited(placement.profile.name, drivers, status, now - placement.devices_since)
