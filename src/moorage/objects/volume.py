"""The volumes of a pod, as written: only the sources that can decide where a pod may run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from .meta import Wire


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk that at most one pod of a node can write to: its kind and what identifies it."""

    kind: str
    identity: tuple[str, ...]
    read_only: bool = False


class ClaimUse(NamedTuple):
    """A claim that a pod uses, by name; an ephemeral one was made for the pod."""

    name: str
    ephemeral: bool


class ClaimSource(Wire, frozen=True):
    """A volume that is a persistent volume claim."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralSource(Wire, frozen=True):
    """A claim made for the pod and deleted with it, named after the pod and the volume."""


class GCEDiskSource(Wire, frozen=True):
    """A GCE persistent disk."""

    pd_name: str = ""
    read_only: bool = False


class EBSSource(Wire, frozen=True):
    """An AWS block store volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool = False


class RBDSource(Wire, frozen=True):
    """A Ceph block device."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    read_only: bool = False


class ISCSISource(Wire, frozen=True):
    """An iSCSI disk."""

    iqn: str = ""
    read_only: bool = False


class AzureDiskSource(Wire, frozen=True):
    """An Azure data disk."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")


class CinderSource(Wire, frozen=True):
    """An OpenStack volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class PortworxSource(Wire, frozen=True):
    """A Portworx volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class CSISource(Wire, frozen=True):
    """An inline volume of a CSI driver."""

    driver: str = ""


class ImageSource(Wire, frozen=True):
    """A container image mounted as a volume."""

    reference: str = ""


class Volume(Wire, frozen=True):
    """One volume of a pod; sources that no decision reads are not named here."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    gce_persistent_disk: GCEDiskSource | None = None
    aws_elastic_block_store: EBSSource | None = None
    rbd: RBDSource | None = None
    iscsi: ISCSISource | None = None
    azure_disk: AzureDiskSource | None = None
    cinder: CinderSource | None = None
    portworx_volume: PortworxSource | None = None
    csi: CSISource | None = None
    image: ImageSource | None = None

    @property
    def claims(self) -> bool:
        """Whether it is a claim, or makes one."""
        return self.persistent_volume_claim is not None or self.ephemeral is not None

    @property
    def migratable(self) -> bool:
        """Whether its plugin was part of Kubernetes and a CSI driver has taken it over."""
        return any(getattr(self, source) is not None for source in _MIGRATABLE)

    def claim_of(self, pod_name: str) -> ClaimUse:
        """Returns the claim behind the volume in a pod of that name."""
        if self.persistent_volume_claim is not None:
            return ClaimUse(self.persistent_volume_claim.claim_name, False)
        return ClaimUse(f"{pod_name}-{self.name}", True)

    @property
    def disks(self) -> Iterator[Disk]:
        """The disks behind the volume; a Ceph device counts once for each of its monitors."""
        if (gce := self.gce_persistent_disk) is not None:
            yield Disk("gce", (gce.pd_name,), gce.read_only)
        if (ebs := self.aws_elastic_block_store) is not None:
            # Such a volume cannot be shared, not even for reading.
            yield Disk("ebs", (ebs.volume_id,))
        if (iscsi := self.iscsi) is not None:
            yield Disk("iscsi", (iscsi.iqn,), iscsi.read_only)
        if (rbd := self.rbd) is not None:
            for monitor in rbd.monitors:
                yield Disk("rbd", (monitor, rbd.pool, rbd.image), rbd.read_only)

    @property
    def decides(self) -> bool:
        """Whether the source is one that scheduling reads; a config map, say, is not."""
        return any(getattr(self, source) is not None for source in _SOURCES)


_MIGRATABLE = (
    "aws_elastic_block_store",
    "gce_persistent_disk",
    "azure_disk",
    "cinder",
    "portworx_volume",
)
_SOURCES = tuple(name for name in Volume.__struct_fields__ if name != "name")
