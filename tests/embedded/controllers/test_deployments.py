"""Deployments, and the sets of pods that they are made of."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from moorage.embedded.controllers.rollouts import RolloutPlan, SetVersion, rescale, roll
from tests.embedded.controllers.playing import Json, Play, played, template, workload


def image(version: int) -> Json:
    made = template()
    made["spec"]["containers"][0]["image"] = f"registry.example/app:{version}"
    return made


def images(cluster: Play) -> list[str]:
    return sorted(each["spec"]["containers"][0]["image"][-1] for each in cluster.pods())


def conditions(item: Json) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in item["status"]["conditions"]}


def sizes(cluster: Play) -> list[int]:
    return sorted(each["spec"]["replicas"] for each in cluster.objects("replicasets.apps"))


async def run_until_done(cluster: Play) -> int:
    """Plays until nothing changes; the fewest pods that were ready on the way."""
    fewest = 1000
    while True:
        before = cluster.api.store.version
        cluster.sweep()
        cluster.run()
        await cluster.settle()
        ready = [each for each in cluster.pods() if each["status"]["phase"] == "Running"]
        fewest = min(fewest, len(ready))
        if before == cluster.api.store.version:
            return fewest


@played
async def test_a_deployment_comes_up_and_says_so(cluster: Play) -> None:
    cluster.create("deployments.apps", "web", workload(replicas=3))
    await cluster.settle()

    assert len(cluster.pods()) == 3
    (made,) = cluster.objects("replicasets.apps")
    # It has its size from the start.
    assert made["metadata"]["generation"] == 1
    label = made["metadata"]["labels"]["pod-template-hash"]
    assert made["metadata"]["name"] == f"web-{label}"
    assert made["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": label}
    waiting = cluster.get("deployments.apps", "web")
    assert waiting["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "1"}
    assert waiting["status"]["unavailableReplicas"] == 3
    assert conditions(waiting) == {
        "Available": ("False", "MinimumReplicasUnavailable"),
        "Progressing": ("True", "ReplicaSetUpdated"),
    }

    cluster.run()
    await cluster.settle()

    status = cluster.get("deployments.apps", "web")["status"]
    counts = {key: value for key, value in status.items() if key != "conditions"}
    assert counts == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
    }
    assert conditions(cluster.get("deployments.apps", "web")) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }


@pytest.mark.parametrize(
    ("rolling", "fewest"),
    [
        pytest.param({"maxSurge": 1, "maxUnavailable": 0}, 4, id="one more, none fewer"),
        pytest.param({"maxSurge": 0, "maxUnavailable": 1}, 3, id="none more, one fewer"),
        pytest.param({"maxSurge": "25%", "maxUnavailable": "25%"}, 3, id="a quarter"),
    ],
)
@played
async def test_a_rollout_keeps_enough_pods(cluster: Play, rolling: Json, fewest: int) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    cluster.create("deployments.apps", "web", workload(replicas=4, strategy=strategy))
    await cluster.settle()
    await run_until_done(cluster)

    cluster.change("deployments.apps", "web", template=image(2))
    await cluster.settle()

    assert await run_until_done(cluster) >= fewest
    assert images(cluster) == ["2"] * 4
    assert cluster.get("deployments.apps", "web")["status"]["updatedReplicas"] == 4
    assert sorted(each["spec"]["replicas"] for each in cluster.objects("replicasets.apps")) == [
        0,
        4,
    ]


@played
async def test_recreating_waits_until_the_old_pods_are_gone(cluster: Play) -> None:
    spec = workload(replicas=2, strategy={"type": "Recreate"})
    cluster.create("deployments.apps", "web", spec)
    await cluster.settle()
    for each in cluster.pods():
        cluster.bind(each, "n")
    cluster.run()
    await cluster.settle()

    cluster.change("deployments.apps", "web", template=image(2))
    await cluster.settle()
    assert images(cluster) == []
    assert len(cluster.pods(going=True)) == 2

    cluster.sweep()
    await cluster.settle()
    assert images(cluster) == ["2", "2"]


@played
async def test_going_back_uses_the_old_set_and_numbers_it_anew(cluster: Play) -> None:
    cluster.create("deployments.apps", "web", workload(replicas=1))
    await cluster.settle()
    first = cluster.names("replicasets.apps")
    for version in (2, 1):
        await run_until_done(cluster)
        cluster.change("deployments.apps", "web", template=image(version))
        await cluster.settle()
    await run_until_done(cluster)

    assert len(cluster.names("replicasets.apps")) == 2
    assert cluster.get("replicasets.apps", first[0])["spec"]["replicas"] == 1
    noted = cluster.get("deployments.apps", "web")["metadata"]["annotations"]
    assert noted["deployment.kubernetes.io/revision"] == "3"


@pytest.mark.parametrize(
    ("noted", "next_one"),
    [
        ("1234567890", "1234567891"),
        ("9223372036854775806", "9223372036854775807"),
        ("92233720368547758070", "1"),
        ("seven", "1"),
    ],
)
@played
async def test_a_set_may_have_a_high_revision(cluster: Play, noted: str, next_one: str) -> None:
    cluster.create("deployments.apps", "web", workload(replicas=1))
    await run_until_done(cluster)
    (old,) = cluster.objects("replicasets.apps")
    cluster.change("deployments.apps", "web", paused=True)
    old["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = noted
    cluster.update("replicasets.apps", old)
    cluster.change("deployments.apps", "web", template=image(2), paused=False)
    await run_until_done(cluster)

    noted_there = cluster.get("deployments.apps", "web")["metadata"]["annotations"]
    assert noted_there["deployment.kubernetes.io/revision"] == next_one


@played
async def test_only_so_many_old_sets_are_kept(cluster: Play) -> None:
    cluster.create("deployments.apps", "web", workload(replicas=1, revisionHistoryLimit=1))
    for version in (1, 2, 3, 4):
        cluster.change("deployments.apps", "web", template=image(version))
        await cluster.settle()
        await run_until_done(cluster)

    sets = cluster.objects("replicasets.apps")
    noted = [each["metadata"]["annotations"] for each in sets]
    assert sorted(each["deployment.kubernetes.io/revision"] for each in noted) == ["3", "4"]


@played
async def test_a_rollout_that_does_not_get_on_has_failed(cluster: Play) -> None:
    cluster.create("deployments.apps", "web", workload(replicas=1, progressDeadlineSeconds=60))
    await cluster.settle()

    await cluster.wait(59)
    assert conditions(cluster.get("deployments.apps", "web"))["Progressing"][0] == "True"
    await cluster.wait(2)
    told = conditions(cluster.get("deployments.apps", "web"))["Progressing"]
    assert told == ("False", "ProgressDeadlineExceeded")


@played
async def test_a_paused_deployment_only_scales(cluster: Play) -> None:
    cluster.create("deployments.apps", "web", workload(replicas=1))
    await cluster.settle()
    cluster.change("deployments.apps", "web", paused=True, template=image(2), replicas=3)
    await cluster.settle()

    assert images(cluster) == ["1"] * 3
    paused = conditions(cluster.get("deployments.apps", "web"))["Progressing"]
    assert paused == ("Unknown", "DeploymentPaused")

    cluster.change("deployments.apps", "web", paused=False)
    await cluster.settle()
    await run_until_done(cluster)
    assert images(cluster) == ["2"] * 3
    resumed = conditions(cluster.get("deployments.apps", "web"))["Progressing"]
    assert resumed == ("True", "NewReplicaSetAvailable")


@pytest.mark.parametrize(("size", "expected"), [(20, [9, 14]), (5, [3, 5]), (0, [0, 0])])
@played
async def test_scaling_during_a_rollout_is_shared_out(
    cluster: Play, size: int, expected: list[int]
) -> None:
    rolling = {"maxSurge": 3, "maxUnavailable": 2}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    cluster.create("deployments.apps", "web", workload(replicas=10, strategy=strategy))
    await cluster.settle()
    await run_until_done(cluster)
    cluster.change("deployments.apps", "web", template=image(2))
    await cluster.settle()
    assert sizes(cluster) == [5, 8]

    cluster.change("deployments.apps", "web", replicas=size)
    await cluster.settle()

    assert sizes(cluster) == expected
    await run_until_done(cluster)
    assert sizes(cluster) == [0, size]
    told = [each["message"].rpartition("from ")[2] for each in cluster.objects("events")]
    assert f"8 to {expected[1]}" in told


@pytest.mark.parametrize(
    ("plan", "new", "old", "sizes"),
    [
        pytest.param(
            RolloutPlan(4, 1, 1), (0, 0), [(4, 4)], (1, 3), id="the first step goes both ways"
        ),
        pytest.param(
            RolloutPlan(4, 1, 1), (1, 0), [(3, 3)], (2, 3), id="room from a pod that went"
        ),
        pytest.param(
            RolloutPlan(4, 1, 0), (1, 0), [(4, 4)], (1, 4), id="nothing until the new is there"
        ),
        pytest.param(RolloutPlan(4, 1, 0), (1, 1), [(4, 4)], (1, 3), id="one for one"),
        pytest.param(RolloutPlan(4, 0, 1), (0, 0), [(4, 4)], (0, 3), id="no room until one goes"),
        pytest.param(
            RolloutPlan(4, 1, 0), (1, 0), [(4, 2)], (1, 4), id="idle pods are not surplus"
        ),
        pytest.param(RolloutPlan(4, 1, 2), (1, 0), [(4, 2)], (1, 2), id="idle pods go first"),
        pytest.param(RolloutPlan(2, 1, 1), (4, 4), [(0, 0)], (2, 0), id="scaled down"),
        pytest.param(RolloutPlan(6, 2, 0), (4, 4), [(0, 0)], (6, 0), id="scaled up"),
        pytest.param(RolloutPlan(0, 1, 0), (2, 1), [(3, 3)], (0, 0), id="scaled to nothing"),
    ],
)
def test_how_large_sets_may_be(
    plan: RolloutPlan, new: tuple[int, int], old: list[tuple[int, int]], sizes: tuple[int, ...]
) -> None:
    versions = [SetVersion(f"old-{at}", *each) for at, each in enumerate(old)]

    told = roll(plan, SetVersion("new", *new), versions)

    assert tuple(told.values()) == sizes


@pytest.mark.parametrize(
    ("plan", "sets", "counted", "sizes"),
    [
        pytest.param(RolloutPlan(20, 3, 2), [(8, 0, 13), (5, 0, 13)], 13, [14, 9], id="up"),
        pytest.param(RolloutPlan(5, 3, 2), [(8, 0, 13), (5, 0, 13)], 13, [5, 3], id="down"),
        pytest.param(
            RolloutPlan(15, 0, 1), [(5, 0, 10), (5, 0, 10)], 10, [7, 8], id="the newer grows first"
        ),
        pytest.param(
            RolloutPlan(5, 0, 1), [(5, 0, 10), (5, 0, 10)], 10, [2, 3], id="the older shrinks first"
        ),
        pytest.param(
            RolloutPlan(12, 0, 1), [(5, 0, 0), (5, 0, 0)], 10, [6, 6], id="by what was counted"
        ),
        pytest.param(
            RolloutPlan(12, 0, 1), [(5, 0, 0), (5, 0, 0)], 0, [5, 7], id="by nothing at all"
        ),
        pytest.param(RolloutPlan(10, 3, 2), [(8, 0, 13), (5, 0, 13)], 13, [8, 5], id="no change"),
        pytest.param(
            RolloutPlan(7, 3, 2), [(0, 0, 13), (5, 0, 13)], 5, [None, 7], id="only one has pods"
        ),
        pytest.param(
            RolloutPlan(7, 3, 2), [(0, 0, 0), (0, 0, 0)], 5, [None, 7], id="none has pods"
        ),
        pytest.param(
            RolloutPlan(5, 3, 2), [(8, 0, 13), (5, 5, 13)], 13, [0, None], id="all new are there"
        ),
    ],
)
def test_shares(
    plan: RolloutPlan, sets: list[tuple[int, int, int]], counted: int, sizes: list[int | None]
) -> None:
    old, new = (SetVersion(name, *each) for name, each in zip("on", sets, strict=True))

    told = rescale(plan, new, [old], counted)

    assert [told.get("o"), told.get("n")] == sizes


@given(
    st.lists(st.integers(1, 30), min_size=2, max_size=5),
    st.integers(0, 10),
    st.integers(0, 60),
    st.integers(0, 10),
)
def test_shares_add_up(sets: list[int], note_removed: int, size: int, surge: int) -> None:
    most = sum(sets) + note_removed
    versions = [SetVersion(str(at), each, 0, most) for at, each in enumerate(sets)]
    plan = RolloutPlan(size, surge, 1)

    told = rescale(plan, None, versions, 0)

    # Rounding is made up for by the largest, which cannot have fewer than none.
    largest = min((-each.size, at) for at, each in enumerate(versions))[1]
    left_over = sum(told.values()) - plan.most
    assert left_over == 0 or (left_over > 0 and told[str(largest)] == 0)
    assert min(told.values()) >= 0
