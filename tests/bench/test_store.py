"""Objects are kept as an API server keeps them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.bench.cases import NotSupported, WorkloadError
from moorage.bench.store import Store
from moorage.objects.pod import Pod


def raw(kind: str, name: str, namespace: str = "", uid: str = "", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": uid or name}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}


def store() -> Store:
    return Store(lambda kind, manifest: manifest)


def test_a_pod_that_is_replaced_keeps_its_identity_and_its_node() -> None:
    kept = store()
    spec = {"containers": [{"name": "c", "image": "i"}]}
    first = kept.add(raw("Pod", "p", "ns", uid="1", spec=spec))
    assert isinstance(first, Pod)
    kept.pods["1"] = first.on("node")

    labelled = raw("Pod", "p", "ns", uid="2", spec=spec)
    labelled["metadata"]["labels"] = {"a": "b"}
    second = kept.replace(labelled)

    assert isinstance(second, Pod)
    assert (second.uid, second.node_name, dict(second.labels)) == ("1", "node", {"a": "b"})
    assert kept.find(labelled) is second


def test_pods_of_one_spec_differ_in_what_tells_them_apart() -> None:
    kept = store()
    spec: dict[str, Any] = {"containers": []}
    pods = [kept.add(raw("Pod", name, "ns", spec=spec)) for name in ("a", "b")]
    assert [pod.name for pod in pods] == ["a", "b"]
    assert list(kept.pods) == ["a", "b"]


def test_what_is_gone_can_be_made_again() -> None:
    kept = store()
    pod, node = raw("Pod", "p", "ns", spec={}), raw("Node", "n")
    for _ in range(2):
        added = kept.add(pod)
        assert isinstance(added, Pod)
        kept.add(node)
        kept.remove_pod(added)
        kept.remove(node)
    assert (kept.find(pod), kept.find(node), kept.pods) == (None, None, {})


def test_mistakes_are_told_with_kind_and_name() -> None:
    kept = store()
    node, pod = raw("Node", "n"), raw("Pod", "p", "ns", spec={})
    kept.add(node)
    with pytest.raises(WorkloadError, match=r"^Node n: already exists$"):
        kept.add(node)
    with pytest.raises(WorkloadError, match=r"^Pod ns/p: not found$"):
        kept.replace(pod)
    with pytest.raises(WorkloadError, match=r"^Pod ns/p: spec: must be a mapping, got 3"):
        kept.add({**pod, "spec": 3})
    with pytest.raises(NotSupported, match=r"^objects of kind Cat$"):
        kept.add(raw("Cat", "c"))
