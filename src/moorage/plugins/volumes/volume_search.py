"""Searches volumes for unbound claims: existing ones, or storage from which they can be made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.cluster import Mask, Rows, View
from moorage.cluster.storage.objects import Binding, KnownStorage, Reservation
from moorage.objects.csi import CSIStorageCapacity
from moorage.objects.in_tree import Terms
from moorage.objects.node_selector import NodeRequirement, NodeTerm
from moorage.objects.quantity import units
from moorage.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

#: Means "no place" in an array of places.
NOTHING = -1
# The place of a volume that is not a candidate.
_NO_CANDIDATE = -2

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Choice:
    """The volume that a claim would get: per row its place among the candidates, or NOTHING."""

    claim: PersistentVolumeClaim
    candidates: SuitableVolumes
    places: Places

    @property
    def found(self) -> Mask:
        return self.places != NOTHING


@dataclass(frozen=True, slots=True)
class SuitableVolumes:
    """The volumes that suit a claim, the smallest first, and their numbers in one search."""

    volumes: tuple[PersistentVolume, ...]
    #: It has one number more than there are volumes: the last is for rows that get none.
    numbers: Places

    def place_numbers(self, numbers: Places, count: int) -> Places:
        """Returns the places of numbered volumes among these; `count` is the most numbers."""
        places = np.full(count + 1, _NO_CANDIDATE, np.intp)
        places[self.numbers[:-1]] = np.arange(len(self.volumes))
        return places[numbers]


class SuitableLists:
    """The candidates of the claims of one search. Claims that are alike share a list."""

    def __init__(self, storage: KnownStorage) -> None:
        self._storage = storage
        self._numbers: dict[str, int] = {}
        self._lists: dict[tuple[object, ...], SuitableVolumes] = {}

    def __len__(self) -> int:
        """Returns how many volumes have a number."""
        return len(self._numbers)

    def of(self, claim: PersistentVolumeClaim) -> SuitableVolumes:
        kept = _kept_volume(claim, self._storage)
        if kept is not None:
            return self._number((kept,))
        alike = (
            claim.class_name,
            claim.request,
            claim.volume_mode,
            claim.attributes_class,
            claim.access_modes,
            claim.selector,
        )
        known = self._lists.get(alike)
        if known is None:
            known = self._lists[alike] = self._number(_free_volumes(claim, self._storage))
        return known

    def _number(self, volumes: tuple[PersistentVolume, ...]) -> SuitableVolumes:
        numbers = [self._numbers.setdefault(each.name, len(self._numbers)) for each in volumes]
        return SuitableVolumes(volumes, np.array([*numbers, NOTHING], np.intp))


def choose_volumes(
    claims: Iterable[PersistentVolumeClaim], nodes: View, rows: Rows
) -> list[Choice]:
    """Chooses a volume for every claim, the smallest claim first, of those not chosen before."""
    lists = SuitableLists(nodes.storage)
    choices: list[Choice] = []
    chosen: list[Places] = []
    for claim in sorted(claims, key=lambda each: each.request or 0):
        candidates = lists.of(claim)
        taken = [candidates.place_numbers(each, len(lists)) for each in chosen]
        terms = [volume.node_terms for volume in candidates.volumes]
        places = first_suiting(terms, nodes, rows, taken)
        choices.append(Choice(claim, candidates, places))
        if candidates.volumes:
            chosen.append(candidates.numbers[places])
    return choices


def is_usable_everywhere(volume: PersistentVolume) -> bool:
    """Whether a bound volume can be used on any node."""
    return volume.node_terms is None and volume.migrated_terms is None and not find_fault(volume)


def find_fault(volume: PersistentVolume) -> str:
    """Returns why no CSI driver can know a volume; empty if one can, or need not."""
    fault = "" if volume.source is None else volume.source.fault
    return fault and f"could not translate pv: {fault}"


def is_faulty(volume: PersistentVolume, nodes: View, rows: Rows) -> Mask:
    """Returns where a CSI driver would have to know a volume but cannot."""
    fault, source = find_fault(volume), volume.source
    migrated = nodes.csi_nodes.migrated(source.plugin) if source is not None and fault else None
    return nodes.nothing(rows) if migrated is None else migrated[rows]


def usable(volume: PersistentVolume, nodes: View, rows: Rows) -> Mask:
    """Returns where a bound volume can be used.

    On nodes where a CSI driver replaces the volume's plugin, the terms for the driver count.
    """
    holds = _met(volume.node_terms, nodes, rows)
    migrated = nodes.csi_nodes.migrated(volume.source.plugin) if volume.source else None
    if migrated is None or volume.migrated_terms == volume.node_terms:
        return holds
    return np.where(migrated[rows], _met(volume.migrated_terms, nodes, rows), holds)


def first_suiting(
    terms: Sequence[Terms | None], nodes: View, rows: Rows, taken: Sequence[Places] = ()
) -> Places:
    """Returns per row the first place whose terms hold and that is not taken there, or NOTHING."""
    none = len(terms)
    first: Places = np.full(nodes.count(rows), none, np.intp)
    pinned: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
    loose: list[int] = []
    for place, each in enumerate(terms):
        pin = _pin(each)
        if pin is None:
            loose.append(place)
        else:
            pinned.setdefault(pin.key, []).append((place, pin.values))
    for key, pins in pinned.items():
        for places in _by_label(key, pins, len(taken) + 1, none, nodes, rows):
            np.minimum(first, np.where(_free(places, taken), places, none), out=first)
    for place, holds in _one_by_one(loose, terms, nodes, rows):
        if not (first > place).any():
            break
        first[holds & (first > place) & _free(place, taken)] = place
    first[first == none] = NOTHING
    return first


def _pin(terms: Terms | None) -> NodeRequirement | None:
    """Returns the one requirement for a label that decides alone; None if there is none.

    A local volume has such a requirement for the host name.
    """
    if terms is None or len(terms) != 1:
        return None
    term = terms[0]
    if not isinstance(term, NodeTerm) or term.names or term.other_names:
        return None
    only = term.requirements[0] if len(term.requirements) == 1 else None
    return only if only is not None and only.operator == "In" else None


def _by_label(
    key: str,
    pins: Iterable[tuple[int, tuple[str, ...]]],
    depth: int,
    none: int,
    nodes: View,
    rows: Rows,
) -> Iterator[Places]:
    """Yields per row the first place for its value of a label, then the second, up to `depth`."""
    column = nodes.label(key)
    # Each has one entry more than there are codes: the last is for rows without the label.
    tables: list[Places] = []
    filled: dict[int, int] = {}
    for place, values in pins:
        for value in values:
            code = column.vocabulary.code(value)
            level = filled.get(code, 0)
            if code == NOTHING or level == depth:
                continue
            if level == len(tables):
                tables.append(np.full(len(column.vocabulary) + 1, none, np.intp))
            tables[level][code] = place
            filled[code] = level + 1
    codes = column.codes[rows]
    for table in tables:
        yield table[codes]


def _one_by_one(
    places: Iterable[int], terms: Sequence[Terms | None], nodes: View, rows: Rows
) -> Iterator[tuple[int, Mask]]:
    met: dict[Terms | None, Mask] = {}
    for place in places:
        each = terms[place]
        if each not in met:
            met[each] = _met(each, nodes, rows)
        yield place, met[each]


def _met(terms: Terms | None, nodes: View, rows: Rows) -> Mask:
    return ~nodes.nothing(rows) if terms is None else nodes.satisfying_any(terms, rows)


def _free(places: Places | int, taken: Sequence[Places]) -> Mask | bool:
    free: Mask | bool = True
    for each in taken:
        free = free & (each != places)
    return free


def _kept_volume(claim: PersistentVolumeClaim, storage: KnownStorage) -> PersistentVolume | None:
    """Returns the volume that is kept for a claim, which gets no other; None if there is none."""
    for volume in storage.volumes_for(claim):
        large_enough = volume.capacity >= (claim.request or 0)
        if large_enough and volume.class_name == claim.class_name and _alike(volume, claim):
            return volume
    return None


def _free_volumes(
    claim: PersistentVolumeClaim, storage: KnownStorage
) -> tuple[PersistentVolume, ...]:
    """Returns the unclaimed volumes that suit a claim, the smallest first."""
    return tuple(
        volume
        for volume in storage.free_volumes(claim)
        if volume.phase == "Available" and _alike(volume, claim) and _suits(volume, claim)
    )


def _alike(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
        and not volume.terminating
    )


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return claim.access_modes <= volume.access_modes and (
        claim.selector is None or claim.selector.matches(volume.labels)
    )


@dataclass(frozen=True, slots=True)
class Provision:
    """A claim for which a volume may have to be made: where that is needed, and where possible.

    `places` holds per row the place of the known capacity that it would use, or NOTHING.
    """

    claim: PersistentVolumeClaim
    needed: Mask
    possible: Mask
    enough: Mask
    capacities: tuple[CSIStorageCapacity, ...]
    places: Places


@dataclass(frozen=True, slots=True)
class Search:
    """The outcome for all unbound claims; masks and places are per row."""

    choices: tuple[Choice, ...]
    provisions: tuple[Provision, ...]
    #: Where a claim gets no volume, and where only the storage for it is lacking.
    no_volume: Mask
    no_space: Mask

    def reservation(self, node_name: str) -> Reservation:
        """Returns what must be reserved, for a search of one row that succeeded."""
        return Reservation(
            node_name,
            tuple(
                Binding(choice.candidates.volumes[choice.places[0]].name, choice.claim.ref)
                for choice in self.choices
                if choice.found[0]
            ),
            tuple(each.claim.key for each in self.provisions if each.needed[0]),
        )


def search(claims: Sequence[PersistentVolumeClaim], nodes: View, rows: Rows) -> Search:
    """Looks for volumes, then for storage to make the ones that were not found."""
    selected = [claim for claim in claims if claim.selected_node is not None]
    elsewhere = nodes.nothing(rows)
    for claim in selected:
        elsewhere |= ~nodes.named(claim.selected_node or "", rows)
    choices = choose_volumes(
        (claim for claim in claims if claim.selected_node is None), nodes, rows
    )
    everywhere = ~nodes.nothing(rows)
    provisions = [_provision(claim, everywhere, nodes, rows) for claim in selected]
    provisions += [
        _provision(choice.claim, ~choice.found, nodes, rows)
        for choice in choices
        if not choice.found.all()
    ]
    no_volume, no_space = _first_failures(provisions, elsewhere)
    return Search(tuple(choices), tuple(provisions), no_volume, no_space)


def _first_failures(provisions: Sequence[Provision], elsewhere: Mask) -> tuple[Mask, Mask]:
    """Returns where a claim gets no volume, and where it gets no space.

    On each row the first claim that fails decides.
    """
    no_volume, no_space = elsewhere.copy(), np.zeros_like(elsewhere)
    for each in provisions:
        open_ = each.needed & ~no_volume & ~no_space
        no_volume |= open_ & ~each.possible
        no_space |= open_ & each.possible & ~each.enough
    return no_volume, no_space


def _provision(claim: PersistentVolumeClaim, needed: Mask, nodes: View, rows: Rows) -> Provision:
    by_class = nodes.storage.storage_class(claim.class_name)
    nowhere = nodes.nothing(rows)
    unlimited: NDArray[np.intp] = np.full(len(nowhere), NOTHING, np.intp)
    if by_class is None or not by_class.provisions:
        return Provision(claim, needed, nowhere, nowhere, (), unlimited)
    topologies = by_class.allowed_topologies
    possible = nodes.satisfying_any(topologies, rows) if topologies else ~nowhere
    capacities = _sufficient(claim, by_class, nodes)
    if capacities is None:
        return Provision(claim, needed, possible, ~nowhere, (), unlimited)
    places = first_suiting([(each.node_term,) for each in capacities], nodes, rows)
    return Provision(claim, needed, possible, places != NOTHING, capacities, places)


def _sufficient(
    claim: PersistentVolumeClaim, by_class: StorageClass, nodes: View
) -> tuple[CSIStorageCapacity, ...] | None:
    """Returns the known capacities that are large enough; None if the driver reports none."""
    driver = nodes.storage.driver(by_class.provisioner)
    if claim.request is None or driver is None or not driver.storage_capacity:
        return None
    size = units(claim.request)
    return tuple(
        each
        for each in nodes.storage.capacities(by_class.name)
        if each.limit_bytes is not None and each.limit_bytes >= size
    )
