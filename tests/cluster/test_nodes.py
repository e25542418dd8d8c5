"""What decisions see of the cluster cannot be written through what they are handed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moorage.cluster import Cluster, Nodes
from tests.builders import cluster, node, pod
from tests.storage_builders import pv

#: The facets of `Nodes`, and the methods of the writers behind them that change something.
FACETS: dict[str, tuple[str, ...]] = {
    "nominations": ("put", "drop", "count", "recount"),
    "workloads": ("put", "drop", "sweep"),
    "storage": ("put", "drop", "reserve", "release", "end_reservation", "assume_as"),
    "reservations": ("put", "drop", "end_reservation", "assume_as"),
    "csi_nodes": ("set_row", "grow"),
}


def made() -> Cluster:
    return cluster(node("one"), pod("p", node="one"))


@pytest.mark.parametrize(("name", "writes"), FACETS.items())
def test_facets_have_no_methods_that_write(name: str, writes: tuple[str, ...]) -> None:
    facet = getattr(made().nodes, name)

    assert not [method for method in writes if hasattr(facet, method)]


def test_facets_show_what_is_written_later() -> None:
    of = made()
    nominations, storage = of.nodes.nominations, of.nodes.storage
    of.nominate(pod("later"), "one")
    of.put_storage(pv("disk"))

    assert nominations.node_of(pod("later")) == "one"
    assert storage.volume("disk") is not None


def arrays(nodes: Nodes) -> list[Any]:
    return [value for value in vars(nodes).values() if isinstance(value, np.ndarray)]


def test_arrays_and_mappings_cannot_be_written() -> None:
    nodes: Any = made().nodes

    assert len(arrays(nodes)) > 7
    assert not [array for array in arrays(nodes) if array.flags.writeable]
    for mapping in (nodes.resources, nodes.pods(0)):
        with pytest.raises(TypeError):
            mapping["new"] = 1
