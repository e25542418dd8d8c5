"""Streams with all built-in plugins, exclusive pods, GPUs and disks, and ten plugins of others."""

from __future__ import annotations

from moorage.config import Configuration
from moorage.framework.plugin import Registry
from tests.exactness.four_ways import configuration, profile
from tests.exactness.honest_plugins import HONEST, WITH_HONEST
from tests.exactness.streams import Shape
from tests.exactness.templates import GPU

EVERYTHING: Registry = WITH_HONEST

#: Streams in which everything changes that any of them reads.
ALL_AT_ONCE = Shape(nodes=(6, 24), coexisting=True, disks=True, outsiders=True, stateful=True)
#: The same without exclusive pods, on fewer nodes: more pods are placed.
CROWDED = Shape(nodes=(4, 12), turns=60, disks=True, outsiders=True, stateful=True)
#: Many nodes that come and go at once, with scores that are normalised.
WIDE = Shape(nodes=(30, 60), turns=25, outsiders=True)


def everything(percentage: int | None = None) -> Configuration:
    """CoexistPolicy is there by default; the others are asked for, and all of them score."""
    ours = [{"name": name, "weight": 3} for name in ("GPUAware", "DiskIO", "QuietDisk")]
    theirs = [{"name": plugin.name, "weight": 2} for plugin in HONEST]
    raw = profile(
        plugins={"multiPoint": {"enabled": [*ours, *theirs]}},
        pluginConfig=[
            {"name": "GPUAware", "args": {"resources": [GPU]}},
            {"name": "CoexistPolicy", "args": {"preferSmallestNode": True}},
        ],
    )
    if percentage is not None:
        raw["percentageOfNodesToScore"] = percentage
    return configuration(raw, EVERYTHING)
