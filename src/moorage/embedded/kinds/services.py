"""Services: their rules, and their addresses, at which nothing listens."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from zlib import crc32

from moorage.embedded.api.column import (
    NAME,
    NONE,
    age_column,
    at,
    field_column,
    text_column,
)
from moorage.embedded.api.decoding import fill, part
from moorage.embedded.api.kind import STATUS, KindRules, ServedKind, make_built_in, make_known_kind
from moorage.embedded.api.names import label_faults, label_name_faults, selector_text
from moorage.embedded.request_refusals import (
    Fault,
    duplicate,
    invalid,
    invalid_value,
    required,
    unsupported,
)
from moorage.embedded.store.object_store import Json, ObjectStore, StoredObject

from .pod_spec_rules import PORT_RANGE

_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_NETWORK = ipaddress.ip_network("10.96.0.0/16")
_FIRST_PORT, _LAST_PORT = 30_000, 32_767
_PORT_RANGE = (
    "provided port is not in the valid range. The range of valid ports is "
    f"{_FIRST_PORT}-{_LAST_PORT}"
)
_HEADLESS = "None"
_OWN = ("clusterIP", "clusterIPs", "internalTrafficPolicy", "ipFamilies", "ipFamilyPolicy")
_OPEN = ("allocateLoadBalancerNodePorts", "externalTrafficPolicy")
_OPEN_TYPES = ("LoadBalancer", "NodePort")


class ServiceRules(KindRules):
    """The rules of services; they get addresses and node ports when they are written."""

    status = True
    shows_deleted = True

    def default(self, item: Json) -> None:
        spec = item.setdefault("spec", {})
        fill(spec, sessionAffinity="None", type="ClusterIP")
        if spec["type"] != "ExternalName":
            fill(spec, internalTrafficPolicy="Cluster")
        for port in spec.get("ports") or ():
            fill(port, protocol="TCP")
            # No port at all is written as none in JSON and as 0 in protobuf.
            port["targetPort"] = port.get("targetPort") or port.get("port", 0)

    def complete_new(self, item: Json) -> None:
        item["status"] = {"loadBalancer": {}}

    def admit(self, kind: ServedKind, store: ObjectStore, item: Json, old: Json | None) -> None:
        ServiceAddresses(store).assign(kind, item, old)

    def name_faults(self, name: str) -> Iterator[Fault]:
        yield from label_name_faults("metadata.name", name)

    def faults(self, item: Json) -> Iterator[Fault]:
        spec = item["spec"]
        if spec["type"] not in _SERVICE_TYPES:
            yield unsupported("spec.type", spec["type"], _SERVICE_TYPES)
        named = spec["type"] == "ExternalName"
        if named and not spec.get("externalName"):
            yield required("spec.externalName")
        if not spec.get("ports") and not named and spec.get("clusterIP") != "None":
            yield required("spec.ports")
        yield from _port_faults(spec.get("ports") or ())
        yield from label_faults("spec.selector", part(spec, "selector"))
        address = spec.get("clusterIP", "None")
        if address != "None" and not _is_address(address):
            detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            yield invalid_value("spec.clusterIPs[0]", address, detail)


def _port_faults(ports: Sequence[Json]) -> Iterator[Fault]:
    names = set()
    for index, port in enumerate(ports):
        at, name = f"spec.ports[{index}]", port.get("name", "")
        if not name and len(ports) > 1:
            yield required(f"{at}.name")
        elif name and name in names:
            yield duplicate(f"{at}.name", name)
        names.add(name)
        for field in ("port", "targetPort"):
            number = port.get(field, 0)
            if isinstance(number, int) and not 1 <= number <= 65535:
                yield invalid_value(f"{at}.{field}", number, PORT_RANGE)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


class ServiceAddresses:
    """Gives services addresses that no other service has."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def assign(self, kind: ServedKind, item: Json, old: Json | None = None) -> None:
        """Gives a service its address and node ports; present ones stay."""
        spec, before = item["spec"], part(old or {}, "spec")
        if spec["type"] not in _OPEN_TYPES:
            for name in _OPEN:
                spec.pop(name, None)
        if spec["type"] == "ExternalName":
            for name in _OWN:
                spec.pop(name, None)
            return
        faults = [*self._address(kind, item, before), *self._node_ports(kind, item, before)]
        if faults:
            raise invalid(kind.group, kind.kind, item["metadata"]["name"], faults)

    def _address(self, kind: ServedKind, item: Json, before: Json) -> Iterator[Fault]:
        spec, had = item["spec"], before.get("clusterIP") or ""
        address = spec.get("clusterIP") or had
        if had and address != had:
            yield invalid_value("spec.clusterIPs[0]", [address], "may not change once set")
        elif not had and address != _HEADLESS:
            taken = {entry.fields[_place(kind, "spec.clusterIP")] for entry in self._entries(kind)}
            if address and address in taken:
                detail = f"failed to allocate IP {address}: provided IP is already allocated"
                yield invalid_value("spec.clusterIPs", [address], detail)
            address = address or _free_address(_seed(item), taken)
        spec |= {"clusterIP": address, "clusterIPs": [address]}
        spec.setdefault("ipFamilies", ["IPv6" if ":" in address else "IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")

    def _node_ports(self, kind: ServedKind, item: Json, before: Json) -> Iterator[Fault]:
        spec = item["spec"]
        if spec["type"] not in _OPEN_TYPES:
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
            return
        spec.setdefault("externalTrafficPolicy", "Cluster")
        if spec["type"] == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
        had = {_same(each): each.get("nodePort") for each in before.get("ports") or ()}
        own, taken = set(had.values()), self._taken_ports(kind)
        for index, port in enumerate(spec.get("ports") or ()):
            number = port.get("nodePort") or had.get(_same(port))
            if number in taken - own:
                detail = "provided port is already allocated"
                yield invalid_value(f"spec.ports[{index}].nodePort", number, detail)
            elif number and not _FIRST_PORT <= number <= _LAST_PORT:
                yield invalid_value(f"spec.ports[{index}].nodePort", number, _PORT_RANGE)
            port["nodePort"] = number or _free_port(_seed(item) + index, taken)
            taken.add(port["nodePort"])

    def _taken_ports(self, kind: ServedKind) -> set[int]:
        return {
            port["nodePort"]
            for entry in self._entries(kind)
            if entry.fields[_place(kind, "spec.type")] in _OPEN_TYPES
            for port in entry.object["spec"].get("ports") or ()
            if "nodePort" in port
        }

    def _entries(self, kind: ServedKind) -> Iterable[StoredObject]:
        return self._store.table(kind.table).entries.values()


def _place(kind: ServedKind, path: str) -> int:
    place = kind.position(path)
    assert place is not None
    return place


def _seed(item: Json) -> int:
    """Returns a number by which the same name gets the same address in every cluster."""
    return crc32(f"{item['metadata']['namespace']}/{item['metadata']['name']}".encode())


def _free_address(seed: int, taken: set[str]) -> str:
    # Neither the network's own address nor those of the API server and of DNS.
    first, room = 16, _NETWORK.num_addresses - 17
    places = (str(_NETWORK[first + (seed + step) % room]) for step in range(room))
    return next((each for each in places if each not in taken), str(_NETWORK[first]))


def _free_port(seed: int, taken: set[int]) -> int:
    room = _LAST_PORT - _FIRST_PORT + 1
    places = (_FIRST_PORT + (seed + step) % room for step in range(room))
    return next((each for each in places if each not in taken), _FIRST_PORT)


def _same(port: Json) -> tuple[object, object]:
    return port.get("port"), port.get("protocol")


def _ports(item: Json) -> str:
    def one(port: Json) -> str:
        to_node = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port.get('port')}{to_node}/{port.get('protocol', 'TCP')}"

    return ",".join(one(each) for each in at(item, "spec.ports", [])) or NONE


def _external_address(item: Json) -> str:
    kind, given = at(item, "spec.type"), at(item, "spec.externalIPs", [])
    if kind == "ExternalName":
        return str(at(item, "spec.externalName"))
    if kind != "LoadBalancer":
        return ",".join(given) or NONE
    points = at(item, "status.loadBalancer.ingress", [])
    found = [each.get("ip") or each.get("hostname", "") for each in points]
    return ",".join([*found, *given]) or "<pending>"


_SERVICE_COLUMNS = (
    NAME,
    field_column("Type", "spec.type"),
    field_column("Cluster-IP", "spec.clusterIP"),
    text_column("External-IP", _external_address),
    text_column("Port(s)", _ports),
    age_column(),
    text_column(
        "Selector", lambda item: selector_text(at(item, "spec.selector", None)) or NONE, wide=True
    ),
)


def service_kinds() -> Iterator[ServedKind]:
    """Yields services and their endpoints."""
    yield make_known_kind(
        "Service",
        ServiceRules(),
        parts=(STATUS,),
        short_names=("svc",),
        categories=("all",),
        fields=("spec.clusterIP", "spec.type"),
        columns=_SERVICE_COLUMNS,
    )
    yield make_built_in(
        "", "core.v1", "Endpoints", "endpoints", short_names=("ep",), singular="endpoints"
    )
    yield make_built_in("discovery.k8s.io", "discovery.v1", "EndpointSlice", "endpointslices")
