"""Kinds that are kept and shown but never acted upon, for the manifests that bring them along."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from .kinds import STATUS, Kind, built_in
from .rules.cron_jobs import CronJobs
from .rules.plain import WithStatus
from .rules.stored_only import Access, Ingresses, NetworkPolicies


def stored_only(*, coexist: bool) -> Iterator[Kind]:
    """Cron jobs, ways into the cluster, who may do what, and devices."""
    yield from _devices()
    yield built_in(
        "batch",
        "batch.v1",
        "CronJob",
        "cronjobs",
        CronJobs(coexist=coexist),
        parts=(STATUS,),
        short_names=("cj",),
        categories=("all",),
    )
    network = partial(built_in, "networking.k8s.io", "networking.v1")
    yield network("Ingress", "ingresses", Ingresses(), parts=(STATUS,), short_names=("ing",))
    yield network("IngressClass", "ingressclasses", namespaced=False)
    yield network("NetworkPolicy", "networkpolicies", NetworkPolicies(), short_names=("netpol",))
    access = partial(built_in, "rbac.authorization.k8s.io", "rbac.v1")
    yield access("Role", "roles", Access())
    yield access("RoleBinding", "rolebindings", Access())
    yield access("ClusterRole", "clusterroles", Access(), namespaced=False)
    yield access("ClusterRoleBinding", "clusterrolebindings", Access(), namespaced=False)


def _devices() -> Iterator[Kind]:
    devices = partial(built_in, "resource.k8s.io", "resource.v1")
    yield devices("DeviceClass", "deviceclasses", namespaced=False)
    yield devices("ResourceClaim", "resourceclaims", WithStatus(), parts=(STATUS,))
    yield devices("ResourceClaimTemplate", "resourceclaimtemplates")
    yield devices(
        "ResourceSlice",
        "resourceslices",
        namespaced=False,
        fields=("spec.driver", "spec.nodeName"),
    )
