"""The kubelets of all hollow nodes: pods are admitted or rejected, run, end and go.

Nothing here waits: the caller passes in what happened, and calls `act` when something is due."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import Enum, auto

import msgspec

from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.kinds.event_kinds import EventText
from moorage.embedded.store.object_store import StoredObject
from moorage.objects.decode import reader
from moorage.objects.pod import Pod

from .hosts import Host, HostChange, Hosts
from .pod_admission import ClaimRights, admit
from .pod_life import HollowSettings, PodLife, Timers, is_ready, read_life
from .pod_statuses import (
    PodWriter,
    crash,
    end,
    exceed_deadline,
    images_of,
    report_ready,
    restart,
    run,
    wait_for_images,
)

# The first time containers are started again at once.
_FIRST_PAUSE_SECONDS = 10.0
_LONGEST_PAUSE_SECONDS = 300.0
_MOST_DOUBLINGS = 10


class Turn(Enum):
    """What comes next in the life of a pod."""

    START = auto()
    END = auto()
    DEADLINE = auto()
    STOP = auto()
    RESTART = auto()


@dataclass(slots=True)
class KeptPod:
    """A pod that a kubelet looks after."""

    uid: str
    host: Host
    life: PodLife
    #: The last version that was seen or written; the event of an own write is no news.
    version: int
    #: When it was started; None before it was.
    begun: float | None = None
    #: When its containers were started last.
    runs_since: float = 0.0
    #: The containers that wait for their images.
    without_image: frozenset[str] = frozenset()
    #: How often they have exited and were to be started again.
    exits: int = 0
    #: When they will be; None while they run.
    restart_at: float | None = None
    stop_at: float | None = None
    #: Why it may not use its claims of devices, as was last reported.
    refusal: str = ""


def next_turn(kept: KeptPod, settings: HollowSettings, now: float) -> tuple[float, Turn] | None:
    """Returns when a running pod has its next turn, and which; None if it runs for ever."""
    life = kept.life
    if life.grace is not None:
        stop_at = now + min(life.grace, life.stop_seconds(settings))
        # A second deletion can only shorten the time.
        kept.stop_at = stop_at if kept.stop_at is None else min(kept.stop_at, stop_at)
        return kept.stop_at, Turn.STOP
    seconds = life.seconds(settings)
    turns = []
    if kept.restart_at is not None:
        turns.append((kept.restart_at, Turn.RESTART))
    elif seconds is not None:
        turns.append((kept.runs_since + seconds, Turn.END))
    if life.deadline is not None and kept.begun is not None:
        turns.append((kept.begun + life.deadline, Turn.DEADLINE))
    return min(turns, key=lambda turn: turn[0], default=None)


def pause_after(exits: int) -> float:
    """Returns how many seconds a kubelet waits before it restarts containers."""
    if exits <= 1:
        return 0.0
    return min(_FIRST_PAUSE_SECONDS * 2 ** min(exits - 2, _MOST_DOUBLINGS), _LONGEST_PAUSE_SECONDS)


_LOG = logging.getLogger(__name__)
_READ = reader("Pod")

# A pod that may not use its claims of devices is tried again after so long.
_CLAIM_PAUSE_SECONDS = 2.0

# So many pods take their turn at once, before others may do something.
_AT_ONCE = 256


class Kubelets:
    """Looks after the pods of all nodes."""

    def __init__(self, api: ObjectApi, settings: HollowSettings) -> None:
        self.hosts = Hosts(api, settings)
        self._api = api
        self._settings = settings
        self._pods = PodWriter(api)
        self._rights = ClaimRights(api)
        pods = api.kinds["pods"]
        self._node_at = pods.position("spec.nodeName") or 0
        self._phase_at = pods.position("status.phase") or 0
        self._kept: dict[str, KeptPod] = {}
        #: Pods bound to nodes that are not there (yet), by node.
        self._homeless: dict[str, set[str]] = {}
        self._timers: Timers[Turn] = Timers()

    @property
    def _now(self) -> float:
        return self._api.clock().timestamp()

    @property
    def next(self) -> float | None:
        """When something is due."""
        times = [each for each in (self._timers.next, self.hosts.next) if each is not None]
        return min(times, default=None)

    def take_node(self, entry: StoredObject, *, gone: bool) -> None:
        """Takes in a node that came, changed or went."""
        taken = HostChange.STOPPED if gone else self.hosts.take(entry)
        if taken is HostChange.STOPPED:
            self._lose(entry.name)
        elif taken is HostChange.NEW:
            waiting = [self._pods.find(key) for key in sorted(self._homeless.pop(entry.name, ()))]
            for pod in self.running_first([pod for pod in waiting if pod is not None]):
                self.take_pod(pod, gone=False)
        elif taken is HostChange.HEARD_AGAIN:
            host = self.hosts.find(entry.name)
            for key in list(host.pods) if host is not None else ():
                self._report_running(key, self._kept[key])
        else:
            self._try_images(entry.name)

    def take_pod(self, entry: StoredObject, *, gone: bool) -> None:
        """Takes in a pod that came, changed or went."""
        key, node = entry.key, entry.fields[self._node_at]
        kept = self._kept.get(key)
        if gone:
            self._forget(key)
            return
        if not node or (kept is not None and kept.version == entry.version):
            return
        host = self.hosts.find(node)
        if host is None:
            self._homeless.setdefault(node, set()).add(key)
            return
        try:
            pod, life = _READ.build(_READ.one.decode(entry.body)), read_life(entry.body)
        except (msgspec.MsgspecError, ValueError) as error:
            _LOG.warning("pod %s cannot be read: %s", key, error)
            return
        if kept is not None and kept.uid != life.uid:
            self._forget(key)
            kept = None
        if kept is None:
            self._arrive(entry, pod, life, host)
        else:
            self._change(entry, pod, life, kept)

    def running_first(self, pods: list[StoredObject]) -> list[StoredObject]:
        """Sorts pods so that running ones take their room before others are admitted."""
        return sorted(pods, key=lambda entry: entry.fields[self._phase_at] != "Running")

    def forget_other_nodes(self, names: set[str]) -> None:
        """Forgets the nodes that are not among these."""
        for name in {host.node.name for host in self.hosts} - names:
            self._lose(name)

    def forget_other_pods(self, keys: set[str]) -> None:
        """Forgets the pods that are not among these."""
        for key in self._kept.keys() - keys:
            self._forget(key)

    def act(self) -> bool:
        """Does what is due; returns whether there is more."""
        now = self._now
        self.hosts.renew(now)
        for _ in range(_AT_ONCE):
            due = self._timers.due(now)
            if due is None:
                return False
            self._take_turn(*due)
        return True

    def _arrive(self, entry: StoredObject, pod: Pod, life: PodLife, host: Host) -> None:
        key = entry.key
        if life.is_finished or (life.grace is not None and not life.is_running):
            if life.grace is not None:
                self._pods.finish_deletion(key, life.uid)
            return
        if not life.is_running:
            refusal = admit(pod, host.node, host.pods.values(), host.policies)
            if refusal is not None:
                self._pods.reject(key, life.uid, host.node.name, refusal)
                return
        host.pods[key] = pod
        kept = self._kept[key] = KeptPod(life.uid, host, life, entry.version)
        if life.is_running:
            started = life.status.start_time
            kept.begun = self._now if started is None else started.timestamp()
            kept.runs_since = kept.begun
            self._report_running(key, kept)
            self._look_ahead(key, kept)
        elif self._settings.start_seconds:
            self._after(key, self._settings.start_seconds, Turn.START)
        else:
            self._start(key, kept)

    def _change(self, entry: StoredObject, pod: Pod, life: PodLife, kept: KeptPod) -> None:
        kept.version = entry.version
        kept.host.pods[entry.key] = pod
        moved = life.deadline != kept.life.deadline and kept.begun is not None
        kept.life = life
        if life.is_finished:
            self._forget(entry.key)
            if life.grace is not None:
                self._pods.finish_deletion(entry.key, life.uid)
        elif life.grace is not None or moved:
            self._look_ahead(entry.key, kept)
        elif kept.without_image:
            self._start(entry.key, kept)

    def _look_ahead(self, key: str, kept: KeptPod) -> None:
        """Sets the time of what comes next for a pod that runs."""
        coming = next_turn(kept, self._settings, self._now)
        if coming is not None:
            self._timers.set(key, *coming)

    def _take_turn(self, key: str, turn: Turn) -> None:
        kept, now = self._kept[key], self._pods.now
        match turn:
            case Turn.START:
                self._start(key, kept)
            case Turn.RESTART:
                self._restart(key, kept)
            case Turn.END if kept.life.restarts:
                self._wait_for_restart(key, kept)
            case Turn.END:
                code = kept.life.exit_code
                self._pods.write(key, kept.uid, lambda pod: end(pod, code, now))
                self._forget(key)
            case Turn.DEADLINE:
                self._pods.write(key, kept.uid, lambda pod: exceed_deadline(pod, now))
                self._forget(key)
            case Turn.STOP:
                self._forget(key)
                self._pods.finish_deletion(key, kept.uid)

    def _start(self, key: str, kept: KeptPod) -> None:
        if kept.life.has_claims and self._is_refused(key, kept):
            self._after(key, _CLAIM_PAUSE_SECONDS, Turn.START)
            return
        if self._lacks_images(key, kept):
            return
        now = self._pods.now
        entry = self._pods.write(key, kept.uid, lambda pod: run(pod, kept.host.address, now))
        if entry is not None:
            kept.version = entry.version
            kept.begun = kept.runs_since = self._now
            self._look_ahead(key, kept)

    def _try_images(self, node: str) -> None:
        """Starts the pods of a node whose images can be pulled now."""
        host = self.hosts.find(node)
        for key in list(host.pods) if host is not None else ():
            kept = self._kept[key]
            if kept.without_image:
                self._start(key, kept)

    def _lacks_images(self, key: str, kept: KeptPod) -> bool:
        """Whether images of a pod cannot be pulled; writes so when that changes."""
        host = self.hosts.find(kept.host.node.name) or kept.host
        without = kept.life.without_image(host.missing_images)
        if without and without != kept.without_image:
            address, now = kept.host.address, self._pods.now
            entry = self._pods.write(
                key, kept.uid, lambda pod: wait_for_images(pod, address, without, now)
            )
            if entry is not None:
                kept.version = entry.version
                for image in images_of(entry.object["spec"], without):
                    message = f'Failed to pull image "{image}": not found'
                    text = EventText("Failed", message, "Warning")
                    self._pods.warn(entry, kept.uid, kept.host.node.name, text)
        kept.without_image = without
        return bool(without)

    def _is_refused(self, key: str, kept: KeptPod) -> bool:
        """Whether a pod may not use its claims of devices; says so once in an event."""
        entry = self._pods.find(key)
        refusal = self._rights.refusal(entry.object) if entry is not None else ""
        if entry is not None and refusal and refusal != kept.refusal:
            message = f"Failed to prepare dynamic resources: prepare dynamic resources: {refusal}"
            text = EventText("FailedPrepareDynamicResources", message, "Warning")
            self._pods.warn(entry, kept.uid, kept.host.node.name, text)
        kept.refusal = refusal
        return bool(refusal)

    def _wait_for_restart(self, key: str, kept: KeptPod) -> None:
        """Notes that containers have exited, and sets the time of their restart."""
        kept.exits += 1
        pause, now, code = pause_after(kept.exits), self._pods.now, kept.life.exit_code
        entry = self._pods.write(key, kept.uid, lambda pod: crash(pod, code, pause, now))
        if entry is not None:
            kept.version = entry.version
            kept.restart_at = self._now + pause
            self._look_ahead(key, kept)

    def _restart(self, key: str, kept: KeptPod) -> None:
        now = self._pods.now
        entry = self._pods.write(key, kept.uid, lambda pod: restart(pod, now))
        if entry is not None:
            kept.version = entry.version
            kept.runs_since, kept.restart_at = self._now, None
            self._look_ahead(key, kept)

    def _report_running(self, key: str, kept: KeptPod) -> None:
        """Reports a running pod as ready again after its node was Unknown."""
        entry = self._pods.find(key)
        if entry is None or kept.begun is None or kept.exits or is_ready(entry.body):
            return
        now = self._pods.now
        after = self._pods.write(key, kept.uid, lambda pod: report_ready(pod, now))
        if after is not None:
            kept.version = after.version

    def _after(self, key: str, seconds: float, turn: Turn) -> None:
        self._timers.set(key, self._now + seconds, turn)

    def _forget(self, key: str) -> None:
        self._timers.cancel(key)
        kept = self._kept.pop(key, None)
        if kept is not None:
            kept.host.pods.pop(key, None)

    def _lose(self, node: str) -> None:
        """Forgets a node that is gone; its pods stay as they are."""
        host = self.hosts.find(node)
        keys = set(host.pods) if host is not None else set()
        self.hosts.remove(node)
        for key in keys:
            self._forget(key)
        if keys:
            self._homeless.setdefault(node, set()).update(keys)
