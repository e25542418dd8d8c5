"""The claims of a pod sorted by what they still need, or why the pod cannot be placed with them."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.cluster.storage import Storage
from mooring.framework.status import PluginError, Rejected, unresolvable
from mooring.objects.pod import Pod
from mooring.objects.storage import PersistentVolumeClaim
from mooring.objects.volume import ClaimUse

from .pod_claims import claim_key, claim_not_found, not_made_for


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims that have their volume, and those that wait for the pod's node."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    unbound: tuple[PersistentVolumeClaim, ...] = ()


def claims_of(pod: Pod, storage: Storage) -> Claims | Rejected | None:
    """The claims of a pod; None when it has none."""
    if not pod.spec.claiming:
        return None
    claims: list[PersistentVolumeClaim] = []
    for use in pod.claims:
        key = claim_key(pod, use)
        wrong = _problem(pod, use, storage.known_claim(key))
        if wrong:
            return unresolvable(wrong)
        claim = storage.claim(key)
        assert claim is not None, f"claim {key} is known"
        claims.append(claim)
    unbound = [claim for claim in claims if not claim.is_bound]
    # All of them are asked, so that a class that says nothing is always told.
    if not all([_waits(claim, storage) for claim in unbound]):
        return unresolvable("pod has unbound immediate PersistentVolumeClaims")
    return Claims(tuple(claim for claim in claims if claim.is_bound), tuple(unbound))


def _problem(pod: Pod, use: ClaimUse, claim: PersistentVolumeClaim | None) -> str:
    """Why a pod cannot be placed with a claim, whatever the node; empty if it can."""
    if claim is None:
        if use.ephemeral:
            return (
                "waiting for ephemeral volume controller to create the "
                f'persistentvolumeclaim "{use.name}"'
            )
        return claim_not_found(use.name)
    if claim.phase == "Lost":
        return (
            f'persistentvolumeclaim "{claim.name}" bound to non-existent '
            f'persistentvolume "{claim.volume_name}"'
        )
    if claim.terminating:
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    if use.ephemeral and not claim.is_made_for(pod.uid):
        return not_made_for(pod, claim)
    return ""


def _waits(claim: PersistentVolumeClaim, storage: Storage) -> bool:
    """Whether an unbound claim is for the scheduler to bind; others bind it at once."""
    by_class = storage.storage_class(claim.class_name)
    if by_class is None:
        return False
    if by_class.volume_binding_mode is None:
        raise PluginError(f'VolumeBindingMode not set for StorageClass "{by_class.name}"')
    return by_class.waits and not claim.volume_name
