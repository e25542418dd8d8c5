"""The extension points that act: pre-bind, bind and post-bind plugins of a profile."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.engine import Engine
from mooring.engine.actions import BindPod
from mooring.engine.events import BindingFailed, Bound
from mooring.framework.observe import BIND, ERROR, POST_BIND, PRE_BIND, SUCCESS, Running
from mooring.framework.plugin import Bind, PostBind, PreBind
from mooring.framework.profile import Profile
from mooring.objects.pod import Pod
from mooring.plugins.default_binder import DefaultBinder

from . import logs
from .binding import Binder

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


class PluginPoints:
    """Binds pods the way their profiles say, and tells the observer how long it took."""

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
            problem = await _prepare(acting.pre_bind, pod, action)
            run.status = ERROR if problem else SUCCESS
        if problem:
            return BindingFailed(pod.uid, problem)
        with self._running(BIND, action) as run:
            outcome = _noted(run, await _bind(acting.bind, self._binder, pod, action))
        if isinstance(outcome, Bound):
            with self._running(POST_BIND, action):
                await _tell(acting.post_bind, pod, action)
        return outcome

    def _running(self, point: str, action: BindPod) -> Running:
        profile = self._profiles[action.profile]
        return Running(profile.observer, point, profile.name)


def _noted(run: Running, outcome: Bound | BindingFailed) -> Bound | BindingFailed:
    run.status = SUCCESS if isinstance(outcome, Bound) else ERROR
    return outcome


async def _prepare(plugins: tuple[PreBind, ...], pod: Pod, action: BindPod) -> str:
    for plugin in plugins:
        try:
            refused = await plugin.pre_bind(pod, action.node)
        except Exception as error:  # noqa: BLE001 - a plugin that breaks fails one pod
            return f'running PreBind plugin "{plugin.name}": {error}'
        if refused is not None:
            return f'running PreBind plugin "{plugin.name}": {refused.message}'
    return ""


async def _bind(
    plugins: tuple[Bind, ...], binder: Binder, pod: Pod, action: BindPod
) -> Bound | BindingFailed:
    for plugin in plugins:
        if isinstance(plugin, DefaultBinder):
            break
        try:
            if await plugin.bind(pod, action.node):
                return Bound(pod.uid)
        except Exception as error:  # noqa: BLE001 - a plugin that breaks fails one pod
            return BindingFailed(pod.uid, f'running Bind plugin "{plugin.name}": {error}')
    return await binder.bind(action)


async def _tell(plugins: tuple[PostBind, ...], pod: Pod, action: BindPod) -> None:
    for plugin in plugins:
        try:
            await plugin.post_bind(pod, action.node)
        except Exception as error:  # noqa: BLE001 - the pod is bound whatever it says
            _log.warning("A PostBind plugin failed", plugin=plugin.name, error=str(error))
