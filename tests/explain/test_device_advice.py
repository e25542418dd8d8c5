"""A pod whose claims get no devices is told which devices fail what, and what would help."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.engine.explain import explain
from tests.builders import node, pod
from tests.device_builders import (
    claim,
    device,
    device_class,
    holding,
    request,
    resource_slice,
    result,
)
from tests.engine.driver import driver

H100 = 'device.attributes["gpu.example.com"].model == "H100"'
CHOSEN = [{"cel": {"expression": H100}}]
BROKEN = [{"key": "broken", "value": "yes", "effect": "NoSchedule"}]


def gpu(number: int, model: str = "A100", **fields: Any) -> dict[str, Any]:
    return device(f"gpu-{number}", attributes={"model": {"string": model}}, **fields)


def problems(*objects: Any) -> list[str]:
    """What is said about a pod with the claim `c` on nodes n1 and n2, and one without devices."""
    waiting = pod("p", spec={"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]})
    nodes = (node("n1"), node("n2"), node("bare"))
    driven = driver(*nodes, device_class(), *objects, waiting)
    driven.settle()
    found = explain(driven.engine.decider, driven.pods["default/p"])
    assert {each.kind for each in found.suggestions} <= {"devices"}
    return [each.problem for each in found.suggestions]


TWO = [gpu(0), gpu(1)]

CASES: dict[str, tuple[list[Any], list[str]]] = {
    "a selector": (
        [
            resource_slice("n1", TWO),
            resource_slice("n2", [gpu(0, "A30")]),
            claim("c", request(selectors=CHOSEN)),
        ],
        [
            f"request r0 of claim default/c: of 3 devices on 2 nodes, 3 fail {H100}; "
            "it would fit 2 nodes if that accepted model A100 or model A30"
        ],
    ),
    "devices in use": (
        [
            resource_slice("n1", TWO),
            holding("other", result("n1", "gpu-0"), result("n1", "gpu-1")),
            claim("c"),
        ],
        ["request r0 of claim default/c: of 2 devices on 1 node, 2 in use"],
    ),
    "a taint": (
        [resource_slice("n1", [gpu(0, taints=BROKEN)]), claim("c")],
        [
            "request r0 of claim default/c: of 1 devices on 1 node, "
            "1 tainted broken=yes:NoSchedule; it would fit 1 node if it tolerated that"
        ],
    ),
    "too many": (
        [resource_slice("n1", TWO), resource_slice("n2", TWO), claim("c", request(count=3))],
        [
            "request r0 of claim default/c: of 4 devices on 2 nodes, 4 would do "
            "(3 wanted on one node)"
        ],
    ),
    "a capacity": (
        [
            resource_slice("n1", [gpu(0, capacity={"memory": {"value": "40Gi"}})]),
            claim("c", request(capacity={"requests": {"memory": "80Gi"}})),
        ],
        ["request r0 of claim default/c: of 1 devices on 1 node, 1 too small"],
    ),
    "a counter": (
        [
            resource_slice(
                "n1",
                [
                    gpu(
                        number,
                        consumesCounters=[
                            {"counterSet": "card", "counters": {"slices": {"value": "4"}}}
                        ],
                    )
                    for number in (0, 1)
                ],
                pool={"resourceSliceCount": 2},
            ),
            resource_slice(
                "n1-counters",
                [],
                nodeName="n1",
                pool={"name": "n1", "resourceSliceCount": 2},
                sharedCounters=[{"name": "card", "counters": {"slices": {"value": "4"}}}],
            ),
            holding("other", result("n1", "gpu-0")),
            claim("c"),
        ],
        [
            "request r0 of claim default/c: of 2 devices on 1 node, 1 in use, "
            "1 out of shared counters"
        ],
    ),
    "no devices": ([claim("c")], ["request r0 of claim default/c: these nodes have no devices"]),
    "constraints": (
        [
            resource_slice("n1", [gpu(0), gpu(1, "A30")]),
            claim(
                "c",
                request(count=2),
                constraints=[{"matchAttribute": "gpu.example.com/model"}],
            ),
        ],
        [
            "request r0 of claim default/c: of 2 devices on 1 node, 2 would do "
            "(2 wanted on one node); they do not agree on what its constraints want"
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_said(name: str) -> None:
    objects, said = CASES[name]

    assert problems(*objects) == said


def test_devices_on_other_nodes() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}
    results = [result("gone", "gpu-0")]
    given = {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": [term]},
    }
    user = {"resource": "pods", "name": "other", "uid": "uid-other"}
    has = claim("c", allocation=given, status={"reservedFor": [user]})

    assert problems(has) == ["claim default/c has its devices on other nodes"]
