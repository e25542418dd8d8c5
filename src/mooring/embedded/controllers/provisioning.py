"""Volumes made for claims: a folder on a node, which is all that hollow nodes need."""

from __future__ import annotations

from mooring.embedded.wire import Json

from .items import NodeItem
from .volumes import PROVISIONED_BY

SELECTED_NODE = "volume.kubernetes.io/selected-node"
_HOSTNAME = "kubernetes.io/hostname"
_FOLDER = "/var/lib/embedded-volumes"


def volume_for(claim: Json, of_class: Json, node: NodeItem | None) -> Json:
    """A volume as a claim asks for it, on a node if one was selected."""
    metadata, wanted = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    spec = {
        "capacity": {"storage": wanted["resources"]["requests"]["storage"]},
        "accessModes": wanted["accessModes"],
        "volumeMode": wanted["volumeMode"],
        "storageClassName": of_class["metadata"]["name"],
        "persistentVolumeReclaimPolicy": of_class["reclaimPolicy"],
        "hostPath": {"path": f"{_FOLDER}/{name}"},
        "claimRef": {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
    }
    if node is not None:
        host = node.labels.get(_HOSTNAME, node.name)
        expression = {"key": _HOSTNAME, "operator": "In", "values": [host]}
        terms = [{"matchExpressions": [expression]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    notes = {PROVISIONED_BY: of_class["provisioner"]}
    return {"metadata": {"name": name, "annotations": notes}, "spec": spec}
