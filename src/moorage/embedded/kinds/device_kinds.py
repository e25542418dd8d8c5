"""Device classes, claims of devices and their templates: rules and columns."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.embedded.api.column import NAME, age_column, at, field_column, text_column
from moorage.embedded.api.decoding import part
from moorage.embedded.api.kind import STATUS, KindRules, ServedKind, make_known_kind
from moorage.embedded.api.names import (
    label_key_faults,
    label_name_faults,
    node_selector_faults,
)
from moorage.embedded.request_refusals import (
    Fault,
    duplicate,
    forbidden_field,
    invalid,
    invalid_value,
    required,
    unsupported,
)
from moorage.embedded.store.object_store import Json, ObjectStore
from moorage.objects.resources import is_extended

from .device_requests import (
    claim_faults,
    configuration_faults,
    default_requests,
    driver_faults,
    list_faults,
    reference_faults,
    request_names,
    requests_for_admins,
    selector_faults,
)
from .device_slices import SliceRules, pool_name_faults, taint_faults

_MOST_CONFIGURATIONS = 32
_MOST_RESULTS = 32
_MOST_USERS = 256
_IMMUTABLE = "field is immutable"
_SOURCES = ("FromClaim", "FromClass")
_ADMIN_LABEL = "resource.kubernetes.io/admin-access"
_ADMIN_REFUSED = (
    f"admin access to devices requires the `{_ADMIN_LABEL}: true` label on the containing namespace"
)


class TaintRuleRules(KindRules):
    """The rules of taints for devices. No controller evicts pods by them."""

    status = True
    generation = True

    def faults(self, item: Json) -> Iterator[Fault]:
        spec = part(item, "spec")
        selector, at = part(spec, "deviceSelector"), "spec.deviceSelector"
        if selector.get("driver") is not None:
            yield from driver_faults(f"{at}.driver", selector["driver"])
        if selector.get("pool") is not None:
            yield from pool_name_faults(f"{at}.pool", selector["pool"])
        if selector.get("device") is not None:
            yield from label_name_faults(f"{at}.device", selector["device"])
        yield from taint_faults("spec.taint", part(spec, "taint"))


class DeviceClassRules(KindRules):
    generation = True

    def faults(self, item: Json) -> Iterator[Fault]:
        spec = part(item, "spec")
        yield from selector_faults("spec.selectors", spec.get("selectors") or [])
        yield from list_faults(
            "spec.config", spec.get("config") or [], _MOST_CONFIGURATIONS, configuration_faults
        )
        name = spec.get("extendedResourceName")
        if name is not None:
            yield from label_key_faults("spec.extendedResourceName", name)
            if not is_extended(name):
                detail = "must be a valid extended resource name"
                yield invalid_value("spec.extendedResourceName", name, detail)


class ResourceClaimRules(KindRules):
    """The rules of claims: what they ask for stays, what they got is set once."""

    status = True

    def default(self, item: Json) -> None:
        default_requests(item.setdefault("spec", {}))

    def complete_new(self, item: Json) -> None:
        item["status"] = {}

    def admit(self, kind: ServedKind, store: ObjectStore, item: Json, old: Json | None) -> None:
        if old is None:
            _expect_admin(kind, store, item, item["spec"], "spec")

    def creation_faults(self, item: Json) -> Iterator[Fault]:
        yield from claim_faults("spec", item["spec"])

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        if item["spec"] != old["spec"]:
            yield invalid_value("spec", item["spec"], _IMMUTABLE)

    def status_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        status, before = part(item, "status"), part(old, "status")
        allocation = status.get("allocation")
        users = status.get("reservedFor") or []
        yield from list_faults("status.reservedFor", users, _MOST_USERS, _user_faults, key="uid")
        if users and allocation is None:
            detail = "may not be specified when `allocated` is not set"
            yield forbidden_field("status.reservedFor", detail)
        elif "deletionTimestamp" in old["metadata"]:
            known = {each.get("uid") for each in before.get("reservedFor") or ()}
            if any(each.get("uid") not in known for each in users):
                detail = (
                    "new entries may not be added while `deallocationRequested` or "
                    "`deletionTimestamp` are set"
                )
                yield forbidden_field("status.reservedFor", detail)
        yield from _device_status_faults(status)
        if allocation is None:
            return
        if before.get("allocation") is None:
            yield from _allocation_faults(allocation, request_names(item["spec"]))
        elif allocation != before["allocation"]:
            yield invalid_value("status.allocation", allocation, _IMMUTABLE)


class ClaimTemplateRules(KindRules):
    """The rules of templates, which never change."""

    def default(self, item: Json) -> None:
        default_requests(item.setdefault("spec", {}).setdefault("spec", {}))

    def admit(self, kind: ServedKind, store: ObjectStore, item: Json, old: Json | None) -> None:
        if old is None:
            _expect_admin(kind, store, item, item["spec"]["spec"], "spec.spec")

    def creation_faults(self, item: Json) -> Iterator[Fault]:
        yield from claim_faults("spec.spec", item["spec"]["spec"])

    def update_faults(self, item: Json, old: Json) -> Iterator[Fault]:
        if item["spec"] != old["spec"]:
            yield invalid_value("spec", item["spec"], _IMMUTABLE)


def _expect_admin(kind: ServedKind, store: ObjectStore, item: Json, spec: Json, at: str) -> None:
    """Refuses admin access outside of the namespaces that are labelled for it."""
    places = list(requests_for_admins(spec))
    if not places:
        return
    metadata = item["metadata"]
    namespace = store.table("namespaces").entries.get(metadata.get("namespace", ""))
    if namespace is None or namespace.labels.get(_ADMIN_LABEL) != "true":
        faults = [forbidden_field(f"{at}.{place}", _ADMIN_REFUSED) for place in places]
        raise invalid(kind.group, kind.kind, metadata.get("name", ""), faults)


def _user_faults(at: str, user: Json) -> Iterator[Fault]:
    for field in ("resource", "name", "uid"):
        if not user.get(field):
            yield required(f"{at}.{field}")


def _allocation_faults(allocation: Json, names: set[str]) -> Iterator[Fault]:
    """Yields what is wrong with a new allocation."""
    devices = part(allocation, "devices")
    yield from list_faults(
        "status.allocation.devices.results",
        devices.get("results") or [],
        _MOST_RESULTS,
        lambda where, result: _result_faults(where, result, names),
    )
    yield from list_faults(
        "status.allocation.devices.config",
        devices.get("config") or [],
        2 * _MOST_CONFIGURATIONS,
        lambda where, config: _allocated_configuration_faults(where, config, names),
    )
    if allocation.get("nodeSelector") is not None:
        yield from node_selector_faults(
            "status.allocation.nodeSelector", allocation["nodeSelector"]
        )


def _result_faults(at: str, result: Json, names: set[str]) -> Iterator[Fault]:
    for fault in reference_faults(f"{at}.request", [result.get("request", "")], names):
        yield Fault(f"{at}.request", fault.reason, fault.detail)
    yield from driver_faults(f"{at}.driver", result.get("driver", ""))
    yield from pool_name_faults(f"{at}.pool", result.get("pool", ""))
    yield from label_name_faults(f"{at}.device", result.get("device", ""))


def _allocated_configuration_faults(at: str, config: Json, names: set[str]) -> Iterator[Fault]:
    source = config.get("source", "")
    if not source:
        yield required(f"{at}.source")
    elif source not in _SOURCES:
        yield unsupported(f"{at}.source", source, _SOURCES)
    yield from reference_faults(f"{at}.requests", config.get("requests") or [], names)
    yield from configuration_faults(at, config)


def _device_status_faults(status: Json) -> Iterator[Fault]:
    """Yields the reports on devices that the claim did not get."""
    results = part(part(status, "allocation"), "devices").get("results") or ()
    got = {_identity(each) for each in results}
    seen = set()
    for index, device in enumerate(status.get("devices") or ()):
        where, identity = f"status.devices[{index}]", _identity(device)
        if identity not in got:
            text = "/".join(identity[:3])
            yield invalid_value(where, text, "must be an allocated device in the claim")
        if identity in seen:
            yield duplicate(where, "/".join(identity[:3]))
        seen.add(identity)


def _identity(device: Json) -> tuple[str, ...]:
    return tuple(device.get(each, "") for each in ("driver", "pool", "device", "shareID"))


def _claim_state(item: Json) -> str:
    deleted, allocated = (
        "deletionTimestamp" in item["metadata"],
        at(item, "status.allocation", None),
    )
    states = ["deleted"] if deleted else []
    if allocated is not None:
        states.append("allocated")
        if at(item, "status.reservedFor", None):
            states.append("reserved")
    elif not deleted:
        states.append("pending")
    return ",".join(states)


_CLAIM_COLUMNS = (NAME, text_column("State", _claim_state), age_column())
_SLICE_COLUMNS = (
    NAME,
    field_column("Node", "spec.nodeName", ""),
    field_column("Driver", "spec.driver", ""),
    field_column("Pool", "spec.pool.name", ""),
    age_column(),
)


def device_kinds() -> Iterator[ServedKind]:
    """Yields what dynamic resource allocation is made of."""
    yield make_known_kind("DeviceClass", DeviceClassRules())
    yield make_known_kind(
        "ResourceClaim", ResourceClaimRules(), parts=(STATUS,), columns=_CLAIM_COLUMNS
    )
    yield make_known_kind("ResourceClaimTemplate", ClaimTemplateRules())
    yield make_known_kind("DeviceTaintRule", TaintRuleRules(), parts=(STATUS,))
    yield make_known_kind(
        "ResourceSlice",
        SliceRules(),
        fields=("spec.driver", "spec.nodeName"),
        columns=_SLICE_COLUMNS,
    )
