"""What a reader makes of messages: the picture, in plain values."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np


@dataclass
class Mirror:
    """Applies messages as the page does."""

    resources: list[str] = field(default_factory=list)
    #: By row: name, state, use of each resource.
    nodes: dict[int, tuple[str, int, list[int]]] = field(default_factory=dict)
    #: By number: name, place, attempts, reason, owner, group, nominated node.
    queue: dict[int, tuple[str, str, int, str, str, str, str]] = field(default_factory=dict)
    totals: list[list[float]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    arrivals: list[tuple[str, int]] = field(default_factory=list)

    def apply_all(self, lines: Iterable[bytes]) -> None:
        for text in lines:
            self.apply(msgspec.json.decode(text))

    def apply(self, message: dict[str, Any]) -> None:
        if message.get("reset"):
            self.queue.clear()
        if "resources" in message:
            self.resources = message["resources"]
            self.nodes.clear()
        self._apply_nodes(message.get("nodes"))
        queue = message.get("queue", {})
        for number, key, place, attempts, *indexes in queue.get("put", ()):
            reason, owner, group, nominated = (queue["texts"][at] for at in indexes)
            self.queue[number] = key, place, attempts, reason, owner, group, nominated
        for number in queue.get("gone", ()):
            del self.queue[number]
        self.figures = message.get("figures", self.figures)
        self.totals = message.get("totals", self.totals)
        self.events += message.get("events", [])
        self.arrivals += [(key, row) for key, row in message.get("arrivals", ())]

    def _apply_nodes(self, part: dict[str, Any] | None) -> None:
        if part is None:
            return
        rows = _numbers(part["rows"], "<u4")
        states = _numbers(part["states"], "<u1")
        uses = [_numbers(column, "<u2") for column in part["uses"]]
        for at, row in enumerate(rows):
            if not states[at]:
                self.nodes.pop(row, None)
                continue
            name = part["names"].get(str(row)) or self.nodes[row][0]
            self.nodes[row] = name, states[at], [column[at] for column in uses]

    def seen(self) -> dict[str, Any]:
        """Everything that can be seen, without the numbers that are only for reference."""
        return {
            "resources": self.resources,
            "nodes": self.nodes,
            "totals": self.totals,
            "queue": sorted(self.queue.values()),
        }


def _numbers(text: str, kind: str) -> list[int]:
    return [int(each) for each in np.frombuffer(b64decode(text), kind)]
