"""Volume plugins that were once part of Kubernetes: what CSI drivers make of their volumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from .node import BETA_REGION, BETA_ZONE, REGION, ZONE
from .node_selector import Malformed, NodeRequirement, NodeTerm
from .selector import Labels
from .volume import (
    AzureDiskSource,
    CinderSource,
    EBSSource,
    GCEDiskSource,
    PortworxSource,
    Volume,
)

#: Separates the zones of a volume in one label.
ZONE_DELIMITER = "__"

#: Driver and handle.
VolumeKey = tuple[str, str]
Terms = tuple[NodeTerm | Malformed | None, ...]


@dataclass(frozen=True, slots=True)
class Attachable:
    """A volume as a CSI driver knows it; `plugin` names the in-tree plugin of one that migrated.

    `fault` says why no driver can know it. Then it has no handle.
    """

    driver: str
    handle: str
    plugin: str = ""
    fault: str = ""

    @property
    def key(self) -> VolumeKey:
        """What tells one volume from another, whichever way it is written."""
        return self.driver, self.handle


@dataclass(frozen=True, slots=True)
class InTreePlugin:
    """The driver of a plugin, and the driver's own node label for zones, if it has one."""

    driver: str
    zone_label: str = ""


AWS_EBS = "kubernetes.io/aws-ebs"
GCE_PD = "kubernetes.io/gce-pd"
AZURE_DISK = "kubernetes.io/azure-disk"
CINDER = "kubernetes.io/cinder"
PORTWORX = "kubernetes.io/portworx-volume"

IN_TREE: Mapping[str, InTreePlugin] = {
    AWS_EBS: InTreePlugin("ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"),
    GCE_PD: InTreePlugin("pd.csi.storage.gke.io", "topology.gke.io/zone"),
    AZURE_DISK: InTreePlugin("disk.csi.azure.com"),
    CINDER: InTreePlugin("cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"),
    PORTWORX: InTreePlugin("pxd.portworx.com"),
}


_NO_LABELS: Labels = {}


@dataclass(frozen=True, slots=True)
class Sources:
    """The in-tree source of a volume; at most one is set."""

    aws_elastic_block_store: EBSSource | None = None
    gce_persistent_disk: GCEDiskSource | None = None
    azure_disk: AzureDiskSource | None = None
    cinder: CinderSource | None = None
    portworx_volume: PortworxSource | None = None

    @classmethod
    def inline(cls, volume: Volume) -> Sources:
        """Returns the source of a volume that is written in a pod."""
        return cls(
            volume.aws_elastic_block_store,
            volume.gce_persistent_disk,
            volume.azure_disk,
            volume.cinder,
            volume.portworx_volume,
        )

    def attachable(self, labels: Labels = _NO_LABELS) -> Attachable | None:
        """Returns the driver's name for the volume; None if no driver replaces its plugin.

        The labels are those of a PersistentVolume.
        """
        if self.gce_persistent_disk is not None:
            driver = IN_TREE[GCE_PD].driver
            try:
                place = _find_gce_place(labels)
            except _UnknownPlace as error:
                return Attachable(driver, "", GCE_PD, fault=str(error))
            handle = f"projects/UNSPECIFIED/{place}/disks/{self.gce_persistent_disk.pd_name}"
            return Attachable(driver, handle, GCE_PD)
        named = self._name_volume()
        if named is None:
            return None
        plugin, handle = named
        return Attachable(IN_TREE[plugin].driver, handle, plugin)

    def _name_volume(self) -> tuple[str, str] | None:
        if self.aws_elastic_block_store is not None:
            return AWS_EBS, _ebs_handle(self.aws_elastic_block_store.volume_id)
        if self.azure_disk is not None:
            return AZURE_DISK, self.azure_disk.disk_uri
        if self.cinder is not None:
            return CINDER, self.cinder.volume_id
        if self.portworx_volume is not None:
            return PORTWORX, self.portworx_volume.volume_id
        return None


def migrated_terms(plugin: str, terms: Terms | None, labels: Labels) -> Terms | None:
    """Returns a volume's node affinity in the labels of the driver that replaces its plugin."""
    zone_label = IN_TREE[plugin].zone_label
    if not zone_label:
        return terms
    zone, region = _topology_labels(terms or (), labels)
    if _values(terms or (), zone):
        terms = _rename_key(terms or (), zone, zone_label)
    elif zone in labels:
        zones = {each.strip() for each in labels[zone].split(ZONE_DELIMITER)} - {""}
        terms = _with_zones(terms, NodeRequirement(zone_label, "In", tuple(sorted(zones))))
    if region == BETA_REGION and terms and _values(terms, region):
        terms = _rename_key(terms, region, REGION)
    return terms


class _UnknownPlace(ValueError):
    """The labels of a volume name zones in which no disk can be."""


def _find_gce_place(labels: Labels) -> str:
    """Returns the zone or, of several zones, the region in which a disk is."""
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE) or "UNSPECIFIED").split(ZONE_DELIMITER)
    if len(zones) == 1:
        return f"zones/{zones[0]}"
    regions = {_find_region(zone) for zone in zones}
    if len(regions) > 1:
        found = " ".join(f"{region}:{{}}" for region in sorted(regions))
        text = f"multiple or no regions gotten from zones, got: map[{found}]"
        raise _UnknownPlace(f"failed to get region from zones: {text}")
    return f"regions/{regions.pop()}"


def _find_region(zone: str) -> str:
    region, _, last = zone.rpartition("-")
    if region.count("-") != 1 or "-" in last:
        text = "zone in unexpected format, expected: {locale}-{region}-{zone}, got: " + zone
        raise _UnknownPlace(f"failed to get region from zones: {text}")
    return region


def _ebs_handle(volume_id: str) -> str:
    if not volume_id.startswith("aws://"):
        return volume_id
    return volume_id.rpartition("/")[2]


def _topology_labels(
    terms: Sequence[NodeTerm | Malformed | None], labels: Labels
) -> tuple[str, str]:
    keys = {
        requirement.key
        for term in terms
        if isinstance(term, NodeTerm)
        for requirement in term.requirements
    }
    for named in (keys, labels):
        if ZONE in named:
            return ZONE, REGION
        if BETA_ZONE in named:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _values(terms: Terms, key: str) -> bool:
    return any(
        requirement.key == key and bool(requirement.values)
        for term in terms
        if isinstance(term, NodeTerm)
        for requirement in term.requirements
    )


def _rename_key(terms: Terms, old: str, new: str) -> Terms:
    return tuple(
        replace(
            term,
            requirements=tuple(
                replace(each, key=new) if each.key == old else each for each in term.requirements
            ),
        )
        if isinstance(term, NodeTerm)
        else term
        for term in terms
    )


def _with_zones(terms: Terms | None, zones: NodeRequirement) -> Terms | None:
    if not zones.values:
        return terms
    # A term without expressions matches nothing, until it gets this one.
    written = [NodeTerm() if term is None else term for term in terms or (None,)]
    return tuple(
        replace(term, requirements=(*term.requirements, zones))
        if isinstance(term, NodeTerm)
        else term
        for term in written
    )
