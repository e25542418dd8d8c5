"""Plugins that stamp pods: what is bound without the stamp counts as they say."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from moorage.engine.actions import BindPod, RecordEvent
from moorage.framework.plugin import PreEnqueue
from moorage.framework.stamps import StampPods
from moorage.objects.decode import from_builtins
from moorage.objects.pod import Pod
from moorage.objects.workload import Namespace
from moorage.testing import Driver, bindings, drive
from tests.builders import node, pod

CLASS, SEAL = "example.com/class", "example.com/seal"
GOLD = {"annotations": {CLASS: "gold"}}


class Sealed(PreEnqueue, StampPods):
    """Gold pods are gold where the plugin bound them, or where their namespace says so."""

    name = "Sealed"

    def pre_enqueue(self, pod: Pod) -> None:
        return None

    def stamp(self, pod: Pod) -> Mapping[str, str]:
        return {SEAL: pod.uid} if CLASS in pod.annotations else {}

    def counts_as(self, pod: Pod, namespace_labels: Mapping[str, str]) -> Pod:
        if "golden" in namespace_labels:
            return pod
        return replace(pod, annotations={**pod.annotations, CLASS: "iron"})


def namespace(**labels: str) -> Namespace:
    made = from_builtins("Namespace", {"metadata": {"name": "default", "labels": labels}})
    assert isinstance(made, Namespace)
    return made


def run(*objects: Pod | Namespace) -> Driver:
    driven = drive(node("a"), *objects, plugins=(Sealed,))
    driven.settle()
    return driven


def see(driven: Driver, name: str) -> str | None:
    seen = driven.engine.cluster.pod(f"default/{name}")
    assert seen is not None
    return seen.annotations.get(CLASS)


def test_a_binding_brings_the_stamp_and_the_pod_counts_as_it_says() -> None:
    driven = run(pod("ours", metadata=GOLD), pod("plain"))

    binds = {each.pod.name: each.annotations for each in driven.story if isinstance(each, BindPod)}
    assert binds == {"ours": {SEAL: "default/ours"}, "plain": {}}
    assert see(driven, "ours") == "gold"


def test_a_pod_without_the_stamp_counts_as_the_plugin_says() -> None:
    forged = {"annotations": {CLASS: "gold", SEAL: "made up"}}
    driven = run(pod("around", node="a", metadata=GOLD), pod("forged", node="a", metadata=forged))

    assert (see(driven, "around"), see(driven, "forged")) == ("iron", "iron")


def test_a_stamp_that_is_taken_off_still_counts() -> None:
    driven = run(pod("ours", metadata=GOLD))
    driven.apply(pod("ours", node="a", metadata=GOLD))

    assert see(driven, "ours") == "gold"


def test_labels_of_the_namespace_count_at_once() -> None:
    driven = run(namespace(), pod("around", node="a", metadata=GOLD))
    driven.apply(namespace(golden="yes"))
    assert see(driven, "around") == "gold"

    driven.apply(namespace())
    assert see(driven, "around") == "iron"
    driven.apply(namespace(golden="yes"))
    driven.remove(namespace(golden="yes"))
    assert see(driven, "around") == "iron"


@pytest.mark.parametrize("broken", ["raises", "no mapping"])
def test_a_plugin_that_cannot_stamp_binds_nothing(broken: str) -> None:
    class Broken(Sealed):
        name = "Broken"

        def stamp(self, pod: Pod) -> Mapping[str, str]:
            if broken == "raises":
                raise KeyError("no seal")
            return None  # type: ignore[return-value]

    driven = drive(node("a"), pod("waits", metadata=GOLD), plugins=(Broken,))
    notes = [each.note for each in driven.step() if isinstance(each, RecordEvent)]

    assert not bindings(driven.story)
    assert any('asking plugin "Broken" for a stamp' in note for note in notes), notes
