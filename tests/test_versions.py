"""Versions of kube-scheduler: what each decides and says, and which one is followed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from moorage import ClusterSnapshot
from moorage.config import FeatureGates, default
from moorage.config.kubernetes_versions import VERSIONS, read_server_version, read_version
from moorage.documents.errors import InputError
from moorage.framework.profile import known_plugins
from moorage.plugins import REGISTRY
from moorage.simulate import verdicts
from moorage.simulate.conformance import VerdictDifference, conform
from tests.builders import node_manifest, pod_manifest

OLD, NEW = VERSIONS
GOLDEN = Path(__file__).parent / "golden"
NO_VICTIMS = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
HELPLESS = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


@pytest.mark.parametrize("text", ["1.37", "kube=1.37", " 1.37 "])
def test_a_version_is_given_as_to_kube_scheduler(text: str) -> None:
    assert read_version(text) is NEW


@pytest.mark.parametrize("text", ["1.35", "1.38", "1.37.0", "v1.37", "wardle=1.37", "x" * 200])
def test_other_versions_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^--emulation-version: must be 1\.36 or 1\.37, got \""):
        read_version(text)


@pytest.mark.parametrize(
    ("answer", "followed"),
    [
        pytest.param('{"major": "1", "minor": "36"}', OLD, id="known"),
        pytest.param('{"major": "1", "minor": "37"}', NEW, id="newer"),
        pytest.param('{"major": "1", "minor": "37+"}', NEW, id="of a provider"),
        pytest.param('{"major": "1", "minor": "31"}', OLD, id="older than all"),
        pytest.param('{"major": "1", "minor": "40"}', NEW, id="newer than all"),
        pytest.param('{"major": "2", "minor": "0"}', OLD, id="another major version"),
        pytest.param('{"major": "1", "minor": "next"}', OLD, id="no number"),
        pytest.param("{}", OLD, id="nothing told"),
        pytest.param("[", OLD, id="no JSON"),
    ],
)
def test_the_version_of_an_api_server(answer: str, followed: object) -> None:
    assert read_server_version(answer.encode()) is followed


def test_defaults_of_gates_follow_the_version() -> None:
    assert not FeatureGates()["StorageCapacityScoring"]
    assert FeatureGates(NEW)["StorageCapacityScoring"]
    assert FeatureGates(NEW)["VolumeLimitScaling"]
    assert not FeatureGates.from_text("StorageCapacityScoring=false", version=NEW)[
        "StorageCapacityScoring"
    ]
    assert FeatureGates(NEW).switch(**{"Coscheduling": True}).version is NEW


def plugins_at(point: str, gates: FeatureGates) -> list[str]:
    (profile,) = default(known_plugins(REGISTRY), gates).profiles
    return [plugin.name for plugin in profile.points[point]]


def test_the_order_of_default_plugins_follows_the_version() -> None:
    assert plugins_at("filter", FeatureGates())[:2] == ["NodeUnschedulable", "NodeName"]
    assert plugins_at("filter", FeatureGates(NEW))[:2] == ["NodeName", "NodeUnschedulable"]
    assert sorted(plugins_at("filter", FeatureGates())) == sorted(
        plugins_at("filter", FeatureGates(NEW))
    )


def cluster(*manifests: dict[str, Any]) -> ClusterSnapshot:
    return ClusterSnapshot(()).add(*manifests)


SMALL = node_manifest("n", cpu=1)
MESSAGES = {
    "no claims": (
        [node_manifest("n", cpu=1), pod_manifest("p", cpu=2)],
        f"0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, {HELPLESS}",
        f"0/1 nodes are available: 1 Insufficient cpu. {HELPLESS}",
    ),
    "nobody to evict": (
        [SMALL, pod_manifest("r", cpu=1, node="n"), pod_manifest("p", cpu=1)],
        f"0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, {NO_VICTIMS}",
        f"0/1 nodes are available: 1 Insufficient cpu. {NO_VICTIMS}",
    ),
    "somebody to evict": (
        [
            SMALL,
            pod_manifest("r", cpu=1, node="n"),
            pod_manifest("p", cpu=1, spec={"priority": 5}),
        ],
        "0/1 nodes are available: 1 Insufficient cpu.",
        "0/1 nodes are available: 1 Insufficient cpu. preemption: found a potential placement for "
        "pod on node n, preempting 1 victims",
    ),
}


@pytest.mark.parametrize(("objects", "old", "new"), MESSAGES.values(), ids=list(MESSAGES))
def test_messages(objects: list[dict[str, Any]], old: str, new: str) -> None:
    found = cluster(*objects)

    assert found.explain("default/p").message == old
    assert found.configure(emulation_version="1.36").explain("default/p").message == old
    assert found.configure(emulation_version="1.37").explain("default/p").message == new


def differences(category: str) -> Iterator[VerdictDifference]:
    """What 1.37 finds otherwise than was recorded from 1.36."""
    recordings = verdicts.read_scenarios(GOLDEN / f"{category}.jsonl.gz")
    (result,) = conform(islice(recordings, 4), REGISTRY, NEW).values()
    for each in result.differences:
        # Every pod is scored by its volumes, mostly without effect.
        if not each.what.startswith("score VolumeBinding"):
            yield each


def test_of_preemption_only_texts_differ() -> None:
    for each in differences("preemption"):
        assert each.what == "message", each
        told = each.recorded.replace("no new claims to deallocate, ", "", 1)
        if told != each.found:
            sentence = each.found.removeprefix(told)
            assert sentence.startswith(" preemption: found a potential placement for pod on node ")
            assert sentence.endswith(" victims")


def test_a_named_node_is_the_only_one_that_is_looked_at() -> None:
    found = list(differences("nodename"))

    # Where it is named, other nodes are no longer rejected one by one.
    rejected = [each for each in found if each.what.startswith("filter")]
    assert rejected
    assert all(each.found is None for each in rejected)
    assert any("didn't satisfy plugin(s) [NodeName]" in str(each.found) for each in found)
    assert not any(each.what in ("chosen", "error", "nominated") for each in found)


def test_the_largest_size_counts_of_each_container_or_of_the_pod() -> None:
    asked = [
        {"name": name, "resources": {"requests": {"cpu": cpu}}}
        for name, cpu in (("shrinks", "1"), ("grows", "3"))
    ]
    granted = [
        {"name": name, "allocatedResources": {"cpu": cpu}, "resources": {"requests": {"cpu": cpu}}}
        for name, cpu in (("shrinks", "3"), ("grows", "1"))
    ]
    status = {"containerStatuses": granted}
    found = cluster(
        node_manifest("n", cpu=6),
        pod_manifest("r", node="n", spec={"containers": asked}, status=status),
        pod_manifest("p", cpu=2),
    )

    for version, fits in (("1.36", False), ("1.37", True), ("1.36", False)):
        told = found.configure(emulation_version=version).explain("default/p")
        assert (told.chosen == "n") is fits


def volume_of(reference: str) -> dict[str, Any]:
    return {"name": reference, "image": {"reference": reference}}


def test_image_volumes_raise_what_images_can_score() -> None:
    images = [{"names": ["big:latest"], "sizeBytes": 600 * 2**20}]
    manifests = [node_manifest("a", status={"images": images}), node_manifest("b")]
    containers = [{"name": "c", "image": "small"}]
    asked = pod_manifest("p", spec={"containers": containers, "volumes": [volume_of("big")]})
    found = cluster(*manifests, asked)

    def score(version: str) -> int:
        told = found.configure(emulation_version=version).explain("default/p")
        (scored,) = (each for each in told.scores if each.node == "a")
        return scored.by_plugin["ImageLocality"]

    # 300 of 1000 MiB for one image, and of 2000 MiB for two.
    assert (score("1.36"), score("1.37")) == (28, 14)
