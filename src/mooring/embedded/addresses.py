"""The addresses and node ports of services. Nothing listens there, but people look for them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from zlib import crc32

from .errors import Fault, invalid, invalid_value
from .kinds import Kind
from .rules.plain import part
from .store import Store
from .tables import Entry
from .wire import Json

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


class Addresses:
    """Gives services addresses that no other service has."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def assign(self, kind: Kind, item: Json, old: Json | None = None) -> None:
        """Completes a service; what it had, it keeps."""
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

    def _address(self, kind: Kind, item: Json, before: Json) -> Iterator[Fault]:
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

    def _node_ports(self, kind: Kind, item: Json, before: Json) -> Iterator[Fault]:
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

    def _taken_ports(self, kind: Kind) -> set[int]:
        return {
            port["nodePort"]
            for entry in self._entries(kind)
            if entry.fields[_place(kind, "spec.type")] in _OPEN_TYPES
            for port in entry.object["spec"].get("ports") or ()
            if "nodePort" in port
        }

    def _entries(self, kind: Kind) -> Iterable[Entry]:
        return self._store.table(kind.table).entries.values()


def _place(kind: Kind, path: str) -> int:
    place = kind.position(path)
    assert place is not None
    return place


def _seed(item: Json) -> int:
    """Like names get like addresses in every cluster, which makes examples easy to follow."""
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
