"""What the configuration and the plugins tell the parts of an engine at the start."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.cluster import HandleRegistry
from moorage.cluster.devices.pools import SliceReading
from moorage.config import Configuration
from moorage.framework.plugin_start import ask_remarks, ask_wakeups
from moorage.framework.profile import Profile
from moorage.framework.wakeups import Action, Resource, Wakeup, on
from moorage.objects.pod_group import GroupLinks
from moorage.queue import Backoff

from .actions import Report
from .classes.classes import ClassSettings
from .extenders.consultation import EXTENDER


def class_settings(configuration: Configuration) -> ClassSettings:
    """Returns what the feature gates let like pods share."""
    gates = configuration.gates
    return ClassSettings(classes=gates["EquivalenceCache"], batches=gates["OpportunisticBatching"])


def group_links(configuration: Configuration) -> GroupLinks:
    """Returns how pods may name their group, as the feature gates say."""
    gates = configuration.gates
    return GroupLinks(
        native=gates["GenericWorkload"],
        coscheduling=gates["Coscheduling"],
        ranked_as_one=gates.version.ranks_groups_as_one,
        has_policy=gates["PodGroupPreemptionPolicy"],
    )


def slice_reading(configuration: Configuration) -> SliceReading:
    """Returns how slices are read in the version that is followed, with these feature gates."""
    gates = configuration.gates
    return SliceReading(
        follows_taint_rules=gates["DRADeviceTaintRules"],
        shows_counters_to_all=gates.version.shows_counters_to_all,
        ignores_compatibility_groups=gates.version.ignores_compatibility_groups,
    )


def make_backoff(configuration: Configuration) -> Backoff:
    return Backoff(
        configuration.pod_initial_backoff_seconds,
        configuration.pod_max_backoff_seconds,
        configuration.gates["SchedulerPopFromBackoffQ"],
    )


def find_wakeups(profile: Profile, *, is_extended: bool) -> dict[str, tuple[Wakeup, ...]]:
    """Returns the events that may help pods, by the plugin that rejected them."""
    wakeups = {name: ask_wakeups(plugin) for name, plugin in profile.plugins.items()}
    if is_extended:
        # Nobody knows what an extender waits for.
        wakeups[EXTENDER] = (on(Resource.ANYTHING, Action.ALL),)
    return wakeups


def find_unowned(handles: HandleRegistry) -> Iterator[Report]:
    """Reports extended resources that plugins read but none registers."""
    for resource_type, readers in handles.unowned:
        names = ", ".join(readers)
        yield Report("", f"no plugin registers extended resource {resource_type}, read by {names}")


def collect_remarks(profile: Profile) -> Iterator[Report]:
    """Reports what the plugins of a profile remark about their configuration."""
    for plugin in profile.plugins.values():
        for text in ask_remarks(plugin):
            yield Report(profile.name, f"{plugin.name}: {text}")
