"""What becomes of the unbound claims of a pod on each row: a volume, a new one, or neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.cluster import Mask, Nodes, Rows
from mooring.cluster.storage import Binding, Reservation
from mooring.objects.csi import CSIStorageCapacity
from mooring.objects.quantity import units
from mooring.objects.storage import PersistentVolumeClaim, StorageClass

from .volume_matching import NOTHING, Choice, Places, choose_volumes, first_suiting


@dataclass(frozen=True, slots=True)
class Provision:
    """A claim for which a volume may have to be made: where it must be, and where it can be.

    `places` is, per row, the known capacity that it would come from, or NOTHING.
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
        """What is to be reserved, for a search of one row that succeeded."""
        return Reservation(
            node_name,
            tuple(
                Binding(choice.candidates[choice.places[0]].name, choice.claim.ref)
                for choice in self.choices
                if choice.found[0]
            ),
            tuple(each.claim.key for each in self.provisions if each.needed[0]),
        )


def search(claims: Sequence[PersistentVolumeClaim], nodes: Nodes, rows: Rows) -> Search:
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
    """On each row the first claim that cannot be provisioned tells why."""
    no_volume, no_space = elsewhere.copy(), np.zeros_like(elsewhere)
    for each in provisions:
        open_ = each.needed & ~no_volume & ~no_space
        no_volume |= open_ & ~each.possible
        no_space |= open_ & each.possible & ~each.enough
    return no_volume, no_space


def _provision(claim: PersistentVolumeClaim, needed: Mask, nodes: Nodes, rows: Rows) -> Provision:
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
    claim: PersistentVolumeClaim, by_class: StorageClass, nodes: Nodes
) -> tuple[CSIStorageCapacity, ...] | None:
    """The known capacities that are large enough; None when the driver does not tell any."""
    driver = nodes.storage.driver(by_class.provisioner)
    if claim.request is None or driver is None or not driver.storage_capacity:
        return None
    size = units(claim.request)
    return tuple(
        each
        for each in nodes.storage.capacities(by_class.name)
        if each.limit_bytes is not None and each.limit_bytes >= size
    )
