"""Whatever happens, what the specs say comes about, and then nothing more is written."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from moorage.embedded.controllers.runner import run_controllers
from moorage.embedded.request_refusals import RequestRefused
from tests.embedded.controllers.playing import Json, Play, played, template, workload
from tests.embedded.serving import node, pod
from tests.virtual_time import run_virtually

OWNERS = (
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
)
NAMES = ("one", "two")

steps = st.one_of(
    st.tuples(
        st.just("create"), st.sampled_from(OWNERS), st.sampled_from(NAMES), st.integers(0, 4)
    ),
    st.tuples(st.just("scale"), st.sampled_from(OWNERS), st.sampled_from(NAMES), st.integers(0, 4)),
    st.tuples(st.just("renew"), st.sampled_from(OWNERS), st.sampled_from(NAMES), st.integers(0, 2)),
    st.tuples(
        st.just("delete"),
        st.sampled_from(OWNERS),
        st.sampled_from(NAMES),
        st.sampled_from(("Background", "Foreground", "Orphan")),
    ),
    st.tuples(st.just("fail"), st.integers(0, 9)),
    st.tuples(st.just("remove"), st.integers(0, 9)),
    st.tuples(st.just("bare"), st.sampled_from(NAMES), st.integers(0, 3)),
    st.tuples(st.just("node"), st.sampled_from("abc"), st.sampled_from(("True", "False", None))),
    st.tuples(st.just("run")),
    st.tuples(st.just("settle")),
)


def labelled(name: str, version: int = 1) -> Json:
    made = template(app=name)
    made["spec"]["containers"][0]["image"] = f"registry.example/app:{version}"
    return made


def spec_of(resource: str, name: str, size: int) -> Json:
    # One label per kind, so that owners do not take pods from each other.
    app = f"{name}-{resource[:3]}"
    if resource == "jobs.batch":
        made = labelled(app)
        made["spec"]["restartPolicy"] = "Never"
        return {"template": made, "completions": size, "parallelism": 2, "backoffLimit": 50}
    spec = workload(template=labelled(app), selector={"matchLabels": {"app": app}})
    if resource != "daemonsets.apps":
        spec["replicas"] = size
    if resource == "statefulsets.apps":
        spec["serviceName"] = name
    return spec


class Story:
    """Steps that people and kubelets take; those that make no sense just now are refused."""

    def __init__(self, cluster: Play) -> None:
        self.cluster = cluster

    def create(self, resource: str, name: str, size: int) -> None:
        self.cluster.create(resource, name, spec_of(resource, name, size))

    def scale(self, resource: str, name: str, size: int) -> None:
        if resource == "jobs.batch":
            self.cluster.change(resource, name, parallelism=size)
        elif resource != "daemonsets.apps":
            self.cluster.change(resource, name, replicas=size)

    def renew(self, resource: str, name: str, version: int) -> None:
        self.cluster.change(resource, name, template=labelled(f"{name}-{resource[:3]}", version))

    def delete(self, resource: str, name: str, propagation: Any) -> None:
        self.cluster.delete(resource, name, propagation)

    def fail(self, at: int) -> None:
        self.cluster.end(self.cluster.pods()[at : at + 1], "Failed")

    def remove(self, at: int) -> None:
        for each in self.cluster.pods()[at : at + 1]:
            self.cluster.delete("pods", each["metadata"]["name"])

    def bare(self, name: str, at: int) -> None:
        labels = {"app": f"{name}-{OWNERS[at][:3]}"}
        self.cluster.create(
            "pods", f"bare-{name}-{at}", pod("x")["spec"], metadata={"labels": labels}
        )

    def node(self, name: str, ready: str | None) -> None:
        if name not in self.cluster.names("nodes"):
            self.cluster.create("nodes", name, **{**node(name), "metadata": {}})
        elif ready is None:
            self.cluster.delete("nodes", name)
            return
        if ready:
            condition = {"type": "Ready", "status": ready}
            self.cluster.set_status(
                "nodes", self.cluster.get("nodes", name), conditions=[condition]
            )

    def run(self) -> None:
        self.cluster.sweep()
        for at, each in enumerate(self.cluster.pods()):
            if each["status"]["phase"] == "Pending":
                nodes = self.cluster.names("nodes")
                bound = self.cluster.bind(each, nodes[at % len(nodes)]) if nodes else each
                self.cluster.run([bound])

    async def play(self, steps: list[tuple[Any, ...]]) -> None:
        for name, *arguments in steps:
            if name == "settle":
                await self.cluster.settle()
                continue
            try:
                getattr(self, name)(*arguments)
            except RequestRefused:
                continue

    async def come_to_rest(self) -> None:
        """Plays the kubelet until nobody has anything left to do."""
        # Pods would leave nodes in trouble for ever, as nobody here schedules them elsewhere.
        for name in self.cluster.names("nodes"):
            self.node(name, "True")
        for _ in range(50):
            before = self.cluster.api.store.version
            self.run()
            jobs = [
                e for e in self.cluster.pods() if "job-name" in (e["metadata"].get("labels") or {})
            ]
            self.cluster.end(e for e in jobs if e["status"]["phase"] == "Running")
            await self.cluster.wait(700)
            if before == self.cluster.api.store.version:
                return
        pytest.fail("never comes to rest")


def alive(cluster: Play, uid: str) -> list[Json]:
    return [
        each
        for each in cluster.pods()
        if each["status"]["phase"] not in ("Succeeded", "Failed")
        and any(owner["uid"] == uid for owner in each["metadata"].get("ownerReferences") or ())
    ]


def assert_in_order(cluster: Play) -> None:
    for resource in ("replicasets.apps", "statefulsets.apps"):
        for item in cluster.objects(resource):
            size = item["spec"]["replicas"]
            assert len(alive(cluster, item["metadata"]["uid"])) == size
            assert item["status"].get("readyReplicas", 0) == size
    for item in cluster.objects("deployments.apps"):
        size = item["spec"]["replicas"]
        counts = [
            item["status"].get(e, 0) for e in ("replicas", "updatedReplicas", "readyReplicas")
        ]
        assert counts == [size] * 3
    nodes = cluster.objects("nodes")
    for item in cluster.objects("daemonsets.apps"):
        assert len(alive(cluster, item["metadata"]["uid"])) == len(nodes)
    for item in cluster.objects("jobs.batch"):
        if item["spec"]["parallelism"]:
            told = {e["type"] for e in item["status"].get("conditions") or ()}
            assert told & {"Complete", "Failed"}
            assert alive(cluster, item["metadata"]["uid"]) == []
    assert_owners(cluster)


def assert_owners(cluster: Play) -> None:
    """Whoever names an owner has one; nothing waits to be deleted for ever."""
    everything = [
        e for each in (*OWNERS, "pods", "controllerrevisions.apps") for e in cluster.objects(each)
    ]
    uids = {item["metadata"]["uid"] for item in everything}
    for item in everything:
        owners = item["metadata"].get("ownerReferences") or ()
        assert {owner["uid"] for owner in owners} <= uids
        assert "deletionTimestamp" not in item["metadata"]


@settings(max_examples=60)
@given(st.lists(steps, max_size=14))
def test_the_cluster_comes_to_rest_in_order(steps: list[tuple[Any, ...]]) -> None:
    @played
    async def story(cluster: Play) -> None:
        told = Story(cluster)
        await told.play(steps)
        await told.come_to_rest()
        assert_in_order(cluster)

    story()


async def stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@settings(max_examples=25)
@given(st.lists(steps, max_size=14))
def test_controllers_that_start_anew_find_nothing_to_do(steps: list[tuple[Any, ...]]) -> None:
    async def story() -> None:
        cluster = Play()
        controllers = asyncio.create_task(run_controllers(cluster.api))
        told = Story(cluster)
        await told.play(steps)
        await told.come_to_rest()
        await stopped(controllers)
        rested = cluster.api.store.version

        controllers = asyncio.create_task(run_controllers(cluster.api))
        await cluster.wait(700)
        await stopped(controllers)
        assert cluster.api.store.version == rested

    run_virtually(story())


@settings(max_examples=15)
@given(st.lists(steps, max_size=14))
def test_a_store_that_forgets_loses_nothing(steps: list[tuple[Any, ...]]) -> None:
    async def story(cluster: Play) -> None:
        told = Story(cluster)
        await told.play(steps)
        await told.come_to_rest()
        assert_in_order(cluster)

    played(story, history_limit=3)()
