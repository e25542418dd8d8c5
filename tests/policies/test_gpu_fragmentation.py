"""GPUFragmentation: which node a pod leaves most GPUs of in reach of typical pods."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from moorage.config import ConfigError, load_mapping
from moorage.documents.conversion import decode_hook
from moorage.framework.profile import known_plugins
from moorage.testing import check_laws
from moorage_policies.gpu_fragmentation import GPUFragmentation, GPUFragmentationArgs
from tests.builders import cluster, node, pod
from tests.plugins.asking import scores
from tests.registered import REGISTRY

GPU = "nvidia.com/gpu"


def plugin(*kinds: dict[str, Any]) -> GPUFragmentation:
    args = msgspec.convert({"typicalPods": kinds}, GPUFragmentationArgs, dec_hook=decode_hook)
    return GPUFragmentation(args)


def gpu_node(name: str, gpus: int, cpu: int = 64, **given: Any) -> Any:
    return node(name, cpu=cpu, memory="512Gi", **{GPU: gpus}, **given)


def asking(gpus: int = 0, cpu: int = 1, name: str = "p", **given: Any) -> Any:
    return pod(name, cpu=cpu, **({GPU: gpus} if gpus else {}), **given)


WHOLE = plugin({"gpus": 8, "cpu": 8}, {"gpus": 1, "cpu": 1, "weight": 3})


def test_a_small_pod_does_not_break_a_whole_node() -> None:
    made = cluster(gpu_node("whole", 8), gpu_node("broken", 8), asking(1, node="broken"))

    assert scores(WHOLE, asking(1), made) == {"whole": 0, "broken": 100}


def test_a_pod_without_gpus_leaves_cpu_to_the_gpus() -> None:
    made = cluster(gpu_node("tight", 1, cpu=2), gpu_node("wide", 1, cpu=9), node("plain", cpu=9))

    found = scores(plugin({"gpus": 1, "cpu": 2}), asking(cpu=1), made)
    assert found == {"tight": 0, "wide": 100, "plain": 100}


def test_a_node_whose_gpus_nobody_can_use_is_best() -> None:
    """The pod can use them, and so fragments become fewer."""
    made = cluster(gpu_node("stranded", 1, cpu=1), gpu_node("useful", 1, cpu=9))

    assert scores(plugin({"gpus": 1, "cpu": 2}), asking(1), made) == {"stranded": 100, "useful": 0}


def test_it_is_skipped_in_clusters_without_gpus() -> None:
    assert scores(WHOLE, asking(), cluster(node("a"), node("b"))) is None


SIZES = st.tuples(st.integers(0, 8), st.integers(1, 16))


@given(st.lists(SIZES, min_size=2, max_size=5), st.integers(0, 3), st.integers(0, 4))
def test_it_is_the_gradient_of_the_paper(sizes: list[tuple[int, int]], gpus: int, cpu: int) -> None:
    """Node by node and kind by kind, as it is defined."""
    kinds = ((8, 8, 1), (2, 4, 2), (1, 1, 3))
    asked = plugin(*({"gpus": g, "cpu": c, "weight": w} for g, c, w in kinds))
    made = cluster(*(gpu_node(f"n{at}", g, c) for at, (g, c) in enumerate(sizes)), gpu_node("x", 1))

    def fragments(free: int, cores: int) -> int:
        return sum(w * free for g, c, w in kinds if free < g or cores < c)

    all_sizes = [*sizes, (1, 64)]
    gained = [fragments(g, c) - fragments(max(g - gpus, 0), c - cpu) for g, c in all_sizes]
    least, most = min(gained), max(gained)
    expected = [(each - least) * 100 // max(most - least, 1) for each in gained]
    found = scores(asked, asking(gpus, cpu), made)
    assert found is not None
    assert list(found.values()) == expected


def test_the_laws_of_plugins() -> None:
    objects = (gpu_node("a", 8), gpu_node("b", 2, cpu=4), node("c"), asking(1, node="a", name="q"))

    check_laws(WHOLE, objects, (asking(0), asking(1), asking(2, cpu=3)))


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"typicalPods": []}, "typicalPods: at least one is required"),
        ({"resources": []}, "resources: at least one is required"),
        ({"typicalPods": [{"gpus": 0}]}, "typicalPods[0].gpus: must be 1 or greater"),
        ({"typicalPods": [{"weight": 0}]}, "typicalPods[0].weight: must be between 1 and"),
    ],
)
def test_what_a_configuration_gets_wrong(args: dict[str, Any], problem: str) -> None:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "GPUFragmentation", "args": args}]}],
    }
    with pytest.raises(ConfigError) as caught:
        load_mapping(raw, known=known_plugins(REGISTRY))

    assert problem in str(caught.value)
