"""The study of GPUAware: what it counts, on clusters small enough to follow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from moorage.simulate.traces.csv_trace import GPU, MODEL, read_openb
from moorage.world.cluster_use import GpuDemands
from tests.builders import cluster, node, pod
from tests.registered import REGISTRY
from tests.simulate.test_openb_trace import write
from tools.openb.study import SETTINGS, Outcome, study

# A node of each kind: eight cores of CPU, and twelve with two GPUs. Two CPU pods come first.
NODES = ("cpu,8000,32768,0,", "gpu,12000,32768,2,G2")
PODS = (
    "web,6000,1024,0,0,,LS,0",
    "api,6000,1024,0,0,,LS,1",
    "train,4000,1024,1,1000,,LS,2",
    "infer,4000,1024,1,500,,LS,3",
)


def outcomes(folder: Path, *pods: str) -> dict[str, Outcome]:
    trace = read_openb(write(folder, NODES, pods))
    return {each.setting: each for each in study(trace, REGISTRY)}


def test_every_setting_is_tried_on_a_cluster_of_its_own(tmp_path: Path) -> None:
    assert tuple(outcomes(tmp_path, *PODS)) == tuple(SETTINGS)


def test_what_each_mode_does(tmp_path: Path) -> None:
    """Off, the first pod takes the larger node and the GPU pods have too little CPU there."""
    found = outcomes(tmp_path, *PODS)

    assert found["off"] == Outcome(
        setting="off",
        gpus_allocated=1,
        gpu_pods_pending=1,
        cpu_pods_pending=0,
        cpu_pods_on_gpu_nodes=1,
        nodes_with_free_gpus=1,
        starved_for_pending=1,
        starved_for_all=1,
    )
    assert found["Filter"] == Outcome(
        setting="Filter",
        gpus_allocated=2,
        gpu_pods_pending=0,
        cpu_pods_pending=1,
        cpu_pods_on_gpu_nodes=0,
        nodes_with_free_gpus=0,
        starved_for_pending=0,
        starved_for_all=0,
    )
    # The second CPU pod has nowhere else to go.
    assert found["Score"] == replace(found["off"], setting="Score")


def test_a_model_that_no_node_has(tmp_path: Path) -> None:
    found = outcomes(tmp_path, "train,1000,1024,1,1000,G3,LS,0")

    for each in found.values():
        assert (each.gpu_pods_pending, each.nodes_with_free_gpus) == (1, 1)
        assert (each.starved_for_pending, each.starved_for_all) == (0, 0)


def test_a_node_may_have_room_for_others_than_those_that_wait(tmp_path: Path) -> None:
    small, large = "small,1000,1024,1,1000,,LS,0", "large,11500,1024,1,1000,,LS,1"

    for each in outcomes(tmp_path, small, large).values():
        assert (each.gpus_allocated, each.gpu_pods_pending) == (1, 1)
        assert (each.starved_for_pending, each.starved_for_all) == (1, 0)


def test_a_trace_without_gpus(tmp_path: Path) -> None:
    trace = read_openb(write(tmp_path))

    for each in study(trace, REGISTRY):
        assert (each.gpus_allocated, each.nodes_with_free_gpus, each.starved_for_all) == (0, 0, 0)


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
G3_ONLY = {
    "affinity": {
        "nodeAffinity": {
            REQUIRED: {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": MODEL, "operator": "In", "values": ["G3"]}]}
                ]
            }
        }
    }
}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param([{"cpu": 3, GPU: 1}], True, id="too little CPU"),
        pytest.param([{"cpu": 1, "memory": "7Gi", GPU: 1}], True, id="too little memory"),
        pytest.param([{"cpu": 2, "memory": "6Gi", GPU: 2}], False, id="all that is left"),
        pytest.param([{GPU: 2}], False, id="nothing but GPUs"),
        pytest.param([{"cpu": 3, GPU: 3}], False, id="GPUs are lacking as well"),
        pytest.param([{"cpu": 3, GPU: 1, "spec": G3_ONLY}], False, id="another model"),
        pytest.param([{"cpu": 3}], False, id="a CPU pod"),
        pytest.param([{"cpu": 3, GPU: 1}, {"cpu": 1, GPU: 1}], False, id="one fits"),
        pytest.param([{"cpu": 3, GPU: 1}, {"cpu": 1, GPU: 3}], True, id="none of two fits"),
        pytest.param([], False, id="nobody"),
    ],
)
def test_starved(asked: list[dict[str, object]], expected: bool) -> None:
    """Two cores, 6 GiB and two GPUs are left on a node of model G2; others are as before."""
    there = cluster(
        node("plain"),
        node("n", labels={MODEL: "G2"}, **{GPU: 3}),
        pod("there", node="n", cpu=2, memory="2Gi", **{GPU: 1}),
    )

    demands = GpuDemands.of([pod(f"p{at}", **each) for at, each in enumerate(asked)])
    found = demands.find_starved(there.nodes, GPU)

    assert dict(zip(there.nodes.names(there.nodes.rows.tolist()), found.tolist(), strict=True)) == {
        "plain": False,
        "n": expected,
    }
    assert demands.count_stranded(there.nodes) == (2 if expected else 0)
