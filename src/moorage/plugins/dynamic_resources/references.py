"""Finds the claims of a pod: it names them, or they are made for it or its group."""

from __future__ import annotations

from moorage.cluster.devices.claims import ResourceClaims
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.objects.pod_spec import PodResourceClaim
from moorage.objects.resource_claim import ClaimUser, ResourceClaim


class UnresolvedClaim(LookupError):
    """A claim of a pod does not exist, or does not belong to the pod."""


def find_claims(
    pod: Pod, claims: ResourceClaims, group: PodGroup | None
) -> tuple[ResourceClaim, ...]:
    """Returns the claims of a pod in order. Raises UnresolvedClaim.

    With its group, claims that were made for the group are the pod's as well.
    """
    references = pod.spec.resource_claims
    if not references:
        return ()
    found = []
    for reference in references:
        name, is_made = _name(pod, reference)
        if name is not None:
            found.append(_find(pod, name, is_made, claims, group))
    return tuple(found)


def find_users(pod: Pod, group: PodGroup | None) -> dict[str, ClaimUser]:
    """Returns whom the pod's claims are reserved for if it is not the pod, by their names."""
    if group is None or not group.resource_claims:
        return {}
    user = ClaimUser.of_group(group.name, group.uid)
    references = [each for each in pod.spec.resource_claims or () if each in group.resource_claims]
    names = (_name(pod, each)[0] for each in references)
    return {name: user for name in names if name is not None}


def is_reserved(claim: ResourceClaim, pod: Pod, group: PodGroup | None) -> bool:
    """Whether a pod may use a claim, because it or its group is among the users."""
    return claim.is_for(pod.uid) or (group is not None and claim.is_for_group(group.name))


def _name(pod: Pod, reference: PodResourceClaim) -> tuple[str | None, bool]:
    """Returns the name of a claim, and whether it must have been made for this pod."""
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name, False
    if reference.resource_claim_template_name is None:
        raise UnresolvedClaim(
            f'pod "{pod.key}", spec.resourceClaim "{reference.name}": '
            "none of the supported fields are set"
        )
    for status in pod.status.resource_claim_statuses or ():
        if status.name == reference.name:
            return status.resource_claim_name, True
    raise UnresolvedClaim(f'pod "{pod.key}": ResourceClaim not created yet')


def _find(
    pod: Pod, name: str, is_made: bool, claims: ResourceClaims, group: PodGroup | None
) -> ResourceClaim:
    claim = claims.get(f"{pod.namespace}/{name}")
    if claim is None:
        raise UnresolvedClaim(f'could not find ResourceClaim "{pod.namespace}/{name}"')
    if claim.terminating:
        raise UnresolvedClaim(f'resourceclaim "{name}" is being deleted')
    if not is_made or claim.is_made_for(pod.uid):
        return claim
    if group is not None and claim.is_made_for_group(group.name):
        return claim
    who = "Pod is not" if group is None else f"neither Pod nor PodGroup {group.name} is the"
    raise UnresolvedClaim(
        f"ResourceClaim {claim.key} was not created for Pod {pod.key} ({who} owner)"
    )


def is_fresh(claim: ResourceClaim, pod: Pod, claims: ResourceClaims) -> bool:
    """Whether a claim was made for a pod alone and nothing was decided about it yet."""
    return (
        claim.allocation is None
        and claim.is_made_for(pod.uid)
        and not claim.reserved_for
        and not claims.is_in_flight(claim.uid)
    )
