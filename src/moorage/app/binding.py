"""Binds a pod, whatever happens to the request, and runs the plugins around a binding."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import uniform
from types import TracebackType

from moorage.client.api import Requests
from moorage.client.api_errors import ApiError, OutcomeUnknown, Unreachable
from moorage.engine import Engine
from moorage.engine.actions import BindPod, PodRef
from moorage.engine.events import BindingFailed, Bound
from moorage.engine.extenders.replies import ReplyError
from moorage.framework.observe import BIND, ERROR, POST_BIND, PRE_BIND, SUCCESS, PointTimer
from moorage.framework.plugin import Bind, PostBind, PreBind
from moorage.framework.plugin_fence import PluginFence, check_rejection, expect
from moorage.framework.profile import Profile
from moorage.framework.status import PluginError
from moorage.objects.pod import Pod
from moorage.plugins.default_binder import DefaultBinder

from . import bodies, logs
from .extender_calls import ExtenderCalls
from .extender_client import CallFailed

# How often a binding is asked for when the pod turns out not to be bound after all.
_MOST_TRIES = 3

NOT_LEADING = "this scheduler does not lead any more"

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0

_log = logs.make_log(__name__)


class Binder:
    """Asks the API server for a binding, and finds out what came of it.

    A request whose answer was lost may have been carried out. In that case the pod is read again
    until the API server answers. Until then its place on the node stays taken.
    """

    def __init__(self, api: Requests, may_act: Callable[[], bool]) -> None:
        self._api = api
        self.may_act = may_act

    async def bind(self, action: BindPod) -> Bound | BindingFailed:
        pod = action.pod
        problem = ""
        for _ in range(_MOST_TRIES):
            if not self.may_act():
                return BindingFailed(pod.uid, NOT_LEADING)
            try:
                await self._api.post(bodies.pod_path(pod, "binding"), bodies.encode_binding(action))
                return Bound(pod.uid)
            except Unreachable as error:
                return BindingFailed(pod.uid, f"binding rejected: {error}")
            except OutcomeUnknown as error:
                problem = str(error)
            except ApiError as error:
                problem = error.message
                if not (error.is_conflict or error.status >= 500):
                    break
            outcome = await self.find_outcome(action, problem)
            if outcome is not None:
                return outcome
        return BindingFailed(pod.uid, f"binding rejected: {problem}")

    async def find_outcome(self, action: BindPod, problem: str) -> Bound | BindingFailed | None:
        """Returns the outcome of a binding, read from the pod; None if it is still unbound."""
        pod, node = action.pod, action.node
        seen = await self._read_again(pod)
        if seen is None:
            return BindingFailed(pod.uid, f"binding rejected: {problem}")
        if seen == node:
            return Bound(pod.uid)
        if seen:
            return BindingFailed(pod.uid, f"binding rejected: the pod is on node {seen!r} already")
        return None

    async def _read_again(self, pod: PodRef) -> str | None:
        """Returns the node of the pod, which may be empty; None if that pod is gone."""
        pause = _FIRST_PAUSE
        while True:
            try:
                seen = bodies.read_pod_state(await self._api.get(bodies.pod_path(pod)))
                return seen.spec.node_name if seen.metadata.uid == pod.uid else None
            except ApiError as error:
                if error.is_not_found:
                    return None
            except (Unreachable, OutcomeUnknown):
                pass
            # Many bindings may wait for the same API server.
            await asyncio.sleep(pause * uniform(0.5, 1.5))
            pause = min(2 * pause, _LONGEST_PAUSE)


@dataclass(frozen=True, slots=True)
class _ActingPlugins:
    """The plugins of a profile that perform something themselves; most profiles have none."""

    pre_bind: tuple[PreBind, ...]
    bind: tuple[Bind, ...]
    post_bind: tuple[PostBind, ...]

    @classmethod
    def of(cls, profile: Profile) -> _ActingPlugins:
        first = next(iter(profile.bind), None)
        return cls(
            tuple(each for each in profile.pre_bind if type(each).pre_bind is not PreBind.pre_bind),
            () if isinstance(first, DefaultBinder) else profile.bind,
            profile.post_bind,
        )

    def __bool__(self) -> bool:
        return bool(self.pre_bind or self.bind or self.post_bind)


class ActingFence(PluginFence):
    """A fence around coroutines. It does not catch the cancellation of its own task."""

    __slots__ = ()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            return
        super().__exit__(kind, error, traceback)


class PluginPoints:
    """Binds pods as their profiles say, and tells the observer how long it took.

    A plugin may write anything, so it is called only while this scheduler leads.
    """

    def __init__(
        self, engine: Engine, binder: Binder, extenders: ExtenderCalls | None = None
    ) -> None:
        self._cluster = engine.cluster
        self._binder = binder
        self._extenders = extenders
        self._profiles = engine.profiles
        self._acting = {name: _ActingPlugins.of(each) for name, each in engine.profiles.items()}

    async def bind(self, action: BindPod) -> Bound | BindingFailed:
        acting = self._acting[action.profile]
        if not acting:
            with self._time(BIND, action) as run:
                return _note(run, await self._bind(acting, None, action))
        pod = self._cluster.pod(action.pod.uid)
        if pod is None:
            return BindingFailed(action.pod.uid, "the pod is gone")
        with self._time(PRE_BIND, action) as run:
            problem = await _prepare(acting.pre_bind, self._binder, pod, action)
            run.status = ERROR if problem else SUCCESS
        if problem:
            return BindingFailed(pod.uid, problem)
        with self._time(BIND, action) as run:
            outcome = _note(run, await self._bind(acting, pod, action))
        if isinstance(outcome, Bound):
            with self._time(POST_BIND, action):
                await _tell(acting.post_bind, pod, action)
        return outcome

    async def _bind(
        self, acting: _ActingPlugins, pod: Pod | None, action: BindPod
    ) -> Bound | BindingFailed:
        """Lets an extender bind the pod if one binds, else the plugins."""
        if action.extender and self._extenders is not None:
            outcome = await self._bind_by_extender(self._extenders, action)
            if outcome is not None:
                return outcome
        if pod is None:
            return await self._binder.bind(action)
        return await _bind(acting.bind, self._binder, pod, action)

    async def _bind_by_extender(
        self, extenders: ExtenderCalls, action: BindPod
    ) -> Bound | BindingFailed | None:
        """Returns the outcome; None if the extender failed and the plugins must bind the pod."""
        if not self._binder.may_act():
            return BindingFailed(action.pod.uid, NOT_LEADING)
        try:
            problem = await extenders.bind(action)
            if not problem:
                return Bound(action.pod.uid)
        except (CallFailed, ReplyError) as error:
            problem = str(error)
            if isinstance(error, CallFailed) and error.is_unknown:
                settled = await self._binder.find_outcome(action, problem)
                if settled is not None:
                    return settled
        if extenders.may_fail_to_bind:
            return None
        return BindingFailed(action.pod.uid, problem)

    def _time(self, point: str, action: BindPod) -> PointTimer:
        profile = self._profiles[action.profile]
        return PointTimer(profile.observer, point, profile.name)


def _note(run: PointTimer, outcome: Bound | BindingFailed) -> Bound | BindingFailed:
    run.status = SUCCESS if isinstance(outcome, Bound) else ERROR
    return outcome


async def _prepare(plugins: tuple[PreBind, ...], binder: Binder, pod: Pod, action: BindPod) -> str:
    for plugin in plugins:
        if not binder.may_act():
            return NOT_LEADING
        try:
            with ActingFence('running PreBind plugin "{}"', plugin):
                refused = check_rejection(await plugin.pre_bind(pod, action.node))
                if refused is not None:
                    raise PluginError(refused.message)
        except PluginError as error:
            return str(error)
    return ""


async def _bind(
    plugins: tuple[Bind, ...], binder: Binder, pod: Pod, action: BindPod
) -> Bound | BindingFailed:
    for plugin in plugins:
        if isinstance(plugin, DefaultBinder):
            break
        if not binder.may_act():
            return BindingFailed(pod.uid, NOT_LEADING)
        try:
            with ActingFence('running Bind plugin "{}"', plugin):
                answer = await plugin.bind(pod, action.node)
                # Without an answer nobody knows whether the pod is bound, so nobody else tries.
                expect(answer, bool)
        except PluginError as error:
            return BindingFailed(pod.uid, str(error))
        if answer:
            return Bound(pod.uid)
    return await binder.bind(action)


async def _tell(plugins: tuple[PostBind, ...], pod: Pod, action: BindPod) -> None:
    for plugin in plugins:
        try:
            with ActingFence('running PostBind plugin "{}"', plugin):
                await plugin.post_bind(pod, action.node)
        except PluginError as error:
            # The pod is bound whatever the plugin says.
            _log.warning("A PostBind plugin failed", plugin=plugin.name, error=str(error))
