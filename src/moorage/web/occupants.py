"""Finds the namespace or owner that requests most of each node, in slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator

import msgspec
import numpy as np

from moorage.engine import Engine
from moorage.objects.resources import PODS, Amounts

from .messages import pack
from .overview import OWNERS, slices
from .picture import THOUSAND


class NodeOccupants(msgspec.Struct, frozen=True):
    """For each row with pods the namespace or owner that requests most of it.

    Columns by row: `codes` are indexes into `values`, `shares` what these request in thousandths of
    what all pods there do, `counts` how many there are.
    """

    by: str
    resource: str
    values: list[str]
    rows: str
    codes: str
    shares: str
    counts: str


def group_by_pods(engine: Engine, by: str, resource: str) -> Generator[None, None, bytes]:
    """Finds who requests most of a resource on each node, by namespace or owner; returns JSON.

    Where nobody requests any of it, the number of pods decides; among equals, the first by name.
    """
    amounts = yield from _add_up(engine, by, resource)
    row_of = engine.cluster.nodes.row
    codes: dict[str, int] = {}
    found: list[tuple[int, int, int, int]] = []
    for some in slices(amounts.items()):
        for node, asked in some:
            row = row_of(node)
            if row is not None:
                name, share = _find_first(asked)
                code = codes.setdefault(name, len(codes))
                found.append((row, code, share, len(asked)))
        yield
    columns = np.array(found, np.int64).reshape(-1, 4).T
    kinds = ("<u4", "<u4", "<u2", "<u4")
    rows, coded, shares, counts = (
        pack(each, kind) for each, kind in zip(columns, kinds, strict=True)
    )
    return msgspec.json.encode(
        NodeOccupants(by, resource, list(codes), rows, coded, shares, counts)
    )


#: By name: what is requested of the resource, and pods.
_Asked = dict[str, tuple[int, int]]


def _add_up(engine: Engine, by: str, resource: str) -> Generator[None, None, dict[str, _Asked]]:
    name_of = OWNERS[by]
    kinds: Counter[tuple[str, str, Amounts]] = Counter()
    for some in slices(engine.cluster.pods.values()):
        kinds.update((pod.node_name, name_of(pod), pod.held.requests) for pod in some)
        yield
    amounts: dict[str, _Asked] = {}
    for part in slices(kinds.items()):
        for (node, name, requests), count in part:
            each = 1 if resource == PODS else dict(requests).get(resource, 0)
            asked = amounts.setdefault(node, {})
            amount, pods = asked.get(name, (0, 0))
            asked[name] = amount + each * count, pods + count
        yield
    return amounts


def _find_first(asked: _Asked) -> tuple[str, int]:
    """Returns who requests most, and its share in thousandths."""
    whole = sum(amount for amount, _ in asked.values())
    if not whole:
        asked = {name: (pods, pods) for name, (_, pods) in asked.items()}
        whole = sum(pods for _, pods in asked.values())
    name = min(asked, key=lambda each: (-asked[each][0], each))
    return name, THOUSAND * asked[name][0] // whole
