"""What a class must notice after it was made: one small cluster for each change that it may miss.

All engines are told the same, with reuse and without; `Told.places` raises if they differ.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.config import Configuration
from moorage.engine.actions import RecordEvent
from moorage.engine.cycle import EVERY_NODE
from moorage.objects.node import HOSTNAME, ZONE, Node
from moorage.objects.pod import Pod
from moorage.objects.selector import equality
from moorage.objects.workload import PodDisruptionBudget, Service
from tests.builders import node, pod
from tests.engine.test_extended import disk, reading
from tests.exactness.following import Following, few_plugins, small, using
from tests.exactness.four_ways import configuration, profile
from tests.exactness.test_disks import BUILT_IN
from tests.exactness.test_reuse_limits import decide, engine_of, on_node
from tests.exactness.test_traps import Told, anti, important
from tests.strategies import PREFERRED, REQUIRED

CORDONED = {"unschedulable": True}
#: Reads the label for pods of the namespace, and selects none of them.
READS_APP = Service(namespace="default", name="reads", selector=equality({"app": "nobody"}))
WEB = {"app": "web"}


def prefers_none(count: int) -> list[dict[str, str]]:
    return [{"key": f"k{at}", "effect": "PreferNoSchedule"} for at in range(count)]


# Who is served


def test_a_pod_names_a_node_and_nobody_heeds_it() -> None:
    off = {"multiPoint": {"disabled": [{"name": "NodeAffinity"}]}}
    told = Told(node("a"), node("b"), node("c"), using=configuration(profile(plugins=off)))

    found = told.places(*(pod(f"p{at}", spec=on_node("c")) for at in range(3)))
    assert set(found.values()) == set("abc")


def test_equal_nodes_take_turns_as_they_come_and_go() -> None:
    told = Told(*(node(f"n{at}", labels={ZONE: zone}) for at, zone in enumerate("aabbcc")))

    told.places(*small(1))
    told.remove(node("n1"), node("n2"))
    told.apply(node("m1", labels={ZONE: "c"}), node("m2", labels={ZONE: "a"}))
    told.places(*small(6, "q"))


def test_ties_begin_at_the_next_node_after_a_while() -> None:
    told = Told(node("a", cpu=64), node("b", cpu=64))

    told.places(*(pod(f"p{at}", cpu="10m", memory="10Mi") for at in range(70)))


def test_what_was_prepared_at_first_is_not_what_nominated_pods_are_tried_with() -> None:
    gated = {"priority": 5, "schedulingGates": [{"name": "wait"}]}
    waiting = pod("waiting", cpu="10m", spec=gated, status={"nominatedNodeName": "a"})
    told = Following(using("Quota"), node("a"), waiting)

    assert told.places(*small(3)) == {"p0": "a", "p1": "a", "p2": None}


def test_what_pods_are_spread_over_is_counted_beside_nominated_ones() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
    }
    waiting = pod(
        "waiting",
        labels=WEB,
        spec={"priority": 5, "schedulingGates": [{"name": "wait"}]},
        status={"nominatedNodeName": "a"},
    )
    told = Told(node("a"), node("b"), waiting)

    spread = {"topologySpreadConstraints": [constraint]}
    found = told.places(*small(2, labels=WEB, spec=spread))
    assert found == {"p0": "b", "p1": "a"}


def test_a_label_that_a_nominated_pod_begins_to_read() -> None:
    """The pods that the class was made for have it, the next one does not."""
    nameless = {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}
    term = {"topologyKey": HOSTNAME, "labelSelector": nameless}
    loner = pod("loner", node="b", spec={"affinity": {"podAntiAffinity": {REQUIRED: [term]}}})
    # Where no node is found by a class, the pod is decided alone: there has to be a second one.
    told = Told(node("a", cpu=16), node("b"), node("c", cpu=1), loner)
    shy = {"schedulingGates": [{"name": "wait"}], **anti("index", "1")}

    # A class is made for the second of like pods.
    assert told.places(*small(2, labels={"index": "1"})) == {"p0": "a", "p1": "a"}
    told.apply(pod("shy", spec=shy, status={"nominatedNodeName": "a"}))
    assert told.places(pod("p2", cpu="100m")) == {"p2": "a"}


# Failures


def test_a_failure_does_not_concern_greater_pods() -> None:
    gated = {"priority": 5, "schedulingGates": [{"name": "wait"}]}
    waiting = pod("waiting", cpu=3, spec=gated, status={"nominatedNodeName": "a"})
    told = Told(node("a", cpu=4), waiting)

    assert told.places(important("lesser", 0, cpu=2)) == {"lesser": None}
    assert told.places(important("greater", 9, cpu=2)) == {"greater": "a"}


def test_a_failure_ends_when_room_is_no_longer_kept() -> None:
    gated = {"priority": 5, "schedulingGates": [{"name": "wait"}]}
    waiting = pod("waiting", cpu=3, spec=gated, status={"nominatedNodeName": "a"})
    off = {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}}
    told = Told(node("a", cpu=4), waiting, using=configuration(profile(plugins=off)))

    assert told.places(important("p0", 0, cpu=2)) == {"p0": None}
    told.remove(waiting)
    assert told.places(important("p1", 0, cpu=2)) == {"p1": "a"}


def test_a_failure_tells_of_the_nodes_that_are_there() -> None:
    told = Told(node("a", cpu=1), node("b", cpu=1), node("c", cpu=1))

    told.places(pod("first", cpu=2))
    told.remove(node("b", cpu=1))
    told.places(pod("second", cpu=2))
    told.apply(node("d", cpu=1), node("e", cpu=1))
    told.places(pod("third", cpu=2))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod("hog", node="a", cpu=3), pod("hog", node="a", memory="7Gi")),
        (node("a", labels={"repairs": "disk"}), node("a", labels={"repairs": "fan"})),
    ],
    ids=["the same reasons on other rows", "other reasons on the same rows"],
)
def test_a_class_fails_again_for_another_reason(first: Pod | Node, second: Pod | Node) -> None:
    """In between such pods fit, so that nothing is left of the first failure but its class."""
    told = Following(using("Repairs"), node("a"))
    told.places(*(pod(f"p{at}", cpu=1, memory="1Gi") for at in range(2)))

    for at, trouble in enumerate((first, second)):
        failing = pod(f"failing-{at}", cpu=1, memory="1Gi")
        told.apply(trouble)
        assert told.places(failing) == {failing.name: None}
        told.remove(failing)
        if isinstance(trouble, Pod):
            told.remove(trouble)
        else:
            told.apply(node("a"))
        fitting = pod(f"fitting-{at}", cpu=1, memory="1Gi")
        assert told.places(fitting) == {fitting.name: "a"}
        told.remove(fitting)


def test_a_failure_ends_where_a_pod_leaves_the_zone_of_another_node() -> None:
    """The node that it leaves is too small; the other one is free now."""
    told = Told(node("small", cpu=1, labels={ZONE: "z"}), node("large", cpu=4, labels={ZONE: "z"}))
    running = pod("running", labels=WEB, node="small", cpu="10m")
    told.apply(running)
    rule = anti("app", "web", ZONE)

    failing = [pod(f"failing-{at}", cpu=2, spec=rule) for at in range(2)]
    assert told.places(*failing) == {"failing-0": None, "failing-1": None}
    told.remove(running, *failing)
    assert "large" in told.places(*(pod(f"p{at}", cpu=2, spec=rule) for at in range(2))).values()


def test_a_failure_ends_when_pods_are_rejected_as_a_whole() -> None:
    told = Following(using("Doorkeeper"), node("a", cpu=1), node("b", cpu=1))

    told.places(pod("first", cpu=2))
    told.apply(PodDisruptionBudget(namespace="default", name="closed"))
    told.places(pod("second", cpu=2))


def test_a_failure_takes_as_much_room_as_there_are_nodes() -> None:
    taken = []
    for nodes in (10, 1_010):
        engine = engine_of(nodes=nodes)
        decide(engine, pod("huge", cpu=99))
        taken.append(engine.answers.bytes)

    assert taken[1] - taken[0] >= 9 * 1_000


def test_a_disk_gets_faster_after_like_pods_failed() -> None:
    """No other plugin reads disks, so only the watch of this one shows the row."""
    told = Told(node("a"), node("b"), disk("a", 10), disk("b", 10), using=BUILT_IN)

    first = [reading(f"p{at}", 50) for at in range(3)]
    assert told.places(*first) == {"p0": None, "p1": None, "p2": None}
    told.remove(*first)
    told.apply(disk("b", 90))
    assert told.places(reading("q", 50)) == {"q": "b"}


@pytest.mark.parametrize("changes", [6, 20], ids=["few", "many"])
def test_what_is_further_back_than_the_log_is_found_anew(changes: int) -> None:
    told = Told(node("a", cpu=4), node("b", cpu=1), pod("fills", node="a", cpu="3500m"))
    for engine in told.ways.engines.values():
        engine.cluster.changes.keep = 4

    assert told.places(*small(2)) == {"p0": "b", "p1": "b"}
    assert told.places(important("big", 0, cpu=3)) == {"big": None}
    told.remove(important("big", 0, cpu=3), pod("fills", node="a", cpu="3500m"))
    for at in range(changes):
        told.apply(node("b", cpu=1, labels={"at": str(at)}))
    assert told.places(important("big2", 0, cpu=3)) == {"big2": "a"}
    told.remove(important("big2", 0, cpu=3, node="a"))
    assert told.places(pod("p2", cpu="100m")) == {"p2": "a"}


def notes(told: Told, *pods: Pod) -> list[str]:
    """What is told of pods that fit nowhere, one after the other."""
    told.apply(*pods)
    return [
        action.note.rpartition(": ")[2]
        for _ in pods
        for action in told.ways.step(told.now, 1)
        if isinstance(action, RecordEvent)
    ]


def test_a_failure_ends_with_what_only_a_post_filter_reads() -> None:
    told = Following(using("Clerk"), node("a", cpu=1))
    pressed = {"conditions": [{"type": "DiskPressure", "status": "True"}]}

    first = notes(told, pod("p0", cpu=3), pod("p1", cpu=3))
    assert ["0 are pressed" in each for each in first] == [True, True]
    told.apply(node("a", cpu=1, status=pressed))
    (after,) = notes(told, pod("p2", cpu=3))
    assert "1 are pressed" in after


def test_what_a_post_filter_cannot_sign_is_found_for_every_pod() -> None:
    told = Following(using("Secretive"), node("a", cpu=1))
    teams = [pod(team, cpu=3, metadata={"annotations": {"team": team}}) for team in "abc"]

    assert [each.rpartition("ask team ")[2] for each in notes(told, *teams)] == ["a", "b", "c"]


# Nodes


@pytest.mark.parametrize("config", [configuration(), few_plugins()], ids=["default", "few"])
def test_nodes_that_come_and_go(config: Configuration) -> None:
    told = Following(config, node("x"), node("y"))

    assert set(told.places(*small(4)).values()) <= {"x", "y"}
    told.remove(node("x"))
    assert set(told.places(*small(4, "q")).values()) == {"y"}
    told.apply(node("z"), pod("uneven", node="y", cpu=3))
    assert set(told.places(*small(4, "r")).values()) <= {"y", "z"}
    told.remove(node("z"))
    found = told.places(*small(2, "s"), *(pod(f"t{at}", cpu="50m") for at in range(2)))
    assert set(found.values()) == {"y"}


def test_a_row_that_comes_back_is_scored_by_what_happened_meanwhile() -> None:
    told = Told(node("a"), node("b"), node("c"))

    told.places(*small(3))
    told.apply(node("a", spec=CORDONED))
    assert "a" not in told.places(*small(2, "q")).values()
    told.apply(pod("heavy", node="a", cpu=3))
    assert "a" not in told.places(*small(2, "r")).values()
    told.apply(node("a"))
    assert "a" not in told.places(*small(4, "s")).values()


@pytest.mark.parametrize("normalised", [True, False])
def test_many_rows_that_come_and_go_at_once(normalised: bool) -> None:
    many = [f"m{at}" for at in range(20)]
    alone = {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}
    config = configuration(profile(plugins={} if normalised else {"score": alone}))
    told = Told(node("a"), node("b"), *(node(name) for name in many), using=config)

    told.places(*small(2))
    told.apply(*(node(name, spec=CORDONED) for name in many))
    assert set(told.places(*small(4, "q")).values()) == {"a", "b"}
    told.apply(*(node(name) for name in many))
    assert {"a", "b"}.isdisjoint(told.places(*small(6, "r")).values())
    told.apply(*(node(name, spec=CORDONED) for name in many))
    assert set(told.places(*small(2, "s")).values()) == {"a", "b"}


@pytest.mark.parametrize("normalised", [True, False])
def test_classes_take_turns_on_many_rows(normalised: bool) -> None:
    """Between two pods of a class many rows change, some one by one, and some fit no longer."""
    alone = {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}
    config = configuration(profile(plugins={} if normalised else {"score": alone}))
    names = [f"n{at}" for at in range(24)]
    told = Told(*(node(name, cpu=4 + at % 3) for at, name in enumerate(names)), using=config)

    def take_turns(what: str, count: int = 3) -> None:
        for turn in range(count):
            told.places(*(pod(f"{what}{turn}-{at}", cpu=f"{90 + at}m") for at in range(20)))

    take_turns("a")
    told.apply(*(node(name, spec=CORDONED) for name in names[:20]))
    take_turns("b")
    told.apply(node(names[0], cpu=40), node(names[20], spec=CORDONED))
    told.places(*small(2, "c"))
    told.apply(node(names[20], cpu=40), node(names[0], spec=CORDONED))
    told.places(*small(3, "d"))
    take_turns("e", 1)


def test_a_class_has_many_pods_after_many_rows_changed() -> None:
    """Then its rows are ranked by heaps, in the same order."""
    names = [f"n{at}" for at in range(20)]
    told = Told(*(node(name, cpu=16) for name in names))

    told.places(*small(3))
    told.apply(*(pod(f"on-{name}", node=name, cpu=f"{at}00m") for at, name in enumerate(names)))
    told.places(*small(130, "q"))
    told.apply(*(pod(f"at-{name}", node=name, cpu=f"{at}0m") for at, name in enumerate(names)))
    told.places(*small(4, "r"))


def test_a_row_that_takes_no_pods_while_many_others_change() -> None:
    many = [f"m{at}" for at in range(20)]
    told = Told(node("a"), *(node(name) for name in many))

    told.places(*small(2))
    told.apply(node("a", spec=CORDONED))
    told.places(*small(1, "q"))
    told.apply(pod("heavy", node="a", cpu=3))
    told.places(*small(1, "r"))
    told.apply(*(pod(f"on-{name}", node=name, cpu="500m") for name in many))
    told.places(*small(1, "s"))
    told.apply(node("a"))
    assert "a" not in told.places(*small(4, "t")).values()


# What reaches beyond a row


@pytest.mark.parametrize("alone", [True, False])
def test_a_change_everywhere_concerns_every_row(alone: bool) -> None:
    """Whether it is the only one since the last pod, or one of several."""
    curfew = PodDisruptionBudget(namespace="default", name="curfew", selector=None)
    told = Following(using("Curfew"), node("a", labels={"noisy": ""}), node("b"), node("c"))
    others = iter(range(9))

    def change_a_row() -> None:
        if not alone:
            told.apply(pod(f"other{next(others)}", node="b"))

    assert "a" in told.places(*small(4)).values()
    if alone:
        # What the last pod changed is taken in before.
        for engine in told.ways.engines.values():
            engine.classes["default-scheduler"].find_class(small(1)[0], EVERY_NODE)
    told.apply(curfew)
    change_a_row()
    assert "a" not in told.places(*small(4, "q")).values()
    told.remove(curfew)
    change_a_row()
    assert "a" in told.places(*small(4, "r")).values()


def test_an_image_that_comes_to_one_node_counts_on_all() -> None:
    def having(name: str, *images: str, **more: Any) -> Any:
        listed = [{"names": [f"{each}:v1"], "sizeBytes": 2_000 * 2**20} for each in images]
        return node(name, status={"images": listed}, **more)

    told = Told(having("a", "db", cpu=8), having("b", cpu=4), node("c"), node("d"))
    spec = {"containers": [{"name": "main", "image": "db:v1"}]}

    assert told.places(pod("p0", spec=spec), pod("p1", spec=spec)) == {"p0": "a", "p1": "a"}
    told.apply(having("b", "db", cpu=4), pod("on-c", node="c"))
    told.places(*(pod(f"q{at}", spec=spec) for at in range(3)))


def test_a_node_is_the_best_and_yet_rejected_by_others() -> None:
    told = Told(node("big", cpu=64, memory="64Gi"), *(node(f"n{at}") for at in range(7)))

    found = told.places(*small(8, labels=WEB, spec=anti("app", "web")))
    assert len(set(found.values())) == 8


def test_a_filter_begins_to_have_a_say() -> None:
    told = Told(READS_APP, node("a", cpu=16), node("b", cpu=2))

    assert told.places(*small(2, labels=WEB)) == {"p0": "a", "p1": "a"}
    told.apply(pod("picky", node="a", cpu="10m", spec=anti("app", "web")))
    assert told.places(*small(2, "q", labels=WEB)) == {"q0": "b", "q1": "b"}


def test_a_score_begins_to_have_a_say() -> None:
    told = Told(READS_APP, node("a"), node("b"), node("c"))
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": WEB}}
    fond = {"podAffinity": {PREFERRED: [{"weight": 100, "podAffinityTerm": term}]}}

    told.places(*small(3, labels=WEB))
    told.apply(pod("fond", node="c", cpu="10m", spec={"affinity": fond}))
    found = told.places(*small(3, "q", labels=WEB))
    assert set(found.values()) == {"c"}


def test_a_plugin_that_begins_to_read_more() -> None:
    pressed = {"conditions": [{"type": "DiskPressure", "status": "True"}]}
    told = Following(using("Strict"), node("a"), node("b"))

    assert "a" in told.places(*small(3)).values()
    told.apply(node("a", labels={"strict": ""}))
    assert "a" in told.places(*small(3, "q")).values()
    told.apply(node("a", labels={"strict": ""}, status=pressed))
    assert "a" not in told.places(*small(3, "r")).values()


def test_a_label_says_that_a_node_has_gpus() -> None:
    args = {"rememberGPUNodes": True, "gpuNodeLabels": ["pool/gpu"]}
    config = using("GPUAware", pluginConfig=[{"name": "GPUAware", "args": args}])
    told = Following(config, node("a"), node("b"))

    assert "a" in told.places(*small(3)).values()
    told.apply(node("a", labels={"pool/gpu": "yes"}))
    assert set(told.places(*small(3, "q")).values()) == {"b"}


def test_a_plain_score_may_depend_on_the_feasible_nodes() -> None:
    told = Following(using("Minority"), *(node(name) for name in "abcd"))

    told.places(*small(2))
    told.apply(*(node(name, spec=CORDONED) for name in "bd"))
    told.places(*small(3, "q"))
    told.apply(node("c", spec=CORDONED), node("d"))
    told.places(*small(3, "r"))


# What scores are normalised by


def light_taints() -> Configuration:
    enabled = [{"name": "TaintToleration", "weight": 1}]
    return configuration(profile(plugins={"multiPoint": {"enabled": enabled}}))


def sized(name: str, taints: int = 0, **spec: Any) -> Any:
    spec["taints"] = prefers_none(taints)
    return node(name, cpu=10, memory="10Gi", spec=spec)


HEAVY = pod("heavy", node="a", cpu=9, memory="6Gi")


def test_who_leaves_or_comes_changes_what_others_are_normalised_by() -> None:
    """Beside a node with two taints, one with a single taint is better than one that is full."""
    told = Told(sized("a"), sized("b", 1), sized("c", 2), HEAVY, using=light_taints())

    assert told.places(*small(2)) == {"p0": "b", "p1": "b"}
    told.apply(sized("c", 2, **CORDONED))
    assert told.places(*small(1, "q")) == {"q0": "a"}
    told.apply(sized("c", 2))
    assert told.places(*small(1, "r")) == {"r0": "b"}


def test_the_last_of_those_with_the_largest_number_leaves() -> None:
    more = (sized("c", 2), sized("d", 2))
    told = Told(sized("a"), sized("b", 1), *more, HEAVY, using=light_taints())

    assert told.places(*small(1)) == {"p0": "b"}
    told.apply(sized("c", 2, **CORDONED))
    assert told.places(*small(1, "q")) == {"q0": "b"}
    told.apply(sized("d", 2, **CORDONED))
    assert told.places(*small(1, "r")) == {"r0": "a"}


def test_many_with_the_largest_number_leave_and_come_at_once() -> None:
    names = [f"m{at}" for at in range(20)]
    many = [sized(name, 2) for name in names]
    told = Told(sized("a"), sized("b", 1), *many, HEAVY, using=light_taints())

    assert told.places(*small(1)) == {"p0": "b"}
    told.apply(*(sized(name, 2, **CORDONED) for name in names))
    assert told.places(*small(1, "q")) == {"q0": "a"}
    told.apply(*many)
    assert told.places(*small(1, "r")) == {"r0": "b"}


def test_rows_with_equal_figures_are_told_apart_by_what_else_is_read() -> None:
    told = Told(sized("a", 1), sized("b", 1), sized("c"), using=light_taints())

    assert told.places(*small(1)) == {"p0": "c"}
    told.apply(sized("a", 2))
    assert told.places(*small(1, "q")) == {"q0": "c"}
    told.apply(sized("b"))
    assert told.places(*small(1, "r")) == {"r0": "b"}


def test_weights_count_where_a_row_moves() -> None:
    enabled = [{"name": "NodeResourcesFit", "weight": 9}]
    config = configuration(profile(plugins={"multiPoint": {"enabled": enabled}}))
    told = Told(node("a", cpu=4, memory="64Gi"), node("b", cpu=9, memory="4Gi"), using=config)

    told.places(*(pod(f"p{at}", cpu="300m", memory="200Mi") for at in range(20)))


def test_totals_are_up_to_date_after_a_ranking() -> None:
    told = Told(node("a", cpu=4), node("b", cpu=5), node("c", cpu=6))
    gated = {"schedulingGates": [{"name": "wait"}]}

    told.places(*small(8))
    told.apply(pod("waiting", cpu="10m", spec=gated, status={"nominatedNodeName": "c"}))
    told.places(*small(6, "q"))
