"""Reading a whole input: decoded, defaulted, checked, in the order it is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from mooring.documents.conversion import to_struct
from mooring.documents.errors import DecodeError, InputError, Location
from mooring.objects.custom import CustomKind
from mooring.objects.decode import from_builtins
from mooring.objects.kinds import Object
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.world.defaults import (
    Defaults,
    PriorityClass,
    UnknownPriorityClass,
    drop_nulls,
    find_default_class,
)

from .checks import find_faults
from .manifests import PRIORITY_CLASS, STORAGE_CLASS, Manifest, read

T = TypeVar("T", bound=Object | PriorityClass)


@dataclass(frozen=True, slots=True)
class Input:
    """The objects to start from, and what the user should know about the rest."""

    objects: tuple[Object, ...]
    notes: tuple[str, ...] = ()


def load(paths: Sequence[str], wanted: Iterable[CustomKind] = ()) -> Input:
    """Reads manifests, those of custom kinds that are wanted among them.

    Raises InputError with the first thing that is wrong.
    """
    manifests: list[Manifest] = []
    unread: Counter[tuple[str, str]] = Counter()
    for manifest in read(paths, wanted):
        if manifest.is_read:
            manifests.append(manifest)
        else:
            unread[manifest.kind, manifest.unread_reason] += 1
    register = _Register()
    objects = tuple(_objects(manifests, register))
    if not any(isinstance(each, Node | Pod) for each in objects):
        raise InputError(", ".join(paths), "nothing to schedule: neither nodes nor pods")
    notes = [f"ignored {count} {kind}: {why}" for (kind, why), count in unread.items()]
    return Input(objects, (*notes, *register.describe_lost_pods()))


def _objects(manifests: list[Manifest], register: _Register) -> Iterator[Object]:
    """Decodes what was read, and compares the objects with each other."""
    classes = {
        each: _priority_class(each) for each in manifests if each.known_kind == PRIORITY_CLASS
    }
    for manifest, defined in classes.items():
        register.add(manifest, "", defined.metadata.name)
    storage_class = find_default_class(
        each.raw for each in manifests if each.known_kind == STORAGE_CLASS
    )
    defaults = Defaults.of(classes.values(), storage_class)
    decoded = [(each, _decoded(each, defaults)) for each in manifests if each not in classes]
    for manifest, item in decoded:
        register.add(manifest, getattr(item, "namespace", ""), item.name)
        if isinstance(item, Pod):
            register.add_uid(manifest, item.uid)
    for _, item in decoded:
        if not (isinstance(item, Pod) and register.is_lost(item)):
            yield item


def _decoded(manifest: Manifest, defaults: Defaults) -> Object:
    def decode(raw: Any) -> Object:
        return from_builtins(manifest.custom or manifest.kind, raw)

    def fill(raw: Any) -> Any:
        return defaults.fill(manifest.known_kind, raw)

    try:
        return _read(manifest, fill, decode)
    except UnknownPriorityClass as error:
        told = f'there is no PriorityClass "{error}"'
        raise manifest.error("spec.priorityClassName", told) from None


def _priority_class(manifest: Manifest) -> PriorityClass:
    return _read(manifest, lambda raw: raw, lambda raw: to_struct(PriorityClass, raw))


def _read(manifest: Manifest, fill: Callable[[Any], Any], decode: Callable[[Any], T]) -> T:
    try:
        item = _decoded_with_nulls(manifest, fill, decode)
    except RecursionError:
        raise manifest.error("nested too deeply") from None
    for field, told in find_faults(item, manifest.raw):
        raise _error(manifest, field, told)
    return item


def _decoded_with_nulls(
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
    """What is wrong with an object before anything is filled in."""
    try:
        decode(raw)
    except DecodeError as error:
        return error
    return None


def _error(manifest: Manifest, field: str, told: str) -> InputError:
    """The error, in terms of what is written where that was filled in from another field."""
    status = manifest.raw.get("status")
    if (
        manifest.known_kind == "Node"
        and isinstance(status, Mapping)
        and not status.get("allocatable")
    ):
        field = field.replace("status.allocatable", "status.capacity", 1)
    return manifest.error(field, told)


class _Register:
    """Which names and uids are taken, and where."""

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
            told = f"duplicate: {first.title} in {first.place} has it too"
            raise manifest.error("metadata.uid", told)

    def is_lost(self, pod: Pod) -> bool:
        """Whether a pod is on a node that is not there: the node went while it was dumped."""
        name = pod.node_name
        if not name or pod.is_finished or ("Node", "", name) in self._names:
            return False
        self._lost.append(pod)
        return True

    def describe_lost_pods(self) -> Iterator[str]:
        """Says which pods are left out because their node is not there."""
        if self._lost:
            first = self._lost[0]
            such = f"such as {first.key} on {first.node_name}"
            yield f"ignored {len(self._lost)} Pod: their nodes are not there, {such}"
