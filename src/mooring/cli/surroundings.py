"""What surrounds an engine in memory: an API server's defaults, and the volume controllers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mooring.cluster import Nodes
from mooring.engine.actions import WriteVolumes
from mooring.objects.decode import Object
from mooring.simulate.defaulting import Defaults
from mooring.simulate.volumes import written


class InMemory:
    """Does at once what a cluster does in time."""

    def __init__(self) -> None:
        self._defaults = Defaults.given(())

    def fill(self, kind: str, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._defaults.fill(kind, raw)

    def write_volumes(self, action: WriteVolumes, nodes: Nodes) -> Iterator[Object]:
        for each in written(action, nodes):
            yield each.volume
            yield each.claim
