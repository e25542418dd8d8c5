"""Which volume suits a claim."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

import msgspec

from mooring.embedded.wire import Json
from mooring.objects.quantity import Quantity
from mooring.objects.selector import LabelSelector, compile_selector

from .items import StorageItem

#: The size of a volume, and its name.
Offer = tuple[int, str]


def offer(free: dict[str, list[Offer]], volume: StorageItem) -> None:
    """Lists a volume among the free ones of its class."""
    insort(free.setdefault(volume.storage_class, []), _offer(volume))


def withdraw(free: dict[str, list[Offer]], volume: StorageItem) -> None:
    """Takes a volume off the list, if it is on it."""
    listed, entry = free.get(volume.storage_class, []), _offer(volume)
    at = bisect_left(listed, entry)
    if listed[at : at + 1] == [entry]:
        del listed[at]


def first_suitable(claim: Json, volumes: Iterable[Json | None]) -> Json | None:
    """The first volume that a claim can have."""
    return next((each for each in volumes if each is not None and _suits(claim, each)), None)


def _offer(volume: StorageItem) -> Offer:
    return (volume.size, volume.name)


def _suits(claim: Json, volume: Json) -> bool:
    wanted, offered = claim["spec"], volume["spec"]
    asked = (wanted.get("resources") or {}).get("requests") or {}
    selector = compile_selector(msgspec.convert(wanted.get("selector"), LabelSelector | None))
    labels = volume["metadata"].get("labels") or {}
    return (
        offered.get("storageClassName", "") == wanted.get("storageClassName", "")
        and offered["volumeMode"] == wanted["volumeMode"]
        and set(wanted["accessModes"]) <= set(offered["accessModes"])
        and Quantity.parse(offered["capacity"].get("storage", 0))
        >= Quantity.parse(asked.get("storage", 0))
        and (selector is None or selector.matches(labels))
    )
