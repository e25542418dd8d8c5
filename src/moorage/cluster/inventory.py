"""Host ports in use, container images, and the visit order of nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from moorage.objects.container import ANY_ADDRESS, HostPort
from moorage.objects.node import ContainerImage

from .arrays import grow_to

# On so few rows, each is noted by itself: most ports are taken on few nodes, or on all.
_FEW_ROWS = 16


class PortUsers:
    """How many pods hold one port on each row."""

    __slots__ = ("_array", "_few")

    def __init__(self) -> None:
        #: The counts of few rows; None once there are many.
        self._few: dict[int, int] | None = {}
        self._array: NDArray[np.int32] = np.zeros(0, np.int32)

    def __bool__(self) -> bool:
        return bool(self._array.any()) if self._few is None else bool(self._few)

    def __getitem__(self, row: int) -> int:
        if self._few is not None:
            return self._few.get(row, 0)
        # It grows when somebody asks about all rows, so newer ones may be beyond its end.
        return self._array.item(row) if row < len(self._array) else 0

    def __iter__(self) -> Iterator[int]:
        """Yields the rows where the port is taken."""
        yield from np.flatnonzero(self._array).tolist() if self._few is None else self._few

    def set(self, row: int, count: int, capacity: int) -> None:
        if self._few is None:
            if row >= len(self._array):
                self._array = grow_to(self._array, capacity)
            self._array[row] = count
            return
        self._few.pop(row, None)
        if count:
            self._few[row] = count
        if len(self._few) > _FEW_ROWS:
            self._array = self._counts(capacity)
            self._few = None

    def on(self, rows: slice | NDArray[np.intp], capacity: int) -> NDArray[np.bool_]:
        """Returns where the port is taken."""
        if self._few is not None:
            taken = np.zeros(capacity, np.bool_)
            taken[list(self._few)] = True
            return taken[rows]
        self._array = grow_to(self._array, capacity)
        return self._array[rows] > 0

    def copy(self) -> PortUsers:
        copy = PortUsers()
        copy._few = None if self._few is None else dict(self._few)
        copy._array = self._array.copy()
        return copy

    def _counts(self, capacity: int) -> NDArray[np.int32]:
        counts = np.zeros(capacity, np.int32)
        for row, count in (self._few or {}).items():
            counts[row] = count
        return counts


class PortColumns:
    """The users of each port that some pod holds."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, int], dict[str, PortUsers]] = {}

    def count(self, ports: Iterable[HostPort], row: int, amount: int, capacity: int) -> None:
        """Counts the ports of a pod that came to (1) or left (-1) a row."""
        for address, protocol, port in ports:
            addresses = self._users.get((protocol, port))
            if addresses is None:
                addresses = self._users[protocol, port] = {}
            users = addresses.get(address)
            if users is None:
                users = addresses[address] = PortUsers()
            users.set(row, users[row] + amount, capacity)
            if amount < 0 and not users:
                self._drop((protocol, port), address)

    def free_entirely(self, ports: Iterable[HostPort], row: int, capacity: int) -> None:
        """Frees ports on a row, even if other pods hold them there."""
        for address, protocol, port in ports:
            self._users[protocol, port][address].set(row, 0, capacity)

    def conflicting(self, wanted: HostPort) -> Collection[PortUsers]:
        """Yields the users that would conflict with a port."""
        address, protocol, port = wanted
        addresses = self._users.get((protocol, port))
        if addresses is None:
            return ()
        if address == ANY_ADDRESS:
            return addresses.values()
        return [addresses[each] for each in (address, ANY_ADDRESS) if each in addresses]

    def copy(self) -> PortColumns:
        """Returns a copy that can be changed without touching this one."""
        copy = PortColumns()
        copy._users = {
            port: {address: users.copy() for address, users in addresses.items()}
            for port, addresses in self._users.items()
        }
        return copy

    def __iter__(self) -> Iterator[tuple[HostPort, PortUsers]]:
        for (protocol, port), addresses in self._users.items():
            for address, users in addresses.items():
                yield (address, protocol, port), users

    def _drop(self, port: tuple[str, int], address: str) -> None:
        del self._users[port][address]
        if not self._users[port]:
            del self._users[port]


class Image:
    """An image by one of its names. Its size is that of the first node that reports it."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.rows: set[int] = set()
        self._present: NDArray[np.bool_] | None = None

    def put(self, row: int) -> None:
        self.rows.add(row)
        if self._present is not None:
            self._present = grow_to(self._present, row + 1, False)
            self._present[row] = True

    def take(self, row: int) -> None:
        self.rows.discard(row)
        if self._present is not None:
            self._present[row] = False

    def present(self, capacity: int) -> NDArray[np.bool_]:
        """Returns whether each row has it: a column made when first asked for."""
        if self._present is None:
            self._present = np.zeros(capacity, np.bool_)
            self._present[list(self.rows)] = True
        elif len(self._present) < capacity:
            self._present = grow_to(self._present, capacity, False)
        return self._present


class Images:
    """All images on all nodes."""

    def __init__(self) -> None:
        self._images: dict[str, Image] = {}

    def get(self, name: str) -> Image | None:
        return self._images.get(name)

    def put(self, row: int, images: Iterable[ContainerImage]) -> None:
        for name, size in _names(images):
            image = self._images.get(name)
            if image is None:
                image = self._images[name] = Image(size)
            image.put(row)

    def take(self, row: int, images: Iterable[ContainerImage]) -> None:
        for name, _ in _names(images):
            image = self._images.get(name)
            if image is not None:
                image.take(row)
                if not image.rows:
                    del self._images[name]

    def __iter__(self) -> Iterator[tuple[str, Image]]:
        return iter(self._images.items())


def _names(images: Iterable[ContainerImage]) -> Iterator[tuple[str, int]]:
    for image in images:
        for name in image.names or ():
            yield name, image.size_bytes


Zone = tuple[str, str]


class VisitOrder:
    """Nodes in order of arrival within their zone, zones in order of their first node.

    Moving a node to another zone does not reorder the list until a node comes or goes.
    """

    def __init__(self) -> None:
        self._zones: dict[Zone, dict[int, None]] = {}
        self._zone_of: dict[int, Zone] = {}
        self._rows: NDArray[np.intp] | None = None
        self._ranks: NDArray[np.intp] | None = None

    def add(self, row: int, zone: Zone) -> None:
        self._enter(row, zone)
        self._rows = None

    def remove(self, row: int) -> None:
        self._leave(row)
        self._rows = None

    def move(self, row: int, zone: Zone) -> None:
        if self._zone_of[row] != zone:
            rows = self.rows()
            self._leave(row)
            self._enter(row, zone)
            self._rows = rows

    def rows(self) -> NDArray[np.intp]:
        if self._rows is None:
            turns = zip_longest(*self._zones.values())
            listed = [row for turn in turns for row in turn if row is not None]
            self._rows = np.array(listed, np.intp)
            self._ranks = None
        return self._rows

    def ranks(self, capacity: int) -> NDArray[np.intp]:
        """Returns the position of each row in the list; rows that are not listed have 0."""
        rows = self.rows()
        if self._ranks is None:
            self._ranks = np.zeros(capacity, np.intp)
            self._ranks[rows] = np.arange(len(rows))
        return self._ranks

    def _enter(self, row: int, zone: Zone) -> None:
        self._zones.setdefault(zone, {})[row] = None
        self._zone_of[row] = zone

    def _leave(self, row: int) -> None:
        zone = self._zone_of.pop(row)
        members = self._zones[zone]
        del members[row]
        if not members:
            del self._zones[zone]
