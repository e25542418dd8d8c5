"""Whether what comes may be queued: the evictions for it, its group and its plugins are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from moorage.cluster.pod_groups import KnownGroups
from moorage.framework.calls import ask_pre_enqueue
from moorage.framework.observe import PRE_ENQUEUE, SUCCESS, Observer
from moorage.framework.plugin import PreEnqueue
from moorage.framework.profile import Profile
from moorage.framework.status import Code, PluginError, Rejected
from moorage.objects.pod import Pod
from moorage.objects.pod_group import GroupKey

from .actions import Action, make_failure_event
from .concerned import find_concerned
from .evictions import Evictions
from .gangs.admission import GANG_SCHEDULING, hold_group


@dataclass(frozen=True, slots=True)
class Admission:
    """Asks who holds a pod or a group back."""

    _profiles: Mapping[str, Profile]
    _groups: KnownGroups
    _evictions: Evictions
    _emit: Callable[[Action], None]
    _observer: Observer

    def admit(self, pod: Pod, last: str) -> tuple[str, Rejected] | None:
        """Returns the plugin that holds a pod back and why, or None. `last` is asked first."""
        began = self._observer.clock()
        profile = self._profiles[pod.spec.scheduler_name]
        answer = self._evictions.hold_back(pod.uid) or _ask_to_queue(profile, pod, last)
        status = SUCCESS
        if answer is not None:
            plugin, refused = answer
            status = refused.code.value
            if refused.code is Code.ERROR and plugin != last:
                self._emit(make_failure_event(pod, refused.message, profile.name))
        self._observer.point_ran(PRE_ENQUEUE, status, profile.name, began)
        return answer

    def admit_group(self, key: GroupKey, scheduler: str) -> tuple[str, Rejected] | None:
        """Returns why no member of a group may be tried, whatever the plugins say."""
        began = self._observer.clock()
        held = self._evictions.hold_back(key)
        if held is None and (refused := hold_group(key, self._groups)) is not None:
            held = GANG_SCHEDULING, refused
        if held is not None:
            # Otherwise members are asked, which is observed.
            self._observer.point_ran(PRE_ENQUEUE, held[1].code.value, scheduler, began)
        return held


def _ask_to_queue(profile: Profile, pod: Pod, first: str) -> tuple[str, Rejected] | None:
    plugins = _choose_plugins(profile, pod)
    for plugin in sorted(plugins, key=lambda each: each.name != first) if first else plugins:
        refused = ask_pre_enqueue(plugin, pod)
        if refused is not None:
            return plugin.name, refused
    return None


def _choose_plugins(profile: Profile, pod: Pod) -> tuple[PreEnqueue, ...]:
    """Returns the plugins to ask about a pod: those that do not skip it."""
    if pod.spec.volumes:
        # Mostly each pod has a template of its own, and to ask takes no longer than to find out.
        return profile.pre_enqueue
    try:
        places = find_concerned(pod, profile).pre_enqueue
    except PluginError:
        return profile.pre_enqueue
    return tuple(profile.pre_enqueue[at] for at in places) if places else ()
