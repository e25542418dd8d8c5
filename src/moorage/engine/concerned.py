"""The plugins that have something to do with the pods of a template."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import attrgetter
from typing import NamedTuple

from moorage.framework.plugin import Plugin
from moorage.framework.profile import Profile
from moorage.framework.signing import has_no_say
from moorage.objects.per_template import once_per_template_for
from moorage.objects.pod import Pod


class Concerned(NamedTuple):
    """The places of the plugins of a profile that may have a say on the pods of a template."""

    pre_enqueue: tuple[int, ...]
    reserve: tuple[int, ...]
    pre_bind: tuple[int, ...]


@once_per_template_for(attrgetter("number"))
def find_concerned(pod: Pod, profile: Profile) -> Concerned:
    """Returns the plugins that may have something to do with a pod."""
    points = profile.pre_enqueue, profile.reserve, profile.pre_bind
    plugins = dict.fromkeys(each for point in points for each in point)
    skipping = {each for each in plugins if has_no_say(each, pod)}
    return Concerned(*(_find_places(point, skipping) for point in points))


def _find_places(plugins: Iterable[Plugin], skipping: Collection[Plugin]) -> tuple[int, ...]:
    return tuple(at for at, each in enumerate(plugins) if each not in skipping)
