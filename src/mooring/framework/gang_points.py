"""What a plugin can add to the decision about a gang, and which plugin of a profile does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from .plugin import Plugin, Preempt
from .profile import Profile
from .wakeups import Action, ClusterEvent

P = TypeVar("P", bound=Plugin)

#: What happens when room is kept for a gang no more.
ROOM_RELEASED = ClusterEvent("scheduling.mooring.dev/KeptRoom", Action.DELETE, "KeptRoomDelete")


class CountRoom(Plugin):
    """Rejects a node only for want of room: requests are more than what is left of a resource.

    With such a filter, the members of a gang that fit on a node can be counted.
    """

    @property
    @abstractmethod
    def scored_resources(self) -> Mapping[str, int]:
        """The resources by which nodes and domains are scored, with their weights."""

    def ignores(self, resource: str) -> bool:
        """Whether it never rejects a node for want of this resource."""
        return False


class ProtectGangs(Plugin):
    """Keeps others off the nodes whose room is kept for a gang; the engine chooses the nodes.

    It treats all members of a gang alike.
    """

    #: How long a gang waits until room is kept for it.
    after_seconds: int


def find_room_counter(profile: Profile) -> CountRoom | None:
    """The plugin that counts the room on nodes, if a profile has one."""
    return _find(profile, CountRoom)  # type: ignore[type-abstract]


def find_protection(profile: Profile) -> ProtectGangs | None:
    """The plugin that protects gangs that starve, if a profile has one."""
    return _find(profile, ProtectGangs)


def find_preemption(profile: Profile) -> Preempt | None:
    """The plugin that evicts pods for others, if a profile has one."""
    return _find(profile, Preempt, profile.post_filter)  # type: ignore[type-abstract]


def _find(profile: Profile, kind: type[P], plugins: Iterable[Plugin] | None = None) -> P | None:
    """The first of a profile's plugins, or of some of them, that is of a kind.

    It is found once: to ask what a plugin is takes a while, and every gang comes by.
    """
    known: dict[type[Plugin], Any] = profile.__dict__.setdefault("_by_kind", {})
    if kind not in known:
        among = profile.plugins.values() if plugins is None else plugins
        known[kind] = next((each for each in among if isinstance(each, kind)), None)
    found: P | None = known[kind]
    return found
