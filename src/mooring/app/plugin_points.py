"""The extension points that act: pre-bind, bind and post-bind plugins of a profile."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType

from mooring.engine import Engine
from mooring.engine.actions import BindPod
from mooring.engine.events import BindingFailed, Bound
from mooring.framework.calls import PluginFence, check_rejection, expect
from mooring.framework.observe import BIND, ERROR, POST_BIND, PRE_BIND, SUCCESS, PointTimer
from mooring.framework.plugin import Bind, PostBind, PreBind
from mooring.framework.profile import Profile
from mooring.framework.status import PluginError
from mooring.objects.pod import Pod
from mooring.plugins.default_binder import DefaultBinder

from . import logs
from .binding import NOT_LEADING, Binder

_log = logs.named(__name__)


@dataclass(frozen=True, slots=True)
class _Acting:
    """The plugins of a profile that do something themselves; most profiles have none."""

    pre_bind: tuple[PreBind, ...]
    bind: tuple[Bind, ...]
    post_bind: tuple[PostBind, ...]

    @classmethod
    def of(cls, profile: Profile) -> _Acting:
        first = next(iter(profile.bind), None)
        return cls(
            tuple(each for each in profile.pre_bind if type(each).pre_bind is not PreBind.pre_bind),
            () if isinstance(first, DefaultBinder) else profile.bind,
            profile.post_bind,
        )

    def __bool__(self) -> bool:
        return bool(self.pre_bind or self.bind or self.post_bind)


class ActingFence(PluginFence):
    """A fence around coroutines. It lets through that the task itself is cancelled."""

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
    """Binds pods the way their profiles say, and tells the observer how long it took.

    A plugin may write whatever it likes, so each is called only while this scheduler leads.
    """

    def __init__(self, engine: Engine, binder: Binder) -> None:
        self._cluster = engine.cluster
        self._binder = binder
        self._profiles = engine.profiles
        self._acting = {name: _Acting.of(each) for name, each in engine.profiles.items()}

    async def bind(self, action: BindPod) -> Bound | BindingFailed:
        acting = self._acting[action.profile]
        if not acting:
            with self._running(BIND, action) as run:
                return _noted(run, await self._binder.bind(action))
        pod = self._cluster.pod(action.pod.uid)
        if pod is None:
            return BindingFailed(action.pod.uid, "the pod is gone")
        with self._running(PRE_BIND, action) as run:
            problem = await _prepare(acting.pre_bind, self._binder, pod, action)
            run.status = ERROR if problem else SUCCESS
        if problem:
            return BindingFailed(pod.uid, problem)
        with self._running(BIND, action) as run:
            outcome = _noted(run, await _bind(acting.bind, self._binder, pod, action))
        if isinstance(outcome, Bound):
            with self._running(POST_BIND, action):
                await _tell(acting.post_bind, pod, action)
        return outcome

    def _running(self, point: str, action: BindPod) -> PointTimer:
        profile = self._profiles[action.profile]
        return PointTimer(profile.observer, point, profile.name)


def _noted(run: PointTimer, outcome: Bound | BindingFailed) -> Bound | BindingFailed:
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
