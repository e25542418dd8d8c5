"""`moorage fit -f` with workloads as people have them in git."""

from __future__ import annotations

import json
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.builders import node_manifest, pod_manifest
from tests.cli.invoking import Moorage

Json = dict[str, Any]


def workload(kind: str, name: str = "web", count: int = 2, cpu: str = "1", **spec: Any) -> Json:
    groups = {"Job": "batch/v1", "CronJob": "batch/v1", "ReplicationController": "v1"}
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    field = "parallelism" if "Job" in kind else "replicas"
    body = {field: count, "template": template, **spec}
    if kind == "CronJob":
        body = {"schedule": "@daily", "jobTemplate": {"spec": body}}
    return {
        "apiVersion": groups.get(kind, "apps/v1"),
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": body,
    }


def running(count: int, node: str, cpu: str = "1") -> list[Json]:
    owner = {"kind": "ReplicaSet", "name": "web-abc", "uid": "r", "controller": True}
    return [
        pod_manifest(
            f"web-abc-{number}",
            namespace="shop",
            labels={"pod-template-hash": "abc"},
            node=node,
            cpu=cpu,
            metadata={"ownerReferences": [owner]},
        )
        for number in range(count)
    ]


@pytest.fixture
def files(tmp_path: Path) -> Any:
    def write(name: str, *manifests: Json) -> str:
        path = tmp_path / name
        path.write_text(yaml.safe_dump_all(manifests))
        return str(path)

    return write


@pytest.mark.parametrize(
    "kind",
    ["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Job", "CronJob"],
)
@pytest.mark.parametrize(("count", "placed"), [(4, 4), (5, 4)])
def test_the_pods_of_a_workload_fit_or_not(
    kind: str, count: int, placed: int, moorage: Moorage, files: Any
) -> None:
    cluster = files("cluster.yaml", node_manifest("a", cpu=4))

    result = moorage(
        "fit", "--from", cluster, "-f", files("in.yaml", workload(kind, count=count)), "-o", "json"
    )

    (found,) = json.loads(result.out)["workloads"]
    assert (found["asked"], found["placed"]) == (count, placed)
    assert found["workload"] == f"{kind.lower()} shop/web"
    assert result.code == (count > placed)


def test_a_daemon_set_is_wanted_where_its_pods_may_run(moorage: Moorage, files: Any) -> None:
    tainted = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    cluster = files(
        "cluster.yaml",
        node_manifest("a", cpu=4),
        node_manifest("b", cpu=4, spec=tainted),
        node_manifest("c", cpu=4, spec={"unschedulable": True}),
    )
    result = moorage("fit", cluster, "-f", files("in.yaml", workload("DaemonSet")), "-o", "json")

    (found,) = json.loads(result.out)["workloads"]
    assert {each["node"] for each in found["nodes"]} == {"a", "c"}
    assert result.code == 0


@pytest.mark.parametrize(
    ("rollout", "placed", "stay"),
    [
        pytest.param({"maxSurge": 0, "maxUnavailable": 1}, 4, 0, id="old pods go first"),
        pytest.param({"maxSurge": 1, "maxUnavailable": 0}, 0, 4, id="no room for one more"),
    ],
)
def test_older_pods_make_way_as_the_rollout_allows(
    rollout: Json, placed: int, stay: int, moorage: Moorage, files: Any
) -> None:
    cluster = files("cluster.yaml", node_manifest("a", cpu=4), *running(4, "a"))
    new = workload("Deployment", count=4, strategy={"rollingUpdate": rollout})

    result = moorage("fit", cluster, "-f", files("in.yaml", new), "-o", "json")

    (found,) = json.loads(result.out)["workloads"]
    assert (found["replaced"], found["placed"], found["stay"]) == (4, placed, stay)


def test_what_waited_before_does_not_count_unless_asked(moorage: Moorage, files: Any) -> None:
    cluster = files("cluster.yaml", node_manifest("a", cpu=4), pod_manifest("big", cpu=9))
    new = files("in.yaml", workload("Deployment"))

    assert moorage("fit", cluster, "-f", new).code == 0
    result = moorage("fit", cluster, "-f", new, "--fail-on", "any")
    assert result.code == 1
    assert "1 pod waited before; 1 of them finds no node" in result.out


def test_pods_of_other_schedulers_do_not_wait_for_this_one(moorage: Moorage, files: Any) -> None:
    other = pod_manifest("other", cpu=9, spec={"schedulerName": "volcano"})
    cluster = files("cluster.yaml", node_manifest("a", cpu=4), other)

    result = moorage(
        "fit", cluster, "-f", files("in.yaml", workload("Deployment")), "--fail-on", "any"
    )

    assert result.code == 0
    assert "waited before" not in result.out


def test_what_node_names_end_in_is_said_once(moorage: Moorage, files: Any) -> None:
    nodes = [node_manifest(f"{name}.example.com", cpu=1) for name in ("a", "b")]
    new = [workload("Deployment", name, count=1) for name in ("one", "two")]

    result = moorage("fit", files("cluster.yaml", *nodes), "-f", files("in.yaml", *new))

    assert result.out.count("(node names end in .example.com)") == 1
    assert result.out.count(".example.com") == 1


def test_standard_input_with_nothing_to_place(
    moorage: Moorage, files: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"")))
    result = moorage("fit", files("cluster.yaml", node_manifest("a")), "-f", "-")
    assert result.code == 2
    assert "standard input: nothing to place" in result.err


def test_several_files_and_what_pods_need(moorage: Moorage, files: Any) -> None:
    cluster = files("cluster.yaml", node_manifest("a", cpu=4))
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": "gold"}, "value": 7}  # fmt: skip
    golden = workload("Deployment", "gold")
    golden["spec"]["template"]["spec"]["priorityClassName"] = "gold"
    first = files(
        "first.yaml",
        golden,
        priority,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
    )
    second = files("second.yaml", workload("Job", "train", count=3))

    result = moorage("fit", cluster, "-f", first, "-f", second)

    assert result.code == 1
    assert result.out.startswith("1 of 2 workloads does not fit on 1 node\n")
    assert "job shop/train: 1 of 3 pods finds no node" in result.out
    assert "1 Insufficient cpu" in result.out


def test_ci_formats(moorage: Moorage, files: Any) -> None:
    cluster = files("cluster.yaml", node_manifest("a", cpu=2))
    new = files("in.yaml", workload("Deployment", count=3), workload("Job", "j", count=0))

    written = moorage("fit", cluster, "-f", new, "-o", "junit").out
    suite = ElementTree.fromstring(written)
    lines = moorage("fit", cluster, "-f", new, "-o", "github").out.splitlines()

    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "Insufficient cpu" in (failure.text or "")
    assert lines[0] == "1 of 2 workloads does not fit on 1 node"
    about = f"file={new},line=1,title=deployment shop/web"
    assert lines[1].startswith(f"::error {about}::1 of 3 pods finds no node%0A0/1 nodes")
    assert len(lines) == 2, "what fits is no annotation"
    assert written.startswith("<?xml version='1.0' encoding=")
    # People read it, too.
    assert (
        '\n  <testcase classname="moorage.fit" name="deployment shop/web">\n    <failure' in written
    )


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"replicas": "x"}, "shop/web: spec.replicas: must be a number from 0 to 100,000"),
        ({"template": None}, "Deployment shop/web: spec.template: is required"),
        ({"strategy": {"rollingUpdate": {"maxSurge": "x"}}},
         "spec.strategy.rollingUpdate.maxSurge: must be a number or a percentage"),
    ],
)  # fmt: skip
def test_mistakes_name_object_and_field(
    change: Json, error: str, moorage: Moorage, files: Any
) -> None:
    cluster = files("cluster.yaml", node_manifest("a"))
    result = moorage("fit", cluster, "-f", files("in.yaml", workload("Deployment", **change)))

    assert (result.code, result.out) == (2, "")
    assert error in result.err


def test_copies_and_ci_formats_exclude_each_other(moorage: Moorage, files: Any) -> None:
    cluster = files("cluster.yaml", node_manifest("a"))
    one, many = files("one.yaml", pod_manifest("p")), files("many.yaml", workload("Job"))

    copies = ("-f", one, "--count", "2", "-o", "junit")
    assert "--output junit: only with workloads" in moorage("fit", cluster, *copies).err
    assert 'tests="1"' in moorage("fit", cluster, "-f", one, "-o", "junit").out
    assert "--count: only with one pod" in moorage("fit", cluster, "-f", many, "--count", "2").err


def test_a_simulation_makes_the_pods_of_workloads_without_any(moorage: Moorage, files: Any) -> None:
    owner = {"kind": "Job", "name": "old", "uid": "u", "controller": True}
    there = pod_manifest("old-x", namespace="shop", metadata={"ownerReferences": [owner]})
    jobs = workload("Deployment"), workload("Job", "old")
    cluster = files("cluster.yaml", node_manifest("a"), *jobs, there)

    result = moorage("simulate", cluster)

    assert "note: made 2 Pod of deployment shop/web" in result.err
    assert "old" not in result.err
    assert "3 placed, 0 pending, 1 node" in result.out


def test_a_pod_that_was_copied_from_the_cluster_is_placed_anew(
    moorage: Moorage, files: Any
) -> None:
    there = pod_manifest("hello", node="a", cpu=1)
    cluster = files("cluster.yaml", node_manifest("a", cpu=4), there)

    result = moorage("fit", cluster, "-f", files("hello.yaml", there), "--count", "3")

    assert (result.code, result.out.splitlines()[0]) == (0, "3 of 3 pods fit, on 1 of 1 node")


RACKED = {
    "schedulingPolicy": {"gang": {}},
    "schedulingConstraints": {"topology": [{"key": "rack"}]},
}


def racks(files: Any) -> str:
    nodes = [
        node_manifest(f"n{number}", cpu="4", labels={"rack": f"r{number % 2}"})
        for number in range(4)
    ]
    path: str = files("cluster.yaml", *nodes)
    return path


def test_a_job_is_placed_as_the_gang_that_it_asks_for(moorage: Moorage, files: Any) -> None:
    cluster = racks(files)
    fits = files("fits.yaml", workload("Job", "train", 8, scheduling=RACKED))
    short = files("short.yaml", workload("Job", "train", 9, scheduling=RACKED))

    result = moorage("fit", cluster, "-f", fits, "-o", "json")
    (found,) = json.loads(result.out)["workloads"]
    assert (result.code, found["placed"]) == (0, 8)
    assert {each["node"] for each in found["nodes"]} in ({"n0", "n2"}, {"n1", "n3"})

    result = moorage("fit", cluster, "-f", short)
    assert result.code == 1
    assert "best is r0 with room for 8, 1 short" in " ".join(result.out.split())
    (found,) = json.loads(moorage("fit", cluster, "-f", short, "-o", "json").out)["workloads"]
    assert (found["placed"], found["gang"]["minCount"]) == (0, 9)


def test_simulate_makes_the_group_of_a_job(moorage: Moorage, files: Any) -> None:
    cluster = racks(files)
    job = files("job.yaml", workload("Job", "train", 9, scheduling=RACKED))
    gates = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"

    result = moorage("simulate", cluster, job, "--feature-gates", gates)
    assert result.code == 1
    assert "made PodGroup shop/train-pgt-0" in result.err
    assert "minCount (9) cannot be satisfied" in " ".join(result.out.split())
    assert moorage("simulate", cluster, job).code == 0


@pytest.mark.parametrize(
    ("scheduling", "field"),
    [
        (["gang"], "spec.scheduling: must be a mapping"),
        ({"schedulingPolicy": "gang"}, "spec.scheduling.schedulingPolicy: must be a mapping"),
        (
            {"schedulingPolicy": {"gang": {"minCount": 0}}},
            "spec.scheduling.schedulingPolicy.gang.minCount: must be a number of at least 1",
        ),
        ({"schedulingConstraints": {"topology": [{"key": 3}]}}, "spec.scheduling.schedulingCon"),
    ],
)
def test_what_is_wrong_with_the_group_of_a_job_is_named(
    scheduling: object, field: str, moorage: Moorage, files: Any
) -> None:
    wrong = files("wrong.yaml", workload("Job", "train", scheduling=scheduling))
    result = moorage("fit", racks(files), "-f", wrong)

    assert result.code == 2
    assert f"Job shop/train: {field}" in result.err
