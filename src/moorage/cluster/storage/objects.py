"""Volumes, claims and other storage objects, with the decisions that are not written yet."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Set
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from moorage.objects.csi import CSIDriver, CSINode, CSIStorageCapacity, VolumeAttachment
from moorage.objects.in_tree import IN_TREE, Attachable, Sources, VolumeKey
from moorage.objects.pod import Pod
from moorage.objects.storage import (
    ClaimRef,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
)
from moorage.objects.volume import ClaimUse

from .indexes import AssumedObjects, Attachments, VolumeIndex
from .nominated_claims import NominatedClaims
from .pod_facts import PodFacts

#: How a pod uses a claim, the key of the claim, and the claim as it was last seen, if it was.
KnownUse = tuple[ClaimUse, str, PersistentVolumeClaim | None]


@dataclass(frozen=True, slots=True)
class Binding:
    """A volume that is to be bound to a claim."""

    volume_name: str
    claim: ClaimRef


@dataclass(frozen=True, slots=True)
class Reservation:
    """The decision about the claims of a pod: volumes to bind, and claims to provision for."""

    node_name: str
    bindings: tuple[Binding, ...] = ()
    provisions: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.bindings or self.provisions)


class KnownStorage:
    """The storage objects by name. Claims and volumes include what is assumed of them."""

    def __init__(self, noted: Callable[[], None]) -> None:
        #: Called when a reservation has changed what is assumed of claims and volumes.
        self.noted = noted
        self._volumes: AssumedObjects[PersistentVolume] = AssumedObjects(_upheld_volume)
        self._claims: AssumedObjects[PersistentVolumeClaim] = AssumedObjects(_upheld_claim)
        self._others: dict[type[Any], dict[str, Any]] = {
            kind: {} for kind in (StorageClass, CSINode, CSIDriver, CSIStorageCapacity)
        }
        self.attachments = Attachments()
        self._index = VolumeIndex()
        self._claims_on: dict[str, dict[str, None]] = {}
        self._capacities: dict[str, tuple[CSIStorageCapacity, ...]] = {}
        self._reservations: dict[str, Reservation] = {}
        self.nominated = NominatedClaims(self.things_of)
        self.facts: PodFacts[KnownStorage] = PodFacts(self)

    # Claims and volumes

    def claim(self, key: str) -> PersistentVolumeClaim | None:
        """Returns a claim, with the node that was selected for it."""
        return self._claims.get(key)

    def known_claim(self, key: str) -> PersistentVolumeClaim | None:
        """Returns a claim as it was last seen."""
        return self._claims.known(key)

    def volume(self, name: str) -> PersistentVolume | None:
        """Returns a volume, with the claim that it was assigned to."""
        return self._volumes.get(name)

    def known_volume(self, name: str) -> PersistentVolume | None:
        """Returns a volume as it was last seen."""
        return self._volumes.known(name)

    def is_written(self, binding: Binding) -> bool:
        """Returns whether the volume was seen with a claimRef since this one was decided."""
        return binding.volume_name not in self._volumes.assumed

    def is_selected(self, claim_key: str) -> bool:
        """Returns whether the claim was seen with a selected node since one was decided."""
        return claim_key not in self._claims.assumed

    def free_volumes(self, claim: PersistentVolumeClaim) -> Iterator[PersistentVolume]:
        """Yields the free volumes of a claim's class that are large enough."""
        for name in self._index.free(claim.class_name, claim.request or 0):
            volume = self.volume(name)
            if volume is not None:
                yield volume

    def count_free(self, class_name: str) -> int:
        """Returns how many volumes of a class are free."""
        return self._index.count_free(class_name)

    def volumes_for(self, claim: PersistentVolumeClaim) -> Iterator[PersistentVolume]:
        """Yields the volumes whose claimRef names a claim."""
        for name in self._index.taken_by(claim.key):
            volume = self.volume(name)
            if volume is not None and volume.is_for(claim):
                yield volume

    def claims_on(self, volume_name: str) -> tuple[str, ...]:
        """Returns the keys of the claims that name a volume."""
        return tuple(self._claims_on.get(volume_name, ()))

    # Other objects

    def storage_class(self, name: str) -> StorageClass | None:
        return self._others[StorageClass].get(name)

    def driver(self, name: str) -> CSIDriver | None:
        return self._others[CSIDriver].get(name)

    def csi_node(self, name: str) -> CSINode | None:
        return self._others[CSINode].get(name)

    def capacities(self, class_name: str) -> tuple[CSIStorageCapacity, ...]:
        """Returns the capacities that are published for a class, in the order of their keys."""
        known = self._capacities.get(class_name)
        if known is None:
            everything: dict[str, CSIStorageCapacity] = self._others[CSIStorageCapacity]
            found = (each for each in everything.values() if each.class_name == class_name)
            known = tuple(sorted(found, key=lambda each: each.key))
            self._capacities[class_name] = known
        return known

    # Volumes of pods, and volumes as drivers know them

    def uses_of(self, pod: Pod) -> tuple[KnownUse, ...]:
        """Returns the claims of a pod, in the order of its volumes, as they were last seen."""
        return self.facts.find(pod, _find_uses)

    def attachable(self, claim: PersistentVolumeClaim) -> Attachable | None:
        """Returns the driver and handle of a claim's volume; None if no driver attaches it.

        An unbound claim has the driver of its class, and a handle that is unique to the claim.
        """
        volume = self.known_volume(claim.volume_name)
        if volume is not None:
            source = volume.source
            return source if source and source.driver and source.handle else None
        by_class = self.storage_class(claim.class_name)
        if by_class is None or not by_class.provisioner:
            return None
        plugin = IN_TREE.get(by_class.provisioner)
        driver = by_class.provisioner if plugin is None else plugin.driver
        # No driver uses such a handle, so that it equals that of no other volume.
        return Attachable(driver, f"\0{claim.key}")

    def volumes_of(self, pod: Pod) -> Set[VolumeKey]:
        """Returns the volumes of a pod that drivers attach to its node."""
        return self.facts.find(pod, _find_volumes)

    def things_of(self, pod: Pod) -> tuple[Hashable, ...] | None:
        """Returns the things by which the volumes of a pod are followed.

        None if the pod has volumes that these things do not cover.
        """
        return self.facts.find(pod, _find_things)

    def attached_volume(self, attachment: VolumeAttachment) -> VolumeKey | None:
        """Returns the volume of an attachment; None if it is not known."""
        volume = self.known_volume(attachment.volume_name)
        if not attachment.attacher or volume is None or volume.source is None:
            return None
        return None if volume.source.plugin else (attachment.attacher, volume.source.handle)

    # Reservations

    def reservation(self, uid: str) -> Reservation | None:
        """Returns the decision about the claims of a pod that is being bound."""
        return self._reservations.get(uid)

    # Objects

    def find(self, item: StorageObject) -> StorageObject | None:
        """Returns the known object of the same kind and name as the given one."""
        if isinstance(item, PersistentVolume):
            return self._volumes.known(item.name)
        if isinstance(item, PersistentVolumeClaim):
            return self._claims.known(item.key)
        if isinstance(item, VolumeAttachment):
            return self.attachments.get(item.name)
        return self._others[type(item)].get(_key(item))

    def __iter__(self) -> Iterator[StorageObject]:
        """Yields all objects as they were last seen."""
        yield from self._volumes
        yield from self._claims
        yield from self.attachments
        for others in self._others.values():
            yield from others.values()


class Reservations(KnownStorage):
    """Adds the decisions about claims that are not written yet. Plugins may write nothing else."""

    def reserve(self, uid: str, reservation: Reservation) -> None:
        """Assumes claims and volumes as they will be when the decision is written."""
        self.facts.forget()
        for binding in reservation.bindings:
            volume = self._volumes.get(binding.volume_name)
            assert volume is not None, f"volume {binding.volume_name} is not known"
            self._volumes.assume(volume.name, replace(volume, claim_ref=binding.claim), uid)
            self._reindex(volume.name, volume)
        for key in reservation.provisions:
            claim = self._claims.get(key)
            assert claim is not None, f"claim {key} is not known"
            self._claims.assume(key, replace(claim, selected_node=reservation.node_name), uid)
        self._reservations[uid] = reservation
        self.noted()

    def release(self, uid: str) -> None:
        """Takes back the decision for a pod, as far as it is not written."""
        reservation = self._reservations.pop(uid, None)
        if reservation is None:
            return
        self.facts.forget()
        for binding in reservation.bindings:
            before = self._volumes.get(binding.volume_name)
            self._volumes.restore(binding.volume_name, uid)
            self._reindex(binding.volume_name, before)
        for key in reservation.provisions:
            self._claims.restore(key, uid)
        self.noted()

    # Indexes

    def _reindex(self, name: str, before: PersistentVolume | None) -> None:
        """Replaces the earlier form of a volume in the index with the present one."""
        after = self._volumes.get(name)
        if before is not after:
            if before is not None:
                self._index.discard(before)
            if after is not None:
                self._index.add(after)


class Storage(Reservations):
    """The storage objects with the methods that change them, which only the cluster calls."""

    def assume_as(self, other: Storage) -> None:
        """Copies the assumptions and reservations of another, for objects that are known here."""
        self.facts.forget()
        for name, volume in other._volumes.assumed.items():
            if self._volumes.known(name) is not None:
                before = self._volumes.get(name)
                self._volumes.assume_for(name, volume, other._volumes.owners[name])
                self._reindex(name, before)
        for key, claim in other._claims.assumed.items():
            if self._claims.known(key) is not None:
                self._claims.assume_for(key, claim, other._claims.owners[key])
        self._reservations = dict(other._reservations)

    def end_reservation(self, uid: str) -> None:
        """Ends the reservation of a pod that is on its node or gone; its assumptions stay."""
        self._reservations.pop(uid, None)

    def put(self, item: StorageObject) -> None:
        self._forget()
        if isinstance(item, PersistentVolume):
            before = self._volumes.get(item.name)
            self._volumes.put(item.name, item)
            self._reindex(item.name, before)
        elif isinstance(item, PersistentVolumeClaim):
            self._unlink(item.key)
            self._claims.put(item.key, item)
            self._link(item)
        elif isinstance(item, VolumeAttachment):
            self.attachments.put(item)
        else:
            self._others[type(item)][_key(item)] = item
            self._capacities.clear()

    def drop(self, item: StorageObject) -> None:
        self._forget()
        if isinstance(item, PersistentVolume):
            before = self._volumes.get(item.name)
            self._volumes.drop(item.name)
            self._reindex(item.name, before)
        elif isinstance(item, PersistentVolumeClaim):
            self._unlink(item.key)
            self._claims.drop(item.key)
        elif isinstance(item, VolumeAttachment):
            self.attachments.drop(item.name)
        else:
            self._others[type(item)].pop(_key(item), None)
            self._capacities.clear()

    def _forget(self) -> None:
        """Forgets what follows from objects, because one of them changes."""
        self.facts.forget()
        self.nominated.forget()

    def _link(self, claim: PersistentVolumeClaim) -> None:
        if claim.volume_name:
            self._claims_on.setdefault(claim.volume_name, {})[claim.key] = None

    def _unlink(self, key: str) -> None:
        known = self._claims.known(key)
        if known is not None and known.volume_name:
            keys = self._claims_on[known.volume_name]
            del keys[key]
            if not keys:
                del self._claims_on[known.volume_name]


def _find_uses(pod: Pod, storage: KnownStorage) -> tuple[KnownUse, ...]:
    found: list[KnownUse] = []
    for use in pod.claims:
        key = f"{pod.namespace}/{use.name}"
        found.append((use, key, storage.known_claim(key)))
    return tuple(found)


def _find_volumes(pod: Pod, storage: KnownStorage) -> Set[VolumeKey]:
    found: set[VolumeKey] = set()
    for volume in pod.spec.migratable:
        attached = Sources.inline(volume).attachable()
        if attached is not None:
            found.add(attached.key)
    for use, _, claim in storage.uses_of(pod):
        if claim is not None and (not use.ephemeral or claim.is_made_for(pod.uid)):
            attached = storage.attachable(claim)
            if attached is not None:
                found.add(attached.key)
    return found


def _find_things(pod: Pod, storage: KnownStorage) -> tuple[Hashable, ...] | None:
    if pod.spec.migratable or pod.spec.disks:
        return None
    things: list[Hashable] = []
    for use, key, claim in storage.uses_of(pod):
        if use.ephemeral or claim is None or storage.known_volume(claim.volume_name) is None:
            return None
        things += [("claim", key), ("volume", claim.volume_name)]
    return (*things, *storage.volumes_of(pod))


def _key(item: StorageObject) -> str:
    return item.key if isinstance(item, CSIStorageCapacity) else item.name


def _upheld_volume(seen: PersistentVolume, assumed: PersistentVolume) -> PersistentVolume | None:
    ref, decided = seen.claim_ref, assumed.claim_ref
    if decided is None or ref == decided:
        return None
    if ref is None or (ref.key == decided.key and not ref.uid):
        return replace(seen, claim_ref=decided)
    return None


def _upheld_claim(
    seen: PersistentVolumeClaim, assumed: PersistentVolumeClaim
) -> PersistentVolumeClaim | None:
    if seen.selected_node is not None:
        return None
    return replace(seen, selected_node=assumed.selected_node)
