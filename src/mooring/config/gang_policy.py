"""How a profile treats gangs where kube-scheduler leaves no choice."""

from __future__ import annotations

from typing import Literal

from mooring.objects.meta import Wire


class GangPolicy(Wire, frozen=True):
    """Mooring's own settings of a profile for groups of pods; the defaults are kube-scheduler's."""

    #: Whom a gang evicts: whoever is where the scores put it, or as few pods as possible.
    victims: Literal["upstream", "fewest"] = "upstream"
