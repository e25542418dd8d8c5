"""The exactness law for counted resources and pools, with ages, over streams about disks."""

from __future__ import annotations

from hypothesis import given

from moorage.config import Configuration
from moorage_policies.disk_io.disk_io_resource import KIND, READ, WRITE
from tests.builders import Manifest
from tests.exactness.four_ways import ON_AND_OFF, configuration, profile, run
from tests.exactness.streams import Shape
from tests.exactness.test_four_ways import SEEDS, trying

DISKS = Shape(disks=True)
TOLD = {"apiVersion": KIND.api_version, "kind": KIND.kind, "plural": KIND.plural}


def counted_args() -> list[Manifest]:
    """Reads are counted per node, writes as a pool that the object of one node tells of."""
    reads = {**TOLD, "amount": "spec.capacity.read", "maxAge": "40s"}
    pool = {**TOLD, "amount": "spec.capacity.write", "name": "disk-of-n0", "maxAge": "40s"}
    resources = [
        {"name": "reads", "capacity": {"object": reads}, "podAnnotation": READ},
        {
            "name": "index",
            "capacity": {"nodeLabel": "index"},
            "podAnnotation": "index",
            "scoring": "MostAllocated",
        },
    ]
    pools = [{"name": "writes", "capacity": {"object": pool}, "podAnnotation": WRITE}]
    return [
        {"name": "CountedResources", "args": {"resources": resources}},
        {"name": "CountedPools", "args": {"pools": pools}},
    ]


def counting() -> Configuration:
    enabled = [{"name": "CountedResources", "weight": 5}, {"name": "CountedPools"}]
    return configuration(
        profile(plugins={"multiPoint": {"enabled": enabled}}, pluginConfig=counted_args())
    )


@given(SEEDS)
@trying(0.04)
def test_every_way_decides_the_same(seed: int) -> None:
    run(seed, counting(), DISKS, ways=ON_AND_OFF)
