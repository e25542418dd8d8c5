"""NodeAffinity."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.framework.plugin import Narrowed
from moorage.framework.status import Code, PluginError, unresolvable
from moorage.framework.wakeups import Action, Resource
from moorage.objects.node import Node
from moorage.objects.pod import Pod
from moorage.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from tests.builders import (
    EMPTY,
    cluster,
    node,
    pod,
)
from tests.plugins.asking import codes, listens, rejections, scores, wakes

PLUGIN = NodeAffinity()
REASON = ("node(s) didn't match Pod's node affinity/selector",)
ENFORCED = ("node(s) didn't match scheduler-enforced node affinity",)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

NODES = cluster(
    node("a", labels={"disk": "ssd", "cores": "8"}),
    node("b", labels={"disk": "hdd", "cores": "16"}),
    node("c", labels={"cores": "many"}),
)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def labelled(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(expressions)}


def named(operator: str, *names: str) -> dict[str, Any]:
    return {"matchFields": [expression("metadata.name", operator, *names)]}


def requiring(*terms: dict[str, Any], **spec: Any) -> Pod:
    rule = {REQUIRED: {"nodeSelectorTerms": list(terms)}}
    return pod(spec={"affinity": {"nodeAffinity": rule}, **spec})


def preferring(*terms: tuple[int, dict[str, Any]]) -> Pod:
    rule = {PREFERRED: [{"weight": weight, "preference": term} for weight, term in terms]}
    return pod(spec={"affinity": {"nodeAffinity": rule}})


def adding(**affinity: Any) -> NodeAffinity:
    args = msgspec.convert({"addedAffinity": affinity}, NodeAffinityArgs)
    assert list(args.problems()) == []
    return NodeAffinity(args)


SSD = labelled(expression("disk", "In", "ssd"))
HDD = labelled(expression("disk", "In", "hdd"))


@pytest.mark.parametrize(
    ("asks", "accepted"),
    [
        pytest.param(pod(spec={"nodeSelector": {"disk": "ssd"}}), "a", id="node selector"),
        pytest.param(
            pod(spec={"nodeSelector": {"disk": "ssd", "cores": "16"}}), "", id="every label of it"
        ),
        pytest.param(pod(spec={"nodeSelector": {"disk": "tape"}}), "", id="a value nobody has"),
        pytest.param(pod(spec={"nodeSelector": {}}), "abc", id="an empty selector"),
        pytest.param(requiring(SSD), "a", id="In"),
        pytest.param(requiring(labelled(expression("disk", "NotIn", "ssd"))), "bc", id="NotIn"),
        pytest.param(requiring(labelled(expression("disk", "Exists"))), "ab", id="Exists"),
        pytest.param(requiring(labelled(expression("disk", "DoesNotExist"))), "c", id="absent"),
        pytest.param(requiring(labelled(expression("cores", "Gt", "8"))), "b", id="Gt is strict"),
        pytest.param(requiring(labelled(expression("cores", "Lt", "16"))), "a", id="Lt is strict"),
        pytest.param(requiring(labelled(expression("cores", "Gt", "no"))), "", id="Gt of a word"),
        pytest.param(
            requiring(labelled(expression("cores", "Lt", "9", "99"))), "", id="Lt of two values"
        ),
        pytest.param(requiring(SSD, HDD), "ab", id="one term suffices"),
        pytest.param(
            requiring(labelled(expression("disk", "Exists"), expression("cores", "Gt", "8"))),
            "b",
            id="all expressions of a term hold",
        ),
        pytest.param(requiring(), "", id="no terms"),
        pytest.param(requiring({}), "", id="an empty term"),
        pytest.param(requiring({}, SSD), "a", id="an empty term beside another"),
        pytest.param(
            requiring(labelled(expression("disk", "In")), HDD), "b", id="a malformed one too"
        ),
        pytest.param(requiring(SSD, nodeSelector={"cores": "16"}), "", id="selector and affinity"),
        pytest.param(requiring(named("In", "b")), "b", id="by name"),
        pytest.param(requiring(named("NotIn", "b")), "ac", id="by another name"),
        pytest.param(requiring({**named("In", "a"), **HDD}), "", id="name and labels"),
        pytest.param(requiring(named("In", "a", "b")), "", id="two names in one field"),
        pytest.param(
            requiring({"matchFields": [expression("metadata.uid", "In", "a")]}),
            "",
            id="another field",
        ),
    ],
)
def test_filter(asks: Pod, accepted: str) -> None:
    assert rejections(PLUGIN, asks, NODES) == {
        name: REASON for name in "abc" if name not in accepted
    }


def test_evicting_pods_does_not_help() -> None:
    assert set(codes(PLUGIN, requiring(SSD), NODES).values()) == {Code.UNRESOLVABLE}


@pytest.mark.parametrize(
    ("asks", "names"),
    [
        pytest.param(requiring(named("In", "a"), named("In", "x")), {"a", "x"}, id="per term"),
        pytest.param(requiring({**named("In", "a"), **HDD}), {"a"}, id="beside labels"),
        pytest.param(requiring(named("In", "a", "b")), {"a", "b"}, id="even if it never matches"),
        pytest.param(requiring(named("In", "a"), SSD), None, id="unless a term leaves it open"),
        pytest.param(requiring(named("NotIn", "a")), None, id="other than a name"),
        pytest.param(requiring(), None, id="no terms"),
    ],
)
def test_naming_nodes_narrows_the_search(asks: Pod, names: set[str] | None) -> None:
    answer = PLUGIN.pre_filter(asks, NODES.nodes)

    assert answer == (asks.spec if names is None else Narrowed(asks.spec, frozenset(names)))


def test_contradicting_names_are_a_conflict() -> None:
    fields = named("In", "a")["matchFields"] + named("In", "b")["matchFields"]

    answer = PLUGIN.pre_filter(requiring({"matchFields": fields}), NODES.nodes)

    assert answer == unresolvable("pod affinity terms conflict")


def test_a_pod_without_rules_is_skipped() -> None:
    assert PLUGIN.pre_filter(pod(), NODES.nodes) is None
    assert PLUGIN.pre_filter(preferring((1, SSD)), NODES.nodes) is None


@pytest.mark.parametrize(
    ("asks", "rejected"),
    [
        pytest.param(pod(), {"b": ENFORCED, "c": ENFORCED}, id="holds for every pod"),
        pytest.param(
            requiring(HDD),
            {"a": REASON, "b": ENFORCED, "c": ENFORCED},
            id="comes before the pod's own rules",
        ),
    ],
)
def test_added_affinity(asks: Pod, rejected: dict[str, Any]) -> None:
    plugin = adding(**{REQUIRED: {"nodeSelectorTerms": [SSD]}})

    assert rejections(plugin, asks, NODES) == rejected


@pytest.mark.parametrize(
    ("asks", "expected"),
    [
        pytest.param(preferring((5, SSD)), {"a": 100, "b": 0, "c": 0}, id="a preferred label"),
        pytest.param(
            preferring((3, SSD), (1, labelled(expression("disk", "Exists"))), (1, HDD)),
            {"a": 100, "b": 50, "c": 0},
            id="weights add up",
        ),
        pytest.param(
            preferring((3, SSD), (3, SSD), (1, HDD)),
            {"a": 100, "b": 16, "c": 0},
            id="of the same term twice",
        ),
        pytest.param(preferring((2, named("In", "b"))), {"a": 0, "b": 100, "c": 0}, id="by name"),
        pytest.param(preferring((2, {})), {"a": 0, "b": 0, "c": 0}, id="an empty term"),
        pytest.param(
            preferring((0, labelled(expression("cores", "Gt", "no"))), (1, SSD)),
            {"a": 100, "b": 0, "c": 0},
            id="without weight nothing is looked at",
        ),
        pytest.param(preferring(), {"a": 0, "b": 0, "c": 0}, id="an empty list"),
        pytest.param(requiring(SSD), None, id="no preference"),
    ],
)
def test_score(asks: Pod, expected: dict[str, int] | None) -> None:
    assert scores(PLUGIN, asks, NODES) == expected


def test_added_preferences_add_up_with_those_of_the_pod() -> None:
    plugin = adding(**{PREFERRED: [{"weight": 1, "preference": HDD}]})

    assert scores(plugin, pod(), NODES) == {"a": 0, "b": 100, "c": 0}
    assert scores(plugin, preferring((4, SSD)), NODES) == {"a": 100, "b": 25, "c": 0}


BAD = labelled(expression("disk", "Exists"), expression("cores", "Gt", "many"))
WHY = "Invalid value: \"many\": for 'Gt', 'Lt' operators, the value must be an integer"


@pytest.mark.parametrize(
    ("asks", "told"),
    [
        pytest.param(
            preferring((1, SSD), (1, BAD)), f"[1].matchExpressions[1].values[0]: {WHY}", id="one"
        ),
        pytest.param(
            preferring((1, BAD), (0, BAD), (1, BAD)),
            f"[[0].matchExpressions[1].values[0]: {WHY}, [2].matchExpressions[1].values[0]: {WHY}]",
            id="several",
        ),
    ],
)
def test_malformed_preferences_are_an_error(asks: Pod, told: str) -> None:
    with pytest.raises(PluginError) as raised:
        PLUGIN.pre_score(asks, NODES.nodes, NODES.nodes.rows)

    assert str(raised.value) == told


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        pytest.param(requiring(SSD, HDD), requiring(HDD, SSD), True, id="the order of terms"),
        pytest.param(requiring(SSD), requiring(HDD), False, id="the terms"),
        pytest.param(requiring(SSD), preferring((1, SSD)), False, id="whether they are strict"),
        pytest.param(preferring((1, SSD)), preferring((2, SSD)), False, id="the weights"),
        pytest.param(
            requiring(named("In", "a", "b")),
            requiring(named("In", "a", "c")),
            False,
            id="names that never match",
        ),
        pytest.param(pod(), pod(spec={"nodeSelector": {"a": "b"}}), False, id="the selector"),
    ],
)
def test_what_is_signed(one: Pod, other: Pod, equal: bool) -> None:
    assert (PLUGIN.sign(one, EMPTY) == PLUGIN.sign(other, EMPTY)) is equal
    assert (hash(PLUGIN.sign(one, EMPTY)) == hash(PLUGIN.sign(other, EMPTY))) is equal


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(None, node(labels={"disk": "ssd"}), True, id="a new node that matches"),
        pytest.param(None, node(), False, id="a new node that does not"),
        pytest.param(node(), node(labels={"disk": "ssd"}), True, id="matches now"),
        pytest.param(
            node(labels={"disk": "ssd"}),
            node(labels={"disk": "ssd", "more": ""}),
            False,
            id="matched before",
        ),
        pytest.param(node(labels={"disk": "ssd"}), node(), False, id="matches no longer"),
    ],
)
@pytest.mark.parametrize(
    ("plugin", "waiting"),
    [
        pytest.param(PLUGIN, requiring(SSD), id="affinity"),
        pytest.param(PLUGIN, pod(spec={"nodeSelector": {"disk": "ssd"}}), id="selector"),
        pytest.param(adding(**{REQUIRED: {"nodeSelectorTerms": [SSD]}}), pod(), id="added"),
    ],
)
def test_waking_after_a_node_change(
    plugin: NodeAffinity, waiting: Pod, old: Node | None, new: Node, woken: bool
) -> None:
    action = Action.UPDATE_NODE_LABEL if old else Action.ADD

    assert woken == wakes(plugin, Resource.NODE, action, pod=waiting, old=old, new=new)


def test_what_it_listens_to() -> None:
    assert listens(PLUGIN) == {(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)}


@pytest.mark.parametrize(
    ("affinity", "path"),
    [
        pytest.param(
            {REQUIRED: {"nodeSelectorTerms": [SSD, BAD]}},
            f"addedAffinity.{REQUIRED}.nodeSelectorTerms[1].matchExpressions[1].values[0]",
            id="required",
        ),
        pytest.param(
            {PREFERRED: [{"weight": 1, "preference": BAD}]},
            f"addedAffinity.{PREFERRED}[0].matchExpressions[1].values[0]",
            id="preferred",
        ),
    ],
)
def test_args_must_be_well_formed(affinity: dict[str, Any], path: str) -> None:
    args = msgspec.convert({"addedAffinity": affinity}, NodeAffinityArgs)

    assert list(args.problems()) == [(path, WHY)]


def test_no_args_are_fine() -> None:
    assert list(NodeAffinityArgs().problems()) == []
