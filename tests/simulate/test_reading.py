"""Reading manifests: files, directories, lists, documents."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from moorage.documents import yaml_text
from moorage.documents.yaml_text import resolve_scalar
from moorage.objects.kinds import READ_KINDS
from moorage.objects.pod import Pod
from moorage.simulate.loading import load
from moorage.simulate.manifests import CLAIM_TEMPLATE, PRIORITY_CLASS, VERSIONS, Manifest, read
from tests.builders import node_manifest, pod_manifest
from tests.simulate.inputs import loaded

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n"


def names(manifests: list[Manifest]) -> list[str]:
    return [each.title for each in manifests]


def read_text(folder: Path, text: str, name: str = "input.yaml") -> list[Manifest]:
    path = folder / name
    path.write_text(text)
    return list(read([str(path)]))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{NODE}---\n{POD}", id="documents"),
        pytest.param(f"---\n---\n{NODE}---\n# nothing\n---\n{POD}...\n", id="empty documents"),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems:\n"
            "- {apiVersion: v1, kind: Node, metadata: {name: n}}\n"
            "- {apiVersion: v1, kind: Pod, metadata: {name: p}}\n",
            id="list",
        ),
        pytest.param(
            "apiVersion: v1\nitems:\n- {metadata: {name: n}}\nkind: NodeList\n---\n"
            "apiVersion: v1\nitems:\n- {metadata: {name: p}}\nkind: PodList\n",
            id="typed lists, whose items need not say their kind",
        ),
        pytest.param(
            '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}\n'
            '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}',
            id="JSON under a YAML name, one value after the other",
        ),
        pytest.param(
            "\ufeff{apiVersion: v1, kind: Node, metadata: {name: n}}\n---\n"
            "{apiVersion: v1, kind: Pod, metadata: {name: p}}",
            id="flow style after a byte order mark",
        ),
    ],
)
def test_ways_to_write_a_node_and_a_pod(tmp_path: Path, text: str) -> None:
    assert names(read_text(tmp_path, text)) == ["Node n", "Pod default/p"]


def test_directories_are_read_sorted_and_recursively(tmp_path: Path) -> None:
    for name in ("b.yml", "a.yaml", "sub/c.json", ".git/d.yaml", ".hidden.yaml", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(node_manifest(path.stem.strip("."))))

    assert names(list(read([str(tmp_path)]))) == ["Node a", "Node b", "Node c"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(NODE.encode())))

    manifests = list(read(["-"]))

    assert str(manifests[0].place) == "standard input: document 1"


def test_what_is_not_read_is_told(tmp_path: Path) -> None:
    given = loaded(
        tmp_path,
        node_manifest(),
        {"apiVersion": "apps/v1", "kind": "Deployment"},
        {"apiVersion": "apps/v1", "kind": "Deployment"},
        {"apiVersion": "v1", "kind": "ConfigMap"},
        {"apiVersion": "serving.knative.dev/v1", "kind": "Service"},
        {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroup"},
    )

    assert given.notes == (
        "ignored 2 Deployment: without a template there are no pods",
        "ignored 1 ConfigMap: scheduling has no use for it",
        "ignored 1 Service: scheduling has no use for it",
        "ignored 1 CompositePodGroup: groups of groups are not supported by Moorage yet",
    )
    assert len(given.objects) == 1


#: What the API server demands of a kind, beside a name.
_LEAST: dict[str, dict[str, Any]] = {
    "CSIStorageCapacity": {"storageClassName": "c"},
    "PersistentVolume": {
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    },
    "PersistentVolumeClaim": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "Pod": {"spec": {"containers": [{}]}},
    "PriorityClass": {"value": 1},
    "StorageClass": {"provisioner": "example.com"},
    "VolumeAttachment": {"spec": {"attacher": "example.com", "nodeName": "n"}},
}


@pytest.mark.parametrize("kind", sorted(VERSIONS))
def test_every_kind_can_be_read(tmp_path: Path, kind: str) -> None:
    manifest = {"apiVersion": VERSIONS[kind][0], "kind": kind, "metadata": {"name": "x"}}

    given = loaded(tmp_path, node_manifest(), {**manifest, **_LEAST.get(kind, {})})

    assert given.notes == ()
    # Classes of priority are dissolved into the pods that name them, templates into their claims.
    assert len(given.objects) == (1 if kind in (PRIORITY_CLASS, CLAIM_TEMPLATE) else 2)


def test_every_kind_that_scheduling_knows_is_read() -> None:
    assert set(VERSIONS) == READ_KINDS | {PRIORITY_CLASS, CLAIM_TEMPLATE}


def test_null_is_the_same_as_nothing(tmp_path: Path) -> None:
    manifest = pod_manifest(status={"startTime": None})
    manifest["status"] = manifest["metadata"]["labels"] = None
    manifest["spec"]["nodeName"] = manifest["spec"]["hostNetwork"] = None

    (pod,) = loaded(tmp_path, manifest).objects

    assert isinstance(pod, Pod)
    assert pod.node_name == ""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("yes", True),
        ("off", False),
        ("y", "y"),
        ("0", 0),
        ("-12", -12),
        ("+7", 7),
        ("010", 8),
        ("0o10", 8),
        ("0x1F", 31),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-1.5e-3", -0.0015),
        (".inf", float("inf")),
        ("1:30", "1:30"),
        ("2025-01-31", "2025-01-31"),
        ("1_000", "1_000"),
        ("100m", "100m"),
        ("9" * 41, "9" * 41),
        ("-", "-"),
        ("089", "089"),
        ("true ", "true "),
    ],
)
def test_plain_scalars(text: str, value: Any) -> None:
    assert resolve_scalar(text, None) == value
    assert type(resolve_scalar(text, None)) is type(value)


def test_keys_are_text_whatever_they_look_like() -> None:
    ((_, read),) = yaml_text.documents("{1: a, true: b, ~: c}", "x")

    assert read == {"1": "a", "true": "b", "~": "c"}


def test_anchors_and_merges() -> None:
    text = """
    base: &base {a: 1, b: 2}
    more: &more {b: 3, c: 4}
    one: {<<: *base, b: 5}
    two:
      b: 6
      <<: [*base, *more]
    """

    ((_, read),) = yaml_text.documents(text, "x")

    assert read["one"] == {"a": 1, "b": 5}
    assert read["two"] == {"a": 1, "b": 6, "c": 4}


def test_the_demo_reads_as_it_does_with_pyyaml() -> None:
    for path in sorted(Path("examples/demo").glob("*.yaml")):
        text = path.read_text()
        ours = [raw for _, raw in yaml_text.documents(text, str(path))]
        assert ours == list(yaml.safe_load_all(text))


def test_a_file_is_read_once_per_path(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(NODE)

    assert len(load([str(path)]).objects) == 1


def bottomless(depth: int) -> str:
    return '{"f:a":' * depth + "{}" + "}" * depth


def indented(depth: int) -> str:
    return "".join(f"{' ' * (8 + at)}f:a:\n" for at in range(depth))


@pytest.mark.parametrize("depth", [90, 500, 990, 9_990])
def test_what_is_nested_without_end_hides_nothing_in_json(tmp_path: Path, depth: int) -> None:
    pods = [json.dumps(pod_manifest(name)) for name in "abcd"]
    deep = f'"metadata": {{"managedFields": [{bottomless(depth)}], '
    # Also where fields are null, which has the object read again.
    pods[1] = pods[1].replace('"metadata": {', deep)
    pods[2] = pods[2].replace('"containers"', '"nodeName": null, "containers"')
    pods[2] = pods[2].replace('"metadata": {', deep)
    (tmp_path / "pods.json").write_text("\n".join([json.dumps(node_manifest("n")), *pods]))

    found = load([str(tmp_path)])

    assert [each.name for each in found.objects] == ["n", *"abcd"]


@pytest.mark.parametrize("depth", [80, 500, 3_500])
def test_what_is_nested_without_end_hides_nothing_in_yaml(tmp_path: Path, depth: int) -> None:
    """The last one is larger than any object may be, by its indentation alone."""
    deep = f"""\
apiVersion: v1
kind: Pod
metadata:
  name: deep
  managedFields:
  - manager: somebody
    fieldsV1:
{indented(depth)}
spec:
  containers: [{{name: c}}]
"""
    texts = [deep, json.dumps(node_manifest("n")), json.dumps(pod_manifest("after"))]
    (tmp_path / "pods.yaml").write_text("\n---\n".join(texts))

    found = load([str(tmp_path)])

    assert [each.name for each in found.objects] == ["deep", "n", "after"]
