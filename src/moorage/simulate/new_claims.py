"""Claims of pods that do not exist yet: those that controllers make before a pod is scheduled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from moorage.objects.in_tree import Attachable
from moorage.objects.kinds import Object
from moorage.objects.meta import OwnerReference
from moorage.objects.pod import Pod
from moorage.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

_BOUND = "Bound"


def settle_claims(
    claims: Iterable[PersistentVolumeClaim], known: Iterable[Object]
) -> Iterator[Object]:
    """Yields the claims that do not exist yet, with the volumes that they get at once.

    A claim whose class does not wait for a pod gets its volume from the provisioner. In which zone
    is not known, so that it counts as reachable from everywhere that the class allows.
    """
    items = list(known)
    classes = {item.name: item for item in items if isinstance(item, StorageClass)}
    taken = {item.key for item in items if isinstance(item, PersistentVolumeClaim)}
    for claim in claims:
        by_class = classes.get(claim.class_name)
        if claim.key in taken:
            continue
        taken.add(claim.key)
        if by_class is None or by_class.waits or not by_class.provisions or claim.volume_name:
            yield claim
            continue
        name = f"pvc-{claim.key}"
        yield _provision(claim, by_class, name)
        yield replace(claim, volume_name=name, bind_completed=True, phase=_BOUND)


def _provision(claim: PersistentVolumeClaim, by_class: StorageClass, name: str) -> PersistentVolume:
    return PersistentVolume(
        name=name,
        capacity=claim.request or 0,
        access_modes=claim.access_modes,
        claim_ref=claim.ref,
        class_name=claim.class_name,
        volume_mode=claim.volume_mode,
        attributes_class=claim.attributes_class,
        node_terms=by_class.allowed_topologies or None,
        source=Attachable(by_class.provisioner, name),
        phase=_BOUND,
    )


def copy_ephemeral(
    claims: Iterable[PersistentVolumeClaim], template: Pod, copy: Pod
) -> Iterator[PersistentVolumeClaim]:
    """Yields the claims of a copy of a pod: like those that were made for the pod itself."""
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=copy.name, uid=copy.uid, controller=True
    )
    for claim in claims:
        name = f"{copy.name}{claim.name.removeprefix(template.name)}"
        yield replace(claim, name=name, uid="", owner=owner)
