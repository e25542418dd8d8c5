"""Recording and replaying pods that get devices by claim."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path

from moorage.record.whole_replay import replay
from tests.builders import node_manifest, pod_manifest
from tests.device_builders import claim_manifest, device, request, slice_manifest
from tests.record.stage import Stage, lines_of

CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]},
}


def test_a_pod_that_gets_devices_replays_without_a_difference(tmp_path: Path) -> None:
    tolerated = [{"key": "broken", "operator": "Exists"}]
    parameters = {"driver": "gpu.example.com", "parameters": {"sizes": [1, 2.5]}}
    claim = claim_manifest(
        "train",
        request("r0", count=2, tolerations=tolerated),
        request("r1", adminAccess=False),
        config=[{"requests": ["r0"], "opaque": parameters}],
    )
    pod = pod_manifest(
        "p", spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "train"}]}
    )
    devices = [device(f"gpu-{at}", capacity={"memory": {"value": "8Gi"}}) for at in range(4)]
    stage = Stage(tmp_path / "run")
    cluster = [CLASS, node_manifest("n0"), slice_manifest("n0", devices), claim]
    asyncio.run(stage.play((1000.0, [partial(stage.apply, *cluster, pod)])))
    stage.recorder.close()
    (path,) = tmp_path.iterdir()

    done = replay([path])

    assert "writeClaims" in json.dumps(lines_of(path))
    assert (done.counts.difference_count, done.counts.differences) == (0, [])
