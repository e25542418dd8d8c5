"""/metrics/resources: what kube-scheduler tells of the same pods."""

from __future__ import annotations

import pytest

from moorage.app.metric_text import pod_resources
from moorage.engine import Engine
from moorage.engine.events import Applied
from moorage.objects.resources import spec_limits
from tests.builders import Manifest, node, pod
from tests.engine.driver import driver


def containers(*resources: Manifest) -> Manifest:
    return {"containers": [{"name": "c", "image": "i", "resources": each} for each in resources]}


async def lines(engine: Engine) -> list[str]:
    text = b"".join([part async for part in pod_resources(engine)]).decode()
    assert text.count("# TYPE") == 2
    return [line for line in text.splitlines() if not line.startswith("#")]


async def test_the_lines_that_kube_scheduler_writes() -> None:
    both = {"cpu": "1", "memory": "128Mi", "example.com/gpu": "1"}
    some = {"cpu": "250m", "memory": "64Mi", "example.com/gpu": "1"}
    waiting = pod("a", spec={**containers({"requests": some, "limits": both}), "priority": 0})
    asked = {"cpu": "1", "memory": "0"}
    running = pod("b", node="n1", spec={**containers({"requests": asked}), "priority": 7})
    silent = pod("c", node="n1", spec={**containers({}), "priority": 0})

    found = await lines(driver(node("n1"), waiting, running, silent).engine)

    tail = 'scheduler="default-scheduler",unit='
    a = 'namespace="default",node="",pod="a",priority="0",resource='
    assert found == [
        f'kube_pod_resource_limit{{{a}"cpu",{tail}"cores"}} 1',
        f'kube_pod_resource_limit{{{a}"example.com/gpu",{tail}""}} 1',
        f'kube_pod_resource_limit{{{a}"memory",{tail}"bytes"}} 1.34217728e+08',
        f'kube_pod_resource_request{{{a}"cpu",{tail}"cores"}} 0.25',
        f'kube_pod_resource_request{{{a}"example.com/gpu",{tail}""}} 1',
        f'kube_pod_resource_request{{{a}"memory",{tail}"bytes"}} 6.7108864e+07',
        'kube_pod_resource_request{namespace="default",node="n1",pod="b",priority="7",'
        f'resource="cpu",{tail}"cores"}} 1',
    ]


async def test_an_assumed_pod_is_told_once_and_without_a_node() -> None:
    driven = driver(node("n1"), pod("a", cpu=1))
    driven.step()

    assert driven.node_of("a") == "n1"
    (line,) = await lines(driven.engine)
    assert 'node="",pod="a",priority=""' in line


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        ("hugepages-2Mi", "bytes"),
        ("ephemeral-storage", "bytes"),
        ("attachable-volumes-x", "integer"),
    ],
)
async def test_units(resource: str, unit: str) -> None:
    asks = pod("a", spec=containers({"requests": {resource: "4"}}))

    (line,) = await lines(driver(asks).engine)

    assert line.endswith(f'unit="{unit}"}} 4')


async def test_names_cannot_break_out_of_their_quotes() -> None:
    """The API server would not let them in, but who knows."""
    evil = 'x"} 1\nkube_pod_resource_request{pod="y\\'

    (line,) = await lines(driver(pod(evil, cpu=1)).engine)

    assert 'pod="x\\"} 1\\nkube_pod_resource_request{pod=\\"y\\\\",' in line


async def test_many_pods_are_told_in_slices() -> None:
    driven = driver(node("n1", pods=3_000))
    for number in range(1_200):
        driven.engine.handle(Applied(pod(f"p{number}", node="n1", cpu="1m")), 0.0)

    parts = [part async for part in pod_resources(driven.engine)]

    assert max(part.count(b"\n") for part in parts) <= 1_000
    assert sum(part.count(b"\nkube") + part.startswith(b"kube") for part in parts) == 1_200


def test_limits_add_up_like_requests() -> None:
    def sized(cpu: int, **more: str) -> Manifest:
        given = {"requests": {"cpu": "9"}, "limits": {"cpu": str(cpu)}}
        return {"name": "c", "image": "i", "resources": given, **more}

    asks = pod(
        "a",
        spec={
            "containers": [sized(1), sized(2), {"name": "c", "image": "i"}],
            "initContainers": [sized(1, restartPolicy="Always"), sized(4)],
            "overhead": {"cpu": "1", "memory": "1Gi"},
        },
    )

    # While it starts: sidecar and init container, 5; then containers and sidecar, 4.
    assert spec_limits(asks.spec) == {"cpu": 6 * 10**9}


def test_limits_of_the_pod_as_a_whole_count_instead() -> None:
    limits = {"cpu": "7", "example.com/gpu": "3"}
    asks = pod("a", spec={**containers({"limits": {"cpu": "1"}}), "resources": {"limits": limits}})

    assert spec_limits(asks.spec) == {"cpu": 7 * 10**9}
