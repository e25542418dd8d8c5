"""Changes storage objects, and the counts of rows that depend on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass

from moorage.cluster.changes import EVERYWHERE, Change
from moorage.objects.csi import CSINode, VolumeAttachment
from moorage.objects.pod import Pod
from moorage.objects.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageObject,
)

from .objects import Storage
from .use import CSINodeColumns, UsedClaim, VolumeUse

Note = Callable[[int, int], None]

#: The kinds of change of a storage object. They are plain integers, because combining flags of an
#: enum takes many times as long.
OBJECT_CHANGE = int(Change.VOLUMES | Change.STORAGE)
_CSI_NODE_CHANGE = OBJECT_CHANGE | int(Change.ATTACH_LIMITS)


@dataclass(frozen=True, slots=True)
class StorageWriter:
    """The part of the cluster's writer that deals with storage."""

    _storage: Storage
    _use: VolumeUse
    _csi_nodes: CSINodeColumns
    _rows: Mapping[str, int]
    #: Returns the pods on rows that use some claims.
    _find_pods: Callable[[Set[UsedClaim]], list[tuple[Pod, int]]]
    _note: Note

    def put(self, item: StorageObject) -> StorageObject | None:
        """Adds or updates an object; returns its previous form."""
        before = self._storage.find(item)
        if before != item:
            self._change(item, self._storage.put)
        return before

    def remove(self, item: StorageObject) -> None:
        self._change(item, self._storage.drop)

    def join(self, row: int, node_name: str) -> None:
        """Takes in a node that got a row."""
        self._csi_nodes.set_row(row, self._storage.csi_node(node_name))
        for attachment in self._storage.attachments.on(node_name):
            self._count_attachment(attachment, 1)

    def leave(self, row: int, node_name: str) -> None:
        """Takes in that a node is about to lose its row."""
        self._csi_nodes.set_row(row, None)
        for attachment in self._storage.attachments.on(node_name):
            self._count_attachment(attachment, -1)

    def _change(self, item: StorageObject, change: Callable[[StorageObject], None]) -> None:
        use = self._use
        pods = self._find_users(item)
        # Counts are subtracted before the object changes, so that the same volumes are subtracted
        # that were added.
        for pod, row in pods:
            use.count(pod, row, -1)
        for attachment in self._find_attachments(item):
            self._count_attachment(attachment, -1)
        change(item)
        for pod, row in pods:
            use.count(pod, row, 1)
            self._note(row, Change.VOLUMES)
        for attachment in self._find_attachments(item):
            self._count_attachment(attachment, 1)
        self._note_object(item)

    def _find_users(self, item: StorageObject) -> list[tuple[Pod, int]]:
        """Returns the pods on rows whose volumes may change with an object."""
        claims: Iterable[str] = ()
        if isinstance(item, PersistentVolumeClaim):
            claims = (item.key,)
        elif isinstance(item, PersistentVolume):
            claims = self._storage.claims_on(item.name)
        elif isinstance(item, StorageClass):
            known = (each for each in self._storage if isinstance(each, PersistentVolumeClaim))
            claims = (each.key for each in known)
        return self._find_pods({(claim, made) for claim in claims for made in (False, True)})

    def _find_attachments(self, item: StorageObject) -> tuple[VolumeAttachment, ...]:
        """Returns the attachments whose volume may change with an object."""
        if isinstance(item, PersistentVolume):
            return self._storage.attachments.of(item.name)
        if isinstance(item, VolumeAttachment):
            known = self._storage.attachments.get(item.name)
            return () if known is None else (known,)
        return ()

    def _count_attachment(self, attachment: VolumeAttachment, amount: int) -> None:
        row = self._rows.get(attachment.node_name)
        key = self._storage.attached_volume(attachment)
        if row is not None and key is not None:
            self._use.count_attachment(key, row, amount)
            self._note(row, Change.VOLUMES)

    def _note_object(self, item: StorageObject) -> None:
        if isinstance(item, CSINode):
            row = self._rows.get(item.name)
            if row is not None:
                self._csi_nodes.set_row(row, self._storage.csi_node(item.name))
                self._note(row, _CSI_NODE_CHANGE)
        elif not isinstance(item, VolumeAttachment):
            self._note(EVERYWHERE, OBJECT_CHANGE)
