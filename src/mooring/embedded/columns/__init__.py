"""What people see of each kind in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.embedded.kinds import Kind

from . import cluster, storage, stored_only, workloads
from .column import NAME, Column, age
from .pods import PODS

_PLAIN = (NAME, age())
_KINDS: Mapping[str, Sequence[Column]] = {
    "configmaps": cluster.CONFIG_MAPS,
    "controllerrevisions.apps": workloads.REVISIONS,
    "cronjobs.batch": stored_only.CRON_JOBS,
    "csidrivers.storage.k8s.io": storage.CSI_DRIVERS,
    "csinodes.storage.k8s.io": storage.CSI_NODES,
    "csistoragecapacities.storage.k8s.io": storage.CAPACITIES,
    "daemonsets.apps": workloads.DAEMON_SETS,
    "deployments.apps": workloads.DEPLOYMENTS,
    "events": cluster.EVENTS,
    "ingresses.networking.k8s.io": stored_only.INGRESSES,
    "jobs.batch": workloads.JOBS,
    "leases.coordination.k8s.io": cluster.LEASES,
    "namespaces": cluster.NAMESPACES,
    "nodes": cluster.NODES,
    "persistentvolumeclaims": storage.CLAIMS,
    "persistentvolumes": storage.VOLUMES,
    "poddisruptionbudgets.policy": workloads.BUDGETS,
    "pods": PODS,
    "priorityclasses.scheduling.k8s.io": cluster.PRIORITY_CLASSES,
    "replicasets.apps": workloads.REPLICA_SETS,
    "replicationcontrollers": workloads.REPLICA_SETS,
    "scales.autoscaling": workloads.SCALES,
    "secrets": cluster.SECRETS,
    "services": cluster.SERVICES,
    "statefulsets.apps": workloads.STATEFUL_SETS,
    "storageclasses.storage.k8s.io": storage.CLASSES,
    "volumeattachments.storage.k8s.io": storage.ATTACHMENTS,
}


def columns_of(kind: Kind) -> Sequence[Column]:
    """The columns of a kind; names and ages of those that have none of their own."""
    return _KINDS.get(kind.table) or kind.rules.columns() or _PLAIN
