"""GPUAware."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import msgspec
import numpy as np
import pytest
from hypothesis import given

from moorage.cluster import Change, Cluster
from moorage.config import ConfigError, load, load_mapping
from moorage.documents.conversion import decode_hook
from moorage.engine import Engine
from moorage.framework.plugin import Rescore
from moorage.framework.profile import known_plugins
from moorage.framework.status import Code
from moorage.framework.wakeups import Action, Resource
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.plugins.gpu_aware import RESERVE_LABELS, GPUAware
from moorage.plugins.gpu_aware_args import GPUAwareArgs, repository
from moorage.simulate.loading import load as manifests
from moorage.simulate.simulation import simulate
from moorage.testing import drive
from tests.builders import EMPTY, cluster, node, pod
from tests.cli.invoking import Moorage
from tests.engine.driver import driver, evictions
from tests.plugins.asking import codes, listens, rejections, scores, wakes
from tests.registered import REGISTRY
from tests.strategies import clusters, nodes

ROOT = Path(__file__).parents[2]
EXAMPLE, PAGE = ROOT / "examples" / "gpu", ROOT / "docs" / "gpu-aware.md"
NVIDIA = "nvidia.com/gpu"
PRESENT = "nvidia.com/gpu.present"
WATCHED = Change.ALLOCATABLE | Change.MEMBERSHIP
REASON = (
    "node(s) with GPUs only take pods with a GPU limit "
    "(set one such as nvidia.com/gpu or add a node without GPUs)",
)


def args(**given: Any) -> GPUAwareArgs:
    return msgspec.convert(given, GPUAwareArgs, dec_hook=decode_hook)


def plugin(**given: Any) -> GPUAware:
    return GPUAware(args(**given))


DEFAULT = plugin()
REMEMBERING = plugin(rememberGPUNodes=True)
SCORING = plugin(mode="Score")


def container(image: str = "app", **limits: str) -> dict[str, Any]:
    return {"name": "main", "image": image, "resources": {"limits": limits}}


def limited(**limits: str) -> Pod:
    return pod(spec={"containers": [container(**limits)]})


def running(image: str, namespace: str = "default") -> Pod:
    return pod(namespace=namespace, spec={"containers": [container(), container(image)]})


def device_plugin(name: str) -> Pod:
    """A daemon as its controller makes it: for one node, by the name of the node."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    image = container("nvcr.io/nvidia/k8s-device-plugin:v0.17.1")
    return pod(name, spec={"containers": [image], "affinity": {"nodeAffinity": rule}})


def owned(kind: str) -> Pod:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "owner", "controller": True}
    return pod(metadata={"ownerReferences": [owner]})


def gpu_node(
    name: str = "n",
    amount: int = 1,
    resource: str = NVIDIA,
    labels: Mapping[str, str] | None = None,
) -> Node:
    return node(name, labels=labels, **{resource: amount})


def plain_and_gpu() -> Cluster:
    return cluster(node("plain"), gpu_node("gpu"))


# Pods


@pytest.mark.parametrize(
    ("spec", "kept_off"),
    [
        pytest.param({"containers": [container()]}, True, id="no limit"),
        pytest.param({"containers": [container(cpu="1")]}, True, id="another limit"),
        pytest.param({"containers": [container(**{NVIDIA: "1"})]}, False, id="a GPU limit"),
        pytest.param({"containers": [container(**{NVIDIA: "0"})]}, True, id="a limit of none"),
        pytest.param(
            {"containers": [{"name": "main", "resources": {"requests": {NVIDIA: "1"}}}]},
            True,
            id="a request is no limit",
        ),
        pytest.param(
            {"containers": [container(), container(**{NVIDIA: "1"})]}, False, id="any container"
        ),
        pytest.param(
            {"containers": [container()], "initContainers": [container(**{NVIDIA: "1"})]},
            False,
            id="an init container",
        ),
        pytest.param(
            {
                "containers": [container()],
                "initContainers": [{**container(**{NVIDIA: "1"}), "restartPolicy": "Always"}],
            },
            False,
            id="a sidecar",
        ),
        pytest.param({"containers": [container(**{"amd.com/gpu": "1"})]}, False, id="another kind"),
        pytest.param(
            {"containers": [container(**{"nvidia.com/mig-1g.5gb": "1"})]}, False, id="a prefix"
        ),
        pytest.param(
            {"containers": [container(**{"nvidia.com/gpumem": "1"})]}, True, id="a name is whole"
        ),
        pytest.param(
            {"containers": [container()], "resourceClaims": [{"name": "device"}]},
            False,
            id="a claim may be one to a GPU",
        ),
    ],
)
def test_which_pods_are_kept_off(spec: dict[str, Any], kept_off: bool) -> None:
    asks = pod(spec=spec)

    assert rejections(DEFAULT, asks, plain_and_gpu()) == ({"gpu": REASON} if kept_off else None)
    assert scores(SCORING, asks, plain_and_gpu()) == (
        {"plain": 100, "gpu": 0} if kept_off else None
    )
    assert DEFAULT.sign(asks, EMPTY) is kept_off
    assert DEFAULT.watch(asks, EMPTY) == (WATCHED if kept_off else Change.NONE)


@pytest.mark.parametrize(
    ("asks", "given", "kept_off"),
    [
        pytest.param(owned("DaemonSet"), {}, False, id="daemons run everywhere"),
        pytest.param(owned("ReplicaSet"), {}, True, id="other owners"),
        pytest.param(
            owned("DaemonSet"), {"exemptDaemonSets": False}, True, id="daemons are no exception"
        ),
        pytest.param(
            running("nvcr.io/nvidia/k8s-device-plugin:v1"), {}, False, id="a device plugin"
        ),
        pytest.param(running("rocm/k8s-device-plugin"), {}, False, id="Docker Hub is implied"),
        pytest.param(
            running("example.com/nvidia/k8s-device-plugin"), {}, True, id="the registry counts"
        ),
        pytest.param(
            running("a/b@sha256:1"), {"devicePluginImages": [{"image": "a/b:v2"}]}, False, id="own"
        ),
        pytest.param(
            running("nvcr.io/nvidia/k8s-device-plugin"),
            {"devicePluginImages": [{"image": "a/b"}]},
            True,
            id="own images replace the known ones",
        ),
        pytest.param(
            running("a/b", "system"),
            {"devicePluginImages": [{"image": "a/b", "namespaces": ["x", "system"]}]},
            False,
            id="its namespace",
        ),
        pytest.param(
            running("a/b"),
            {"devicePluginImages": [{"image": "a/b", "namespaces": ["system"]}]},
            True,
            id="another namespace",
        ),
        pytest.param(
            limited(**{NVIDIA: "1"}), {"resources": ["x.com/npu"]}, None, id="what is no GPU here"
        ),
    ],
)
def test_exemptions(asks: Pod, given: dict[str, Any], kept_off: bool | None) -> None:
    expected = {True: {"gpu": REASON}, False: None, None: {}}[kept_off]

    assert rejections(plugin(**given), asks, plain_and_gpu()) == expected


def test_a_device_plugin_is_found_among_init_containers() -> None:
    image = container("nvcr.io/nvidia/k8s-device-plugin")
    starting = pod(spec={"containers": [container()], "initContainers": [image]})

    assert rejections(DEFAULT, starting, plain_and_gpu()) is None


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("nvcr.io/nvidia/plugin:v1", "nvcr.io/nvidia/plugin"),
        ("nvcr.io/nvidia/plugin@sha256:12", "nvcr.io/nvidia/plugin"),
        ("nvcr.io/nvidia/plugin:v1@sha256:12", "nvcr.io/nvidia/plugin"),
        ("registry:5000/plugin", "registry:5000/plugin"),
        ("localhost/plugin:v1", "localhost/plugin"),
        ("rocm/plugin:v1", "docker.io/rocm/plugin"),
        ("index.docker.io/rocm/plugin", "docker.io/rocm/plugin"),
        ("plugin:v1", "docker.io/library/plugin"),
        ("docker.io/plugin", "docker.io/library/plugin"),
        ("index.docker.io/plugin:v1", "docker.io/library/plugin"),
        ("docker.io/library/plugin", "docker.io/library/plugin"),
        ("registry:5000/group/plugin:v1", "registry:5000/group/plugin"),
        ("index.docker.io", "docker.io/library/index.docker.io"),
        ("", ""),
    ],
)
def test_the_repository_of_an_image(image: str, expected: str) -> None:
    assert repository(image) == expected


# Nodes


@pytest.mark.parametrize(
    ("there", "default", "remembering"),
    [
        pytest.param(gpu_node(amount=2), True, True, id="GPUs"),
        pytest.param(gpu_node(amount=0), False, True, id="GPUs that are listed, but away"),
        pytest.param(
            gpu_node(amount=0, resource="nvidia.com/mig-1g.5gb"), False, True, id="a prefix, away"
        ),
        pytest.param(gpu_node(amount=0, resource="example.com/x"), False, False, id="others away"),
        pytest.param(node("n"), False, False, id="no GPUs"),
        pytest.param(gpu_node(resource="nvidia.com/mig-1g.5gb"), True, True, id="a prefix"),
        pytest.param(gpu_node(resource="gpu.intel.com/i915"), True, True, id="a domain"),
        pytest.param(gpu_node(resource="example.com/gpu"), False, False, id="another device"),
        pytest.param(node("n", labels={PRESENT: "true"}), False, True, id="a label"),
        pytest.param(node("n", labels={PRESENT: "false"}), False, False, id="a label that denies"),
        pytest.param(
            gpu_node(labels={PRESENT: "false"}), True, True, id="GPUs, whatever a label says"
        ),
        pytest.param(node("n", labels={"gpu": "true"}), False, False, id="an unknown label"),
    ],
)
def test_which_nodes_have_gpus(there: Node, default: bool, remembering: bool) -> None:
    # Columns of other GPUs and labels are there too.
    amd = gpu_node("c", resource="amd.com/gpu")
    others = (gpu_node("a"), node("b", labels={PRESENT: "true"}), amd)
    for asked, expected in ((DEFAULT, default), (REMEMBERING, remembering)):
        rejected = rejections(asked, pod(), cluster(*others, there))
        assert rejected is not None
        assert ("n" in rejected) == expected
        woken = wakes(asked, Resource.NODE, Action.ADD, pod=pod(), new=there)
        assert woken != expected


def test_own_labels() -> None:
    asked = plugin(rememberGPUNodes=True, gpuNodeLabels=["pool/gpu"])
    made = cluster(node("own", labels={"pool/gpu": ""}), node("known", labels={PRESENT: "true"}))

    assert rejections(asked, pod(), made) == {"own": REASON}


def test_the_code_and_the_reason_name_what_is_configured() -> None:
    asked, made = plugin(resources=["x.com/npu-*"]), cluster(gpu_node(resource="x.com/npu-4"))

    assert codes(asked, pod(), made) == {"n": Code.UNRESOLVABLE}
    assert "x.com/npu-*" in str(rejections(asked, pod(), made))


def test_gpus_that_appear_after_the_pod_was_prepared_count() -> None:
    grown = cluster(node("n"))
    prepared = DEFAULT.pre_filter(pod(), grown.nodes)
    assert prepared is not None
    assert DEFAULT.filter(prepared, grown.nodes, grown.nodes.rows).ok.all()
    grown.put_node(gpu_node())

    assert not DEFAULT.filter(prepared, grown.nodes, grown.nodes.rows).ok.any()
    assert DEFAULT.recheck(prepared, grown.nodes, grown.nodes.facts(0)) is Rescore.INFEASIBLE


def test_each_mode_leaves_the_other_point_alone() -> None:
    assert scores(DEFAULT, pod(), plain_and_gpu()) is None
    assert rejections(SCORING, pod(), plain_and_gpu()) is None


def _expected(there: Node, *, remembers: bool) -> bool:
    if dict(there.allocatable).get("example.com/gpu", 0) > 0:
        return True
    listed = any(name.startswith("example.com/") for name, _ in there.allocatable)
    return remembers and (listed or "disk" in there.labels)


@given(made=clusters(), data=st.data())
def test_columns_say_what_the_nodes_say(made: Cluster, data: st.DataObject) -> None:
    """All rows at once, some of them, and a row that changed, against a look at each node."""
    given = {
        "resources": ["example.com/*"],
        "rememberGPUNodes": data.draw(st.booleans()),
        "gpuNodeLabels": ["disk"],
    }
    rejecting, scoring = plugin(**given), plugin(**given, mode="Score")
    names = rejecting.pre_filter(pod(), made.nodes)
    assert names is not None
    assert names == scoring.pre_score(pod(), made.nodes, made.nodes.rows)
    for changed in data.draw(st.lists(nodes(), max_size=2)):
        rejecting.filter(names, made.nodes, made.nodes.rows)
        made.put_node(changed)
    seen = made.nodes
    some = seen.rows[[data.draw(st.booleans()) for _ in seen.rows]]

    has = [
        _expected(seen.node(row), remembers=bool(given["rememberGPUNodes"]))
        for row in some.tolist()
    ]

    assert rejecting.filter(names, seen, some).rejected.tolist() == has
    assert rejecting.filter(names, seen, seen.everything).rejected[some].tolist() == has
    assert scoring.score(names, seen, some).tolist() == [0 if each else 100 for each in has]
    column = np.full(len(seen.alive), -1, np.int64)
    for row, each in zip(some.tolist(), has, strict=True):
        quick = rejecting.recheck(names, seen, seen.facts(row))
        assert quick is (Rescore.INFEASIBLE if each else Rescore.UPDATED)
        assert scoring.rescore(names, seen, seen.facts(row), column) is Rescore.UPDATED
        assert column[row] == (0 if each else 100)


# Waking

LABELLED = {PRESENT: "true"}


@pytest.mark.parametrize(
    ("old", "new", "default", "remembering"),
    [
        pytest.param(gpu_node(), node("n"), True, True, id="GPUs are gone"),
        pytest.param(gpu_node(), gpu_node(amount=0), True, False, id="GPUs are away"),
        pytest.param(gpu_node(amount=0), node("n"), False, True, id="GPUs are listed no more"),
        pytest.param(gpu_node(), gpu_node(amount=2), False, False, id="more GPUs"),
        pytest.param(gpu_node(amount=0), gpu_node(), False, False, id="GPUs come back"),
        pytest.param(node("n"), node("n", cpu=8), False, False, id="there were none before"),
        pytest.param(
            gpu_node(labels=LABELLED), node("n", labels=LABELLED), True, False, id="a label is left"
        ),
        pytest.param(node("n", labels=LABELLED), node("n"), False, True, id="the label is gone"),
    ],
)
def test_waking_after_a_node_change(old: Node, new: Node, default: bool, remembering: bool) -> None:
    for asked, expected in ((DEFAULT, default), (REMEMBERING, remembering)):
        action = Action.UPDATE_NODE_ALLOCATABLE
        if asked is REMEMBERING and old.allocatable == new.allocatable:
            action = Action.UPDATE_NODE_LABEL
        assert wakes(asked, Resource.NODE, action, pod=pod(), old=old, new=new) == expected


def test_what_it_listens_to() -> None:
    heard = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE

    assert listens(DEFAULT) == {(Resource.NODE, heard)}
    assert listens(REMEMBERING) == {(Resource.NODE, heard | Action.UPDATE_NODE_LABEL)}
    assert REMEMBERING.watch(pod(), EMPTY) == WATCHED | Change.LABELS


@pytest.mark.parametrize("exempt", ["owner", "image"])
@pytest.mark.parametrize("remembers", [False, True])
def test_an_upgrade_never_strands_the_device_plugin(exempt: str, remembers: bool) -> None:
    asked = plugin(rememberGPUNodes=remembers, exemptDaemonSets=exempt == "owner")
    daemon = (
        owned("DaemonSet") if exempt == "owner" else running("nvcr.io/nvidia/k8s-device-plugin")
    )
    made = cluster()
    for amount in (4, 0, 4):
        made.put_node(gpu_node(amount=amount, labels=LABELLED))
        assert rejections(asked, daemon, made) is None
        kept = remembers or amount > 0
        assert rejections(asked, pod(), made) == ({"n": REASON} if kept else {})


@pytest.mark.parametrize("remembers", [False, True])
def test_a_rollout_of_the_device_plugin(remembers: bool) -> None:
    """Its pod goes, the GPUs are away, the next one comes and the GPUs are back: and so on."""
    raw = written("GPUAware", rememberGPUNodes=remembers, exemptDaemonSets=False)
    old = device_plugin("old").on("n")
    driven = driver(gpu_node(amount=4), old, plugins=(GPUAware,), profiles=raw["profiles"])
    driven.remove(old)
    driven.apply(device_plugin("early"), pod("before"))
    driven.settle()
    assert driven.node_of("early") == "n", "the GPUs are still counted"
    assert driven.place("before") == "unschedulable"

    driven.apply(gpu_node(amount=0), device_plugin("late"), pod("meanwhile"))
    driven.now += 60
    driven.settle()
    assert driven.node_of("late") == "n"
    stays = "" if remembers else "n"
    assert (driven.node_of("before"), driven.node_of("meanwhile")) == (stays, stays)

    driven.apply(gpu_node(amount=4), device_plugin("next"), pod("after"))
    driven.now += 60
    driven.settle()
    assert driven.node_of("next") == "n"
    assert driven.place("after") == "unschedulable"


# Configuration


@pytest.mark.parametrize(
    ("given", "path"),
    [
        pytest.param({}, None, id="defaults"),
        pytest.param({"resources": ["x.com/*", "y.com/gpu"]}, None, id="names and prefixes"),
        pytest.param({"resources": []}, "resources", id="no resource"),
        pytest.param({"resources": ["a.com/b", ""]}, "resources[1]", id="an empty resource"),
        pytest.param({"resources": ["*"]}, "resources[0]", id="everything"),
        pytest.param({"resources": ["a*b"]}, "resources[0]", id="a star within"),
        pytest.param({"devicePluginImages": []}, None, id="no images"),
        pytest.param({"devicePluginImages": [{}]}, "devicePluginImages[0].image", id="no image"),
        pytest.param(
            {"devicePluginImages": [{"image": ":v1"}]}, "devicePluginImages[0].image", id="a tag"
        ),
        pytest.param(
            {"devicePluginImages": [{"image": "a", "namespaces": ["b", ""]}]},
            "devicePluginImages[0].namespaces[1]",
            id="an empty namespace",
        ),
        pytest.param({"gpuNodeLabels": ["a", ""]}, "gpuNodeLabels[1]", id="an empty label"),
    ],
)
def test_args(given: dict[str, Any], path: str | None) -> None:
    assert [where for where, _ in args(**given).problems()] == ([path] if path else [])


def written(*enabled: str, **given: Any) -> dict[str, Any]:
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": name} for name in enabled]}},
        "pluginConfig": [{"name": "GPUAware", "args": given}],
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }


def test_it_is_off_until_the_configuration_names_it() -> None:
    known = known_plugins(REGISTRY)
    for enabled in ((), ("GPUAware",)):
        (profile,) = load_mapping(written(*enabled), known=known).profiles
        for point in ("preFilter", "filter", "preScore", "score"):
            names = [each.name for each in profile.points[point]]
            assert ("GPUAware" in names) == bool(enabled)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"mode": "Both"}, "mode"),
        ({"rememberGpuNodes": True}, "rememberGpuNodes"),
        ({"exemptDaemonSets": "yes"}, "exemptDaemonSets"),
        ({"resources": ["*"]}, "resources[0]"),
    ],
)
def test_wrong_args_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_mapping(written("GPUAware", **given), known=known_plugins(REGISTRY))

    assert f"args.{told}" in str(caught.value)


def test_the_example() -> None:
    known = known_plugins(REGISTRY)
    objects = manifests([str(EXAMPLE / "cluster.yaml")]).objects
    configuration = load((EXAMPLE / "scheduler.yaml").read_text(), known=known)

    off = simulate(Engine(load_mapping(written(), known=known), REGISTRY), objects)
    on = simulate(Engine(configuration, REGISTRY), objects)

    assert not off.pending
    assert {each.pod.name: each.node for each in on.placed} == {
        "training": "gpu-1",
        "web": "plain",
        "device-plugin": "gpu-2",
        "network-agent": "gpu-1",
    }
    (pending,) = on.pending
    assert pending.pod.name == "batch"
    assert f"2 {REASON[0]}" in pending.message


# Among the default plugins


@pytest.mark.parametrize(
    ("change", "woken"),
    [
        pytest.param(gpu_node(amount=0), True, id="a node stops being a GPU node"),
        pytest.param(node("fresh"), True, id="a node without GPUs appears"),
        pytest.param(gpu_node("fresh"), False, id="a node with GPUs appears"),
        pytest.param(gpu_node(amount=2), False, id="more GPUs"),
    ],
)
def test_a_waiting_pod_is_placed_when_there_is_a_node_for_it(change: Node, woken: bool) -> None:
    driven = driver(gpu_node(), pod("waiting"), plugins=(GPUAware,))
    driven.settle()
    assert driven.place("waiting") == "unschedulable"

    driven.apply(change)
    driven.now += 60
    driven.settle()

    assert driven.node_of("waiting") == (change.name if woken else "")


def test_nobody_is_evicted_from_a_gpu_node_for_a_pod_without_a_gpu() -> None:
    lesser = pod("lesser", node="n", cpu=4, spec={"priority": 0})
    driven = driver(gpu_node(), lesser, plugins=(GPUAware,))
    driven.apply(pod("greater", cpu=4, spec={"priority": 9}))
    driven.settle()

    assert evictions(driven.story) == []


def test_siblings_follow_a_node_that_gains_and_loses_its_gpus() -> None:
    driven = driver(node("n"), pod("one"), plugins=(GPUAware,))
    driven.settle()
    driven.apply(gpu_node(), pod("two"))
    driven.settle()
    assert (driven.node_of("one"), driven.node_of("two")) == ("n", "")

    driven.apply(node("n"), pod("three"))
    driven.now += 60
    driven.settle()
    assert (driven.node_of("two"), driven.node_of("three")) == ("n", "n")


def test_the_page_tells_every_argument_and_default() -> None:
    page = PAGE.read_text()
    known = GPUAwareArgs()

    for name in (*GPUAwareArgs.__struct_encode_fields__, *known.resources, *known.gpu_node_labels):
        assert f"`{name}`" in page
    configuration = page.split("```yaml\n")[1].split("```")[0]
    load(configuration, known=known_plugins(REGISTRY))


# What is reserved for free GPUs, and pods that make way

RESERVING = plugin(reservePerFreeGPU={"cpu": 2, "memory": "4Gi"})


@pytest.mark.parametrize(
    ("taken", "cpu", "memory", "kept"),
    [
        pytest.param(0, 4, "8Gi", False, id="what two free GPUs do not need"),
        pytest.param(0, 5, "8Gi", True, id="too much cpu"),
        pytest.param(0, 4, "9Gi", True, id="too much memory"),
        pytest.param(1, 5, "8Gi", False, id="a GPU that is taken needs no reserve"),
        pytest.param(2, 7, "15Gi", False, id="all GPUs are taken"),
    ],
)
def test_others_may_use_what_free_gpus_could_not_need(
    taken: int, cpu: int, memory: str, kept: bool
) -> None:
    there = node("n", cpu=8, memory="16Gi", **{NVIDIA: 2})
    made = cluster(there, node("plain", cpu=8, memory="16Gi"))
    if taken:
        made.put_pod(pod("gpus", node="n", **{NVIDIA: taken}))

    found = rejections(RESERVING, pod("p", cpu=cpu, memory=memory), made)
    assert found is not None
    assert ("n" in found) == kept
    if kept:
        assert found["n"][0].startswith("node(s) with GPUs keep 2 cpu and 4Gi memory for each free")
        assert codes(RESERVING, pod("p", cpu=cpu, memory=memory), made)["n"] is Code.UNSCHEDULABLE


@pytest.mark.parametrize(
    ("label", "kept"),
    [
        pytest.param("1", False, id="less is kept here"),
        pytest.param("3", True, id="more is kept here"),
        pytest.param("much", False, id="no quantity"),
    ],
)
def test_the_label_of_a_node_goes_before_the_argument(label: str, kept: bool) -> None:
    labels = {RESERVE_LABELS["cpu"]: label}
    made = cluster(node("n", cpu=8, memory="64Gi", labels=labels, **{NVIDIA: 2}))
    asks = pod("p", cpu=4)

    assert (rejections(RESERVING, asks, made) == {}) != kept
    assert RESERVING.watch(asks, made.nodes) & Change.LABELS


@pytest.mark.parametrize(
    ("trains", "cpu", "kept"),
    [
        pytest.param(3, 2, False, id="three cores are kept for the other GPU"),
        pytest.param(3, 3, True, id="and no less"),
        pytest.param(0, 4, False, id="without GPU pods, two for each"),
        pytest.param(0, 5, True, id="no less either"),
    ],
)
def test_what_gpu_pods_request_is_learned(trains: int, cpu: int, kept: bool) -> None:
    args = {"reservePerFreeGPU": {"cpu": 2}, "learnReserve": True}
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "GPUAware"}]}},
        "pluginConfig": [{"name": "GPUAware", "args": args}],
    }
    run = drive(node("gpu", cpu=8, **{NVIDIA: 2}), profiles=[profile])
    if trains:
        asked = {"requests": {"cpu": str(trains), NVIDIA: "1"}, "limits": {NVIDIA: "1"}}
        run.apply(pod("trains", spec={"containers": [{"name": "main", "resources": asked}]}))
    run.apply(pod("web", cpu=cpu))
    run.settle()

    assert bool(run.node_of("web")) != kept


def test_pods_are_told_apart_by_what_they_ask_of_the_reserve() -> None:
    nodes = cluster().nodes
    signed = [RESERVING.sign(pod("p", cpu=cpu), nodes) for cpu in (1, 2, 2)]
    assert signed[0] != signed[1] == signed[2]
    assert DEFAULT.sign(pod("p", cpu=1), nodes) == DEFAULT.sign(pod("p", cpu=2), nodes)


def test_pods_below_a_priority_use_gpu_nodes_when_others_are_full() -> None:
    filling = plugin(backfillBelowPriority=10)
    made = cluster(gpu_node("gpu"), node("plain"))
    low, high = (pod("p", spec={"priority": priority}) for priority in (9, 10))

    assert rejections(filling, low, made) is None
    assert set(rejections(filling, high, made) or ()) == {"gpu"}
    assert scores(filling, low, made) == {"gpu": 0, "plain": 100}
    assert scores(filling, high, made) is None
    assert filling.sign(low, made.nodes) != filling.sign(high, made.nodes)


def test_lists_that_add_to_the_defaults() -> None:
    more = plugin(
        additionalResources=["example.com/npu"],
        additionalDevicePluginImages=[{"image": "example.com/npu-plugin"}],
        additionalGPUNodeLabels=["example.com/npu"],
        rememberGPUNodes=True,
    )
    made = cluster(
        gpu_node("gpu"),
        gpu_node("npu", resource="example.com/npu"),
        node("labelled", labels={"example.com/npu": "yes"}),
    )
    serving = pod("p", spec={"containers": [{"name": "c", "image": "example.com/npu-plugin:1"}]})

    assert set(rejections(more, pod(), made) or ()) == {"gpu", "npu", "labelled"}
    assert rejections(more, serving, made) is None


def test_backfill_makes_way_for_a_gpu_pod() -> None:
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "GPUAware"}]}},
        "pluginConfig": [{"name": "GPUAware", "args": {"backfillBelowPriority": 0}}],
    }
    there = node("gpu", cpu=4, **{NVIDIA: 1})
    run = drive(there, pod("fills", cpu=4, spec={"priority": -1}), profiles=[profile])
    run.settle()
    assert run.node_of("fills") == "gpu"

    asked = {"requests": {"cpu": "2", NVIDIA: "1"}, "limits": {NVIDIA: "1"}}
    run.apply(pod("trains", spec={"containers": [{"name": "main", "resources": asked}]}))
    run.settle()
    assert evictions(run.story) == ["fills"]


def test_the_shared_example_gives_room_to_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    moorage = Moorage(monkeypatch, capsys)
    files = str(EXAMPLE / "shared.yaml"), str(EXAMPLE / "cluster.yaml")
    outcome = json.loads(moorage("simulate", "-o", "json", "--config", *files).out)

    placed = {each["pod"]: each["node"] for each in outcome["placements"]}
    assert placed["batch"] in ("gpu-1", "gpu-2")
