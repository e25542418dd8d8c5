"""Carries out the actions of the engine, a bounded number at a time, and reports the outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from moorage.client.api import Requests
from moorage.engine.actions import (
    Action,
    AskExtender,
    BindPod,
    EvictPod,
    PatchPodGroupStatus,
    PatchPodStatus,
    PodRef,
    RecordEvent,
    ReleaseClaim,
    Report,
    RevokeClaims,
    WriteClaims,
    WriteVolumes,
)
from moorage.engine.events import (
    BindingFailed,
    ClaimsRevoked,
    ClaimsWritten,
    Event,
    EvictionFailed,
    ReleaseFailed,
)

from . import logs
from .binding import Binder, PluginPoints
from .claim_revocation import ClaimRevoker, Revocation
from .claim_writes import ClaimWriter
from .extender_calls import ExtenderCalls
from .scheduler import Scheduler
from .task_pool import TaskPool
from .writes import ClusterEvents, Writer

_log = logs.make_log(__name__)

# Enough to keep an API server busy, few enough that little is under way when it fails.
_MOST_AT_ONCE = 64

# So many pods at most are waited for at once to find out what their claims have.
_MOST_REVOCATIONS = 1_024

# Events must not delay bindings; those that come too fast are dropped, oldest first.
_EVENTS_AT_ONCE, _MOST_EVENTS = 16, 50_000


def today() -> datetime:
    """Returns the present date and time, for texts that people read."""
    return datetime.now(UTC)


class Performer:
    """Performs actions, a bounded number at a time."""

    def __init__(
        self,
        api: Requests,
        scheduler: Scheduler,
        *,
        may_act: Callable[[], bool],
        instance: str,
        extenders: ExtenderCalls | None = None,
    ) -> None:
        engine = scheduler.engine
        self._nodes = engine.cluster.nodes
        self._tell = scheduler.tell
        self._may_act = may_act
        self._extenders = extenders or ExtenderCalls((), 1)
        self._binding = PluginPoints(engine, Binder(api, may_act), self._extenders)
        self._writer = Writer(api, today)
        self._events = ClusterEvents(api, instance, clock=scheduler.clock, today=today)
        self._pool = TaskPool(_MOST_AT_ONCE, done=scheduler.wake)
        # Pods that a slow extender binds must not keep others waiting.
        self._extender_pool = TaskPool(_MOST_AT_ONCE)
        self._event_pool = TaskPool(
            _EVENTS_AT_ONCE, most_waiting=_MOST_EVENTS, on_drop=_warn_of_drop
        )
        self._claims = ClaimWriter(api, today)
        self._revoker = ClaimRevoker(api)
        # Those that cannot be finished mostly sleep, and must not keep others waiting.
        self._revocation_pool = TaskPool(_MOST_REVOCATIONS)
        #: What is done last of all that changes the claims of a pod, by uid.
        self._claiming: dict[str, asyncio.Future[None]] = {}
        #: What is still to be written of the status of a pod or a group, by uid.
        self._patches: dict[str, PatchPodStatus | PatchPodGroupStatus] = {}
        #: Pods whose status is being written.
        self._patching: dict[str, asyncio.Future[None]] = {}

    @property
    def backlog(self) -> int:
        """How many actions run or wait, without events."""
        return len(self._pool)

    @property
    def dropped_events(self) -> int:
        """How many events were dropped because there were too many."""
        return self._event_pool.dropped

    @property
    def claim_creations(self) -> Mapping[str, int]:
        """How many claims for extended resources were made or failed, by status."""
        return self._claims.creations

    def perform(self, action: Action) -> None:
        """Starts an action; its outcome is reported when it is known.

        After leadership is lost, actions are dropped, because another replica decides by then.
        """
        if self._may_act():
            self._start(action)
        else:
            _log.warning("Dropped what was decided: this scheduler does not lead any more")

    def _start(self, action: Action) -> None:
        match action:
            case BindPod():
                self._bind_later(action)
            case RecordEvent():
                self._record_later(action)
            case PatchPodStatus() | PatchPodGroupStatus():
                self._patch_later(action)
            case EvictPod():
                self._pool.put(partial(self._evict, action))
            case WriteVolumes() | WriteClaims() | RevokeClaims() | ReleaseClaim():
                self._pool.put(partial(self._write, action))
            case AskExtender():
                self._extenders.ask(action, self._tell)
            case Report():
                _log.warning(action.message, profile=action.profile)

    async def drain(self) -> None:
        """Returns when all actions are done."""
        await self._pool.drain()
        await self._extender_pool.drain()
        await self._event_pool.drain()

    async def stop(self) -> None:
        """Cancels all running actions."""
        await self._extenders.stop()
        await self._extender_pool.stop()
        await self._pool.stop()
        await self._revocation_pool.stop()
        await self._event_pool.stop()

    def _bind_later(self, action: BindPod) -> None:
        # What was to be written of it waiting is out of date now.
        self._patches.pop(action.pod.uid, None)
        pool = self._extender_pool if action.extender else self._pool
        pool.put(partial(self._bind, action))

    def _record_later(self, action: RecordEvent) -> None:
        if action.type == "Warning":
            # Those who read only the log find there why pods wait, in the same words.
            _log.info(action.reason, **_pod_fields(action), note=action.note)
        self._event_pool.put(partial(self._record, action))

    async def _bind(self, action: BindPod) -> None:
        pod = action.pod
        outcome: Event
        try:
            # A status that is being written must not overtake the binding.
            await self._wait_for_patch(pod.uid)
            if self._nodes.row(action.node) is None:
                outcome = BindingFailed(pod.uid, f"node {action.node!r} is gone")
            else:
                outcome = await self._binding.bind(action)
        except Exception as error:  # noqa: BLE001 - whatever breaks, the pod must not be lost
            outcome = BindingFailed(pod.uid, _describe(error))
        if isinstance(outcome, BindingFailed):
            where = {"pod": f"{pod.namespace}/{pod.name}", "node": action.node}
            _log.warning("Could not bind a pod", **where, error=outcome.message)
        else:
            self._claims.forget(pod.uid)
        self._tell(outcome)

    def _patch_later(self, action: PatchPodStatus | PatchPodGroupStatus) -> None:
        uid = _about(action).uid
        earlier = self._patches.get(uid)
        if earlier is not None:
            self._patches[uid] = _merge(earlier, action)
            return
        self._patches[uid] = action
        self._pool.put(partial(self._patch, uid))

    async def _patch(self, uid: str) -> None:
        await self._wait_for_patch(uid)
        action = self._patches.pop(uid, None)
        if action is None:
            return
        done = self._patching[uid] = asyncio.get_running_loop().create_future()
        try:
            await self._writer.patch_status(action)
        except Exception as error:  # noqa: BLE001 - only the status is missing
            _log.warning(
                f"Could not write the status of a {_about(action).kind}",
                **_pod_fields(action),
                error=_describe(error),
            )
        finally:
            del self._patching[uid]
            done.set_result(None)

    async def _wait_for_patch(self, uid: str) -> None:
        while (under_way := self._patching.get(uid)) is not None:
            await under_way

    async def _evict(self, action: EvictPod) -> None:
        outcome: Event
        try:
            outcome = await self._writer.evict(action)
        except Exception as error:  # noqa: BLE001 - the preemptor waits for an answer
            outcome = EvictionFailed(action.pod.uid, action.preemptor.uid, _describe(error))
        if isinstance(outcome, EvictionFailed):
            _log.warning("Could not evict a pod", **_pod_fields(action), error=outcome.message)
        self._tell(outcome)

    async def _write(
        self, action: WriteVolumes | WriteClaims | RevokeClaims | ReleaseClaim
    ) -> None:
        if isinstance(action, WriteVolumes):
            await self._write_volumes(action)
        else:
            await self._change_claims(action)

    async def _write_volumes(self, action: WriteVolumes) -> None:
        failed: BindingFailed | None
        try:
            failed = await self._writer.write_volumes(action)
        except Exception as error:  # noqa: BLE001 - whatever breaks, the pod must not be lost
            failed = BindingFailed(action.pod.uid, _describe(error))
        if failed is not None:
            _log.warning(
                "Could not write a pod's volumes", **_pod_fields(action), error=failed.message
            )
            self._tell(failed)

    async def _change_claims(self, action: WriteClaims | RevokeClaims | ReleaseClaim) -> None:
        """Changes the claims of a pod, one action after the other, in their order."""
        uid = action.pod.uid
        before = self._claiming.get(uid)
        done = self._claiming[uid] = asyncio.get_running_loop().create_future()
        try:
            if before is not None:
                await before
            await self._change_claims_alone(action)
        finally:
            done.set_result(None)
            if self._claiming[uid] is done:
                del self._claiming[uid]

    async def _change_claims_alone(self, action: WriteClaims | RevokeClaims | ReleaseClaim) -> None:
        outcome: Event | None = None
        try:
            if isinstance(action, WriteClaims):
                await self._claims.write(action)
                outcome = ClaimsWritten(action.pod.uid)
            elif isinstance(action, RevokeClaims):
                outcome = await self._revoke(action)
            else:
                await self._revoker.release(action)
        except Exception as error:  # noqa: BLE001 - whatever breaks, the pod must not be lost
            problem = _describe(error)
            _log.warning("Could not write a pod's claims", **_pod_fields(action), error=problem)
            if isinstance(action, WriteClaims):
                text = f'running PreBind plugin "{action.writes.plugin}": {problem}'
                outcome = BindingFailed(action.pod.uid, text)
            elif isinstance(action, ReleaseClaim):
                outcome = ReleaseFailed(action.pod.uid, problem)
        if outcome is not None:
            self._tell(outcome)

    async def _revoke(self, action: RevokeClaims) -> Event | None:
        """Takes back the claims of a pod; returns what is known about them at once."""
        made = self._claims.forget(action.pod.uid)
        revocation = await self._revoker.revoke(action, made)
        if revocation.is_done:
            return ClaimsRevoked(action.pod.uid, tuple(revocation.held))
        self._revocation_pool.put(partial(self._finish_revocation, action.pod.uid, revocation))
        return None

    async def _finish_revocation(self, uid: str, revocation: Revocation) -> None:
        await self._revoker.finish(revocation)
        self._tell(ClaimsRevoked(uid, tuple(revocation.held)))

    async def _record(self, action: RecordEvent) -> None:
        try:
            await self._events.record(action)
        except Exception as error:  # noqa: BLE001 - an event may be lost
            problem = _describe(error)
            _log.warning("Could not write an event", **_pod_fields(action), error=problem)


def _warn_of_drop() -> None:
    # In the same words each time, so that the log has it once a minute, with how often.
    _log.warning("Dropped an event: they come faster than the API server takes them")


_StatusPatch = PatchPodStatus | PatchPodGroupStatus


def _merge(earlier: _StatusPatch, later: _StatusPatch) -> _StatusPatch:
    if isinstance(earlier, PatchPodGroupStatus) or isinstance(later, PatchPodGroupStatus):
        return later
    name = later.nominated_node_name
    return PatchPodStatus(
        later.pod,
        later.condition or earlier.condition,
        earlier.nominated_node_name if name is None else name,
    )


_ClaimAction = WriteClaims | RevokeClaims | ReleaseClaim
_AboutPod = (
    PatchPodStatus | PatchPodGroupStatus | EvictPod | WriteVolumes | RecordEvent | _ClaimAction
)


def _about(action: _AboutPod) -> PodRef:
    return action.group if isinstance(action, PatchPodGroupStatus) else action.pod


def _pod_fields(action: _AboutPod) -> dict[str, Any]:
    about = _about(action)
    return {about.kind.lower(): f"{about.namespace}/{about.name}"}


def _describe(error: Exception) -> str:
    return str(error) or type(error).__name__
