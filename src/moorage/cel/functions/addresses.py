"""Addresses and blocks of IP, and the functions that Kubernetes adds for them."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import ClassVar

from moorage.cel.functions.function_table import FunctionTable
from moorage.cel.values import CelError, Meter, Opaque

TABLE = FunctionTable()

_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class CelAddress(Opaque):
    type_name: ClassVar = "net.IP"

    address: _Ip


@dataclass(frozen=True)
class CelBlock(Opaque):
    type_name: ClassVar = "net.CIDR"

    address: _Ip
    length: int

    @property
    def network(self) -> _Network:
        return ipaddress.ip_network((self.address, self.length), strict=False)


def _parse_address(text: str) -> CelAddress:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise CelError(f'IP Address "{text[:64]}" parse error during conversion') from None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            raise CelError(f'IP address "{text[:64]}" with zone value is not allowed')
        if address.ipv4_mapped is not None:
            raise CelError(f'IPv4-mapped IPv6 address "{text[:64]}" is not allowed')
    return CelAddress(address)


def _parse_block(text: str) -> CelBlock:
    address, slash, length = text.partition("/")
    parsed = _parse_address(address).address
    plain = length.isascii() and length.isdigit() and str(int(length[:4])) == length
    if not slash or not plain or int(length) > parsed.max_prefixlen:
        raise CelError(f'network address parse error during conversion from string: "{text[:64]}"')
    return CelBlock(parsed, int(length))


@TABLE.takes("ip", str)
def _ip(meter: Meter, text: str) -> CelAddress:
    return _parse_address(text)


@TABLE.takes("isIP", str)
def _is_ip(meter: Meter, text: str) -> bool:
    try:
        _parse_address(text)
    except CelError:
        return False
    return True


@TABLE.takes("ip.isCanonical", str)
def _is_canonical(meter: Meter, text: str) -> bool:
    return str(_parse_address(text).address) == text


@TABLE.takes("family", CelAddress)
def _family(meter: Meter, ip: CelAddress) -> int:
    return ip.address.version


@TABLE.takes("isUnspecified", CelAddress)
def _is_unspecified(meter: Meter, ip: CelAddress) -> bool:
    return ip.address.is_unspecified


@TABLE.takes("isLoopback", CelAddress)
def _is_loopback(meter: Meter, ip: CelAddress) -> bool:
    return ip.address.is_loopback


@TABLE.takes("isLinkLocalUnicast", CelAddress)
def _is_link_local(meter: Meter, ip: CelAddress) -> bool:
    return ip.address.is_link_local


@TABLE.takes("isLinkLocalMulticast", CelAddress)
def _is_link_local_multicast(meter: Meter, ip: CelAddress) -> bool:
    packed = ip.address.packed
    if ip.address.version == 4:
        return packed[:3] == bytes((224, 0, 0))
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02


@TABLE.takes("isGlobalUnicast", CelAddress)
def _is_global_unicast(meter: Meter, ip: CelAddress) -> bool:
    address = ip.address
    special = address.is_unspecified or address.is_loopback or address.is_multicast
    return not (special or address.is_link_local or str(address) == "255.255.255.255")


@TABLE.takes("cidr", str)
def _cidr(meter: Meter, text: str) -> CelBlock:
    return _parse_block(text)


@TABLE.takes("isCIDR", str)
def _is_cidr(meter: Meter, text: str) -> bool:
    try:
        _parse_block(text)
    except CelError:
        return False
    return True


@TABLE.takes("containsIP", CelBlock, str)
def _contains_text(meter: Meter, block: CelBlock, text: str) -> bool:
    return _contains_ip(meter, block, _parse_address(text))


@TABLE.takes("containsIP", CelBlock, CelAddress)
def _contains_ip(meter: Meter, block: CelBlock, ip: CelAddress) -> bool:
    return ip.address in block.network


@TABLE.takes("containsCIDR", CelBlock, str)
def _contains_block_text(meter: Meter, block: CelBlock, text: str) -> bool:
    return _contains_block(meter, block, _parse_block(text))


@TABLE.takes("containsCIDR", CelBlock, CelBlock)
def _contains_block(meter: Meter, block: CelBlock, other: CelBlock) -> bool:
    return other.address in block.network and block.length <= other.length


@TABLE.takes("ip", CelBlock)
def _ip_of(meter: Meter, block: CelBlock) -> CelAddress:
    return CelAddress(block.address)


@TABLE.takes("masked", CelBlock)
def _mask(meter: Meter, block: CelBlock) -> CelBlock:
    return CelBlock(block.network.network_address, block.length)


@TABLE.takes("prefixLength", CelBlock)
def _prefix_length(meter: Meter, block: CelBlock) -> int:
    return block.length
