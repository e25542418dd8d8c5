"""GPUAware where device classes say what a GPU is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.config import load
from moorage.documents.conversion import decode_hook
from moorage.engine import Engine
from moorage.framework.profile import known_plugins
from moorage.framework.wakeups import Resource
from moorage.objects.decode import from_builtins
from moorage.objects.device import DeviceClass
from moorage.objects.pod import Pod
from moorage.objects.resource_claim import ResourceClaim
from moorage.plugins.gpu_aware import GPUAware
from moorage.plugins.gpu_aware_args import GPUAwareArgs
from moorage.simulate.loading import load as load_manifests
from moorage.simulate.simulation import simulate
from moorage.testing import drive
from tests.builders import cluster, node, pod
from tests.device_builders import (
    claim,
    device,
    device_class,
    holding,
    request,
    resource_slice,
    result as given,
)
from tests.plugins.asking import listens, rejections
from tests.registered import REGISTRY

EXAMPLE = Path(__file__).parents[2] / "examples" / "gpu"
OF_NET = 'device.driver == "net.example.com"'
OF_GPU = 'device.driver == "gpu.example.com"'


def plugin_args(**args: Any) -> GPUAwareArgs:
    return msgspec.convert(args, GPUAwareArgs, dec_hook=decode_hook)


def plugin(*classes: str, **args: Any) -> GPUAware:
    return GPUAware(plugin_args(deviceClasses=list(classes), **args))


def annotated(name: str, expression: str, value: str = "true", **spec: Any) -> DeviceClass:
    raw = {
        "metadata": {"name": name, "annotations": {"scheduling.moorage.dev/gpu": value}},
        "spec": {"selectors": [{"cel": {"expression": expression}}], **spec},
    }
    made = from_builtins("DeviceClass", raw)
    assert isinstance(made, DeviceClass)
    return made


def claiming(*names: str, **fields: Any) -> Pod:
    refs = [{"name": name, "resourceClaimName": name} for name in names]
    return pod(spec={"resourceClaims": refs}, **fields)


ALTERNATIVES = [{"name": name, "deviceClassName": name} for name in ("net", "gpu")]
DEVICES = (
    device_class("net", OF_NET),
    device_class("gpu", OF_GPU, extendedResourceName="example.com/gpu"),
    resource_slice("with", 2),
    resource_slice("net", [device("card")], nodeName="without", driver="net.example.com"),
    claim("gpu", request()),
    claim("net", request(class_name="net")),
    claim("either", {"name": "r", "firstAvailable": ALTERNATIVES}),
)
NODES = node("with"), node("without")


def kept_from(asked: GPUAware, asking: Pod, *more: Any) -> list[str]:
    """The nodes that reject a pod."""
    known = cluster(*NODES)
    for item in (*DEVICES, *more):
        known.put_device(item)
    return sorted(rejections(asked, asking, known) or ())


@pytest.mark.parametrize(
    ("asking", "rejecting"),
    [
        pytest.param(pod(), ["with"], id="no claim"),
        pytest.param(claiming("gpu"), [], id="a claim to a GPU"),
        pytest.param(claiming("net"), ["with"], id="a claim to something else"),
        pytest.param(claiming("net", "gpu"), [], id="one of two claims"),
        pytest.param(claiming("either"), [], id="one of two alternatives"),
        pytest.param(claiming("missing"), [], id="a claim that is not there yet"),
        pytest.param(pod(gpu=1), [], id="by the name of a resource"),
    ],
)
def test_a_class_says_who_needs_a_gpu_and_where_they_are(asking: Pod, rejecting: list[str]) -> None:
    assert kept_from(plugin("gpu"), asking) == rejecting
    same = annotated("gpu", OF_GPU, extendedResourceName="example.com/gpu")
    assert kept_from(plugin(), asking, same) == rejecting


@pytest.mark.parametrize(
    ("classes", "more", "rejecting"),
    [
        pytest.param((), (), [], id="no class says so"),
        pytest.param(("missing",), (), [], id="a class that is not there"),
        pytest.param((), (annotated("other", OF_GPU, "no"),), [], id="annotated otherwise"),
        pytest.param((), (annotated("other", OF_GPU),), ["with"], id="an annotated class"),
        pytest.param(("net",), (), ["without"], id="other devices"),
        pytest.param(("gpu", "net"), (), ["with", "without"], id="two classes"),
        pytest.param((), (annotated("broken", "1 / 0 == 1"),), [], id="an expression that breaks"),
        pytest.param(
            ("gpu",), (resource_slice("far", 1, allNodes=True),), ["with", "without"], id="anywhere"
        ),
    ],
)
def test_nodes_have_what_the_classes_select(
    classes: tuple[str, ...], more: tuple[Any, ...], rejecting: list[str]
) -> None:
    assert kept_from(plugin(*classes), pod(), *more) == rejecting


def test_without_the_argument_claims_are_not_looked_at() -> None:
    assert kept_from(GPUAware(), pod(), annotated("gpu", OF_GPU)) == []
    assert kept_from(GPUAware(), claiming("net"), annotated("gpu", OF_GPU)) == []


@pytest.mark.parametrize(
    ("held", "rejecting"),
    [((), ["with"]), (("gpu-0",), ["with"]), (("gpu-0", "gpu-1"), [])],
    ids=["two free", "one free", "none free"],
)
def test_what_free_devices_need_is_kept(held: tuple[str, ...], rejecting: list[str]) -> None:
    """Of 4 cores, 2 are kept for each free GPU, so that 3 are too many while one is free."""
    asked = plugin("gpu", reservePerFreeGPU={"cpu": 2})
    claims = [holding(name, given("with", name)) for name in held]
    assert kept_from(asked, pod(cpu=3), *claims) == rejecting


LEARNING = {
    "plugins": {"multiPoint": {"enabled": [{"name": "GPUAware"}]}},
    "pluginConfig": [
        {
            "name": "GPUAware",
            "args": {
                "deviceClasses": ["gpu"],
                "reservePerFreeGPU": {"cpu": 2},
                "learnReserve": True,
            },
        }
    ],
}


def taught(*claims: ResourceClaim, pods: tuple[Pod, ...], cpu: int) -> bool:
    """Whether a pod finds room on a node of 16 cores and four GPUs."""
    run = drive(
        node("with", cpu=16),
        device_class("gpu", OF_GPU, extendedResourceName="example.com/gpu"),
        device_class("net", OF_NET),
        resource_slice("with", 4),
        *claims,
        *pods,
        profiles=[LEARNING],
    )
    run.apply(pod("web", cpu=cpu))
    run.settle()
    return run.node_of("web") == "with"


def trains(name: str, claim_name: str, cpu: int) -> Pod:
    return claiming(claim_name, name=name, node="with", cpu=cpu)


def held(name: str, *devices: str) -> ResourceClaim:
    return holding(name, *(given("with", each) for each in devices))


@pytest.mark.parametrize(
    ("claims", "pods", "room"),
    [
        pytest.param((), (), 8, id="nobody to learn from: 2 for each of 4"),
        pytest.param(
            (held("a", "gpu-0"),),
            (trains("t", "a", 1),),
            12,
            id="1 for each of the 3 that are free",
        ),
        pytest.param(
            (held("a", "gpu-0", "gpu-1"),), (trains("t", "a", 6),), 4, id="3 for each of 2"
        ),
        pytest.param(
            (held("a", "gpu-0"),),
            (trains("t", "a", 1), trains("u", "a", 1)),
            8,
            id="two pods share a claim: 2 for each of 3",
        ),
        pytest.param(
            (held("a", "gpu-0"),), (pod("t", node="with", cpu=1),), 9, id="a claim without its pod"
        ),
    ],
)
def test_what_pods_with_claims_request_is_learned(
    claims: tuple[ResourceClaim, ...], pods: tuple[Pod, ...], room: int
) -> None:
    assert taught(*claims, pods=pods, cpu=room)
    assert not taught(*claims, pods=pods, cpu=room + 1)


def test_who_waits_hears_of_slices_and_classes() -> None:
    heard = {resource for resource, _ in listens(plugin("gpu"))}
    assert heard - {resource for resource, _ in listens(GPUAware())} == {
        Resource.RESOURCE_SLICE,
        Resource.DEVICE_CLASS,
    }
    reserving = plugin("gpu", reservePerFreeGPU={"cpu": 2})
    assert Resource.RESOURCE_CLAIM in {resource for resource, _ in listens(reserving)}


def test_a_class_needs_a_name() -> None:
    assert list(plugin_args(deviceClasses=[""]).problems()) == [
        ("deviceClasses[0]", "must not be empty")
    ]


def test_the_example_keeps_nodes_with_devices_for_claims() -> None:
    known = known_plugins(REGISTRY)
    objects = load_manifests([str(EXAMPLE / "devices.yaml")]).objects
    configuration = load((EXAMPLE / "by-class.yaml").read_text(), known=known)

    outcome = simulate(Engine(configuration, REGISTRY), objects)

    assert {each.pod.name: each.node for each in outcome.placed} == {
        "train": "gpu-1",
        "web": "plain",
    }
    (pending,) = outcome.pending
    assert "1 node(s) with GPUs only take pods with a GPU limit or claim" in pending.message
