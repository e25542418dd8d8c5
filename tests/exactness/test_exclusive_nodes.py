"""The exactness law for exclusive pods with groups, and with limits per namespace."""

from __future__ import annotations

from hypothesis import given

from tests.exactness.four_ways import ON_AND_OFF, configuration, profile, run
from tests.exactness.streams import Shape
from tests.exactness.test_four_ways import SEEDS, trying

GROUPED = Shape(nodes=(6, 24), coexisting=True, grouped=True)
LIMITED = configuration(
    profile(
        plugins={"multiPoint": {"enabled": [{"name": "ExclusiveNodeLimits"}]}},
        pluginConfig=[{"name": "ExclusiveNodeLimits", "args": {"maxNodesPerNamespace": 3}}],
    )
)


@given(SEEDS)
@trying(0.05)
def test_every_way_decides_the_same(seed: int) -> None:
    run(seed, LIMITED, GROUPED, ways=ON_AND_OFF)
