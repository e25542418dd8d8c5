"""Which nodes have which image."""

from __future__ import annotations

from moorage.cluster import Cluster
from moorage.objects.node import Node
from tests.builders import cluster, node


def holding(name: str, **images: int) -> Node:
    listed = [{"names": [f"{image}:v1"], "sizeBytes": size} for image, size in images.items()]
    return node(name, status={"images": listed})


def where(of: Cluster, name: str) -> list[str]:
    found = of.nodes.image(name)
    if found is None:
        return []
    image, present = found
    assert sorted(image.rows) == [row for row in range(len(present)) if present[row]]
    return of.nodes.names(sorted(image.rows))


def test_images_come_and_go_with_their_nodes() -> None:
    made = cluster(holding("one", app=5, db=7), holding("two", app=5), node("three"))
    assert where(made, "app:v1") == ["one", "two"]
    assert where(made, "web:v1") == []

    made.put_node(holding("one", db=7))
    made.put_node(holding("three", app=5))
    assert (where(made, "app:v1"), where(made, "db:v1")) == (["two", "three"], ["one"])
    made.remove_node("one")
    assert made.nodes.image("db:v1") is None


def test_an_image_has_several_names() -> None:
    both = {"names": ["app:v1", "registry/app@sha256:1"], "sizeBytes": 5}
    made = cluster(node("one", status={"images": [both, {"sizeBytes": 1}]}))

    assert where(made, "app:v1") == where(made, "registry/app@sha256:1") == ["one"]


def test_the_first_report_of_a_size_counts_until_the_image_is_gone_everywhere() -> None:
    def size(of: Cluster) -> int:
        found = of.nodes.image("app:v1")
        assert found is not None
        return found[0].size_bytes

    made = cluster(holding("one", app=5), holding("two", app=9))
    assert size(made) == 5
    made.remove_node("one")
    assert size(made) == 5
    made.remove_node("two")
    made.put_node(holding("two", app=9))
    assert size(made) == 9


def test_columns_grow_with_the_cluster() -> None:
    made = cluster(holding("n0", app=5))
    assert where(made, "app:v1") == ["n0"]
    for at in range(1, 140):
        made.put_node(holding(f"n{at}", app=5) if at % 2 else node(f"n{at}"))

    assert len(where(made, "app:v1")) == 71
