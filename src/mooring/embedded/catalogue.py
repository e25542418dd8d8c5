"""The kinds that are served from the start."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from .events_view import EVENTS_VIEW
from .kinds import CREATE_ONLY, READ_WRITE, SCALE, STATUS, Kind, Subresource, built_in
from .rules.cluster import (
    Events,
    Namespaces,
    Nodes,
    PriorityClasses,
    ServiceAccounts,
    Services,
)
from .rules.custom import Definitions
from .rules.data import ConfigMaps, Secrets
from .rules.pods import Pods
from .rules.storage import Attachments, Claims, Classes, Drivers, Shown, Volumes
from .rules.workloads import (
    Budgets,
    DaemonSets,
    Deployments,
    Jobs,
    PodTemplates,
    ReplicaSets,
    ReplicationControllers,
    StatefulSets,
)
from .stored_only import stored_only

_POD_PARTS = (
    STATUS,
    Subresource("binding", CREATE_ONLY, "", "v1", "Binding"),
    Subresource("eviction", CREATE_ONLY, "policy", "v1", "Eviction"),
    Subresource("log", ("get",)),
    Subresource("exec", ("create", "get"), "", "v1", "PodExecOptions"),
    Subresource("attach", ("create", "get"), "", "v1", "PodAttachOptions"),
    Subresource("portforward", ("create", "get"), "", "v1", "PodPortForwardOptions"),
    Subresource("ephemeralcontainers", READ_WRITE),
    Subresource("resize", READ_WRITE),
)
_EVENT_FIELDS = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_POD_FIELDS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)


# Group, version, kind, plural; what else there is to say about a kind follows as keywords.
def catalogue(*, coexist: bool = True) -> Iterator[Kind]:
    """Every kind; the gates say which new fields are kept."""
    yield from _core(coexist=coexist)
    yield from _controllers(coexist=coexist)
    yield from _storage()
    yield from stored_only(coexist=coexist)
    yield from _others()
    yield from _reviews()


def _core(*, coexist: bool) -> Iterator[Kind]:
    core = partial(built_in, "", "core.v1")
    yield core(
        "Namespace",
        "namespaces",
        Namespaces(),
        parts=(STATUS, Subresource("finalize", ("update",))),
        namespaced=False,
        short_names=("ns",),
        fields=("status.phase",),
    )
    yield core(
        "Node",
        "nodes",
        Nodes(),
        parts=(STATUS,),
        namespaced=False,
        short_names=("no",),
        fields=("spec.unschedulable",),
    )
    yield core(
        "Pod",
        "pods",
        Pods(coexist=coexist),
        parts=_POD_PARTS,
        short_names=("po",),
        categories=("all",),
        fields=_POD_FIELDS,
    )
    yield core("Binding", "bindings", verbs=CREATE_ONLY)
    yield core(
        "Service",
        "services",
        Services(),
        parts=(STATUS,),
        short_names=("svc",),
        categories=("all",),
        fields=("spec.clusterIP", "spec.type"),
    )
    yield core("Event", "events", Events(), short_names=("ev",), fields=_EVENT_FIELDS)
    yield core("ConfigMap", "configmaps", ConfigMaps(), short_names=("cm",))
    yield core("Secret", "secrets", Secrets(), fields=("type",))
    yield core("ServiceAccount", "serviceaccounts", ServiceAccounts(), short_names=("sa",))
    yield core("Endpoints", "endpoints", short_names=("ep",), singular="endpoints")
    yield core("PodTemplate", "podtemplates", PodTemplates(coexist=coexist))
    yield core(
        "ReplicationController",
        "replicationcontrollers",
        ReplicationControllers(coexist=coexist),
        parts=(STATUS, SCALE),
        short_names=("rc",),
        categories=("all",),
        fields=("status.replicas",),
    )
    yield core(
        "PersistentVolume",
        "persistentvolumes",
        Volumes(),
        parts=(STATUS,),
        namespaced=False,
        short_names=("pv",),
    )
    yield core(
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        Claims(),
        parts=(STATUS,),
        short_names=("pvc",),
    )


def _controllers(*, coexist: bool) -> Iterator[Kind]:
    apps = partial(built_in, "apps", "apps.v1", categories=("all",))
    scalable = (STATUS, SCALE)
    deployments, sets = Deployments(coexist=coexist), ReplicaSets(coexist=coexist)
    stateful, daemons = StatefulSets(coexist=coexist), DaemonSets(coexist=coexist)
    yield apps("Deployment", "deployments", deployments, parts=scalable, short_names=("deploy",))
    yield apps(
        "ReplicaSet",
        "replicasets",
        sets,
        parts=scalable,
        short_names=("rs",),
        fields=("status.replicas",),
    )
    yield apps("StatefulSet", "statefulsets", stateful, parts=scalable, short_names=("sts",))
    yield apps("DaemonSet", "daemonsets", daemons, parts=(STATUS,), short_names=("ds",))
    yield built_in("apps", "apps.v1", "ControllerRevision", "controllerrevisions")
    yield built_in(
        "batch",
        "batch.v1",
        "Job",
        "jobs",
        Jobs(coexist=coexist),
        parts=(STATUS,),
        categories=("all",),
        fields=("status.successful",),
    )
    yield built_in(
        "policy",
        "policy.v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        Budgets(),
        parts=(STATUS,),
        short_names=("pdb",),
    )


def _storage() -> Iterator[Kind]:
    storage = partial(built_in, "storage.k8s.io", "storage.v1", namespaced=False)
    yield storage("StorageClass", "storageclasses", Classes(), short_names=("sc",))
    yield storage("CSINode", "csinodes", Shown())
    yield storage("CSIDriver", "csidrivers", Drivers())
    yield storage("CSIStorageCapacity", "csistoragecapacities", namespaced=True)
    yield storage("VolumeAttachment", "volumeattachments", Attachments(), parts=(STATUS,))
    yield storage("VolumeAttributesClass", "volumeattributesclasses", short_names=("vac",))


def _others() -> Iterator[Kind]:
    yield built_in(
        "scheduling.k8s.io",
        "scheduling.v1",
        "PriorityClass",
        "priorityclasses",
        PriorityClasses(),
        namespaced=False,
        short_names=("pc",),
    )
    yield built_in(
        "events.k8s.io",
        "events.v1",
        "Event",
        "events",
        Events(),
        short_names=("ev",),
        fields=_EVENT_FIELDS,
        stored_as="events",
        view=EVENTS_VIEW,
    )
    yield built_in("coordination.k8s.io", "coordination.v1", "Lease", "leases")
    yield built_in("discovery.k8s.io", "discovery.v1", "EndpointSlice", "endpointslices")
    yield built_in(
        "apiextensions.k8s.io",
        "apiextensions.v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        Definitions(),
        parts=(STATUS,),
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
    )


def _reviews() -> Iterator[Kind]:
    who = partial(
        built_in, "authentication.k8s.io", "authentication.v1", verbs=CREATE_ONLY, namespaced=False
    )
    yield who("TokenReview", "tokenreviews")
    yield who("SelfSubjectReview", "selfsubjectreviews")
    may = partial(built_in, "authorization.k8s.io", "authorization.v1", verbs=CREATE_ONLY)
    yield may("SubjectAccessReview", "subjectaccessreviews", namespaced=False)
    yield may("SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)
    yield may("SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False)
    yield may("LocalSubjectAccessReview", "localsubjectaccessreviews")
