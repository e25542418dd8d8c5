"""A deployment that spreads over zones."""

from __future__ import annotations

from collections import Counter

from mooring.demo.stage import Stage

TITLE = "A deployment"
ABOUT = """\
Nine replicas that are to be spread evenly over three zones.
Plain Kubernetes, through an API server that any client can talk to."""

_REPLICAS, _PER_ZONE = 9, {"a": 3, "b": 3, "c": 3}


async def play(stage: Stage) -> None:
    stage.tell.typed("kubectl apply -f web.yaml")
    await stage.client.apply("web.yaml")
    await stage.until(
        "all 9 pods have a node",
        lambda: len(stage.pods.placed("web")) == _REPLICAS,
        lambda: f"{len(stage.pods.placed('web'))} have one",
    )
    zones = await stage.client.zones()
    nodes = sorted(pod.node for pod in stage.pods.placed("web"))
    found = Counter(zones[node] for node in nodes)
    rows = [
        (zone, str(count), ", ".join(node for node in nodes if zones[node] == zone))
        for zone, count in sorted(found.items())
    ]
    stage.tell.table(("ZONE", "PODS", "NODES"), rows)
    stage.promise("three pods in each zone", found == _PER_ZONE, dict(found))
