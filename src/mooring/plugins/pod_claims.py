"""The claims of a pod, as the volume plugins talk about them."""

from __future__ import annotations

from mooring.objects.pod import Pod
from mooring.objects.storage import PersistentVolumeClaim
from mooring.objects.volume import ClaimUse


def claim_key(pod: Pod, use: ClaimUse) -> str:
    return f"{pod.namespace}/{use.name}"


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def not_made_for(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """What is said about an ephemeral volume whose claim belongs to someone else."""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def names_claim(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """A hint: whether the pod has a volume that is this claim."""
    return pod.namespace == new.namespace and ClaimUse(new.name, False) in pod.claims


def uses_claim(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """A hint: whether the pod names the claim, or has a volume that makes a claim of that name."""
    return pod.namespace == new.namespace and any(use.name == new.name for use in pod.claims)
