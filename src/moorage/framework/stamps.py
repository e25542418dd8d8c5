"""How pods that have a node count for others, by how they came there.

A plugin may mark the pods that are bound by it, and see those that came without its mark as other
pods than they say they are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping

from moorage.objects.pod import NO_STAMP, Pod

from .plugin import Plugin
from .plugin_fence import PluginFence, expect, make_plugin_error
from .profile import Profile


class StampPods(Plugin):
    """Marks the pods that are bound with the plugin's consent, and says how others count.

    A profile in which the plugin serves some other point has its stamp. How pods count that are
    bound is the same for all profiles: any plugin of theirs has its say.
    """

    @abstractmethod
    def stamp(self, pod: Pod) -> Mapping[str, str]:
        """Returns the annotations that the pod gets with its node; empty if it needs no mark.

        What no one knows before the pod exists, such as its uid, cannot be forged in a manifest.
        """

    @abstractmethod
    def counts_as(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Pod:
        """Returns a pod that came to its node without the mark as other pods must see it."""


def has_stamp(pod: Pod, stamp: Mapping[str, str]) -> bool:
    """Whether a pod has the annotations of a stamp."""
    return all(pod.annotations.get(key) == value for key, value in stamp.items())


def ask_stamp(plugin: StampPods, pod: Pod) -> Mapping[str, str]:
    """Returns the annotations by which the plugin marks a pod."""
    try:
        stamp = plugin.stamp(pod)
        if type(stamp) is not dict:
            expect(stamp, Mapping)
        return stamp
    except Exception as error:
        raise make_plugin_error('asking plugin "{}" for a stamp', plugin, error) from error


def ask_counts_as(plugin: StampPods, pod: Pod, namespace_labels: Mapping[str, str]) -> Pod:
    """Returns how a pod counts that came without the mark of the plugin."""
    with PluginFence('asking plugin "{}" how a pod counts', plugin):
        seen = plugin.counts_as(pod, namespace_labels)
        expect(seen, Pod)
        return seen


def find_stamping(profiles: Iterable[Profile]) -> tuple[StampPods, ...]:
    """Returns the plugins that stamp pods, each once."""
    found = {each.name: each for profile in profiles for each in _find_own(profile)}
    return tuple(found.values())


def find_stamp(profile: Profile, pod: Pod) -> Mapping[str, str]:
    """Returns all annotations that a pod gets with its node in a profile."""
    found: Mapping[str, str] = NO_STAMP
    for plugin in _find_own(profile):
        stamp = ask_stamp(plugin, pod)
        if stamp:
            found = {**found, **stamp}
    return found


def _find_own(profile: Profile) -> tuple[StampPods, ...]:
    """Returns the plugins of a profile that stamp pods."""
    known: tuple[StampPods, ...] | None = profile.findings.get(StampPods)
    if known is None:
        plugins = profile.plugins.values()
        known = tuple(each for each in plugins if isinstance(each, StampPods))
        profile.findings[StampPods] = known
    return known
