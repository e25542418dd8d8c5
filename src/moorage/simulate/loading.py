"""Reads a whole input: decodes, defaults and checks it, in the order in which it is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec

from moorage.documents.conversion import to_struct
from moorage.documents.errors import DecodeError, InputError, Location
from moorage.objects.custom import CustomKind
from moorage.objects.decode import from_builtins
from moorage.objects.kinds import Object
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.objects.pod_group import PodGroup
from moorage.objects.workload import owner_names
from moorage.world.claim_templates import (
    ClaimTemplates,
    ResourceClaimTemplate,
    read_claim_template,
)
from moorage.world.defaults import (
    Defaults,
    PriorityClass,
    UnknownPriorityClass,
    drop_nulls,
    find_default_class,
)

from .checks import find_faults
from .manifests import CLAIM_TEMPLATE, PRIORITY_CLASS, STORAGE_CLASS, Manifest, read
from .workload_pods import WantedWorkload, WorkloadTemplate, read_template, wants_node

T = TypeVar("T", bound=Object | PriorityClass | ResourceClaimTemplate)


@dataclass(frozen=True, slots=True)
class Input:
    """The objects to start from, and notes for the user about the rest."""

    objects: tuple[Object, ...]
    notes: tuple[str, ...] = ()
    #: What an API server with these objects fills in, such as priorities by class.
    defaults: Defaults = field(default_factory=lambda: Defaults.of(()))
    #: Of what the claims of new pods are made.
    claim_templates: ClaimTemplates = field(default_factory=ClaimTemplates)


def load(paths: Sequence[str], wanted: Iterable[CustomKind] = ()) -> Input:
    """Reads manifests, including wanted custom kinds.

    Raises InputError with the first mistake.
    """
    manifests: list[Manifest] = []
    templates: list[WorkloadTemplate] = []
    unread: Counter[tuple[str, str]] = Counter()
    for manifest in read(paths, wanted):
        makes_pods = manifest.is_workload and manifest.has_template
        if makes_pods and not _has_owner(manifest):
            templates.append(read_template(manifest))
        if manifest.is_read:
            manifests.append(manifest)
        elif not makes_pods:
            unread[manifest.kind, manifest.unread_reason] += 1
    register = _Register()
    defaults = _read_defaults(manifests, register)
    objects = tuple(_objects(manifests, register, defaults))
    made = list(_make_missing_pods(templates, objects, defaults))
    groups = [workload.group for workload in made if workload.group is not None]
    objects = (*objects, *groups, *(pod for workload in made for pod in workload.pods))
    claim_templates = _read_claim_templates(manifests, register)
    objects = tuple(_with_claims(objects, claim_templates))
    if not any(isinstance(each, Node | Pod) for each in objects):
        raise InputError(", ".join(paths), "nothing to schedule: neither nodes nor pods")
    notes = [f"ignored {count} {kind}: {why}" for (kind, why), count in unread.items()]
    notes += [f"made {len(each.pods)} Pod of {each.text}" for each in made if each.pods]
    notes += [
        f"made PodGroup {each.key}, which counts where the feature gate GenericWorkload is on"
        for each in groups
    ]
    return Input(objects, (*notes, *register.describe_lost_pods()), defaults, claim_templates)


@dataclass(frozen=True, slots=True)
class Additions:
    """What comes to a cluster in addition: workloads.

    A pod written by itself is a workload, too.
    """

    workloads: tuple[WantedWorkload, ...]
    #: Claims, services and the like.
    objects: tuple[Object, ...] = ()
    notes: tuple[str, ...] = ()


def load_additions(paths: Sequence[str], cluster: Input) -> Additions:
    """Reads workloads, pods and what they need; raises InputError with the first mistake."""
    manifests = list(read(paths))
    templates = [read_template(each) for each in manifests if each.is_workload]
    read_here = [_take_off(each) for each in manifests if each.is_read and not each.is_workload]
    register = _Register()
    defaults = _read_defaults(read_here, register, cluster.defaults)
    objects = tuple(_objects(read_here, register, defaults))
    claim_templates = _read_claim_templates(read_here, register, cluster.claim_templates)
    nodes = [item for item in cluster.objects if isinstance(item, Node)]
    workloads = [
        *(_make_pods(each, nodes, defaults) for each in templates),
        *(
            WantedWorkload("Pod", pod.namespace, pod.name, (pod,))
            for pod in objects
            if isinstance(pod, Pod)
        ),
    ]
    if not workloads:
        names = ", ".join("standard input" if path == "-" else path for path in paths)
        raise InputError(names, "nothing to place: neither workloads nor pods")
    others = [item for item in objects if not isinstance(item, Pod)]
    made = []
    for workload in workloads:
        pods = list(_with_claims(workload.pods, claim_templates))
        others += (item for item in pods if not isinstance(item, Pod))
        others += [] if workload.group is None else [workload.group]
        made.append(replace(workload, pods=tuple(pod for pod in pods if isinstance(pod, Pod))))
    return Additions(tuple(made), tuple(others))


def _with_claims(items: Iterable[Object], templates: ClaimTemplates) -> Iterator[Object]:
    """Yields the objects, each waiting pod after the claims that templates make for it."""
    for item in items:
        if isinstance(item, Pod) and item.spec.resource_claims and not item.node_name:
            pod, claims = templates.make_claims(item)
            yield from claims
            yield pod
        else:
            yield item


def _read_claim_templates(
    manifests: Iterable[Manifest], register: _Register, known: ClaimTemplates | None = None
) -> ClaimTemplates:
    found = ClaimTemplates(known)
    for manifest in manifests:
        if manifest.known_kind == CLAIM_TEMPLATE:
            template = _claim_template(manifest)
            register.add(manifest, template.metadata.namespace, template.metadata.name)
            found.add(template)
    return found


def _claim_template(manifest: Manifest) -> ResourceClaimTemplate:
    fill = Defaults.of(()).fill
    return _read(manifest, lambda raw: fill(CLAIM_TEMPLATE, raw), read_claim_template)


def _take_off(manifest: Manifest) -> Manifest:
    """Returns the manifest without a node, because a pod copied from a cluster is placed anew."""
    spec = manifest.raw.get("spec")
    if manifest.known_kind != "Pod" or not isinstance(spec, Mapping) or "nodeName" not in spec:
        return manifest
    free = {name: value for name, value in spec.items() if name != "nodeName"}
    return replace(manifest, raw={**manifest.raw, "spec": free})


def _has_owner(manifest: Manifest) -> bool:
    metadata = manifest.raw.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("ownerReferences"))


def _make_missing_pods(
    templates: Sequence[WorkloadTemplate], objects: Sequence[Object], defaults: Defaults
) -> Iterator[WantedWorkload]:
    """Yields pods for workloads that have none, because they come from git and not from a dump."""
    present = {
        (kind, pod.namespace, name)
        for pod in objects
        if isinstance(pod, Pod)
        for kind, name in owner_names(pod).items()
    }
    nodes = [item for item in objects if isinstance(item, Node)]
    for each in templates:
        workload = each.workload
        if (workload.kind, workload.namespace, workload.name) not in present:
            yield _make_pods(each, nodes, defaults)


def _make_pods(
    template: WorkloadTemplate, nodes: Sequence[Node], defaults: Defaults
) -> WantedWorkload:
    names: tuple[str, ...] = ()
    if template.workload.kind == "DaemonSet":
        anywhere = replace(template.manifest, kind="Pod", raw=template.pod_anywhere())
        sample = _decode(anywhere, defaults)
        assert isinstance(sample, Pod)
        names = tuple(node.name for node in nodes if wants_node(sample, node))
    decoded = (_decode(each, defaults) for each in template.pod_manifests(names))
    pods = tuple(pod for pod in decoded if isinstance(pod, Pod))
    return replace(template.workload, pods=pods, group=_make_group(template, pods))


def _make_group(template: WorkloadTemplate, pods: Sequence[Pod]) -> PodGroup | None:
    """Makes the group of a workload's pods, with their priority."""
    raw = template.describe_group()
    if raw is None or not pods:
        return None
    try:
        group = from_builtins("PodGroup", drop_nulls(raw))
    except DecodeError as error:
        field = f"spec.scheduling{error.field.removeprefix('spec')}"
        raise template.manifest.error(field, error.message) from None
    assert isinstance(group, PodGroup)
    return msgspec.structs.replace(group, priority=pods[0].priority)


def _read_defaults(
    manifests: list[Manifest], register: _Register, known: Defaults | None = None
) -> Defaults:
    """Returns the defaults that priority and storage classes set, including known ones."""
    classes = {
        each: _priority_class(each) for each in manifests if each.known_kind == PRIORITY_CLASS
    }
    for manifest, defined in classes.items():
        register.add(manifest, "", defined.metadata.name)
    storage_class = find_default_class(
        each.raw for each in manifests if each.known_kind == STORAGE_CLASS
    )
    older = known.classes.values() if known is not None else ()
    usual = known.storage_class if known is not None else ""
    return Defaults.of((*older, *classes.values()), storage_class or usual)


def _objects(
    manifests: list[Manifest], register: _Register, defaults: Defaults
) -> Iterator[Object]:
    """Decodes manifests, and compares the objects with each other."""
    aside = PRIORITY_CLASS, CLAIM_TEMPLATE
    items = [each for each in manifests if each.known_kind not in aside]
    decoded = [(each, _decode(each, defaults)) for each in items]
    for manifest, item in decoded:
        register.add(manifest, getattr(item, "namespace", ""), item.name)
        if isinstance(item, Pod):
            register.add_uid(manifest, item.uid)
    for _, item in decoded:
        if not (isinstance(item, Pod) and register.is_lost(item)):
            yield item


def _decode(manifest: Manifest, defaults: Defaults) -> Object:
    def decode(raw: Any) -> Object:
        return from_builtins(manifest.custom or manifest.kind, raw)

    def fill(raw: Any) -> Any:
        return defaults.fill(manifest.known_kind, raw)

    try:
        return _read(manifest, fill, decode)
    except UnknownPriorityClass as error:
        message = f'there is no PriorityClass "{error}"'
        raise manifest.error("spec.priorityClassName", message) from None


def _priority_class(manifest: Manifest) -> PriorityClass:
    return _read(manifest, lambda raw: raw, lambda raw: to_struct(PriorityClass, raw))


def _read(manifest: Manifest, fill: Callable[[Any], Any], decode: Callable[[Any], T]) -> T:
    try:
        item = _decode_with_nulls(manifest, fill, decode)
    except RecursionError:
        raise manifest.error("nested too deeply") from None
    for path, message in find_faults(item, manifest.raw):
        raise _error(manifest, path, message)
    return item


def _decode_with_nulls(
    manifest: Manifest, fill: Callable[[Any], Any], decode: Callable[[Any], T]
) -> T:
    try:
        return decode(fill(manifest.raw))
    except DecodeError:
        # Fields that are null are rare, so that nobody else pays for looking for them.
        raw = drop_nulls(manifest.raw)
    try:
        return decode(fill(raw))
    except DecodeError as filled:
        error = _as_written(decode, raw) or filled
        raise _error(manifest, error.field, error.message) from None


def _as_written(decode: Callable[[Any], object], raw: Any) -> DecodeError | None:
    """Yields mistakes in an object before defaults are filled in."""
    try:
        decode(raw)
    except DecodeError as error:
        return error
    return None


def _error(manifest: Manifest, field: str, message: str) -> InputError:
    """Makes the error for a field as it was written, if its value came from another field."""
    status = manifest.raw.get("status")
    if (
        manifest.known_kind == "Node"
        and isinstance(status, Mapping)
        and not status.get("allocatable")
    ):
        field = field.replace("status.allocatable", "status.capacity", 1)
    return manifest.error(field, message)


class _Register:
    """The names and uids that are taken, and where they are written."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str, str], Location] = {}
        self._uids: dict[str, Manifest] = {}
        self._lost: list[Pod] = []

    def add(self, manifest: Manifest, namespace: str, name: str) -> None:
        key = manifest.known_kind, namespace, name
        first = self._names.setdefault(key, manifest.place)
        if first is not manifest.place:
            raise manifest.error("metadata.name", f"duplicate: also in {first}")

    def add_uid(self, manifest: Manifest, uid: str) -> None:
        first = self._uids.setdefault(uid, manifest)
        if first is not manifest:
            message = f"duplicate: {first.title} in {first.place} has it too"
            raise manifest.error("metadata.uid", message)

    def is_lost(self, pod: Pod) -> bool:
        """Whether a pod is on a missing node, which was deleted during the dump."""
        name = pod.node_name
        if not name or pod.is_finished or ("Node", "", name) in self._names:
            return False
        self._lost.append(pod)
        return True

    def describe_lost_pods(self) -> Iterator[str]:
        """Says which pods are left out because their node is missing."""
        if self._lost:
            first = self._lost[0]
            count = len(self._lost)
            whose = "1 Pod: its node is" if count == 1 else f"{count:,} Pods: their nodes are"
            such = "" if count == 1 else "such as "
            yield f"ignored {whose} not there, {such}{first.key} on {first.node_name}"
