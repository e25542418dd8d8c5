"""Asks the pre-enqueue plugins whether a pod may be queued, except those that skip it."""

from __future__ import annotations

from moorage.framework.calls import ask_pre_enqueue, ask_skips
from moorage.framework.plugin import PreEnqueue
from moorage.framework.profile import Profile
from moorage.framework.status import PluginError, Rejected
from moorage.objects.pod import Pod


def ask_to_queue(profile: Profile, pod: Pod, first: str) -> tuple[str, Rejected] | None:
    """Returns the plugin that holds a pod back and why, or None. `first` is asked first."""
    plugins = _find_concerned(profile, pod)
    if not plugins:
        return None
    for plugin in sorted(plugins, key=lambda each: each.name != first) if first else plugins:
        refused = ask_pre_enqueue(plugin, pod)
        if refused is not None:
            return plugin.name, refused
    return None


def _find_concerned(profile: Profile, pod: Pod) -> tuple[PreEnqueue, ...]:
    """Returns the plugins that do not skip the pods of a template; found once for each."""
    if pod.spec.volumes:
        # Mostly each pod has a template of its own, and to ask takes no longer than to find out.
        return profile.pre_enqueue
    known: tuple[int, tuple[int, ...]] | None = pod.spec.__dict__.get("_pre_enqueue")
    plugins = profile.pre_enqueue
    if known is None or known[0] != profile.number:
        places = tuple(at for at, each in enumerate(plugins) if not _skips(each, pod))
        known = pod.spec.__dict__["_pre_enqueue"] = profile.number, places
    return tuple(plugins[at] for at in known[1]) if known[1] else ()


def _skips(plugin: PreEnqueue, pod: Pod) -> bool:
    try:
        return ask_skips(plugin, pod)
    except PluginError:
        # Then it is asked about every pod.
        return False
