"""The claims of a pod: what they still need, what is wrong with them, and what would help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.cluster import View
from moorage.cluster.storage.objects import KnownStorage
from moorage.framework.advice import MOST_GROUPS, Advice, Advise
from moorage.framework.edits import DropVolume
from moorage.framework.status import PluginError, Rejected, unresolvable
from moorage.framework.wakeups import Topics
from moorage.objects.pod import Pod
from moorage.objects.storage import PersistentVolume, PersistentVolumeClaim
from moorage.objects.volume import ClaimUse, Volume


def claim_key(pod: Pod, use: ClaimUse) -> str:
    return f"{pod.namespace}/{use.name}"


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def not_made_for(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Returns the error about an ephemeral volume whose claim does not belong to the pod."""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def names_claim(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """Whether the pod has a volume that names this claim. Wakeups use it as a hint."""
    return pod.namespace == new.namespace and ClaimUse(new.name, False) in pod.claims


def uses_claim(pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> bool:
    """Whether the pod names the claim, or has a volume that makes a claim of that name.

    Wakeups use it as a hint.
    """
    return pod.namespace == new.namespace and any(use.name == new.name for use in pod.claims)


def claim_names(pod: Pod) -> str:
    """Returns what distinguishes the claims of pods of one template.

    It is the name of a pod that makes some, and empty for other pods.
    """
    return pod.name if any(use.ephemeral for use in pod.claims) else ""


def _claims_waited_for(pod: Pod) -> list[str]:
    return [claim_key(pod, use) for use in pod.claims]


def _claim_changed(old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> tuple[str]:
    return (new.key,)


#: The topics of hints about claims: a pod waits for its own claims.
OWN_CLAIMS = Topics(_claim_changed, _claims_waited_for)


class Claims(msgspec.Struct, frozen=True):
    """The volumes of bound claims, and the claims that wait for the pod's node."""

    #: None for a volume that does not exist.
    volumes: tuple[PersistentVolume | None, ...] = ()
    unbound: tuple[PersistentVolumeClaim, ...] = ()


def claims_of(pod: Pod, storage: KnownStorage) -> Claims | Rejected | None:
    """Returns the claims of a pod; None if it has none."""
    return storage.facts.find(pod, _find_claims) if pod.spec.claiming else None


def _find_claims(pod: Pod, storage: KnownStorage) -> Claims | Rejected:
    claims: list[PersistentVolumeClaim] = []
    for use, key, known in storage.uses_of(pod):
        wrong = _problem(pod, use, known)
        if wrong:
            return unresolvable(wrong)
        claim = storage.claim(key)
        assert claim is not None, f"claim {key} is known"
        claims.append(claim)
    unbound = [claim for claim in claims if not claim.is_bound]
    # All claims are checked, so that a class without a mode is always reported.
    if not all([_waits(claim, storage) for claim in unbound]):
        return unresolvable("pod has unbound immediate PersistentVolumeClaims")
    bound = [storage.volume(claim.volume_name) for claim in claims if claim.is_bound]
    return Claims(tuple(bound), tuple(unbound))


def _problem(pod: Pod, use: ClaimUse, claim: PersistentVolumeClaim | None) -> str:
    """Returns why a pod cannot be placed with a claim on any node; empty if it can."""
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


def _waits(claim: PersistentVolumeClaim, storage: KnownStorage) -> bool:
    """Whether the scheduler has to bind an unbound claim. Other claims are bound without it."""
    by_class = storage.storage_class(claim.class_name)
    if by_class is None:
        return False
    if by_class.volume_binding_mode is None:
        raise PluginError(f'VolumeBindingMode not set for StorageClass "{by_class.name}"')
    return by_class.waits and not claim.volume_name


class AdviseOnVolumes(Advise[Any]):
    """Advises, for all plugins about volumes, to drop each volume alone, then all of them.

    Trying the advice shows which volumes keep the pod from nodes.
    """

    def advise(
        self, pod: Pod, prepared: Any, nodes: View, rows: NDArray[np.intp]
    ) -> Iterator[Advice]:
        volumes = pod.spec.volumes or ()
        awaited = [text for each in volumes if (text := _await_claim(each, pod, nodes))]
        # That helps. Where the volumes will be is not known yet.
        yield from (Advice(text, kind="claims") for text in awaited[:MOST_GROUPS])
        for volume in volumes[:MOST_GROUPS] if not awaited else ():
            problem = f"volume {_describe(volume, pod)} is in the way"
            yield Advice(problem, (DropVolume(volume.name),), kind="volumes")
        if len(volumes) > 1 and not awaited:
            drops = tuple(DropVolume(volume.name) for volume in volumes)
            yield Advice("its volumes are in the way", drops, kind="volumes")


def _await_claim(volume: Volume, pod: Pod, nodes: View) -> str:
    """Returns what has to happen to the claim of a volume before the pod is scheduled."""
    if not volume.claims:
        return ""
    key = f"{pod.namespace}/{volume.claim_of(pod.name).name}"
    claim = nodes.storage.claim(key)
    if claim is None:
        return f"it waits until claim {key} exists"
    if claim.volume_name or _waits(claim, nodes.storage):
        return ""
    has_class = not claim.class_name or nodes.storage.storage_class(claim.class_name)
    missing = "" if has_class else f", which asks for the missing storage class {claim.class_name}"
    return f"it waits until claim {key} is bound{missing}"


def _describe(volume: Volume, pod: Pod) -> str:
    if not volume.claims:
        return volume.name
    return f"{volume.name} (claim {volume.claim_of(pod.name).name})"
