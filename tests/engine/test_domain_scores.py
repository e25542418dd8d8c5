"""How full the domains are between which a gang chooses."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.objects.kinds import Object
from moorage.objects.node import Node
from moorage.testing.builders import node, pod
from moorage.testing.driver import Driver, bindings
from tests.engine.gangs import IN_EACH_VERSION, drive_gangs, gang, members

pytestmark = IN_EACH_VERSION

GPU = "example.com/gpu"


def rack(name: str, at: str, **fields: Any) -> Node:
    return node(name, labels={"rack": at}, **fields)


def crowded(count: int, name: str) -> list[Any]:
    return [pod(f"{name}-{at}", cpu="100m", memory="1Gi", node=name) for at in range(count)]


def place(driver: Driver, group: str) -> set[str]:
    return set(bindings(driver.step()).values())


def test_requests_do_not_fill_a_domain_where_none_of_the_resource_is_offered() -> None:
    """Without the memory on n1, rack b is the fuller one."""
    nodes = rack("n1", "a", cpu=4, memory=0), rack("n2", "a", cpu=4, memory="8Gi")
    driver = drive_gangs(
        *nodes,
        rack("n3", "b", cpu=4, memory="8Gi"),
        *crowded(8, "n1"),
        gang("g", 2, topology_key="rack"),
        *members("g", 2, cpu=1, memory="1Gi"),
    )

    assert place(driver, "g") == {"n3"}


def test_a_domain_is_fuller_once_its_node_offers_what_is_requested_there() -> None:
    nodes = rack("n1", "a", cpu=4, memory=0), rack("n2", "a", cpu=4, memory="8Gi")
    first: list[Object] = [
        gang("g", 1, topology_key="rack"),
        *members("g", 1, cpu="10m", memory="1Mi"),
    ]
    full = [pod("cpus", cpu=1, node="n3"), *crowded(8, "n1")]
    driver = drive_gangs(*nodes, rack("n3", "b", cpu=4, memory="8Gi"), *full, *first)
    assert place(driver, "g") == {"n3"}

    driver.apply(rack("n1", "a", cpu=4, memory="8Gi"))
    driver.apply(gang("h", 1, topology_key="rack"), *members("h", 1, cpu="10m", memory="1Mi"))

    (where,) = place(driver, "h")
    assert where in {"n1", "n2"}


@pytest.mark.parametrize(("asked", "chosen"), [(0, "n2"), (1, "n1")], ids=["no gpu", "a gpu"])
def test_an_extended_resource_fills_a_domain_only_for_gangs_that_ask_for_it(
    asked: int, chosen: str
) -> None:
    scoring = {"type": "LeastAllocated", "resources": [{"name": GPU, "weight": 5}, {"name": "cpu"}]}
    profile = {
        "schedulerName": "default-scheduler",
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": scoring}}],
    }
    wanted = {"gpu": asked} if asked else {}
    driver = drive_gangs(
        *(rack(f"n{at}", f"r{at}", gpu=4) for at in (1, 2)),
        pod("gpus", node="n1", gpu=3),
        pod("cpus", cpu=1, node="n2"),
        gang("g", 1, topology_key="rack"),
        *members("g", 1, cpu=1, **wanted),
        profiles=[profile],
    )

    assert place(driver, "g") == {chosen}


@pytest.mark.parametrize(
    ("name", "where"), [("NodeResourcesFit", {"n3"}), ("PodGroupPodsCount", {"n1", "n2"})]
)
def test_the_weights_of_the_configuration_decide_between_domains(
    name: str, where: set[str]
) -> None:
    """One domain takes more of the members, the other is fuller."""
    nodes = rack("n1", "a", cpu=4), rack("n2", "a", cpu=4), rack("n3", "b", cpu=4)
    plugins = {"placementScore": {"enabled": [{"name": name, "weight": 9}]}}
    profile = {"schedulerName": "default-scheduler", "plugins": plugins}
    pods = pod("full", cpu=1, node="n3"), *members("g", 4, cpu=1)
    driver = drive_gangs(*nodes, gang("g", 1, topology_key="rack"), *pods, profiles=[profile])

    assert place(driver, "g") <= where
