"""The kinds of objects that workloads create, and which of them are supported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, Literal

import msgspec

from moorage.objects.custom import CustomKind
from moorage.objects.kinds import KINDS, READ_KINDS
from moorage.objects.meta import ObjectKind, ObjectMeta, Wire

from .cases import NotSupported, WorkloadError
from .operations import CreateAny, Operation
from .templates import Manifest, Templates

#: Objects of this kind define others.
DEFINITION = CustomKind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions"
)

#: Nobody reads such objects but the controller that makes claims.
CLAIM_TEMPLATE = "ResourceClaimTemplate"

_KNOWN: Mapping[str, ObjectKind] = {**KINDS, DEFINITION.kind: DEFINITION}

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
    """Returns the kind that a CustomResourceDefinition defines, in its stored version."""
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
    """Yields the CustomResourceDefinitions that operations make."""
    for operation in operations:
        if not isinstance(operation, CreateAny):
            continue
        if templates.kind(operation.template_path) == DEFINITION.kind:
            yield templates.manifest(operation.template_path, operation.template_values(0))


def custom_kinds(operations: Iterable[Operation], templates: Templates) -> CustomKinds:
    """Returns all kinds that operations define."""
    found = map(custom_kind, definitions(operations, templates))
    return {kind.kind: kind for kind in found}


def is_namespaced(kind: str, custom: CustomKinds) -> bool:
    """Whether objects of a kind are in a namespace."""
    known = custom.get(kind) or _KNOWN.get(kind)
    # Most unknown kinds have one.
    return known is None or known.namespaced


def _title(definition: Mapping[str, Any]) -> str:
    return f"{DEFINITION.kind} {definition.get('metadata', {}).get('name', '')}".rstrip()


_NEEDED_BY_KIND = {"Workload": "pod groups"}


def check_support(
    operations: Iterable[Operation],
    templates: Templates,
    custom: CustomKinds,
) -> None:
    """Raises NotSupported that names everything which is missing."""
    known = {*READ_KINDS, DEFINITION.kind, CLAIM_TEMPLATE, *custom}
    needs = sorted(set(_needs(operations, templates, known)))
    if needs:
        raise NotSupported(", ".join(needs))


def _needs(
    operations: Iterable[Operation],
    templates: Templates,
    known: Set[str],
) -> Iterator[str]:
    for operation in operations:
        if isinstance(operation, CreateAny):
            kind = templates.kind(operation.template_path)
            if kind not in known:
                yield _NEEDED_BY_KIND.get(kind, f"objects of kind {kind}")
