"""Host ports in use: per protocol and port, for each address, a count per row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from mooring.objects.pod import ANY_ADDRESS, HostPort

from .arrays import grown

Users = NDArray[np.int32]


class PortColumns:
    """A column exists for as long as some pod holds that port somewhere."""

    def __init__(self) -> None:
        self._columns: dict[tuple[str, int], dict[str, Users]] = {}

    def count(self, ports: Iterable[HostPort], row: int, amount: int, capacity: int) -> None:
        """A pod came to (1) or left (-1) a row, with its ports."""
        for address, protocol, port in ports:
            addresses = self._columns.setdefault((protocol, port), {})
            users = addresses.get(address)
            if users is None:
                users = addresses[address] = np.zeros(capacity, np.int32)
            users[row] += amount
            if amount < 0 and not users.any():
                self._drop((protocol, port), address)

    def vacate(self, ports: Iterable[HostPort], row: int) -> None:
        """Frees ports on a row, whoever else holds them there."""
        for address, protocol, port in ports:
            self._columns[protocol, port][address][row] = 0

    def conflicting(self, wanted: HostPort) -> Iterator[Users]:
        """The columns of users that would be in the way of a port."""
        address, protocol, port = wanted
        addresses = self._columns.get((protocol, port), {})
        if address == ANY_ADDRESS:
            yield from addresses.values()
            return
        for in_the_way in (address, ANY_ADDRESS):
            if in_the_way in addresses:
                yield addresses[in_the_way]

    def copied(self) -> PortColumns:
        """A copy that can be changed without touching this one."""
        copy = PortColumns()
        copy._columns = {
            port: {address: users.copy() for address, users in addresses.items()}
            for port, addresses in self._columns.items()
        }
        return copy

    def grow(self, capacity: int) -> None:
        for addresses in self._columns.values():
            for address, users in addresses.items():
                addresses[address] = grown(users, capacity)

    def __iter__(self) -> Iterator[tuple[HostPort, Users]]:
        for (protocol, port), addresses in self._columns.items():
            for address, users in addresses.items():
                yield (address, protocol, port), users

    def _drop(self, port: tuple[str, int], address: str) -> None:
        del self._columns[port][address]
        if not self._columns[port]:
            del self._columns[port]
