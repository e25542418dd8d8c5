"""The kinds of objects that workloads make: Kubernetes' own, and those that they define."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from mooring.objects.custom import CustomKind
from mooring.objects.meta import ObjectMeta, Wire

from .operations import CreateAny, Operation
from .problems import WorkloadError
from .templates import Manifest, Templates

#: Objects of this kind define others.
DEFINITION = CustomKind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions"
)

# Of Kubernetes' own, those that have no namespace.
_CLUSTER_KINDS = frozenset(
    (
        "CSIDriver",
        "CSINode",
        DEFINITION.kind,
        "DeviceClass",
        "DeviceTaintRule",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "ResourceSlice",
        "StorageClass",
        "VolumeAttachment",
    )
)

#: What a workload defines, by the name of the kind.
CustomKinds = Mapping[str, CustomKind]


class _Names(Wire, frozen=True):
    kind: str
    plural: str


class _Version(Wire, frozen=True):
    name: str
    storage: bool = False


class _Spec(Wire, frozen=True):
    group: str
    names: _Names
    scope: Literal["Cluster", "Namespaced"]
    versions: tuple[_Version, ...]


class _Definition(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _Spec


def custom_kind(definition: Manifest) -> CustomKind:
    """The kind that a CustomResourceDefinition defines, in the version in which it is kept."""
    try:
        spec = msgspec.convert(definition, _Definition).spec
    except msgspec.ValidationError as error:
        raise WorkloadError(_title(definition), error) from None
    for version in spec.versions:
        if version.storage:
            names, namespaced = spec.names, spec.scope == "Namespaced"
            return CustomKind(spec.group, version.name, names.kind, names.plural, namespaced)
    raise WorkloadError(_title(definition), "spec.versions: none has storage: true")


def definitions(operations: Iterable[Operation], templates: Templates) -> Iterator[Manifest]:
    """The CustomResourceDefinitions that operations make."""
    for operation in operations:
        if not isinstance(operation, CreateAny):
            continue
        if templates.kind(operation.template_path) == DEFINITION.kind:
            yield templates.manifest(operation.template_path, operation.given(0))


def custom_kinds(operations: Iterable[Operation], templates: Templates) -> CustomKinds:
    """All kinds that operations define."""
    found = map(custom_kind, definitions(operations, templates))
    return {kind.kind: kind for kind in found}


def is_namespaced(kind: str, custom: CustomKinds) -> bool:
    """Whether objects of a kind are in a namespace."""
    return custom[kind].namespaced if kind in custom else kind not in _CLUSTER_KINDS


def _title(definition: Mapping[str, Any]) -> str:
    return f"{DEFINITION.kind} {definition.get('metadata', {}).get('name', '')}".rstrip()
