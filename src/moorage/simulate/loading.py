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
from moorage.objects.pod_group import GROUP_LABEL, PodGroup
from moorage.objects.storage import PersistentVolumeClaim
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
from .new_claims import settle_claims
from .workload_pods import (
    NotUnderstood,
    WantedWorkload,
    WorkloadTemplate,
    ephemeral_claims,
    read_workload,
    wants_node,
    workload_names,
)

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
    found = _sort_dump(read(paths, wanted))
    register = _Register()
    defaults = _read_defaults(found.manifests, register)
    objects = tuple(_objects(found.manifests, register, defaults))
    missing = list(_find_missing(found.templates, objects))
    nodes = [item for item in objects if isinstance(item, Node)]
    made = [_make_pods(each, nodes, defaults) for each in missing]
    groups = [workload.group for workload in made if workload.group is not None]
    claims = list(settle_claims((each for one in made for each in one.claims), objects))
    pods = (pod for workload in made for pod in workload.pods)
    objects = (*objects, *groups, *claims, *pods)
    claim_templates = _read_claim_templates(found.manifests, register)
    objects = tuple(_with_claims(objects, claim_templates))
    if not any(isinstance(each, Node | Pod) for each in objects):
        raise InputError(", ".join(paths), "nothing to schedule: neither nodes nor pods")
    notes = [*found.notes, *(f"not sure: {each.text}" for one in missing for each in one.doubts)]
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
    #: What makes pods, but not known how many.
    unknown: tuple[NotUnderstood, ...] = ()


def load_additions(paths: Sequence[str], cluster: Input) -> Additions:
    """Reads workloads, pods and what they need; raises InputError with the first mistake."""
    found = _sort(_drop_owned(read(paths)))
    read_here = [_take_off(each) for each in found.manifests if not each.is_workload]
    register = _Register()
    defaults = _read_defaults(read_here, register, cluster.defaults)
    objects = tuple(_objects(read_here, register, defaults))
    nodes = [item for item in cluster.objects if isinstance(item, Node)]
    pods = {item.key: item for item in objects if isinstance(item, Pod)}
    workloads = [
        *(_make_pods(each, nodes, defaults) for each in found.templates),
        *(_take_pod(each, pods, defaults) for each in read_here if each.known_kind == "Pod"),
    ]
    if not workloads and not found.unknown:
        names = ", ".join("standard input" if path == "-" else path for path in paths)
        raise InputError(names, "nothing to place: neither workloads nor pods")
    known = (*cluster.objects, *objects)
    others: list[Object] = [item for item in objects if not isinstance(item, Pod)]
    others += settle_claims((each for one in workloads for each in one.claims), known)
    claim_templates = _read_claim_templates(read_here, register, cluster.claim_templates)
    made = []
    for workload in workloads:
        items = list(_with_claims(workload.pods, claim_templates))
        others += (item for item in items if not isinstance(item, Pod))
        others += [] if workload.group is None else [workload.group]
        ours = tuple(item for item in items if isinstance(item, Pod))
        made.append(replace(workload, pods=ours, group=workload.group or _find_group(ours, known)))
    return Additions(tuple(made), tuple(others), tuple(found.notes), tuple(found.unknown))


def _find_group(pods: Iterable[Pod], known: Iterable[Object]) -> PodGroup | None:
    """Returns the group that is known and that all of the pods name."""
    named = {(pod.namespace, pod.group_name or pod.labels.get(GROUP_LABEL, "")) for pod in pods}
    groups = {(each.namespace, each.name): each for each in known if isinstance(each, PodGroup)}
    return groups.get(named.pop()) if len(named) == 1 else None


@dataclass(slots=True)
class _Sorted:
    """Manifests by what becomes of them."""

    manifests: list[Manifest] = field(default_factory=list)
    templates: list[WorkloadTemplate] = field(default_factory=list)
    unknown: list[NotUnderstood] = field(default_factory=list)
    unread: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def notes(self) -> Iterator[str]:
        """What is left out because scheduling has no use for it."""
        return (f"ignored {count} {kind}: {why}" for (kind, why), count in self.unread.items())

    def take(self, manifest: Manifest, what: WorkloadTemplate | NotUnderstood | None) -> None:
        """Takes a manifest and what it makes pods of."""
        if isinstance(what, WorkloadTemplate):
            self.templates.append(what)
            self.unknown += what.doubts
        elif what is not None:
            self.unknown.append(what)
        if manifest.is_read:
            self.manifests.append(manifest)
        elif what is None and not (manifest.is_workload and manifest.has_template):
            self.unread[manifest.kind, manifest.unread_reason] += 1


def _sort(manifests: Iterable[Manifest]) -> _Sorted:
    """Sorts manifests of which each is to be understood."""
    found = _Sorted()
    for manifest in manifests:
        found.take(manifest, read_workload(manifest))
    return found


def _sort_dump(manifests: Iterable[Manifest]) -> _Sorted:
    """Sorts the manifests of a cluster, in which most pods are there already."""
    found = _Sorted()
    for manifest in manifests:
        makes_none = manifest.custom is not None or _has_owner(manifest)
        if makes_none or (manifest.is_workload and not manifest.has_template):
            found.take(manifest, None)
            continue
        what = read_workload(manifest)
        if isinstance(what, NotUnderstood):
            found.unread[manifest.kind, what.why] += 1
        else:
            found.take(manifest, what)
    return found


def _drop_owned(manifests: Iterable[Manifest]) -> Iterator[Manifest]:
    """Leaves out what has an owner among the manifests, whose pods are counted there."""
    items = list(manifests)
    known = {(each.kind, each.name) for each in items}
    for each in items:
        metadata = each.raw.get("metadata")
        owners = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
        named = (
            (owner.get("kind"), owner.get("name"))
            for owner in (owners if isinstance(owners, list) else ())
            if isinstance(owner, Mapping)
        )
        if known.isdisjoint(named):
            yield each


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


def _find_missing(
    templates: Sequence[WorkloadTemplate], objects: Sequence[Object]
) -> Iterator[WorkloadTemplate]:
    """Yields workloads without pods that should have some: they come from git, not from a dump."""
    present = {
        (kind, pod.namespace, name)
        for pod in objects
        if isinstance(pod, Pod)
        for kind, name in workload_names(pod)
    }
    for each in templates:
        at = each.workload
        if not each.is_idle and (at.kind.lower(), at.namespace, at.name) not in present:
            yield each


def _make_pods(
    template: WorkloadTemplate, nodes: Sequence[Node], defaults: Defaults
) -> WantedWorkload:
    names: tuple[str, ...] = ()
    if template.workload.kind == "DaemonSet":
        anywhere = replace(template.manifest, kind="Pod", raw=template.pod_anywhere())
        sample = _decode(anywhere, defaults)
        assert isinstance(sample, Pod)
        names = tuple(node.name for node in nodes if wants_node(sample, node))
    decoded = [_decode(each, defaults) for each in template.make_manifests(names)]
    pods = tuple(item for item in decoded if isinstance(item, Pod))
    claims = tuple(item for item in decoded if isinstance(item, PersistentVolumeClaim))
    group = _make_group(template, pods)
    return replace(template.workload, pods=pods, claims=claims, group=group)


def _take_pod(manifest: Manifest, pods: Mapping[str, Pod], defaults: Defaults) -> WantedWorkload:
    """Returns a pod that is written by itself, with the claims that are made for it."""
    metadata, place = manifest.raw["metadata"], manifest.place
    pod = pods[f"{metadata.get('namespace') or 'default'}/{metadata['name']}"]
    claims = (
        _decode(replace(manifest, kind="PersistentVolumeClaim", raw=each), defaults)
        for each in ephemeral_claims({**manifest.raw, "metadata": {**metadata, "uid": pod.uid}})
    )
    return WantedWorkload(
        "Pod",
        pod.namespace,
        pod.name,
        (pod,),
        tuple(each for each in claims if isinstance(each, PersistentVolumeClaim)),
        file=place.file,
        line=place.line,
    )


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
