"""What a plugin can add to the decision about a gang, and which plugin of a profile does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TypeVar

from moorage.cluster import View
from moorage.objects.pod import Pod

from .attempt import Failed
from .device_writes import ClaimRelease
from .plugin import Plugin, Preempt
from .profile import Profile, once_per_profile

P = TypeVar("P", bound=Plugin)


class CountRoom(Plugin):
    """A filter that rejects a node only because requests exceed what is left of a resource.

    With such a filter, the members of a gang that fit on a node can be counted. The engine measures
    by its resources how full domains are, and reports that as its score of them.
    """

    @property
    @abstractmethod
    def scored_resources(self) -> Mapping[str, int]:
        """Returns the resources by which nodes and domains are scored, with their weights."""

    def ignores(self, resource: str) -> bool:
        """Whether it never rejects a node because of this resource."""
        return False


class ReleaseClaims(Plugin):
    """Releases devices that members of a gang keep in vain."""

    @abstractmethod
    def find_release(self, pod: Pod, failed: Failed, nodes: View) -> ClaimRelease | None:
        """Returns what to release for a member that fits nowhere; None if nothing helps it."""


def find_room_counter(profile: Profile) -> CountRoom | None:
    """Returns the plugin that counts the room on nodes; None if a profile has none."""
    return _find(profile, CountRoom)  # type: ignore[type-abstract]


def find_releaser(profile: Profile) -> ReleaseClaims | None:
    """Returns the plugin that releases devices; None if a profile has none."""
    return _find(profile, ReleaseClaims, "group_post_filter")  # type: ignore[type-abstract]


def find_preemption(profile: Profile) -> Preempt | None:
    """Returns the plugin that evicts pods for others; None if a profile has none."""
    return _find(profile, Preempt, "group_post_filter")  # type: ignore[type-abstract]


@once_per_profile
def _find(profile: Profile, kind: type[P], point: str = "") -> P | None:
    """Returns the first of a profile's plugins, or of those at a point, of a type.

    The result is kept, because every gang asks and the check takes a while.
    """
    among: Iterable[Plugin] = getattr(profile, point) if point else profile.plugins.values()
    return next((each for each in among if isinstance(each, kind)), None)
