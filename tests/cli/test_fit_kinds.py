"""`moorage fit -f -` with kinds that Moorage does not know by name, and with claims."""

from __future__ import annotations

import json
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import node_manifest, pod_manifest
from tests.cli.invoking import Moorage

Json = dict[str, Any]
_POD = '{spec: {containers: [{name: main, image: app, resources: {requests: {cpu: "1"}}}]}}'

JOB_SET = f"""
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: train, namespace: ml}}
spec:
  replicatedJobs:
  - name: driver
    template: {{spec: {{parallelism: 1, completions: 1, template: {_POD}}}}}
  - name: workers
    replicas: 2
    template: {{spec: {{parallelism: 4, completions: 3, template: {_POD}}}}}
"""
PYTORCH_JOB = f"""
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: train, namespace: ml}}
spec:
  pytorchReplicaSpecs:
    Master: {{replicas: 1, template: {_POD}}}
    Worker: {{replicas: 3, template: {_POD}}}
"""
RAY_CLUSTER = f"""
apiVersion: ray.io/v1
kind: RayCluster
metadata: {{name: train, namespace: ml}}
spec:
  headGroupSpec: {{rayStartParams: {{}}, template: {_POD}}}
  workerGroupSpecs:
  - {{groupName: small, replicas: 2, maxReplicas: 9, numOfHosts: 2, template: {_POD}}}
"""
LEADERS = f"""
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: train, namespace: ml}}
spec:
  replicas: 2
  leaderWorkerTemplate: {{size: 3, leaderTemplate: {_POD}, workerTemplate: {_POD}}}
"""
BOTH_SAY = f"""
apiVersion: example.com/v1
kind: Shop
metadata: {{name: train, namespace: ml}}
spec:
  web: {{replicas: 2, podTemplate: {_POD}}}
  cache: {{replicas: 3, template: {_POD}}}
"""
ONE_SAYS = f"""
apiVersion: example.com/v1
kind: Shop
metadata: {{name: train, namespace: ml}}
spec:
  web: {{podTemplate: {_POD}}}
  cache: {{replicas: 3, template: {_POD}}}
"""
ABOVE_BOTH = f"""
apiVersion: example.com/v1
kind: Shop
metadata: {{name: train, namespace: ml}}
spec: {{replicas: 2, web: {{podTemplate: {_POD}}}, cache: {{template: {_POD}}}}}
"""
NO_TEMPLATE = """
apiVersion: sparkoperator.k8s.example/v1
kind: SparkApplication
metadata: {name: train, namespace: ml}
spec: {driver: {cores: 1}, executor: {instances: 7}}
"""
NO_PODS = """
apiVersion: cert-manager.example/v1
kind: Certificate
metadata: {name: train, namespace: ml}
spec: {dnsNames: [a.example]}
"""


@pytest.fixture
def fit(moorage: Moorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    cluster = tmp_path / "cluster.json"

    def run(text: str, *flags: str, cluster_items: list[Json] | None = None) -> Any:
        items = cluster_items or [node_manifest("n1", cpu=100)]
        cluster.write_text("\n".join(map(json.dumps, items)))
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text.encode())))
        return moorage("fit", str(cluster), "-f", "-", *flags)

    return run


@pytest.mark.parametrize(
    ("text", "kind", "count"),
    [
        pytest.param(JOB_SET, "jobset", 7, id="a job set"),
        pytest.param(PYTORCH_JOB, "pytorchjob", 4, id="a training job"),
        pytest.param(RAY_CLUSTER, "raycluster", 5, id="a ray cluster"),
        pytest.param(LEADERS, "leaderworkerset", 6, id="leaders and workers"),
        pytest.param(BOTH_SAY, "shop", 5, id="an unknown kind that says its numbers"),
    ],
)
def test_pods_of_any_kind_are_counted(text: str, kind: str, count: int, fit: Any) -> None:
    found = json.loads(fit(text, "--fail-on", "unknown", "-o", "json").out)

    (workload,) = found["workloads"]
    assert (workload["workload"], workload["asked"]) == (f"{kind} ml/train", count)
    assert (workload["placed"], found["unknown"]) == (count, [])
    assert fit(text, "--fail-on", "unknown").code == 0


def test_what_does_not_fit_of_any_kind_is_explained(fit: Any) -> None:
    result = fit(JOB_SET, cluster_items=[node_manifest("n1", cpu=5)])

    assert result.code == 1
    assert "jobset ml/train: 2 of 7 pods find no node" in result.out
    assert "Insufficient cpu" in result.out


@pytest.mark.parametrize(
    ("text", "why", "counted"),
    [
        pytest.param(
            ONE_SAYS,
            "not understood: Shop ml/train, spec.web.podTemplate: no field above it says how many",
            4,
            id="a number is missing",
        ),
        pytest.param(
            ABOVE_BOTH,
            "spec.cache.template: spec.replicas says a number for 2 templates",
            4,
            id="one number for two templates",
        ),
        pytest.param(
            NO_TEMPLATE,
            "not understood: SparkApplication ml/train: it may make pods, but has no pod template",
            0,
            id="no template",
        ),
    ],
)
def test_what_is_not_understood_is_named(text: str, why: str, counted: int, fit: Any) -> None:
    strict = ("--fail-on", "unknown")
    result = fit(text, *strict)
    assert result.code == 1
    assert why in result.out

    assert "not understood" in fit(text).out
    assert fit(text).code == (counted == 0), "a guess passes, nothing at all does not"
    found = json.loads(fit(text, "-o", "json").out)
    assert sum(each["asked"] for each in found["workloads"]) == counted
    assert found["unknown"]
    assert "<failure" in fit(text, *strict, "-o", "junit").out
    assert "::error title=not understood%3A " in fit(text, *strict, "-o", "github").out


def test_what_makes_no_pods_is_no_failure(fit: Any) -> None:
    result = fit(f"{JOB_SET}---{NO_PODS}", "--fail-on", "unknown")

    assert result.code == 0
    assert "note: ignored 1 Certificate: scheduling has no use for it" in result.err


def test_pods_of_an_older_version_are_known_by_their_label(fit: Any) -> None:
    label = {"jobset.sigs.k8s.io/jobset-name": "train"}
    owner = {"kind": "Job", "name": "train-workers-0", "uid": "j", "controller": True}
    old = pod_manifest(
        "old", namespace="ml", node="n1", cpu=4, labels=label, metadata={"ownerReferences": [owner]}
    )

    result = fit(JOB_SET, cluster_items=[node_manifest("n1", cpu=7), old])

    assert result.code == 0, result.out


def test_pods_that_name_a_group_are_placed_with_it(fit: Any) -> None:
    group = """
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: train, namespace: ml}
spec: {minMember: 4}
"""
    labels = "metadata: {labels: {scheduling.x-k8s.io/pod-group: train}}, spec:"
    member = PYTORCH_JOB.replace("template: {spec:", f"template: {{{labels}")
    small = [node_manifest("n1", cpu=3)]

    found = json.loads(fit(f"{group}---{member}", "-o", "json", cluster_items=small).out)

    (workload,) = found["workloads"]
    assert (workload["placed"], workload["gang"]["minCount"]) == (0, 4)
    assert fit(f"{group}---{member}").code == 0


# Claims


def _set(storage_class: str, replicas: int = 2) -> str:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    spec = {"replicas": replicas, "template": yaml.safe_load(_POD), "volumeClaimTemplates": [claim]}
    return yaml.safe_dump(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "db", "namespace": "shop"},
            "spec": spec,
        }
    )


def _class(mode: str, **fields: Any) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "ebs.example",
        "volumeBindingMode": mode,
        **fields,
    }


def _zoned(name: str, zone: str) -> Json:
    return node_manifest(name, cpu=4, labels={"topology.kubernetes.io/zone": zone})


def test_claims_of_a_class_that_does_not_exist_keep_pods_off_every_node(fit: Any) -> None:
    result = fit(_set("missing"))

    assert result.code == 1
    assert "statefulset shop/db: 2 of 2 pods find no node" in result.out
    assert "unbound immediate PersistentVolumeClaims" in result.out


@pytest.mark.parametrize("mode", ["WaitForFirstConsumer", "Immediate"])
def test_claims_are_made_and_provisioned(mode: str, fit: Any) -> None:
    result = fit(_set("fast"), cluster_items=[_zoned("n1", "a"), _class(mode)])

    assert result.code == 0, result.out


def test_a_rollout_stays_with_the_volumes_that_it_has(fit: Any) -> None:
    def volume(number: int, zone: str) -> list[Json]:
        name, claim = f"pv-{number}", f"data-db-{number}"
        terms = [
            {"matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
            ]}
        ]  # fmt: skip
        return [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "fast",
                    "claimRef": {"namespace": "shop", "name": claim},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
                },
            },
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": claim, "namespace": "shop"},
                "spec": {
                    "storageClassName": "fast",
                    "volumeName": name,
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            },
        ]

    cluster = [_zoned("n1", "a"), _class("WaitForFirstConsumer"), *volume(0, "a"), *volume(1, "b")]

    result = fit(_set("fast"), cluster_items=cluster)

    assert result.code == 1
    assert "statefulset shop/db: 1 of 2 pods finds no node" in result.out
    assert "didn't match PersistentVolume's node affinity" in result.out


def test_ephemeral_claims_are_made_for_each_copy(fit: Any) -> None:
    claim = yaml.safe_load(_set("fast"))["spec"]["volumeClaimTemplates"][0]
    template = {"spec": claim["spec"]}
    pod = pod_manifest(
        "p",
        cpu=1,
        spec={"volumes": [{"name": "tmp", "ephemeral": {"volumeClaimTemplate": template}}]},
    )
    cluster = [_zoned("n1", "a"), _class("WaitForFirstConsumer")]

    result = fit(json.dumps(pod), "--count", "5", cluster_items=cluster)

    assert result.out.startswith("4 of 5 pods fit")
    assert "Insufficient cpu" in result.out


# In CI


def test_the_summary_of_a_step_is_markdown(
    fit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))

    fit(f"{JOB_SET}---{NO_TEMPLATE}", "-o", "github", cluster_items=[node_manifest("n1", cpu=5)])

    text = summary.read_text()
    assert text.startswith("before\n### 1 of 1 workload does not fit on 1 node\n")
    assert "- not understood: SparkApplication ml/train: it may make pods" in text
    assert "| jobset ml/train | 7 | 5 | n1 (5) |" in text
    assert "**jobset ml/train**: 2 of 7 pods find no node\n\n- 0/1 nodes are available" in text


def test_annotations_are_beside_the_lines_of_the_file(moorage: Moorage, tmp_path: Path) -> None:
    cluster, new = tmp_path / "cluster.json", tmp_path / "new.yaml"
    cluster.write_text(json.dumps(node_manifest("n1", cpu=1)))
    new.write_text(f"# A comment.\n---{NO_PODS}---{PYTORCH_JOB}")
    line = new.read_text().splitlines().index("kind: PyTorchJob")

    out = moorage("fit", str(cluster), "-f", str(new), "-o", "github").out

    assert f"::error file={new},line={line},title=pytorchjob ml/train::" in out
