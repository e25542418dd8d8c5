"""Where like pods are easily taken for more alike than they are: one small cluster each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from moorage.config import Configuration
from moorage.engine.actions import Action, BindPod, PatchPodStatus
from moorage.engine.events import Applied, Removed
from moorage.objects.kinds import Object
from moorage.objects.node import HOSTNAME, ZONE
from moorage.objects.pod import Pod
from moorage.objects.selector import equality
from moorage.objects.workload import ReplicaSet
from tests.builders import node, pod
from tests.coexisting import annotated, daemon, exclusive, static
from tests.exactness.four_ways import FourWays, configuration, profile
from tests.exactness.outsiders import WITH_OUTSIDERS
from tests.storage_builders import claiming, csi_node, pv, pvc, storage_class
from tests.strategies import OWNER, PREFERRED, REQUIRED


class Told:
    """Four engines that are told objects and decide until nothing is left to do."""

    def __init__(self, *objects: Object, using: Configuration | None = None) -> None:
        self.ways = FourWays(using or configuration(registry=WITH_OUTSIDERS), WITH_OUTSIDERS)
        self.now = 0.0
        self.apply(*objects)

    def apply(self, *objects: Object) -> None:
        self.ways.handle((Applied(each) for each in objects), self.now)

    def remove(self, *objects: Object) -> None:
        self.ways.handle((Removed(each) for each in objects), self.now)

    def places(self, *pods: Pod) -> dict[str, str | None]:
        """Where pods go that come one after the other; a message's beginning if nowhere."""
        self.apply(*pods)
        actions: list[Action] = []
        for _ in pods:
            self.now += 1.0
            actions += self.ways.step(self.now, 1)
        self.ways.check()
        return dict(outcomes(actions))


def outcomes(actions: Iterable[Action]) -> Iterable[tuple[str, str | None]]:
    for action in actions:
        if isinstance(action, BindPod):
            yield action.pod.name, action.node
        elif isinstance(action, PatchPodStatus) and action.condition is not None:
            yield action.pod.name, None


def important(name: str, priority: int, **given: Any) -> Pod:
    return pod(name, spec={"priority": priority, "preemptionPolicy": "Never"}, **given)


def anti(key: str, value: str, topology: str = HOSTNAME) -> dict[str, Any]:
    term = {"topologyKey": topology, "labelSelector": {"matchLabels": {key: value}}}
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}


def test_a_nominated_pod_is_in_the_way_of_lesser_pods_only() -> None:
    """The failure of a lesser pod is not that of a greater one, although they are alike."""
    gate = [{"name": "wait"}]
    waiting = pod(
        "waiting",
        cpu=3,
        spec={"priority": 5, "schedulingGates": gate},
        status={"nominatedNodeName": "a"},
    )
    told = Told(node("a", cpu=4), waiting)

    found = told.places(important("greater", 9, cpu=2), important("lesser", 1, cpu=2))
    assert found == {"greater": "a", "lesser": None}
    told = Told(node("a", cpu=4), waiting)
    assert told.places(important("lesser", 1, cpu=2)) == {"lesser": None}
    assert told.places(important("greater", 9, cpu=2)) == {"greater": "a"}


def test_the_room_kept_for_a_pod_is_no_room_for_its_like() -> None:
    """A nominated pod fails by what is on its node, others also by the room that it keeps."""
    told = Told(node("a", cpu=4, pods=2), pod("runs", node="a", cpu=2))
    keeps = important("keeps", 0, cpu=3, status={"nominatedNodeName": "a"})

    assert told.places(keeps) == {"keeps": None}
    assert told.places(important("like", 0, cpu=3)) == {"like": None}


def test_a_volume_in_use_is_not_like_one_that_is_free() -> None:
    """Pods with a claim each are alike until the first of them runs: its volume is there then."""
    claims = [pvc(f"c{at}", volume=f"v{at}") for at in range(3)]
    volumes = [pv(f"v{at}", claim=f"c{at}@uid-c{at}") for at in range(3)]
    told = Told(storage_class(), node("a"), node("b"), *claims, *volumes)
    told.apply(csi_node("a", csi=1), csi_node("b", csi=1))

    found = told.places(*(claiming(f"c{at}", name=f"p{at}") for at in range(3)))
    assert found == {"p0": "a", "p1": "b", "p2": None}


def test_a_volume_that_changes_does_not_change_others() -> None:
    claims = [pvc(f"c{at}", volume=f"v{at}") for at in range(3)]
    volumes = [pv(f"v{at}", claim=f"c{at}@uid-c{at}", hosts=("a",)) for at in range(3)]
    told = Told(storage_class(), node("a"), node("b"), *claims, *volumes)

    assert told.places(claiming("c0", name="p0")) == {"p0": "a"}
    told.apply(pv("v0", claim="c0@uid-c0", hosts=("b",)))
    assert told.places(claiming("c1", name="p1")) == {"p1": "a"}
    told.remove(claims[0])
    assert told.places(claiming("c2", name="p2")) == {"p2": "a"}


def test_a_nominated_pod_shares_its_volume_with_itself_only() -> None:
    """Its own volume is on the node in thought; that of a like pod would be one too many."""
    claims = [pvc(f"c{at}", volume=f"v{at}") for at in range(2)]
    volumes = [pv(f"v{at}", claim=f"c{at}@uid-c{at}") for at in range(2)]
    told = Told(storage_class(), node("a"), csi_node("a", csi=1), *claims, *volumes)
    other = pod("other", node="a", cpu=4)
    told.apply(other)

    assert told.places(claiming("c0", name="first", cpu=1)) == {"first": None}
    told.apply(claiming("c0", name="first", cpu=1, status={"nominatedNodeName": "a"}))
    told.remove(other)
    assert told.places(claiming("c1", name="second", cpu=1)) == {"second": None}


def test_the_terms_of_nominated_pods_read_labels() -> None:
    """A label that nobody else reads tells two pods apart while such a pod is nominated."""
    spec = {"schedulingGates": [{"name": "wait"}], **anti("index", "1")}
    shy = pod("shy", spec=spec, status={"nominatedNodeName": "a"})
    lonely = anti("app", "nobody")
    told = Told(node("a"), node("b", cpu="1"), pod("fills", node="b", cpu=1), shy)

    first = pod("p0", cpu="100m", labels={"index": "0"}, spec=lonely)
    second = pod("p1", cpu="100m", labels={"index": "1"}, spec=lonely)
    assert told.places(first, second) == {"p0": "a", "p1": None}
    third = pod("p2", cpu="100m", labels={"index": "0"}, spec=lonely)
    assert told.places(third) == {"p2": "a"}


def test_the_selector_of_a_controller_reads_labels() -> None:
    """Whether a pod counts itself depends on the labels that its controller selects."""
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultingType": "List", "defaultConstraints": [spread]}
    config = configuration(
        profile(pluginConfig=[{"name": "PodTopologySpread", "args": args}]), WITH_OUTSIDERS
    )
    selector = ReplicaSet(namespace="default", name="set", selector=equality({"tier": "x"}))
    owned = {"ownerReferences": [OWNER]}
    full, roomy = node("a", labels={ZONE: "a"}, cpu=2), node("b", labels={ZONE: "b"}, cpu=1)
    told = Told(full, roomy, selector, using=config)
    told.apply(pod("one", node="a", labels={"tier": "x"}, metadata=owned))
    told.apply(pod("fills", node="b", cpu=1))

    ours = pod("ours", labels={"tier": "x"}, cpu="100m", metadata=owned)
    strange = pod("strange", labels={"tier": "y"}, cpu="100m", metadata=owned)
    assert told.places(strange, ours) == {"strange": "a", "ours": None}
    again = pod("again", labels={"tier": "y"}, cpu="100m", metadata=owned)
    assert told.places(again) == {"again": "a"}


def test_a_label_that_a_selector_begins_to_read() -> None:
    """Pods of an indexed job are alike, until a pod appears that one of them repels."""
    told = Told(node("a", cpu=16), node("b", cpu=1))
    pods = [pod(f"p{at}", cpu="100m", labels={"index": str(at % 2)}) for at in range(4)]

    assert told.places(*pods[:2]) == {"p0": "a", "p1": "a"}
    told.apply(pod("picky", node="a", spec=anti("index", "1")))
    assert told.places(*pods[2:]) == {"p2": "a", "p3": "b"}


def test_a_preference_that_cannot_be_read() -> None:
    """It is an error only where nodes are scored, and is told as one."""
    broken = {"matchExpressions": [{"key": "rank", "operator": "Gt", "values": ["x"]}]}
    rule = {PREFERRED: [{"weight": 1, "preference": broken}]}
    pods = [pod(f"p{at}", spec={"affinity": {"nodeAffinity": rule}}) for at in range(2)]

    assert Told(node("a")).places(*pods) == {"p0": "a", "p1": "a"}
    assert Told(node("a"), node("b")).places(*pods) == {"p0": None, "p1": None}


# Exclusive pods


def test_the_first_exclusive_pod_concerns_pods_that_were_decided_before() -> None:
    """While nobody is exclusive, ordinary pods are not even asked about it."""
    told = Told(node("a", cpu=16), node("b", cpu=1))
    alone = exclusive("alone", "a")

    assert told.places(pod("p0", cpu="100m")) == {"p0": "a"}
    told.apply(alone)
    assert told.places(pod("p1", cpu="100m"), pod("p2", cpu="100m")) == {"p1": "b", "p2": "b"}
    told.remove(alone)
    assert told.places(pod("p3", cpu="100m")) == {"p3": "a"}
    told.apply(annotated("again", "a"))
    assert told.places(pod("p4", cpu="100m")) == {"p4": "b"}


def test_a_node_that_is_kept_for_an_exclusive_pod_is_none_for_lesser_ones() -> None:
    """Not even where no exclusive pod runs anywhere."""
    told = Told(node("a", cpu=16), node("b", cpu=1))
    assert told.places(pod("p0", cpu="100m")) == {"p0": "a"}
    waiting = exclusive(
        "waiting",
        spec={"priority": 5, "schedulingGates": [{"name": "wait"}]},
        status={"nominatedNodeName": "a"},
    )
    told.apply(waiting)
    found = told.places(pod("p1", cpu="100m"), important("greater", 9, cpu="100m"))
    assert found == {"greater": "a", "p1": "b"}
    told.remove(waiting)
    assert told.places(pod("p2", cpu="100m")) == {"p2": "a"}


def test_pods_that_differ_in_owner_or_annotations_only() -> None:
    """One template, and yet not alike: who owns a pod and what is noted on it matters."""
    told = Told(node("a", cpu=16), node("b", cpu=1), pod("runs", node="a", cpu="100m"))

    assert told.places(pod("p0")) == {"p0": "a"}
    assert told.places(annotated("p1")) == {"p1": "b"}
    assert told.places(daemon("p2"), pod("p3"), static("p4")) == {"p2": "a", "p3": "a", "p4": "a"}
    assert told.places(daemon("p5", spec={"nodeSelector": {HOSTNAME: "b"}})) == {"p5": "b"}
    assert told.places(pod("p6", spec={"nodeSelector": {HOSTNAME: "b"}})) == {"p6": None}


def test_exclusive_pods_in_turn_with_others() -> None:
    """What one of them takes is gone for the other, at once."""
    told = Told(*(node(name) for name in "abcd"))
    turns = [exclusive("e0"), pod("p0"), exclusive("e1"), pod("p1"), exclusive("e2"), pod("p2")]

    found = told.places(*turns)
    assert found.pop("e2") is None
    alone, together = {found["e0"], found["e1"]}, {found["p0"], found["p1"], found["p2"]}
    assert alone | together == set("abcd")
    assert len(alone) == len(together) == 2


def test_a_running_pod_that_begins_to_tolerate_no_others() -> None:
    told = Told(node("a", cpu=16), node("b", cpu=1))

    assert told.places(pod("p0", cpu="100m"), pod("p1", cpu="100m")) == {"p0": "a", "p1": "a"}
    told.apply(pod("p0", cpu="100m", node="a"), annotated("p1", "a", cpu="100m"))
    assert told.places(pod("p2", cpu="100m")) == {"p2": "b"}
    told.apply(pod("p1", node="a", cpu="100m"))
    assert told.places(pod("p3", cpu="100m")) == {"p3": "a"}


# Plugins from elsewhere


def told_with(plugin: str, *objects: Object) -> Told:
    enabled = profile(plugins={"multiPoint": {"enabled": [{"name": plugin, "weight": 50}]}})
    return Told(*objects, using=configuration(enabled, WITH_OUTSIDERS))


def test_a_plugin_without_a_filter_may_turn_pods_away() -> None:
    told = told_with("Doorkeeper", *(node(name) for name in "abcd"))

    assert None not in told.places(pod("p0"), pod("p1")).values()
    told.apply(node("a", spec={"unschedulable": True}))
    assert told.places(pod("p2")) == {"p2": None}
    told.apply(node("a"))
    assert None not in told.places(pod("p3")).values()


def test_whether_a_plugin_scores_may_depend_on_the_feasible_nodes() -> None:
    """Half of the nodes or fewer: then the later of them is the better one."""
    told = told_with("Majority", *(node(name) for name in "abcd"))

    told.places(pod("p0"), pod("p1"))
    told.apply(*(node(name, spec={"unschedulable": True}) for name in "cd"))
    assert told.places(pod("p2"), pod("p3"), pod("p4")) == dict.fromkeys(("p2", "p3", "p4"), "b")


@pytest.mark.parametrize("plugin", ["Relative", "Fragile"])
def test_a_score_out_of_range_is_told(plugin: str) -> None:
    told = told_with(plugin, node("a"), node("b"))

    assert None not in told.places(pod("p0"), pod("p1")).values()
    told.apply(pod("fills", node="a", cpu="2500m"))
    assert told.places(pod("p2")) == {"p2": None}


def test_reasons_are_those_of_a_node_as_it_is_by_now() -> None:
    """A failure of another priority is not known, so that the class itself finds the reasons."""
    told = Told(node("a", cpu=1, memory="8Gi"))
    assert told.places(important("first", 1, cpu=2, memory="4Gi")) == {"first": None}
    told.apply(node("a", cpu=4, memory="1Gi"))

    # Messages are compared, too.
    assert told.places(important("second", 2, cpu=2, memory="4Gi")) == {"second": None}
