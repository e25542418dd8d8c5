"""The score of a node: how good the alternatives are that its devices allow."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.objects.resource_claim import ResourceClaim

from .asks import CompiledClaim
from .preparation import AllocatedClaim
from .search import Pick

# The most alternatives of a request. The first one scores this number, each next one less by 1.
_MOST_ALTERNATIVES = 8


def outcome_score(claims: Sequence[CompiledClaim], picks: Sequence[Pick]) -> int:
    """Returns the score of the alternatives that a search has taken."""
    taken = {pick.ask for pick in picks}
    return sum(
        _MOST_ALTERNATIVES - at
        for claim in claims
        for request in claim.requests
        if request.has_alternatives
        for at, ask in enumerate(request.asks)
        if ask in taken
    )


def known_score(claims: Sequence[AllocatedClaim]) -> int:
    """Returns the score of the alternatives of claims that already have devices."""
    total = 0
    for known in claims:
        taken = {result.request for result in known.allocation.results}
        for request in known.claim.spec.requests:
            for at, each in enumerate(request.first_available or ()):
                if f"{request.name}/{each.name}" in taken:
                    total += _MOST_ALTERNATIVES - at
    return total


def has_alternatives(claims: Sequence[ResourceClaim]) -> bool:
    """Whether any request can be satisfied in several ways."""
    return any(request.first_available for claim in claims for request in claim.spec.requests)
