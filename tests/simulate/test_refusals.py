"""Bad input: one line that names file, object and field."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from moorage.documents.errors import InputError
from moorage.simulate.loading import load
from moorage.simulate.manifests import VERSIONS
from tests.builders import node_manifest, pod_manifest
from tests.strategies import FIXTURES_MAY_BE_SHARED

HEAD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team-a}\n"
POD = "document 1: Pod team-a/p: "


def refusal(folder: Path, text: str | bytes, name: str = "in.yaml") -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as caught:
        load([str(path)])
    return str(caught.value).replace(f"{folder}{os.sep}", "")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "document 1: broken YAML: line 2, column 1: did not find expected node content "
         "while parsing a flow node"),
        ("a: b\n c: d", "document 1: broken YAML: line 2, column 3: mapping values are not "
         "allowed in this context"),
        (f"{HEAD}---\n\t- x", "document 2: broken YAML: line 5, column 1: found character that "
         "cannot start any token while scanning for the next token"),
        ("\x00", "document 1: broken YAML: unacceptable character #x0000: control characters are "
         'not allowed in "<unicode string>", position 0'),
        (b"\xff\xfe", "not UTF-8 text (byte 0xff at 0)"),
        ("just text", "document 1: line 1, column 1: must be a mapping, got a scalar"),
        ("- a", "document 1: line 1, column 1: must be a mapping, got a list"),
        ("a: 1\nb: 2\na: 3", 'document 1: line 3, column 1: duplicate key "a"'),
        ("a: *b", 'document 1: line 1, column 4: unknown alias "b"'),
        ("a: &a [*a]", 'document 1: line 1, column 8: unknown alias "a"'),
        ("? [a]\n: b", "document 1: line 1, column 3: a key must be text"),
        ("x: &a b\n*a : b", "document 1: line 2, column 1: an alias cannot be a key"),
        ("a: !!binary aGk=", "document 1: line 1, column 4: tag !!binary is not supported"),
        ("a: !!python/name:os.system x",
         "document 1: line 1, column 4: tag !!python/name:os.system is not supported"),
        ('a: !!int "x"', 'document 1: line 1, column 4: "x" is no int'),
        ("<<: 5", "document 1: line 1, column 5: << merges mappings only"),
        ("a: " + "[" * 200,
         "document 1: broken YAML: line 2, column 1: did not find expected node content"
         " while parsing a flow node"),
        ("\n".join(f"a{i}: b" for i in range(200)),
         "document 1: line 101, column 1: more than 100 fields: no Kubernetes object"),
        ("---\n" * 20_000,
         "document 10001: line 10002, column 1: more than 10,000 empty documents"),
        (HEAD + "spec:\n" + "  - a\n" * 1_000_000,
         "document 1: line 699044, column 5: larger than any Kubernetes object (4 MiB)"),
        ("a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "\n".join(
            f"a{i}: &a{i} [{','.join([f'*a{i - 1 if i else str()}'] * 10)}]" for i in range(9)),
         "document 1: line 5, column 38: aliases stand for more than 100,000 values"),
        ("items: [x]", "document 1: line 1, column 9: an item must be a mapping"),
        ("items: [{}]", "document 1: line 1, column 10: an item without metadata.name ends here"),
        ("kind: Pod", "document 1: apiVersion: is required"),
        ("apiVersion: v1", "document 1: kind: is required"),
        ("apiVersion: v1\nkind: 5", "document 1: kind: must be a string, got 5"),
        ("apiVersion: v2\nkind: Pod", 'document 1: Pod: apiVersion: must be "v1", got "v2"'),
        ("apiVersion: v1\nkind: List\nitems: {a: b}",
         "document 1: items: must be a list, got a mapping"),
        ("", "nothing to schedule: neither nodes nor pods"),
        ("apiVersion: v1\nkind: ConfigMap", "nothing to schedule: neither nodes nor pods"),
    ],
)  # fmt: skip
def test_text_that_is_no_manifest(tmp_path: Path, text: str | bytes, told: str) -> None:
    assert refusal(tmp_path, text) == f"in.yaml: {told}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "broken JSON: line 1, column 2: Expecting property name enclosed in double quotes"),
        ('{"a": 1, "a": 2}', 'broken JSON: duplicate key "a"'),
        ('{"a": NaN}', "broken JSON: NaN is not a number in JSON"),
        ('{"a": "\\ud800"}', "broken JSON: half of a surrogate pair"),
        (
            '{"a":' * 100_000,
            "broken JSON: line 1, column 552: Expecting property name enclosed in double quotes",
        ),
        ("[]", "must be a mapping, got a list"),
        ("5", "must be a mapping, got 5"),
    ],
)
def test_json_that_is_no_manifest(tmp_path: Path, text: str, told: str) -> None:
    assert refusal(tmp_path, text, "in.json") == f"in.json: document 1: {told}"


def test_a_huge_number_is_refused(tmp_path: Path) -> None:
    assert "broken JSON: Exceeds the limit" in refusal(tmp_path, "9" * 5000, "in.json")


_IN = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"containers": [{"resources": {"requests": {"memory": "1Gi", "cpu": "2x"}}}]},
         'spec.containers[0].resources.requests.cpu: "2x" is not a quantity'),
        ({"containers": [{"resources": {"limits": {"cpu": "2x"}}}]},
         'spec.containers[0].resources.limits.cpu: "2x" is not a quantity'),
        ({"containers": [{}, {"resources": {"requests": {"example.com/gpu": "-1"}}}]},
         'spec.containers[1].resources.requests["example.com/gpu"]: must not be negative'),
        ({"containers": [{"resources": {"limits": {"cpu": -1}}}]},
         "spec.containers[0].resources.limits.cpu: must not be negative"),
        ({"containers": [{"resources": {"limits": {"cpu": 1}, "requests": {"cpu": 2}}}]},
         "spec.containers[0].resources.requests.cpu: must not be more than the limit"),
        ({"containers": [{"resources": {"requests": {"cpu": ["1"]}}}]},
         "spec.containers[0].resources.requests.cpu: must be a quantity, got a list"),
        ({"containers": []}, "spec.containers: is required"),
        ({"containers": "web"}, 'spec.containers: must be a list, got "web"'),
        ({"containers": [5]}, "spec.containers[0]: must be a mapping, got 5"),
        ({"initContainers": [{"resources": {"requests": {"cpu": "-1m"}}}]},
         "spec.initContainers[0].resources.requests.cpu: must not be negative"),
        ({"overhead": {"cpu": "-1m"}}, "spec.overhead.cpu: must not be negative"),
        ({"nodeSelector": {"ready": True}}, "spec.nodeSelector.ready: must be a string, got true"),
        ({"nodeSelector": {"a": "b", "ready": None}},
         "spec.nodeSelector.ready: must be a string, got null"),
        ({"priority": "high"}, 'spec.priority: must be an integer, got "high"'),
        ({"priorityClassName": "gold"}, 'spec.priorityClassName: there is no PriorityClass "gold"'),
        ({"hostNetwork": "yes"}, 'spec.hostNetwork: must be true or false, got "yes"'),
        ({"tolerations": [{}, {"operator": "Equals"}]},
         'spec.tolerations[1].operator: must be one of "Equal", "Exists", "Lt", "Gt", '
         'got "Equals"'),
        ({"affinity": {"podAffinity": {_IN: [{"labelSelector": {}}]}}},
         f"spec.affinity.podAffinity.{_IN}[0].topologyKey: is required"),
        ({"affinity": {"nodeAffinity": {_IN: {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "Near"}]}]}}}},
         f"spec.affinity.nodeAffinity.{_IN}.nodeSelectorTerms[0].matchExpressions[0].operator: "
         'must be one of "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", got "Near"'),
        ({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
                                         "whenUnsatisfiable": "Never"}]},
         "spec.topologySpreadConstraints[0].whenUnsatisfiable: "
         'must be one of "DoNotSchedule", "ScheduleAnyway", got "Never"'),
        ({"schedulingGroup": 5}, "spec.schedulingGroup: must be a mapping, got 5"),
    ],
)  # fmt: skip
def test_pods_that_cannot_be(tmp_path: Path, spec: dict[str, Any], told: str) -> None:
    manifest = pod_manifest("p", namespace="team-a", spec=spec)

    assert refusal(tmp_path, json.dumps(manifest)) == f"in.yaml: {POD}{told}"


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ({"kind": "Pod"}, "Pod: metadata: is required"),
        ({"kind": "Pod", "metadata": []}, "Pod: metadata: must be a mapping, got a list"),
        ({"kind": "Pod", "metadata": {}, "spec": {"containers": [{}]}},
         "Pod: metadata.name: is required"),
        ({"kind": "Node", "metadata": {"name": 5}}, "Node: metadata.name: must be a string, got 5"),
        ({"kind": "Node", "metadata": {"name": "n", "creationTimestamp": "now"}},
         'Node n: metadata.creationTimestamp: "now" is not a time such as 2025-01-31T12:00:00Z'),
        ({"kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "lots"}}},
         'Node n: status.capacity.cpu: "lots" is not a quantity'),
        ({"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "-1"}}},
         "Node n: status.allocatable.cpu: must not be negative"),
        ({"kind": "Node", "metadata": {"name": "n"}, "spec": {"taints": [{"key": "a"}]}},
         "Node n: spec.taints[0].effect: is required"),
        ({"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1",
          "metadata": {"name": "x"}}, "PriorityClass x: value: is required"),
        ({"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": {"name": "x"},
          "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}},
         "ReplicaSet x: values: Invalid value: []: for 'In' operator, values set can't be empty"),
        ({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"name": "x"},
          "status": {"disruptionsAllowed": "all"}},
         'PodDisruptionBudget x: status.disruptionsAllowed: must be an integer, got "all"'),
        ({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"name": "x"},
          "status": {"disruptionsAllowed": -1}},
         "PodDisruptionBudget x: status.disruptionsAllowed: must not be negative"),
        ({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1beta1", "metadata": {"name": "x"}},
         'PodDisruptionBudget x: apiVersion: must be "policy/v1", got "policy/v1beta1"'),
    ],
)  # fmt: skip
def test_objects_that_cannot_be(tmp_path: Path, manifest: dict[str, Any], told: str) -> None:
    text = json.dumps({"apiVersion": "v1", **manifest})

    assert refusal(tmp_path, text) == f"in.yaml: document 1: {told}"


_MODES = {"accessModes": ["ReadWriteOnce"]}


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        ("PersistentVolume", {"spec": {**_MODES, "capacity": {"storage": "lots"}}},
         'spec.capacity.storage: "lots" is not a quantity'),
        ("PersistentVolume", {"spec": {**_MODES, "capacity": {"storage": "-1Gi"}}},
         "spec.capacity.storage: must not be negative"),
        ("PersistentVolume", {"spec": {"capacity": {"storage": "1Gi"}}},
         "spec.accessModes: is required"),
        ("PersistentVolume", {"spec": {"claimRef": "claim"}},
         'spec.claimRef: must be a mapping, got "claim"'),
        ("PersistentVolume", {"spec": {**_MODES, "volumeMode": "Disk"}},
         'spec.volumeMode: must be one of Filesystem, Block, got "Disk"'),
        ("PersistentVolume", {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "Near"}]}]}}}},
         "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].operator: "
         'must be one of "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", got "Near"'),
        ("PersistentVolume", {"spec": 5}, "spec: must be a mapping, got 5"),
        ("PersistentVolumeClaim", {"spec": _MODES},
         "spec.resources.requests.storage: is required"),
        ("PersistentVolumeClaim", {"spec": {**_MODES, "resources": {"requests": {"storage": 0}}}},
         "spec.resources.requests.storage: must be greater than 0"),
        ("PersistentVolumeClaim", {"spec": {"resources": {"requests": {"storage": "1GB"}}}},
         'spec.resources.requests.storage: "1GB" is not a quantity'),
        ("PersistentVolumeClaim", {"spec": {"resources": {"requests": {"storage": "1Gi"}},
                                            "accessModes": ["ReadWriteOnce", "ReadTwice"]}},
         "spec.accessModes: must be one of ReadWriteOnce, ReadOnlyMany, ReadWriteMany, "
         'ReadWriteOncePod, got "ReadTwice"'),
        ("PersistentVolumeClaim", {"spec": {"volumeName": 5}},
         "spec.volumeName: must be a string, got 5"),
        ("StorageClass", {}, "provisioner: is required"),
        ("StorageClass", {"provisioner": "p", "volumeBindingMode": "Later"},
         'volumeBindingMode: must be one of Immediate, WaitForFirstConsumer, got "Later"'),
        ("CSINode", {"spec": {"drivers": [{"name": "d", "allocatable": {"count": "9"}}]}},
         'spec.drivers[0].allocatable.count: must be an integer, got "9"'),
        ("CSINode", {"spec": {"drivers": [{"name": "d", "allocatable": {"count": -9}}]}},
         'spec.drivers: the count of "d" must not be negative'),
        ("CSIDriver", {"spec": {"storageCapacity": "no"}},
         'spec.storageCapacity: must be true or false, got "no"'),
        ("CSIStorageCapacity", {}, "storageClassName: is required"),
        ("CSIStorageCapacity", {"storageClassName": "c", "capacity": "-1"},
         "capacity: must not be negative"),
        ("CSIStorageCapacity", {"storageClassName": "c", "maximumVolumeSize": "-1"},
         "maximumVolumeSize: must not be negative"),
        ("VolumeAttachment", {"spec": {"nodeName": "n"}}, "spec.attacher: is required"),
        ("VolumeAttachment", {"spec": {"attacher": "d"}}, "spec.nodeName: is required"),
    ],
)  # fmt: skip
def test_storage_that_cannot_be(
    tmp_path: Path, kind: str, given: dict[str, Any], told: str
) -> None:
    manifest = {"apiVersion": VERSIONS[kind][0], "kind": kind, "metadata": {"name": "x"}, **given}

    assert refusal(tmp_path, json.dumps(manifest)) == f"in.yaml: document 1: {kind} x: {told}"


def test_the_place_in_a_list_is_told(tmp_path: Path) -> None:
    items = [node_manifest("n"), pod_manifest("p", namespace="team-a", cpu="2x")]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})

    assert refusal(tmp_path, text, "in.json") == (
        "in.json: document 1: items[1]: Pod team-a/p: "
        'spec.containers[0].resources.requests.cpu: "2x" is not a quantity'
    )


def test_duplicate_names_tell_both_places(tmp_path: Path) -> None:
    text = json.dumps(pod_manifest()) + json.dumps(pod_manifest())

    assert refusal(tmp_path, text, "in.json") == (
        "in.json: document 2: Pod default/pod: metadata.name: "
        f"duplicate: also in {tmp_path}/in.json: document 1"
    ).replace(f"{tmp_path}/", "")


def test_duplicate_uids_tell_both_places(tmp_path: Path) -> None:
    uid = {"uid": "1"}
    text = json.dumps(pod_manifest("a", metadata=uid)) + json.dumps(pod_manifest("b", metadata=uid))

    assert refusal(tmp_path, text, "in.json") == (
        "in.json: document 2: Pod default/b: metadata.uid: "
        "duplicate: Pod default/a in in.json: document 1 has it too"
    )


def test_one_name_in_two_namespaces_or_kinds_is_no_duplicate(tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    same = [pod_manifest("x"), pod_manifest("x", namespace="other"), node_manifest("x")]
    path.write_text("".join(map(json.dumps, same)))

    assert len(load([str(path)]).objects) == 3


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.yaml: no such file or directory"):
        load([str(tmp_path / "nowhere.yaml")])


def test_a_directory_without_manifests(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.yaml, \.yml, \.json file in this directory"):
        load([str(tmp_path)])


YAMLISH = st.lists(
    st.sampled_from([*"abc:-?[]{},&*!|>'\"%@`#~ \n\t019.", "kind: Pod\n", "apiVersion: v1\n",
                     "metadata:\n", "  name: x\n", "---\n", "spec:\n", "  containers:\n"]),
    max_size=40,
).map("".join) | st.text(max_size=40)  # fmt: skip


@settings(
    max_examples=40,
    suppress_health_check=FIXTURES_MAY_BE_SHARED,
)
@given(YAMLISH)
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "any.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))

    with suppress(InputError):
        load([str(path)])


FIELDS = st.sampled_from(
    ["metadata", "name", "labels", "spec", "containers", "resources", "requests", "limits", "cpu",
     "affinity", "podAffinity", "podAntiAffinity", "ports", "hostNetwork", "priorityClassName",
     _IN, "labelSelector", "matchLabelKeys", "tolerations", "status", "capacity", "nodeName",
     "overhead", "initContainers", "schedulingGroup", "storage", "accessModes", "claimRef",
     "volumeName", "phase", "annotations", "provisioner", "volumeBindingMode", "drivers",
     "selector", "allowedTopologies", "disruptionsAllowed", "creationTimestamp"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=3),
    max_leaves=10,
)


@settings(
    max_examples=40,
    suppress_health_check=FIXTURES_MAY_BE_SHARED,
)
@given(st.sampled_from(sorted(VERSIONS)), st.dictionaries(FIELDS, VALUES, max_size=4))
def test_any_object_is_read_or_refused(tmp_path: Path, kind: str, raw: dict[str, Any]) -> None:
    path = tmp_path / "any.json"
    manifest = {"metadata": {"name": "x"}, **raw, "apiVersion": VERSIONS[kind][0], "kind": kind}
    path.write_text(json.dumps(manifest))

    with suppress(InputError):
        load([str(path)])
