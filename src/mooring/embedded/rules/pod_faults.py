"""What is wrong with a pod or a template of pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mooring.embedded.coexist import coexist_faults
from mooring.embedded.errors import (
    Fault,
    absent,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    unsupported,
)
from mooring.embedded.names import label_faults, label_name_faults, subdomain_faults

from .affinity_faults import affinity_faults
from .container_faults import amount_faults, container_faults, host_port_faults, resource_faults
from .plain import Json, part
from .pod_template import CONTAINERS
from .scheduling_faults import gate_faults, spread_faults, toleration_faults

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")


def pod_faults(item: Json) -> Iterator[Fault]:
    """What is wrong with a pod by itself."""
    yield from pod_spec_faults("spec", item["spec"])


def creation_faults(item: Json) -> Iterator[Fault]:
    """What a new pod must not have although an older one may."""
    spec = item["spec"]
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        yield forbidden_field("spec.nodeName", detail)


def pod_spec_faults(at: str, spec: Json, claimed: Iterable[str] = ()) -> Iterator[Fault]:
    """What is wrong with a spec; `claimed` are volumes that its controller will add."""
    yield from _all_container_faults(at, spec)
    yield from _mount_faults(at, spec, claimed)
    yield from _choice_faults(at, spec)
    yield from _volume_faults(f"{at}.volumes", spec.get("volumes") or [])
    yield from label_faults(f"{at}.nodeSelector", part(spec, "nodeSelector"))
    if spec.get("nodeName"):
        yield from subdomain_faults(f"{at}.nodeName", spec["nodeName"])
    yield from affinity_faults(f"{at}.affinity", part(spec, "affinity"))
    yield from toleration_faults(f"{at}.tolerations", spec.get("tolerations") or [])
    constraints = spec.get("topologySpreadConstraints") or []
    yield from spread_faults(f"{at}.topologySpreadConstraints", constraints)
    yield from gate_faults(f"{at}.schedulingGates", spec.get("schedulingGates") or [])
    yield from coexist_faults(at, spec)


def _all_container_faults(at: str, spec: Json) -> Iterator[Fault]:
    if not spec.get("containers"):
        yield required(f"{at}.containers")
    names: set[str] = set()
    for field in CONTAINERS:
        for index, each in enumerate(spec.get(field) or ()):
            yield from container_faults(f"{at}.{field}[{index}]", each, names)
    yield from host_port_faults(spec, at)
    yield from resource_faults(f"{at}.resources", part(spec, "resources"))
    yield from amount_faults(f"{at}.overhead", part(spec, "overhead"), named=True)


def _mount_faults(at: str, spec: Json, claimed: Iterable[str]) -> Iterator[Fault]:
    names = {*claimed, *(each.get("name") for each in spec.get("volumes") or ())}
    for field in CONTAINERS:
        for place, container in enumerate(spec.get(field) or ()):
            for index, mount in enumerate(container.get("volumeMounts") or ()):
                where, name = f"{at}.{field}[{place}].volumeMounts[{index}]", mount.get("name", "")
                if not name:
                    yield required(f"{where}.name")
                elif name not in names:
                    yield absent(f"{where}.name", name)
                if not mount.get("mountPath"):
                    yield required(f"{where}.mountPath")


def _choice_faults(at: str, spec: Json) -> Iterator[Fault]:
    for field, known in (
        ("restartPolicy", _RESTART_POLICIES),
        ("dnsPolicy", _DNS_POLICIES),
        ("preemptionPolicy", _PREEMPTION_POLICIES),
    ):
        if spec.get(field) is not None and spec[field] not in known:
            yield unsupported(f"{at}.{field}", spec[field], known)
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is not None and seconds < 1:
        detail = "must be between 1 and 2147483647, inclusive"
        yield invalid_value(f"{at}.activeDeadlineSeconds", seconds, detail)


def _volume_faults(at: str, volumes: list[Json]) -> Iterator[Fault]:
    names = set()
    for index, each in enumerate(volumes):
        where, name = f"{at}[{index}]", each.get("name", "")
        yield from label_name_faults(f"{where}.name", name)
        if name in names:
            yield duplicate(f"{where}.name", name)
        names.add(name)
        if len(each) > 2:
            second = sorted(set(each) - {"name"})[1]
            yield forbidden_field(f"{where}.{second}", "may not specify more than 1 volume type")
        claim = each.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            yield required(f"{where}.persistentVolumeClaim.claimName")
