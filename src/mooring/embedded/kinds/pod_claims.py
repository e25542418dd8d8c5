"""The claims of devices that a pod refers to: validation."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.embedded.api.decoding import part
from mooring.embedded.api.names import label_name_faults, subdomain_faults
from mooring.embedded.refusals import Fault, absent, duplicate, invalid_value, required
from mooring.embedded.store.table import Json

_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")
_BOTH = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
_NEITHER = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
_CONTAINERS = ("initContainers", "containers")


def pod_claim_faults(at: str, spec: Json) -> Iterator[Fault]:
    """Yields what is wrong with the references to claims in the spec of a pod."""
    names: set[str] = set()
    for index, reference in enumerate(spec.get("resourceClaims") or ()):
        where, name = f"{at}.resourceClaims[{index}]", reference.get("name", "")
        yield from label_name_faults(f"{where}.name", name)
        if name in names:
            yield duplicate(f"{where}.name", name)
        names.add(name)
        yield from _source_faults(where, reference)
    for field in _CONTAINERS:
        for place, container in enumerate(spec.get(field) or ()):
            claims = part(container, "resources").get("claims") or []
            yield from _use_faults(f"{at}.{field}[{place}].resources.claims", claims, names)


def _source_faults(at: str, reference: Json) -> Iterator[Fault]:
    given = [each for each in _SOURCES if reference.get(each) is not None]
    if len(given) != 1:
        yield invalid_value(at, reference, _BOTH if given else _NEITHER)
    for each in given:
        yield from subdomain_faults(f"{at}.{each}", reference[each])


def _use_faults(at: str, uses: list[Json], names: set[str]) -> Iterator[Fault]:
    seen = set()
    for index, use in enumerate(uses):
        name, request = use.get("name", ""), use.get("request", "")
        if not name:
            yield required(f"{at}[{index}].name")
        elif name not in names:
            listed = ": " + ", ".join(sorted(names)) if names else " which is empty"
            missing = absent(f"{at}[{index}]", name)
            detail = (
                f"{missing.detail}: must be one of the names in pod.spec.resourceClaims{listed}"
            )
            yield Fault(missing.field, missing.reason, detail)
        if (name, request) in seen:
            yield duplicate(f"{at}[{index}]", f"{name}/{request}" if request else name)
        seen.add((name, request))
