"""ImageLocality."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.plugins.image_locality import ImageLocality
from tests.builders import (
    EMPTY,
    cluster,
    node,
    pod,
)
from tests.plugins.asking import scores

PLUGIN = ImageLocality()
MIB = 2**20


def having(name: str, **sizes_mib: int) -> Node:
    images = [
        {"names": [f"{image}:latest"], "sizeBytes": mib * MIB} for image, mib in sizes_mib.items()
    ]
    return node(name, status={"images": images})


def running(*images: str, init: tuple[str, ...] = (), **spec: Any) -> Pod:
    started = [{"name": f"i{at}", "image": image} for at, image in enumerate(init)]
    containers = [{"name": f"c{at}", "image": image} for at, image in enumerate(images)]
    return pod(spec={"initContainers": started, "containers": containers, **spec})


def share(mib: float, containers: int = 1) -> int:
    return int(100 * (mib - 23) // (1000 * containers - 23))


@pytest.mark.parametrize(
    ("asks", "expected"),
    [
        pytest.param(running("big"), share(600), id="half of the nodes have it"),
        pytest.param(running("big:latest"), share(600), id="with its tag"),
        pytest.param(running("big:v2"), 0, id="with another tag"),
        pytest.param(running("unknown"), 0, id="nobody has it"),
        pytest.param(running("tiny"), 0, id="too small to matter"),
        pytest.param(running("huge"), 100, id="as large as it counts"),
        pytest.param(running("big", "unknown"), share(600, 2), id="the limit grows by container"),
        pytest.param(running("big", "mid"), share(600 + 100, 2), id="sizes add up"),
        pytest.param(running("big", "big"), share(1200, 2), id="also of the same image"),
        pytest.param(running("unknown", init=("big",)), share(600, 2), id="init containers count"),
        pytest.param(
            running("unknown", volumes=[{"name": "v", "image": {"reference": "big"}}]),
            share(600),
            id="image volumes count, without raising the limit",
        ),
    ],
)
def test_score(asks: Pod, expected: int) -> None:
    two = cluster(having("n", big=1200, mid=200, tiny=20, huge=90_000), node("other"))

    assert scores(PLUGIN, asks, two) == {"n": expected, "other": 0}


def test_the_more_nodes_have_an_image_the_more_it_counts() -> None:
    three = cluster(having("a", app=300), having("b", app=300), node("c"))

    assert scores(PLUGIN, running("app"), three) == {"a": share(200), "b": share(200), "c": 0}


def test_the_size_is_what_the_first_node_said() -> None:
    two = cluster(having("a", app=300), having("b", app=900))

    assert scores(PLUGIN, running("app"), two) == {"a": share(300), "b": share(300)}


@pytest.mark.parametrize(
    ("written", "reported"),
    [
        pytest.param("app", "app:latest", id="no tag"),
        pytest.param("reg:5000/app", "reg:5000/app:latest", id="a port is no tag"),
        pytest.param("reg:5000/app:v1", "reg:5000/app:v1", id="a port and a tag"),
        pytest.param("app@sha256:ff", "app@sha256:ff", id="a digest"),
    ],
)
def test_names(written: str, reported: str) -> None:
    images = [{"names": ["alias", reported], "sizeBytes": 500 * MIB}]

    assert scores(PLUGIN, running(written), cluster(node("n", status={"images": images}))) == {
        "n": share(500)
    }


def test_images_and_containers_are_signed() -> None:
    assert PLUGIN.sign(running("a", "b"), EMPTY) == PLUGIN.sign(running("b:latest", "a"), EMPTY)
    assert PLUGIN.sign(running("a"), EMPTY) != PLUGIN.sign(running("b"), EMPTY)
    volume = {"name": "v", "image": {"reference": "b"}}
    assert PLUGIN.sign(running("a", "b"), EMPTY) != PLUGIN.sign(
        running("a", volumes=[volume]), EMPTY
    )
