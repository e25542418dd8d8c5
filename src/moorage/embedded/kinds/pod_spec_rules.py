"""Specs of pods and templates: what a pod requests in all, defaults and validation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moorage.embedded.api.decoding import fill, part
from moorage.embedded.api.names import (
    label_faults,
    label_key_faults,
    label_name_faults,
    subdomain_faults,
)
from moorage.embedded.request_refusals import (
    Fault,
    absent,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    unsupported,
)
from moorage.embedded.store.object_store import Json
from moorage.objects.daemons import MIRROR
from moorage.objects.quantity import NANOS_PER_UNIT, Quantity

from .pod_faults import (
    affinity_faults,
    coexist_faults,
    gate_faults,
    pod_claim_faults,
    spread_faults,
    toleration_faults,
)

#: Nano-units by the name of a resource.
Nanos = dict[str, int]


def read_amounts(amounts: Mapping[str, str]) -> Nanos:
    """Reads amounts as nano-units."""
    return {name: int(Quantity.parse(amount)) for name, amount in amounts.items()}


def pod_total(spec: Json, field: str) -> Nanos:
    """Returns the requests or limits of a pod: what runs at once, and its overhead.

    Init containers run one after the other, beside the sidecars that came before them.
    """
    total = add_amounts(_amounts(each, field) for each in spec.get("containers") or ())
    beside: Nanos = {}
    peak: Nanos = {}
    for each in spec.get("initContainers") or ():
        now = add_amounts((beside, _amounts(each, field)))
        peak = _larger(peak, now)
        if each.get("restartPolicy") == "Always":
            beside = now
    total = _larger(add_amounts((total, beside)), peak)
    total |= _amounts(spec, field)
    overhead = read_amounts(part(spec, "overhead"))
    if field == "limits":
        # Without a limit there is nothing to add to.
        overhead = {name: each for name, each in overhead.items() if total.get(name)}
    return add_amounts((total, overhead))


def _amounts(holder: Json, field: str) -> Nanos:
    return read_amounts(part(part(holder, "resources"), field))


def add_amounts(amounts: Iterable[Mapping[str, int]]) -> Nanos:
    """Adds up amounts by name."""
    total: Counter[str] = Counter()
    for each in amounts:
        for name, amount in each.items():
            total[name] += amount
    return dict(total)


def _larger(one: Nanos, other: Nanos) -> Nanos:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")

# Read, write for the owner, read for the rest: 0644.
_FILE_MODE = 420


def default_pod_spec(spec: Json) -> None:
    """Fills in the spec of a pod or template."""
    fill(
        spec,
        dnsPolicy="ClusterFirst",
        restartPolicy="Always",
        schedulerName="default-scheduler",
        securityContext={},
        terminationGracePeriodSeconds=30,
    )
    for container in containers(spec):
        _default_container(container)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def containers(spec: Json) -> Iterator[Json]:
    """Yields all containers of a pod."""
    for name in CONTAINERS:
        yield from spec.get(name) or ()


def _default_container(container: Json) -> None:
    fill(
        container,
        imagePullPolicy=_pull_policy(container.get("image", "")),
        resources={},
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    for port in container.get("ports") or ():
        fill(port, protocol="TCP")
    for name in _PROBES:
        if isinstance(container.get(name), dict):
            _default_probe(container[name])
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            fill(reference, apiVersion="v1")


def _default_probe(probe: Json) -> None:
    fill(probe, failureThreshold=3, periodSeconds=10, successThreshold=1, timeoutSeconds=1)
    if "httpGet" in probe:
        fill(probe["httpGet"], path="/", scheme="HTTP")


def _pull_policy(image: str) -> str:
    if "@" in image:
        return "IfNotPresent"
    _, _, tag = image.rpartition("/")[2].partition(":")
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _default_volume(volume: Json) -> None:
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}
    for source in ("configMap", "secret", "downwardAPI", "projected"):
        if isinstance(volume.get(source), dict):
            fill(volume[source], defaultMode=_FILE_MODE)
    host_path: Any = volume.get("hostPath")
    if isinstance(host_path, dict):
        fill(host_path, type="")


_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_STANDARD = ("cpu", "ephemeral-storage", "memory")
_HUGE_PAGES = "hugepages-"
_NEGATIVE = "must be greater than or equal to 0"
_HOST_PORT = "must match `containerPort` when `hostNetwork` is true"
PORT_RANGE = "must be between 1 and 65535, inclusive"


def container_faults(at: str, container: Json, names: set[str]) -> Iterator[Fault]:
    """Yields what is wrong with a container; `names` are those of the containers before it."""
    name = container.get("name", "")
    yield from label_name_faults(f"{at}.name", name)
    if name and name in names:
        yield duplicate(f"{at}.name", name)
    names.add(name)
    if not container.get("image"):
        yield required(f"{at}.image")
    policy = container.get("imagePullPolicy", "Always")
    if policy not in _PULL_POLICIES:
        yield unsupported(f"{at}.imagePullPolicy", policy, _PULL_POLICIES)
    for index, port in enumerate(container.get("ports") or ()):
        yield from _port_faults(f"{at}.ports[{index}]", port)
    yield from resource_faults(f"{at}.resources", part(container, "resources"))


def resource_faults(at: str, resources: Json) -> Iterator[Fault]:
    """Yields what is wrong with requests and limits."""
    requests, limits = part(resources, "requests"), part(resources, "limits")
    # Limits first: a request that was not written comes from its limit.
    yield from amount_faults(f"{at}.limits", limits, named=True)
    yield from amount_faults(f"{at}.requests", requests, named=True)
    for name, text in requests.items():
        limit = limits.get(name)
        if limit is None:
            if not _is_overcommitted(name):
                detail = "Limit must be set for non overcommitable resources"
                yield required(f"{at}.limits", detail)
            continue
        asked, most = Quantity.parse(text), Quantity.parse(limit)
        if asked > most:
            detail = f"must be less than or equal to {name} limit of {limit}"
            yield invalid_value(f"{at}.requests", text, detail)
        elif asked != most and not _is_overcommitted(name):
            detail = f"must be equal to {name} limit of {limit}"
            yield invalid_value(f"{at}.requests", text, detail)


def amount_faults(at: str, amounts: Mapping[str, str], *, named: bool) -> Iterator[Fault]:
    """Yields what is wrong with amounts of resources."""
    for name, text in amounts.items():
        where = f"{at}[{name}]"
        amount = Quantity.parse(text)
        if amount < 0:
            yield invalid_value(where, text, _NEGATIVE)
        elif amount % NANOS_PER_UNIT and not _is_overcommitted(name) and named:
            yield invalid_value(where, text, "must be an integer")
        if named:
            yield from _resource_name_faults(where, name)


def _resource_name_faults(at: str, name: str) -> Iterator[Fault]:
    yield from label_key_faults(at, name)
    if "/" not in name and name not in _STANDARD and not name.startswith(_HUGE_PAGES):
        yield invalid_value(at, name, "must be a standard resource type or fully qualified")


def _is_overcommitted(name: str) -> bool:
    """Whether a resource may be overcommitted."""
    return name in _STANDARD or "kubernetes.io/" in name


def _port_faults(at: str, port: Json) -> Iterator[Fault]:
    inside, outside = port.get("containerPort", 0), port.get("hostPort", 0)
    if not inside:
        yield required(f"{at}.containerPort")
    elif not 1 <= inside <= 65535:
        yield invalid_value(f"{at}.containerPort", inside, PORT_RANGE)
    if outside and not 1 <= outside <= 65535:
        yield invalid_value(f"{at}.hostPort", outside, PORT_RANGE)
    protocol = port.get("protocol", "TCP")
    if protocol not in _PROTOCOLS:
        yield unsupported(f"{at}.protocol", protocol, _PROTOCOLS)


def host_port_faults(spec: Json, at: str) -> Iterator[Fault]:
    """Yields host ports that two containers share or that differ from the container's."""
    taken = set()
    for place, container in enumerate(spec.get("containers") or ()):
        for index, port in enumerate(container.get("ports") or ()):
            where = f"{at}.containers[{place}].ports[{index}]"
            outside, inside = port.get("hostPort", 0), port.get("containerPort", 0)
            if spec.get("hostNetwork") and outside != inside:
                yield invalid_value(f"{where}.hostPort", outside, _HOST_PORT)
            claimed = (port.get("protocol", "TCP"), port.get("hostIP", ""), outside)
            if outside and claimed in taken:
                text = "/".join(str(part) for part in claimed)
                yield duplicate(f"{where}.hostPort", text)
            taken.add(claimed)


_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")


def pod_faults(item: Json) -> Iterator[Fault]:
    """Yields what is wrong with a pod by itself."""
    yield from pod_spec_faults("spec", item["spec"])


def creation_faults(item: Json) -> Iterator[Fault]:
    """Yields faults that only a new pod must not have."""
    spec = item["spec"]
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        yield forbidden_field("spec.nodeName", detail)
    mirror = part(item["metadata"], "annotations").get(MIRROR)
    if mirror is not None and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid_value(f"metadata.annotations[{MIRROR}]", mirror, detail)


def pod_spec_faults(at: str, spec: Json, claimed: Iterable[str] = ()) -> Iterator[Fault]:
    """Yields what is wrong with a spec; `claimed` are volumes that its controller adds."""
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
    yield from pod_claim_faults(at, spec)


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
