"""Which workloads need what Mooring does not have. They are named, never left out silently."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from mooring.objects.decode import KINDS

from .kinds import DEFINITION, CustomKinds
from .operations import CreateAny, CreatePods, Operation
from .problems import NotSupported
from .recognised import DYNAMIC_RESOURCES, NEEDS, POD_GROUPS
from .templates import Manifest, Templates

_NEEDED_BY_KIND = {
    "DeviceClass": DYNAMIC_RESOURCES,
    "DeviceTaintRule": DYNAMIC_RESOURCES,
    "ResourceClaim": DYNAMIC_RESOURCES,
    "ResourceClaimTemplate": DYNAMIC_RESOURCES,
    "ResourceSlice": DYNAMIC_RESOURCES,
    "PodGroup": POD_GROUPS,
    "Workload": POD_GROUPS,
}

_NEEDED_BY_POD = {"resourceClaims": DYNAMIC_RESOURCES, "schedulingGroup": POD_GROUPS}


def check_support(
    operations: Iterable[Operation],
    templates: Templates,
    custom: CustomKinds,
    default_pod: str | None,
) -> None:
    """Raises NotSupported that names everything which is missing."""
    known = {*KINDS, DEFINITION.kind, *custom}
    needs = sorted(set(_needs(operations, templates, known, default_pod)))
    if needs:
        raise NotSupported(", ".join(needs))


def _needs(
    operations: Iterable[Operation],
    templates: Templates,
    known: Set[str],
    default_pod: str | None,
) -> Iterator[str]:
    for operation in operations:
        if type(operation) in NEEDS:
            yield NEEDS[type(operation)]
        elif isinstance(operation, CreateAny):
            kind = templates.kind(operation.template_path)
            if kind not in known:
                yield _NEEDED_BY_KIND.get(kind, f"objects of kind {kind}")
        elif isinstance(operation, CreatePods) and operation.count:
            path = operation.pod_template_path or default_pod
            if path is not None:
                yield from _of_pod(templates.manifest(path, operation.given(0)))


def _of_pod(raw: Manifest) -> Iterator[str]:
    spec = raw.get("spec") or {}
    for field, need in _NEEDED_BY_POD.items():
        if spec.get(field):
            yield need
