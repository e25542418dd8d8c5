"""StatefulSets and DaemonSets: pods that are somebody in particular."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.controllers.playing import Json, Play, played, template, workload
from tests.embedded.serving import node


def names(cluster: Play) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.pods()]


def newer() -> Json:
    made = template()
    made["spec"]["containers"][0]["image"] = "registry.example/app:2"
    return made


def images(cluster: Play) -> str:
    return "".join(each["spec"]["containers"][0]["image"][-1] for each in cluster.pods())


async def step(cluster: Play) -> None:
    cluster.sweep()
    await cluster.settle()
    cluster.run()
    await cluster.settle()


@played
async def test_ordered_pods_come_one_by_one_and_go_the_other_way(cluster: Play) -> None:
    cluster.create("statefulsets.apps", "db", workload(replicas=3, serviceName="db"))
    await cluster.settle()
    for number in (1, 2, 3):
        assert names(cluster) == [f"db-{each}" for each in range(number)]
        cluster.run()
        await cluster.settle()
    first = cluster.get("pods", "db-0")
    assert first["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "0"
    assert (first["spec"]["hostname"], first["spec"]["subdomain"]) == ("db-0", "db")
    assert cluster.get("statefulsets.apps", "db")["status"]["readyReplicas"] == 3

    for each in cluster.pods():
        cluster.bind(each, "n")
    cluster.change("statefulsets.apps", "db", replicas=1)
    await cluster.settle()
    assert names(cluster) == ["db-0", "db-1"]
    cluster.sweep()
    await cluster.settle()
    assert names(cluster) == ["db-0"]


@played
async def test_parallel_pods_come_and_go_together(cluster: Play) -> None:
    spec = workload(replicas=3, serviceName="db", podManagementPolicy="Parallel")
    cluster.create("statefulsets.apps", "db", spec)
    await cluster.settle()
    assert names(cluster) == ["db-0", "db-1", "db-2"]
    cluster.change("statefulsets.apps", "db", replicas=0)
    await cluster.settle()
    assert names(cluster) == []


@played
async def test_a_pod_that_failed_comes_back_under_its_name(cluster: Play) -> None:
    cluster.create("statefulsets.apps", "db", workload(replicas=1, serviceName="db"))
    await cluster.settle()
    (before,) = cluster.pods()
    cluster.end([before], "Failed")
    await cluster.settle()

    (after,) = cluster.pods()
    assert after["metadata"]["name"] == "db-0"
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


@pytest.mark.parametrize(
    ("partition", "course"),
    [
        pytest.param(0, ["112", "122", "222", "222"], id="all"),
        pytest.param(2, ["112", "112", "112"], id="from an ordinal on"),
    ],
)
@played
async def test_an_update_goes_from_the_last_to_the_first(
    cluster: Play, partition: int, course: list[str]
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    spec = workload(replicas=3, serviceName="db", updateStrategy=strategy)
    cluster.create("statefulsets.apps", "db", spec)
    for _ in range(3):
        await step(cluster)
    cluster.change("statefulsets.apps", "db", template=newer())
    seen = []
    for _ in course:
        await cluster.settle()
        seen.append(images(cluster))
        cluster.run()
    await cluster.settle()

    assert seen == course
    status = cluster.get("statefulsets.apps", "db")["status"]
    assert (status["currentRevision"] == status["updateRevision"]) is (partition == 0)
    assert status["updatedReplicas"] == 3 - partition
    assert len(cluster.names("controllerrevisions.apps")) == 2


@played
async def test_claims_outlive_their_pods(cluster: Play) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    spec = workload(replicas=2, serviceName="db", volumeClaimTemplates=[claim])
    cluster.create("statefulsets.apps", "db", spec)
    for _ in range(2):
        await step(cluster)
    assert cluster.names("persistentvolumeclaims") == ["data-db-0", "data-db-1"]
    volumes = cluster.get("pods", "db-1")["spec"]["volumes"]
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}} in volumes

    cluster.change("statefulsets.apps", "db", replicas=0)
    for _ in range(2):
        await step(cluster)
    assert names(cluster) == []
    assert cluster.names("persistentvolumeclaims") == ["data-db-0", "data-db-1"]


def chosen_node(pod: Json) -> str:
    required = pod["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    return required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]


def nodes_of(cluster: Play) -> list[str]:
    return sorted(chosen_node(each) for each in cluster.pods())


def add_node(cluster: Play, name: str, taint: tuple[str, str] | None = None, **labels: str) -> None:
    made = node(name, **labels)
    if taint:
        made["spec"] = {"taints": [{"key": taint[0], "effect": taint[1]}]}
    made["metadata"].pop("name")
    cluster.create("nodes", name, **made)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, ["a", "b"], id="every node that does not repel it"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, ["b"], id="selected nodes"),
        pytest.param(
            {"tolerations": [{"key": "gpu", "operator": "Exists"}]}, ["a", "b", "c"], id="tolerated"
        ),
    ],
)
@played
async def test_a_daemon_has_a_pod_on_each_node(
    cluster: Play, spec: Json, expected: list[str]
) -> None:
    add_node(cluster, "a")
    add_node(cluster, "b", disk="ssd")
    add_node(cluster, "c", ("gpu", "NoSchedule"))
    made: dict[str, Any] = template()
    made["spec"] |= spec
    cluster.create("daemonsets.apps", "agent", workload(template=made))
    await cluster.settle()

    assert nodes_of(cluster) == expected
    status = cluster.get("daemonsets.apps", "agent")["status"]
    assert status["desiredNumberScheduled"] == status["currentNumberScheduled"] == len(expected)
    tolerated = {each["key"] for each in cluster.pods()[0]["spec"]["tolerations"]}
    added = ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure")
    assert {f"node.kubernetes.io/{each}" for each in (*added, "unschedulable")} <= tolerated
    assert "node.kubernetes.io/network-unavailable" not in tolerated


@played
async def test_daemons_follow_nodes(cluster: Play) -> None:
    add_node(cluster, "a")
    cluster.create("daemonsets.apps", "agent", workload())
    await cluster.settle()
    add_node(cluster, "b")
    await cluster.settle()
    assert nodes_of(cluster) == ["a", "b"]

    for effect, left in (("NoSchedule", ["a", "b"]), ("NoExecute", ["b"])):
        changed = cluster.get("nodes", "a")
        changed["spec"]["taints"] = [{"key": "mine", "effect": effect}]
        cluster.update("nodes", changed)
        await cluster.settle()
        assert nodes_of(cluster) == left
    cluster.delete("nodes", "b")
    await cluster.settle()
    assert nodes_of(cluster) == []


@played
async def test_an_update_of_a_daemon_takes_one_node_at_a_time(cluster: Play) -> None:
    for name in "abc":
        add_node(cluster, name)
    cluster.create("daemonsets.apps", "agent", workload())
    await step(cluster)
    cluster.change("daemonsets.apps", "agent", template=newer())
    seen = []
    for _ in range(4):
        await cluster.settle()
        seen.append("".join(sorted(images(cluster))))
        cluster.run()
    await cluster.settle()

    assert seen == ["112", "122", "222", "222"]
    status = cluster.get("daemonsets.apps", "agent")["status"]
    assert status["updatedNumberScheduled"] == status["numberAvailable"] == 3


@pytest.mark.parametrize("resource", ["daemonsets.apps", "statefulsets.apps"])
@played
async def test_a_version_is_written_as_clients_in_go_write_it(cluster: Play, resource: str) -> None:
    """kubectl and e2e suites compare it byte by byte with the template that they read."""
    spec = workload()
    container = {"name": "main", "image": "i:1", "args": ["a && b > c"], "tty": False}
    spec["template"]["spec"] = {"containers": [container]}
    cluster.create(resource, "web", spec)
    await cluster.settle()

    (entry,) = cluster.api.store.table("controllerrevisions.apps").in_order()
    labels = ",".join(
        f'"{key}":"{value}"'
        for key, value in sorted(spec["template"]["metadata"]["labels"].items())
    )
    body = entry.body.decode()
    assert body[body.index('"data":') :].startswith(
        '"data":{"spec":{"template":{"$patch":"replace","metadata":{"labels":{'
        + labels
        + '}},"spec":{"containers":[{"args":["a \\u0026\\u0026 b \\u003e c"],"image":"i:1",'
        '"imagePullPolicy":"IfNotPresent","name":"main","resources":{},'
        '"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],'
        '"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler",'
        '"securityContext":{},"terminationGracePeriodSeconds":30}}}}'
    )
