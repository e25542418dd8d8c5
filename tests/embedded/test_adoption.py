"""Copies of other clusters: nothing is lost but what people keep secret, and nothing moves."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from moorage.embedded.adoption import AdoptionReport, Copied, adopt_all
from moorage.embedded.controllers.revisions import revision_hash
from moorage.embedded.controllers.runner import run_controllers
from moorage.embedded.hollow.pod_life import KUBELET
from tests.embedded.controllers.playing import Json, Play, played, template, workload
from tests.embedded.serving import node

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_SECRET = {"name": "PASSWORD", "value": "hunter2"}


def secretive() -> Json:
    made = template()
    made["spec"]["containers"][0]["env"] = [_SECRET]
    return made


async def make_initial_objects(cluster: Play) -> None:
    """Workloads of all kinds, whose pods run."""
    cluster.create("nodes", "n", **{k: v for k, v in node("n").items() if k != "metadata"})
    spec = workload(replicas=2, serviceName="db", podManagementPolicy="Parallel")
    for resource, name in (
        ("deployments.apps", "web"),
        ("statefulsets.apps", "db"),
        ("daemonsets.apps", "agent"),
    ):
        own = {key: value for key, value in spec.items() if resource.startswith("state")}
        kept = {**own, "selector": spec["selector"], "template": secretive()}
        if resource.startswith("deploy"):
            kept["replicas"] = 2
        note = {"annotations": {_LAST_APPLIED: "hunter2"}}
        cluster.create(resource, name, kept, metadata=note)
    cluster.create("configmaps", "settings", data={"key": "hunter2"})
    cluster.create("secrets", "key", data={"key": "aHVudGVyMg=="})
    await cluster.settle()
    for each in cluster.pods():
        cluster.bind(each, "n")
    cluster.run()
    await cluster.settle()


def copy(cluster: Play) -> list[Copied]:
    """Everything that is there, with revisions as Kubernetes writes them."""
    found = [
        entry.object
        for kind in cluster.api.kinds
        if "list" in kind.verbs and not kind.view
        for entry in cluster.api.store.table(kind.table).entries.values()
    ]
    for each in found:
        if each["kind"] == "ControllerRevision":
            each["data"]["spec"]["template"]["metadata"]["creationTimestamp"] = None
    return [(f"dump.yaml: {at}", each) for at, each in enumerate(found)]


def uids(cluster: Play) -> set[str]:
    return {each["metadata"]["uid"] for each in cluster.pods()}


async def run_copy(items: list[Copied], *, with_values: bool = False) -> tuple[Play, Any]:
    other = Play()
    report = adopt_all(other.api, items, with_values=with_values)
    running = asyncio.create_task(run_controllers(other.api))
    await other.wait(30)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return other, report


@played
async def test_workloads_go_on_with_the_same_pods(cluster: Play) -> None:
    await make_initial_objects(cluster)
    assert len(cluster.pods()) == 5
    other, report = await run_copy(copy(cluster))

    assert uids(other) == uids(cluster)
    assert all(each["status"]["phase"] == "Running" for each in other.pods())
    assert (report.orphans, report.refusals) == (0, [])
    assert other.get("deployments.apps", "web")["status"]["readyReplicas"] == 2


def copy_with_their_hashes(cluster: Play) -> list[Copied]:
    """What the documented `kubectl get` prints: no revisions, hashes of Kubernetes."""
    text = json.dumps([each for _, each in copy(cluster) if each["kind"] != "ControllerRevision"])
    for number, revision in enumerate(cluster.objects("controllerrevisions.apps")):
        text = text.replace(revision_hash(revision), f"7d9f8c6b5{number}")
    return [("dump.yaml", each) for each in json.loads(text)]


@played
async def test_a_dump_without_revisions_goes_on_with_the_same_pods(cluster: Play) -> None:
    await make_initial_objects(cluster)
    items = copy_with_their_hashes(cluster)
    other, _ = await run_copy(items)

    assert uids(other) == uids(cluster)
    status = other.get("statefulsets.apps", "db")["status"]
    assert (status["updateRevision"], status["updatedReplicas"]) == (status["currentRevision"], 2)
    assert other.get("daemonsets.apps", "agent")["status"]["updatedNumberScheduled"] == 1


@played
async def test_a_template_that_no_pod_has_yet_is_rolled_out(cluster: Play) -> None:
    await make_initial_objects(cluster)
    items = copy_with_their_hashes(cluster)
    for _, item in items:
        if item["kind"] == "DaemonSet":
            item["metadata"]["annotations"] = {"deprecated.daemonset.template.generation": "2"}
        elif item["metadata"]["name"].startswith("agent-"):
            item["metadata"]["labels"]["pod-template-generation"] = "1"
        elif item["kind"] == "StatefulSet":
            item["metadata"]["generation"] += 1
    other, _ = await run_copy(items)

    gone = uids(cluster) - uids(other)
    names = {pod["metadata"]["name"] for pod in cluster.pods() if pod["metadata"]["uid"] in gone}
    assert {name.partition("-")[0] for name in names} == {"agent", "db"}


@pytest.mark.parametrize("with_values", [False, True])
def test_secrets_values_and_environments_come_if_asked_for(with_values: bool) -> None:
    @played
    async def play(cluster: Play) -> None:
        await make_initial_objects(cluster)
        other, _ = await run_copy(copy(cluster), with_values=with_values)
        text = repr([each[1] for each in copy(other)])

        assert ("hunter2" in text) is with_values
        assert ("aHVudGVyMg==" in text) is with_values

    play()


def adopt(*items: Json, **more: Any) -> tuple[Play, AdoptionReport]:
    found: list[tuple[Play, AdoptionReport]] = []

    @played
    async def play(cluster: Play) -> None:
        given = [(f"dump.yaml: {at}", each) for at, each in enumerate(items)]
        found.append((cluster, adopt_all(cluster.api, given, with_values=False, **more)))
        await cluster.settle()

    play()
    return found[0]


def pod(name: str, **more: Any) -> Json:
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template()["spec"]}


def test_pods_that_were_never_on_a_server_are_pending() -> None:
    waiting, running = pod("waiting"), {**pod("running"), "status": {"phase": "Running"}}
    cluster, _ = adopt(waiting, running)

    phases = {each["metadata"]["name"]: each["status"]["phase"] for each in cluster.pods()}
    assert phases == {"waiting": "Pending", "running": "Running"}


def owned(name: str, api_version: str, kind: str) -> Json:
    owner = {"apiVersion": api_version, "kind": kind, "name": "gone", "uid": "gone"}
    return pod(name, ownerReferences=[{**owner, "controller": True}])


def test_pods_without_a_copy_of_their_owner_stay() -> None:
    cluster, report = adopt(owned("a", "apps/v1", "ReplicaSet"), owned("b", "x.io/v1", "Thing"))

    assert [each["metadata"]["name"] for each in cluster.pods()] == ["a", "b"]
    assert report.orphans == 1
    # Of a kind that is not served nobody knows whether there is such an object.
    assert cluster.get("pods", "b", "shop")["metadata"]["ownerReferences"][0]["kind"] == "Thing"
    assert cluster.get("namespaces", "shop")["status"]["phase"] == "Active"


def test_a_node_that_is_silent_stays_silent() -> None:
    ready, silent = node("ready"), node("silent")
    for each, status in ((ready, "True"), (silent, "Unknown")):
        each["status"] = {**each["status"], "conditions": [{"type": "Ready", "status": status}]}
    cluster, _ = adopt(*({"apiVersion": "v1", "kind": "Node", **each} for each in (ready, silent)))

    assert cluster.get("nodes", "silent")["metadata"]["annotations"] == {KUBELET: "stopped"}
    assert KUBELET not in cluster.get("nodes", "ready")["metadata"].get("annotations", {})


def test_what_is_not_served_or_broken_is_told() -> None:
    broken = pod("broken")
    broken["metadata"]["labels"] = {"a": "b c"}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}}
    scaler = {"apiVersion": "autoscaling/v2", "kind": "Scaler", "metadata": {"name": "s"}}
    _, report = adopt(broken, event, scaler, *(pod(f"p{at}") for at in range(2)))
    told = list(report.describe())

    assert told[:2] == ["copied 2 Pod", "left out 1 Event, 1 Scaler"]
    assert told[2].startswith("left out dump.yaml: 0: Pod shop/broken: ")


def test_custom_resources_come_after_their_definition() -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.io"},
        "spec": {
            "group": "x.io",
            "names": {"kind": "Thing", "plural": "things"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
    thing = {
        "apiVersion": "x.io/v1",
        "kind": "Thing",
        "metadata": {"name": "t", "namespace": "shop", "uid": "t"},
        "spec": {"size": 3, "template": {"env": [_SECRET], "env_file": "x"}},
    }
    cluster, report = adopt(thing, definition)

    assert report.adopted["Thing"] == 1
    spec = cluster.get("things.x.io", "t", "shop")["spec"]
    assert spec == {"size": 3, "template": {"env_file": "x"}}
