"""Asks the pre-enqueue plugins whether a pod may be queued, except those that skip it."""

from __future__ import annotations

from moorage.framework.calls import ask_pre_enqueue
from moorage.framework.plugin import PreEnqueue
from moorage.framework.profile import Profile
from moorage.framework.status import PluginError, Rejected
from moorage.objects.pod import Pod

from .concerned import find_concerned


def ask_to_queue(profile: Profile, pod: Pod, first: str) -> tuple[str, Rejected] | None:
    """Returns the plugin that holds a pod back and why, or None. `first` is asked first."""
    plugins = _choose_plugins(profile, pod)
    if not plugins:
        return None
    for plugin in sorted(plugins, key=lambda each: each.name != first) if first else plugins:
        refused = ask_pre_enqueue(plugin, pod)
        if refused is not None:
            return plugin.name, refused
    return None


def _choose_plugins(profile: Profile, pod: Pod) -> tuple[PreEnqueue, ...]:
    """Returns the plugins to ask about a pod."""
    if pod.spec.volumes:
        # Mostly each pod has a template of its own, and to ask takes no longer than to find out.
        return profile.pre_enqueue
    try:
        places = find_concerned(pod, profile).pre_enqueue
    except PluginError:
        return profile.pre_enqueue
    return tuple(profile.pre_enqueue[at] for at in places) if places else ()
