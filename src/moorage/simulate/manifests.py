"""Reads the objects in texts, each with its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from moorage.documents import json_text, yaml_text
from moorage.documents.errors import InputError, Location, describe
from moorage.documents.files import sources
from moorage.objects.custom import CustomKind
from moorage.objects.kinds import KINDS, READ_KINDS

PRIORITY_CLASS = "PriorityClass"
STORAGE_CLASS = "StorageClass"
CLAIM_TEMPLATE = "ResourceClaimTemplate"

#: The kinds that are read, with the API versions in which they are, the newest first.
VERSIONS: Mapping[str, tuple[str, ...]] = {
    kind: (KINDS[kind].api_version, *KINDS[kind].other_versions)
    for kind in sorted((*READ_KINDS, PRIORITY_CLASS, CLAIM_TEMPLATE))
}

# The kinds of which controllers make pods, with their groups.
_WORKLOADS: Mapping[str, str] = {
    **dict.fromkeys(("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"), "apps"),
    **dict.fromkeys(("CronJob", "Job"), "batch"),
    "ReplicationController": "",
}

#: Why a kind is not read, where more can be said than that scheduling has no use for it.
_UNREAD: Mapping[str, str] = {
    "PodTemplate": "only pods are scheduled, and nothing here creates them",
    "CompositePodGroup": "groups of groups are not supported by Moorage yet",
    "KubeSchedulerConfiguration": "a configuration is given with --config",
}
_NO_USE = "scheduling has no use for it"


@dataclass(frozen=True, slots=True, eq=False)
class Manifest:
    """An object as it is written."""

    place: Location
    kind: str
    raw: Mapping[str, Any]
    #: The custom kind that it is of, if an enabled plugin asks for such objects.
    custom: CustomKind | None = None

    @property
    def is_read(self) -> bool:
        """Whether its kind is read. A kind of another group may have the same name."""
        return self.version is not None

    @property
    def is_workload(self) -> bool:
        """Whether a controller makes pods for it."""
        known = _WORKLOADS.get(self.kind) if self.custom is None else None
        return known is not None and _group(self.raw["apiVersion"]) == known

    @property
    def group(self) -> str:
        """The API group; empty for Kubernetes' oldest kinds."""
        return _group(self.raw["apiVersion"])

    @property
    def is_foreign(self) -> bool:
        """Whether its kind is not one of Kubernetes' own, and no plugin reads it."""
        is_own = "." not in self.group or self.group.endswith(".k8s.io")
        return not is_own and not self.is_read

    @property
    def has_template(self) -> bool:
        """Whether it has a template of pods."""
        spec = self.raw.get("spec")
        return isinstance(spec, Mapping) and bool(spec.get("template") or spec.get("jobTemplate"))

    @property
    def version(self) -> str | None:
        """The API version in which such an object is read; None if it is not read."""
        if self.custom is not None:
            return self.custom.api_version
        version = self.raw["apiVersion"]
        versions = VERSIONS.get(self.kind, ())
        if version in versions:
            return str(version)
        return next((each for each in versions if _group(each) == _group(version)), None)

    @property
    def known_kind(self) -> str:
        """The kind for lookups; a custom kind is named with its group."""
        return self.kind if self.custom is None else self.custom.resource

    @property
    def unread_reason(self) -> str:
        """Why such an object is not read."""
        if self.is_workload:
            return "without a template there are no pods"
        return _UNREAD.get(self.kind, _NO_USE)

    @property
    def name(self) -> str:
        """The object's name; empty if it has none."""
        metadata = self.raw.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        return name if isinstance(name, str) else ""

    @property
    def title(self) -> str:
        """Kind and name, if there is a name."""
        metadata = self.raw.get("metadata")
        if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
            return self.kind
        name, namespace = metadata["name"], metadata.get("namespace")
        if isinstance(namespace, str) and namespace:
            return f"{self.kind} {namespace}/{name}"
        return f"{self.kind} default/{name}" if self.kind == "Pod" else f"{self.kind} {name}"

    def error(self, *parts: object) -> InputError:
        """Makes an error about this object: field and message."""
        return InputError(self.place, self.title, *parts)


def read(paths: Iterable[str], wanted: Iterable[CustomKind] = ()) -> Iterator[Manifest]:
    """Yields every object in the files, folders and standard input that the paths name.

    One that the scheduler and a plugin read comes twice: as what it is, and of its custom kind.
    """
    kinds = {(kind.group, kind.kind): kind for kind in wanted}
    for source in sources(paths):
        documents = json_text.documents if source.is_json else yaml_text.documents
        for place, raw in documents(source.text, source.name):
            for manifest in _objects(place, raw, {}):
                custom = kinds.get((_group(manifest.raw["apiVersion"]), manifest.kind))
                if custom is None or manifest.is_read or manifest.is_workload:
                    yield _check_version(manifest)
                if custom is not None:
                    yield _check_version(replace(manifest, custom=custom))


def _objects(place: Location, raw: Any, inherited: Mapping[str, str]) -> Iterator[Manifest]:
    """Yields the object of a document, or the items of a list, which inherit its kind."""
    if not isinstance(raw, Mapping):
        raise InputError(place, f"must be a mapping, got {describe(raw)}")
    fields = {**inherited, **raw}
    for field in ("apiVersion", "kind"):
        if not isinstance(fields.get(field), str) or not fields[field]:
            wrong = f"must be a string, got {describe(fields[field])}" if field in fields else None
            raise InputError(place, field, wrong or "is required")
    kind: str = fields["kind"]
    if not kind.endswith("List") or "items" not in raw:
        yield Manifest(place, kind, fields)
        return
    items = raw["items"] or []
    if not isinstance(items, list):
        raise InputError(place, "items", f"must be a list, got {describe(items)}")
    element = kind.removesuffix("List")
    inherited = {"apiVersion": fields["apiVersion"], "kind": element} if element else {}
    for index, item in enumerate(items):
        yield from _objects(place.item(index), item, inherited)


def _check_version(manifest: Manifest) -> Manifest:
    version, expected = manifest.raw["apiVersion"], manifest.version
    if expected is not None and version != expected:
        raise manifest.error("apiVersion", f"must be {describe(expected)}, got {describe(version)}")
    return manifest


def _group(version: str) -> str:
    group, slash, _ = version.partition("/")
    return group if slash else ""
