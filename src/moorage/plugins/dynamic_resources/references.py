"""Finds the claims of a pod: it names them, or they are made for it from a template."""

from __future__ import annotations

from moorage.cluster.devices.claims import ResourceClaims
from moorage.objects.pod import Pod
from moorage.objects.pod_spec import PodResourceClaim
from moorage.objects.resource_claim import ResourceClaim


class UnresolvedClaim(LookupError):
    """A claim of a pod does not exist, or does not belong to the pod."""


def find_claims(pod: Pod, claims: ResourceClaims) -> tuple[ResourceClaim, ...]:
    """Returns the claims of a pod in order. Raises UnresolvedClaim."""
    references = pod.spec.resource_claims
    if not references:
        return ()
    found = []
    for reference in references:
        name, is_made = _name(pod, reference)
        if name is not None:
            found.append(_find(pod, name, is_made, claims))
    return tuple(found)


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


def _find(pod: Pod, name: str, is_made: bool, claims: ResourceClaims) -> ResourceClaim:
    claim = claims.get(f"{pod.namespace}/{name}")
    if claim is None:
        raise UnresolvedClaim(f'could not find ResourceClaim "{pod.namespace}/{name}"')
    if claim.terminating:
        raise UnresolvedClaim(f'resourceclaim "{name}" is being deleted')
    if is_made and not claim.is_made_for(pod.uid):
        raise UnresolvedClaim(
            f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)"
        )
    return claim


def is_fresh(claim: ResourceClaim, pod: Pod, claims: ResourceClaims) -> bool:
    """Whether a claim was made for a pod alone and nothing was decided about it yet."""
    return (
        claim.allocation is None
        and claim.is_made_for(pod.uid)
        and not claim.reserved_for
        and not claims.is_in_flight(claim.uid)
    )
