"""Each kind of advice: what is told, and that it is true."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.engine import Engine
from moorage.engine.decider import Decider
from moorage.engine.explain import Suggestion, explain
from moorage.framework.edits import Edit, Uncordon
from moorage.objects.kinds import Object
from moorage.objects.pod import Pod
from moorage_policies.disk_io.disk_io_resource import KIND
from tests.builders import cluster, node, pod
from tests.coexisting import exclusive
from tests.explain.building import configuration, engine
from tests.explain.frozen import columns
from tests.explain.trying import assert_holds, evicts
from tests.extended_fakes import custom
from tests.storage_builders import claiming, pv, pvc

ZONE = "topology.kubernetes.io/zone"


def tainted(name: str, **given: Any) -> Object:
    taints = [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]
    return node(name, spec={"taints": taints}, **given)


def cordoned(name: str, *, taint: bool = False) -> Object:
    taints = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}] if taint else []
    return node(name, spec={"unschedulable": True, "taints": taints})


def on_port(name: str, port: int, at: str = "") -> Pod:
    container = {"name": "main", "image": "i", "ports": [{"hostPort": port}]}
    return pod(name, node=at, spec={"containers": [container]})


def apart(name: str, at: str = "", key: str = "kubernetes.io/hostname", **given: Any) -> Pod:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "db"}}}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return pod(name, node=at, spec={"affinity": {"podAntiAffinity": rule}}, **given)


def near(name: str, app: str) -> Pod:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return pod(name, spec={"affinity": {"podAffinity": rule}})


def spread(name: str, at: str = "") -> Pod:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    return pod(
        name, node=at, labels={"app": "web"}, spec={"topologySpreadConstraints": [constraint]}
    )


def required(*expressions: dict[str, Any]) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def of_daemon_set(name: str, node_name: str, **given: Any) -> Pod:
    owner = {"kind": "DaemonSet", "name": "agents", "uid": "agents", "controller": True}
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    rules = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return pod(name, metadata={"ownerReferences": [owner]}, spec={"affinity": rules}, **given)


SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}
FIRST_ZONE = {"key": ZONE, "operator": "In", "values": ["a"]}

CASES: list[Any] = [
    pytest.param(
        (node("a", cpu=2), node("b", cpu=2)),
        pod(cpu="2300m"),
        [("resources", "it asked for 300m less cpu", {"a", "b"})],
        id="short of one resource on like nodes",
    ),
    pytest.param(
        (node("a", cpu=2, memory="1Gi"),),
        pod(cpu=3, memory="3Gi"),
        [("resources", "it asked for 1 less cpu and it asked for 2Gi less memory", {"a"})],
        id="short of two resources",
    ),
    pytest.param(
        (node("a"), node("b")),
        pod(gpu=2),
        [("node-size", "", set())],
        id="a resource that nobody has",
    ),
    pytest.param(
        (node("a", pods=1), pod("there", node="a")),
        pod("new"),
        [("pods", "", set())],
        id="as many pods as a node takes",
    ),
    pytest.param(
        (tainted("a"), tainted("b"), node("c", cpu=1)),
        pod(cpu=2),
        [
            ("taint", "it tolerated dedicated=ml:NoSchedule", {"a", "b"}),
            ("resources", "it asked for 1 less cpu", {"c"}),
        ],
        id="a taint here, a resource there",
    ),
    pytest.param(
        (tainted("a", cpu=1),),
        pod(cpu=2),
        [
            (
                "several",
                "it tolerated dedicated=ml:NoSchedule and it asked for 1 less cpu",
                {"a"},
            )
        ],
        id="a taint and a resource on one node",
    ),
    pytest.param((cordoned("a"),), pod(), [("cordon", "a were uncordoned", {"a"})], id="cordoned"),
    pytest.param(
        (cordoned("a", taint=True), cordoned("b", taint=True)),
        pod(),
        [("cordon", "they were uncordoned", {"a", "b"})],
        id="cordoned, with the taint that comes with it",
    ),
    pytest.param(
        (node("a", labels={"disk": "hdd"}),),
        pod(spec={"nodeSelector": {"disk": "ssd"}}),
        [("node-labels", "it did not select disk=ssd", {"a"})],
        id="a node selector",
    ),
    pytest.param(
        (node("a", labels={"disk": "hdd", ZONE: "a"}), node("b", labels={ZONE: "b"})),
        pod(spec=required(SSD, FIRST_ZONE)),
        [
            ("node-labels", "it did not require disk In [ssd]", {"a"}),
            (
                "node-labels",
                f"it did not require disk In [ssd] and it did not require {ZONE} In [a]",
                {"a", "b"},
            ),
        ],
        id="expressions of node affinity",
    ),
    pytest.param(
        (node("a"), on_port("there", 80, "a")),
        on_port("new", 80),
        [("ports", "it did not take host port 80/TCP", {"a"})],
        id="a host port",
    ),
    pytest.param(
        (node("a"), pod("db-0", node="a", labels={"app": "db"})),
        apart("db-1"),
        [("pod-anti-affinity", "it had no podAntiAffinity term 0 (kubernetes.io/hostname)", {"a"})],
        id="its own anti-affinity",
    ),
    pytest.param(
        (node("a", labels={ZONE: "z"}), node("b", labels={ZONE: "z"}), apart("alone", "a", ZONE)),
        pod("new", labels={"app": "db"}),
        [("pod-anti-affinity", "default/alone were gone", {"a", "b"})],
        id="the anti-affinity of another",
    ),
    pytest.param(
        (node("a", labels={ZONE: "z"}),),
        near("new", "cache"),
        [("pod-affinity", f"it had no podAffinity term 0 ({ZONE})", {"a"})],
        id="nobody to be near to",
    ),
    pytest.param(
        (
            node("a", labels={ZONE: "a"}),
            node("b", labels={ZONE: "b"}, pods=0),
            node("c"),
            spread("web-0", "a"),
        ),
        spread("web-1"),
        [
            ("spread", f"its spread over {ZONE} allowed a skew of 2", {"a"}),
            ("spread", f"its spread over {ZONE} were a preference (ScheduleAnyway)", {"a", "c"}),
            ("pods", "", set()),
        ],
        id="a zone that is too full, and a node in none",
    ),
    pytest.param(
        (
            node("a", labels={ZONE: "a"}),
            pv("vol", hosts=("other",), claim="data"),
            pvc("data", volume="vol"),
        ),
        claiming("data"),
        [("volumes", "it had no volume v0", {"a"})],
        id="a volume that is elsewhere",
    ),
    pytest.param(
        (node("a"),),
        claiming("missing"),
        [("claims", "", set())],
        id="a claim that is not there",
    ),
    pytest.param(
        (node("a"),),
        pod(spec={"schedulingGates": [{"name": "example.com/wait"}]}),
        [("gates", "its scheduling gate example.com/wait were removed", {"a"})],
        id="a scheduling gate",
    ),
    pytest.param(
        (node("a"),),
        pod(spec={"schedulerName": "other"}),
        [("scheduler", "its scheduler name were default-scheduler", {"a"})],
        id="no profile",
    ),
    pytest.param(
        (node("a", cpu=2), pod("there", node="a", cpu=2, spec={"priority": 100})),
        pod("new", cpu=1, spec={"priority": 7}),
        [
            ("priority", "its priority were 101", {"a"}),
        ],
        id="pods of a higher priority",
    ),
]


def told(suggestions: tuple[Suggestion, ...]) -> list[tuple[str, str, set[str]]]:
    return [(each.kind, each.remedy, set(each.nodes)) for each in suggestions]


def assert_told(asked: Engine, wanted: Pod, expected: Any) -> None:
    before = columns(asked)
    explanation = explain(asked.decider, wanted)
    assert columns(asked) == before
    found = told(explanation.suggestions)
    missing = [each for each in expected if each not in found]
    assert not missing, found
    for suggestion in explanation.suggestions:
        if suggestion.edits:
            assert_holds(asked, wanted, suggestion)
            # An eviction is for good: what was told after it was told of another cluster.
            if evicts(suggestion):
                break


@pytest.mark.parametrize(("objects", "wanted", "expected"), CASES)
def test_what_is_told_is_true(objects: tuple[Object, ...], wanted: Pod, expected: Any) -> None:
    assert_told(engine(*objects), wanted, expected)


FIRST_STEPS: list[Any] = [
    pytest.param(
        (node("a"), pvc("slow", class_name="")),
        claiming("slow"),
        [("claims", "", set())],
        id="a claim that is not bound yet",
    ),
    pytest.param(
        (node("a", cpu=4), node("b", cpu=8)),
        pod(cpu=9),
        [("resources", "it asked for 1 less cpu", {"b"}), ("node-size", "", set())],
        id="larger than every node",
    ),
    pytest.param(
        (node("a", labels={"pool": "general"}), node("b", labels={"pool": "gpu"})),
        pod(spec={"nodeSelector": {"pool": "generl"}}),
        [
            ("node-labels", "it selected pool=general", {"a"}),
            ("node-labels", "it did not select pool=generl", {"a", "b"}),
        ],
        id="a label that is mistyped",
    ),
    pytest.param(
        (node("a", labels={"pool": "general"}),),
        pod(spec={"nodeSelector": {"pol": "general"}}),
        [
            ("node-labels", "it selected pool=general", {"a"}),
            ("node-labels", "it did not select pol=general", {"a"}),
        ],
        id="a key that is mistyped",
    ),
    pytest.param(
        (node("a", cpu=3), pod("there", node="a", cpu=2), node("b", cpu=8)),
        of_daemon_set("agent", "a", cpu=2),
        [
            ("resources", "it asked for 1 less cpu", {"a"}),
            ("priority", "its priority were 1", {"a"}),
        ],
        id="a daemon's pod is for its node",
    ),
]


@pytest.mark.parametrize(("objects", "wanted", "expected"), FIRST_STEPS)
def test_what_the_owner_can_do_comes_first(
    objects: tuple[Object, ...], wanted: Pod, expected: Any
) -> None:
    asked = engine(*objects)
    assert_told(asked, wanted, expected)
    assert told(explain(asked.decider, wanted).suggestions)[: len(expected)] == expected


def disk_status(name: str, read: str) -> Object:
    return custom(KIND, name, spec={"nodeName": name, "capacity": {"read": read, "write": "1Gi"}})


def reading(amount: str, **more: str) -> Pod:
    return pod(metadata={"annotations": {"diskio.moorage.dev/read": amount, **more}})


@pytest.mark.parametrize(
    ("plugin", "objects", "wanted", "expected"),
    [
        pytest.param(
            "GPUAware",
            (node("a", **{"nvidia.com/gpu": 2}),),
            pod(),
            [("gpu", "it had a limit of 1 nvidia.com/gpu", {"a"})],
            id="a node that is kept for GPUs",
        ),
        pytest.param(
            "DiskIO",
            (node("a"), disk_status("a", "100Mi")),
            reading("150Mi"),
            [("disk", "its annotation diskio.moorage.dev/read were 104857600", {"a"})],
            id="disk bandwidth",
        ),
        pytest.param(
            "DiskIO",
            (node("a"), disk_status("a", "100Mi")),
            reading("50Mi", **{"diskio.moorage.dev/block-size": "4Ki"}),
            [("disk", "its annotation diskio.moorage.dev/read were 26214400", {"a"})],
            id="disk bandwidth in small blocks",
        ),
        pytest.param(
            "DiskIO",
            (node("a"),),
            reading("1Mi"),
            [("disk", "it had no annotation diskio.moorage.dev/read", {"a"})],
            id="a disk of which nothing is known",
        ),
    ],
)
def test_plugins_of_our_own(
    plugin: str, objects: tuple[Object, ...], wanted: Pod, expected: Any
) -> None:
    assert_told(engine(*objects, config=configuration(plugin)), wanted, expected)


@pytest.mark.parametrize(
    ("there", "wanted", "remedy"),
    [
        pytest.param(exclusive("alone", "a"), pod("new"), "default/alone were gone", id="another"),
        pytest.param(
            pod("there", node="a"), exclusive("new"), "its coexist policy were Any", id="the pod"
        ),
    ],
)
def test_exclusive_pods(there: Pod, wanted: Pod, remedy: str) -> None:
    asked = engine(node("a"), there, gates={"CoexistPolicy": True})

    suggestions = explain(asked.decider, wanted).suggestions
    (suggestion,) = [each for each in suggestions if each.kind == "coexist"]

    assert (suggestion.remedy, suggestion.nodes) == (remedy, ("a",))
    assert [each.pod for each in suggestion.blockers] == [there.key]
    assert_holds(asked, wanted, suggestion)


def test_who_holds_a_port_is_named() -> None:
    asked = engine(node("a"), on_port("there", 80, "a"), pod("bystander", node="a"))

    (suggestion,) = explain(asked.decider, on_port("new", 80)).suggestions[:1]

    assert [(each.pod, each.node) for each in suggestion.blockers] == [("default/there", "a")]


def test_three_rejections_of_one_node_are_counted_and_no_more() -> None:
    asked = engine(tainted("a", cpu=1))

    explanation = explain(asked.decider, pod(cpu=2, spec={"nodeSelector": {"disk": "ssd"}}))

    assert explanation.suggestions == ()
    assert [(each.plugins, each.count) for each in explanation.combinations] == [
        (("TaintToleration", "NodeAffinity", "NodeResourcesFit"), 1)
    ]


def test_a_node_is_answered_by_all_who_reject_it() -> None:
    asked = engine(tainted("a", cpu=1), node("b"))

    answer = explain(asked.decider, pod(cpu=2), "a").node

    assert answer is not None
    assert not answer.feasible
    assert [each.plugin for each in answer.refusals] == ["TaintToleration", "NodeResourcesFit"]


def test_a_running_pod_is_explained_as_if_it_did_not() -> None:
    placed = pod("there", node="a", cpu=3)
    asked = engine(node("a"), node("b", cpu=1), placed)

    explanation = explain(asked.decider, placed)

    assert (explanation.running_on, explanation.chosen) == ("a", "a")
    assert explanation.feasible_count == 1


@pytest.mark.parametrize(
    ("wanted", "state"),
    [
        (pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), "terminating"),
        (pod(spec={"schedulerName": "other"}), "foreign"),
        (pod(cpu=100), "pending"),
        (pod(), "fits"),
    ],
)
def test_states(wanted: Pod, state: str) -> None:
    assert explain(engine(node("a")).decider, wanted).state == state


def test_without_nodes_nothing_is_suggested() -> None:
    explanation = explain(engine().decider, pod())

    assert explanation.message == "no nodes available to schedule pods"
    assert explanation.suggestions == ()


def test_edits_survive_json() -> None:
    asked = engine(tainted("a", cpu=1), cordoned("b"))
    (first, *_) = explain(asked.decider, pod(cpu=2)).suggestions

    text = msgspec.json.encode(first)
    again = msgspec.json.decode(text, type=Suggestion)

    assert msgspec.json.encode(again) == text
    assert again.edits
    assert [msgspec.convert(each, Uncordon) for each in again.edits] == list(first.edits)


class PaintBlue(Edit, frozen=True):
    """An edit that a plugin brings."""

    shade: str

    @property
    def text(self) -> str:
        return f"it were painted {self.shade}"


def test_an_edit_of_a_plugin_is_data_too() -> None:
    made = Suggestion("paint", ("Painter",), "grey", "blue", "fits", (PaintBlue("navy"),))

    again = msgspec.json.decode(msgspec.json.encode(made), type=Suggestion)

    assert again.edits == ({"edit": "paintBlue", "shade": "navy"},)


def test_a_decider_without_an_engine_is_enough() -> None:
    wanted = pod(cpu=100)
    profiles = engine().profiles
    alone = Decider(profiles, cluster(node("a")), {}, is_extended=False)

    assert explain(alone, wanted) == explain(engine(node("a")).decider, wanted)
