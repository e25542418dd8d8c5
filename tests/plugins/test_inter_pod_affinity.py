"""InterPodAffinity: required and preferred terms, of the pod that comes and of those that run."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st

from moorage.cluster import Cluster
from moorage.cluster.check import check
from moorage.config import FeatureGates
from moorage.config.kubernetes_versions import read_version
from moorage.framework.status import Code, Rejected
from moorage.framework.wakeups import Action, ClusterEvent, Resource
from moorage.objects.node import HOSTNAME, ZONE, Node
from moorage.objects.placement_rules import AffinityTerm
from moorage.objects.pod import Pod
from moorage.objects.workload import Namespace
from moorage.plugins.inter_pod_affinity.affinity_hints import node_helps
from moorage.plugins.inter_pod_affinity.inter_pod_affinity import (
    AffinityRules,
    InterPodAffinity,
    InterPodAffinityArgs,
)
from tests.builders import (
    EMPTY,
    cluster,
    node,
    pod,
)

PLUGIN = InterPodAffinity(InterPodAffinityArgs())

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REPELLED = "node(s) didn't satisfy existing pods anti-affinity rules"

WEB = {"matchLabels": {"app": "web"}}
DB = {"matchLabels": {"app": "db"}}
WEB_OR_DB = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}
PROD = {"matchLabels": {"env": "prod"}}
NOT_PROD = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}
MALFORMED = {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}


def term(selector: Any = WEB, key: str = ZONE, **given: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": selector, **given}


def terms(
    near: Any = (), away: Any = (), prefers: Any = (), prefers_away: Any = ()
) -> dict[str, Any]:
    """A pod spec with required and preferred terms; preferred ones as (weight, term)."""

    def rules(required: Any, preferred: Any) -> dict[str, Any]:
        return {
            "requiredDuringSchedulingIgnoredDuringExecution": list(required),
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": weight, "podAffinityTerm": each} for weight, each in preferred
            ],
        }

    affinity = {"podAffinity": rules(near, prefers), "podAntiAffinity": rules(away, prefers_away)}
    return {"affinity": affinity}


def web(name: str = "web", at: str = "a1", **given: Any) -> Pod:
    return pod(name, node=at, labels={"app": "web"}, **given)


def zones(*pods: Pod) -> Cluster:
    """Two nodes in zone a, one in zone b, one without a zone; namespaces default, prod and test."""
    made = cluster(
        node("a1", labels={ZONE: "a"}),
        node("a2", labels={ZONE: "a"}),
        node("b1", labels={ZONE: "b"}),
        node("bare"),
        *pods,
    )
    for name, labels in (("default", {}), ("prod", {"env": "prod"}), ("test", {"env": "test"})):
        made.put_workload(Namespace(name=name, labels=labels))
    return made


def rejected(made: Cluster, asks: Pod, plugin: InterPodAffinity = PLUGIN) -> dict[str, str]:
    """Why which node is rejected."""
    prepared = plugin.pre_filter(asks, made.nodes)
    return {} if prepared is None else told(prepared, made)


def told(prepared: AffinityRules | Rejected, made: Cluster) -> dict[str, str]:
    assert isinstance(prepared, AffinityRules)
    verdict = PLUGIN.filter(prepared, made.nodes, made.nodes.everything)
    reasons = {}
    for row in made.nodes.rows.tolist():
        if verdict.rejected[row]:
            (reasons[made.nodes.name(row)],) = verdict.texts(row)
            wanted = Code.UNRESOLVABLE if verdict.texts(row) == (AFFINITY,) else Code.UNSCHEDULABLE
            assert verdict.code(row) is wanted
    return reasons


def scores(made: Cluster, asks: Pod, plugin: InterPodAffinity = PLUGIN) -> dict[str, int] | None:
    prepared = plugin.pre_score(asks, made.nodes, made.nodes.rows)
    if prepared is None:
        return None
    raw = plugin.score(prepared, made.nodes, made.nodes.rows)
    normal = plugin.normalize(prepared, raw).tolist()
    return dict(zip(made.nodes.names(made.nodes.rows), normal, strict=True))


AWAY_FROM_WEB = terms(away=[term()])
ALL_BUT_A = {"b1": AFFINITY, "bare": AFFINITY}
IN_A = {"a1": ANTI_AFFINITY, "a2": ANTI_AFFINITY}


@pytest.mark.parametrize(
    ("running", "asks", "expected"),
    [
        pytest.param([web()], pod(spec=terms(near=[term()])), ALL_BUT_A, id="near a pod"),
        pytest.param(
            [web()],
            pod(spec=terms(near=[term(key=HOSTNAME)])),
            {"a2": AFFINITY, **ALL_BUT_A},
            id="near a pod, on its node",
        ),
        pytest.param(
            [web(), pod("db", node="a1", labels={"app": "db"})],
            pod(spec=terms(near=[term(), term(DB)])),
            {"a1": AFFINITY, "a2": AFFINITY, **ALL_BUT_A},
            id="one pod has to match all terms",
        ),
        pytest.param(
            [web()],
            pod(spec=terms(near=[term(), term(WEB_OR_DB, HOSTNAME)])),
            {"a2": AFFINITY, **ALL_BUT_A},
            id="every term in its own domain",
        ),
        pytest.param(
            [],
            pod(labels={"app": "web"}, spec=terms(near=[term()])),
            {"bare": AFFINITY},
            id="the first of a group needs only the key",
        ),
        pytest.param(
            [],
            pod(spec=terms(near=[term()])),
            {"a1": AFFINITY, "a2": AFFINITY, **ALL_BUT_A},
            id="who does not match its own terms is not the first",
        ),
        pytest.param(
            [web()],
            pod(labels={"app": "web"}, spec=terms(near=[term()])),
            ALL_BUT_A,
            id="the second of a group is not the first",
        ),
        pytest.param(
            [web(at="bare")],
            pod(labels={"app": "web"}, spec=terms(near=[term()])),
            {"bare": AFFINITY},
            id="a pod outside all domains does not make the next one the second",
        ),
        pytest.param(
            [web()],
            pod(labels={"app": "web"}, spec=terms(near=[term(None)])),
            {"a1": AFFINITY, "a2": AFFINITY, **ALL_BUT_A},
            id="no selector matches nobody",
        ),
        pytest.param(
            [pod("any", node="b1")],
            pod(spec=terms(near=[term({})])),
            {"a1": AFFINITY, "a2": AFFINITY, "bare": AFFINITY},
            id="an empty selector matches everybody",
        ),
        pytest.param([web()], pod(spec=AWAY_FROM_WEB), IN_A, id="away from a pod"),
        pytest.param(
            [web()],
            pod(spec=terms(away=[term(DB), term(key=HOSTNAME)])),
            {"a1": ANTI_AFFINITY},
            id="away from who matches any term",
        ),
        pytest.param([web()], pod(spec=terms(away=[term(None)])), {}, id="away from nobody"),
        pytest.param(
            [web(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            pod(spec=AWAY_FROM_WEB),
            IN_A,
            id="a pod that terminates is still there",
        ),
        pytest.param(
            [pod("db", node="a1", spec=AWAY_FROM_WEB)],
            pod(labels={"app": "web"}),
            {"a1": REPELLED, "a2": REPELLED},
            id="who runs may keep others away",
        ),
        pytest.param(
            [pod("db", node="bare", spec=AWAY_FROM_WEB)],
            pod(labels={"app": "web"}),
            {},
            id="but not from where there is no domain",
        ),
        pytest.param(
            [web(spec=terms(away=[term(key=HOSTNAME)]))],
            pod(labels={"app": "web"}, spec=AWAY_FROM_WEB),
            IN_A,
            id="the pod's own rule is told before that of others",
        ),
        pytest.param(
            [web(), pod("db", node="b1", spec=AWAY_FROM_WEB)],
            pod(labels={"app": "web"}, spec=terms(near=[term()], away=[term(key=HOSTNAME)])),
            {"a1": ANTI_AFFINITY, "b1": AFFINITY, "bare": AFFINITY},
            id="affinity is told first",
        ),
    ],
)
def test_filter(running: list[Pod], asks: Pod, expected: dict[str, str]) -> None:
    assert rejected(zones(*running), asks) == expected


@pytest.mark.parametrize(
    ("elsewhere", "given", "matches"),
    [
        pytest.param("default", {}, True, id="the pod's own namespace"),
        pytest.param("prod", {}, False, id="not another one"),
        pytest.param("prod", {"namespaces": ["prod", "none"]}, True, id="listed"),
        pytest.param("default", {"namespaces": ["prod"]}, False, id="not listed"),
        pytest.param("prod", {"namespaceSelector": PROD}, True, id="selected"),
        pytest.param("default", {"namespaceSelector": PROD}, False, id="not selected"),
        pytest.param(
            "test", {"namespaces": ["test"], "namespaceSelector": PROD}, True, id="listed beside"
        ),
        pytest.param("unheard-of", {"namespaceSelector": {}}, True, id="an empty selector is all"),
    ],
)
def test_namespaces(elsewhere: str, given: dict[str, Any], matches: bool) -> None:
    asks = pod(spec=terms(away=[term(**given)]))
    assert rejected(zones(web(namespace=elsewhere)), asks) == (IN_A if matches else {})

    standing = pod("standing", node="a1", spec=terms(away=[term(**given)]))
    comes = pod(labels={"app": "web"}, namespace=elsewhere)
    repelled = {"a1": REPELLED, "a2": REPELLED}
    assert rejected(zones(standing), comes) == (repelled if matches else {})


def test_a_namespace_selector_that_accepts_no_labels_selects_every_namespace() -> None:
    spec = terms(away=[term(namespaceSelector=NOT_PROD)])
    assert rejected(zones(web(namespace="prod")), pod(spec=spec)) == IN_A
    # It is the terms of the pod that comes for which this holds, not those of pods that run.
    comes = pod(labels={"app": "web"}, namespace="prod")
    assert rejected(zones(pod("standing", node="a1", spec=spec)), comes) == {}


@pytest.mark.parametrize(
    ("selector", "elsewhere", "matches"),
    [
        pytest.param(NOT_PROD, "prod", False, id="a namespace with the label"),
        pytest.param(NOT_PROD, "test", True, id="a namespace without it"),
        pytest.param(NOT_PROD, "unheard-of", False, id="an unknown namespace"),
        pytest.param({}, "unheard-of", True, id="an empty selector is all"),
    ],
)
def test_from_1_37_on_a_namespace_selector_selects_what_it_says(
    selector: Any, elsewhere: str, matches: bool
) -> None:
    gates = FeatureGates.parse({}, version=read_version("1.37"))
    plugin = InterPodAffinity.create(InterPodAffinityArgs(), gates)
    spec = terms(away=[term(namespaceSelector=selector)])
    found = rejected(zones(web(namespace=elsewhere)), pod(spec=spec), plugin)
    assert found == (IN_A if matches else {})


def test_a_pod_without_rules_that_nobody_minds_skips_the_filter() -> None:
    made = zones(web(spec=terms(away=[term(DB)], near=[term()], prefers=[(1, term())])))
    assert PLUGIN.pre_filter(pod(labels={"app": "web"}), made.nodes) is None
    assert PLUGIN.pre_filter(pod(labels={"app": "db"}), made.nodes) is not None


def test_a_selector_that_cannot_be_read_rejects_the_pod() -> None:
    answer = PLUGIN.pre_filter(pod(spec=terms(prefers=[(1, term(MALFORMED))])), zones().nodes)
    assert isinstance(answer, Rejected)
    assert answer.code is Code.UNRESOLVABLE
    assert answer.message.startswith("parsing pod: ")


@pytest.mark.parametrize(
    ("running", "asks", "expected"),
    [
        pytest.param([web()], pod(), None, id="nobody prefers anything"),
        pytest.param(
            [web()], pod(spec=terms(prefers=[(5, term(DB))])), None, id="nobody is preferred"
        ),
        pytest.param(
            [web(at="bare")],
            pod(spec=terms(prefers=[(5, term())])),
            None,
            id="who is preferred is in no domain",
        ),
        pytest.param(
            [web(), web("2", "b1"), web("3", "b1")],
            pod(spec=terms(prefers=[(5, term())])),
            {"a1": 50, "a2": 50, "b1": 100, "bare": 0},
            id="more pods, more weight",
        ),
        pytest.param(
            [web(), web("2", "a1"), web("3", "b1")],
            pod(spec=terms(prefers_away=[(5, term())])),
            {"a1": 0, "a2": 0, "b1": 50, "bare": 100},
            id="away from pods",
        ),
        pytest.param(
            [web(), web("2", "b1")],
            pod(spec=terms(prefers=[(10, term()), (23, term(key=HOSTNAME))])),
            {"a1": 100, "a2": 30, "b1": 100, "bare": 0},
            id="terms add up, and what is left over is cut off",
        ),
        pytest.param(
            [web()],
            pod(spec=terms(prefers=[(5, term())], prefers_away=[(5, term())])),
            {"a1": 0, "a2": 0, "b1": 0, "bare": 0},
            id="what cancels out is still scored",
        ),
        pytest.param(
            [pod("db", node="b1", spec=terms(near=[term()]))],
            pod(labels={"app": "web"}),
            {"a1": 0, "a2": 0, "b1": 100, "bare": 0},
            id="who requires the pod near attracts it",
        ),
        pytest.param(
            [
                pod("1", node="b1", spec=terms(prefers=[(3, term())])),
                pod("2", node="a1", spec=terms(prefers_away=[(3, term(key=HOSTNAME))])),
            ],
            pod(labels={"app": "web"}),
            {"a1": 0, "a2": 50, "b1": 100, "bare": 50},
            id="preferences of those who run",
        ),
        pytest.param(
            [pod("db", node="b1", spec=terms(away=[term()]))],
            pod(labels={"app": "web"}),
            None,
            id="required anti-affinity of those who run is no preference",
        ),
    ],
)
def test_score(running: list[Pod], asks: Pod, expected: dict[str, int] | None) -> None:
    assert scores(zones(*running), asks) == expected


def test_the_weight_of_required_affinity_is_configured() -> None:
    made = zones(
        pod("1", node="b1", spec=terms(near=[term()])),
        pod("2", node="a1", spec=terms(prefers=[(10, term())])),
    )
    asks = pod(labels={"app": "web"})
    for weight, expected in ((0, 0), (5, 50), (10, 100)):
        plugin = InterPodAffinity(InterPodAffinityArgs(hard_pod_affinity_weight=weight))
        assert scores(made, asks, plugin) == {"a1": 100, "a2": 100, "b1": expected, "bare": 0}


def test_required_affinity_without_weight_is_not_scored() -> None:
    plugin = InterPodAffinity(InterPodAffinityArgs(hard_pod_affinity_weight=0))
    made = zones(pod("db", node="b1", spec=terms(near=[term()])))
    assert scores(made, pod(labels={"app": "web"}), plugin) is None


def test_preferences_of_running_pods_can_be_ignored_for_pods_without_any() -> None:
    args = InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True)
    plugin = InterPodAffinity(args)
    made = zones(web(spec=terms(prefers=[(10, term())])))
    assert scores(made, web(at=""), plugin) is None
    assert scores(made, web(at="", spec=terms(near=[term()])), plugin) is None
    fond = web(at="", spec=terms(prefers=[(1, term(DB))]))
    assert scores(made, fond, plugin) == scores(made, fond)


def prepared_for(asks: Pod, made: Cluster) -> AffinityRules:
    prepared = PLUGIN.pre_filter(asks, made.nodes)
    assert isinstance(prepared, AffinityRules)
    return prepared


@pytest.mark.parametrize(
    ("running", "asks", "other"),
    [
        pytest.param([], pod(spec=terms(near=[term()])), web(at=""), id="wanted"),
        pytest.param([web()], pod(spec=AWAY_FROM_WEB), web("2", at=""), id="unwanted"),
        pytest.param(
            [],
            pod(labels={"app": "db"}, spec=terms(near=[term(DB)])),
            pod("db", labels={"app": "db"}),
            id="no longer the first",
        ),
        pytest.param(
            [],
            pod(labels={"app": "web"}, spec=terms(away=[term(DB)])),
            pod("db", spec=AWAY_FROM_WEB),
            id="repelling",
        ),
        pytest.param(
            [pod("db", node="a1", spec=AWAY_FROM_WEB)],
            pod(labels={"app": "web"}),
            pod("db2", spec=terms(away=[term(key=HOSTNAME)])),
            id="repelling over another key",
        ),
    ],
)
def test_adding_a_pod_is_as_if_it_ran_and_removing_it_undoes_that(
    running: list[Pod], asks: Pod, other: Pod
) -> None:
    made = zones(*running)
    row = made.nodes.row("b1")
    assert row is not None
    before = prepared_for(asks, made)

    added = PLUGIN.add_pod(before, made.nodes, other, row)

    assert told(added, made) == rejected(zones(*running, other.on("b1")), asks)
    assert told(added, made) != told(before, made)
    assert told(PLUGIN.remove_pod(added, made.nodes, other, row), made) == told(before, made)


def test_a_pod_that_no_rule_concerns_changes_nothing() -> None:
    made = zones(web())
    before = prepared_for(pod(spec=terms(near=[term()], away=[term(DB)])), made)
    stranger = pod("stranger", spec=terms(away=[term(DB)], near=[term()]))
    assert PLUGIN.add_pod(before, made.nodes, stranger, 0) is before
    assert PLUGIN.remove_pod(before, made.nodes, stranger, 0) is before


def hint(resource: Resource, action: Action) -> Any:
    (wakeup,) = (w for w in PLUGIN.wakeups() if w.event.hears(ClusterEvent(resource, action)))
    return wakeup.hint


NEAR_WEB = pod("waiting", spec=terms(near=[term()]))
NEAR_BOTH = pod("waiting", spec=terms(near=[term(), term(WEB_OR_DB)]))
AWAY = pod("waiting", labels={"app": "web"}, spec=AWAY_FROM_WEB)
AWAY_FROM_TWO = pod("waiting", spec=terms(away=[term(), term(DB)]))
DATABASE = pod("other", node="a1", labels={"app": "db"})
OTHER = web("other")
NOMINATED = web("other", at="", status={"nominatedNodeName": "a1"})
KEEPS_WEB_AWAY = pod("other", node="a1", spec=AWAY_FROM_WEB)
KEEPS_TWO_AWAY = pod("other", node="a1", spec=terms(away=[term(), term(DB)]))
KEEPS_PROD_AWAY = pod("other", node="a1", spec=terms(away=[term(namespaceSelector=PROD)]))
AWAY_IN_PROD = pod("waiting", spec=terms(away=[term(namespaceSelector=PROD)]))
NEAR_IN_PROD = pod("waiting", spec=terms(near=[term(namespaceSelector=PROD)]))
IN_PROD = pod("other", node="a1", labels={"app": "web"}, namespace="prod")


@pytest.mark.parametrize(
    ("waiting", "old", "new", "helps"),
    [
        pytest.param(NEAR_WEB, None, OTHER, True, id="one to be near comes"),
        pytest.param(NEAR_WEB, None, NOMINATED, True, id="one to be near is nominated"),
        pytest.param(NEAR_WEB, None, web("other", at=""), False, id="it is nowhere yet"),
        pytest.param(NEAR_WEB, None, DATABASE, False, id="another comes"),
        pytest.param(NEAR_BOTH, None, DATABASE, False, id="one of two terms is not enough"),
        pytest.param(AWAY, None, OTHER, False, id="one to be away from comes"),
        pytest.param(NEAR_WEB, DATABASE, OTHER, True, id="one begins to match"),
        pytest.param(NEAR_WEB, OTHER, DATABASE, False, id="one ceases to match"),
        pytest.param(AWAY, OTHER, DATABASE, True, id="one ceases to be in the way"),
        pytest.param(AWAY, DATABASE, OTHER, False, id="one begins to be in the way"),
        pytest.param(AWAY_FROM_TWO, OTHER, DATABASE, True, id="it ceases to match one of two"),
        pytest.param(AWAY_FROM_TWO, OTHER, None, True, id="one goes that matches one of two"),
        pytest.param(AWAY_IN_PROD, IN_PROD, None, True, id="its namespace may be selected"),
        pytest.param(NEAR_IN_PROD, None, IN_PROD, True, id="a namespace that may be selected"),
        pytest.param(NEAR_IN_PROD, None, DATABASE, False, id="other labels in any namespace"),
        pytest.param(pod("waiting"), pod("waiting"), pod("waiting"), True, id="own labels"),
        pytest.param(AWAY, OTHER, None, True, id="one in the way goes"),
        pytest.param(AWAY, DATABASE, None, False, id="another goes"),
        pytest.param(NEAR_WEB, OTHER, None, False, id="one to be near goes"),
        pytest.param(AWAY, KEEPS_WEB_AWAY, None, True, id="one goes that kept the pod away"),
        pytest.param(AWAY, KEEPS_TWO_AWAY, None, True, id="one of its two terms kept the pod away"),
        pytest.param(AWAY, KEEPS_PROD_AWAY, None, True, id="it may have kept this namespace away"),
    ],
)
def test_pod_hints(waiting: Pod, old: Pod | None, new: Pod | None, helps: bool) -> None:
    for action in (Action.ADD, Action.UPDATE_POD_LABEL, Action.DELETE):
        assert hint(Resource.ASSIGNED_POD, action)(waiting, old, new) is helps


A, B, BARE = node("x", labels={ZONE: "a"}), node("x", labels={ZONE: "b"}), node("x")


@pytest.mark.parametrize(
    ("waiting", "old", "new", "helps"),
    [
        pytest.param(NEAR_WEB, None, A, True, id="near: a node with the key"),
        pytest.param(NEAR_WEB, None, BARE, False, id="near: a node without the key"),
        pytest.param(NEAR_WEB, BARE, A, True, id="near: gains the key"),
        pytest.param(NEAR_WEB, A, B, True, id="near: changes its domain"),
        pytest.param(NEAR_WEB, A, A, False, id="near: nothing"),
        pytest.param(NEAR_WEB, A, BARE, True, id="near: loses the key"),
        pytest.param(AWAY, None, BARE, True, id="away: any new node"),
        pytest.param(AWAY, A, BARE, True, id="away: loses the key"),
        pytest.param(AWAY, A, B, True, id="away: changes its domain"),
        pytest.param(AWAY, BARE, A, True, id="away: gains the key"),
        pytest.param(pod("waiting"), None, A, True, id="no rules: others may keep it away"),
        pytest.param(pod("waiting"), A, B, True, id="no rules: changes its domain"),
        pytest.param(pod("waiting"), A, A, False, id="no rules: nothing"),
    ],
)
def test_node_hints(waiting: Pod, old: Node | None, new: Node, helps: bool) -> None:
    for action in (Action.ADD, Action.UPDATE_NODE_LABEL):
        assert hint(Resource.NODE, action)(waiting, old, new) is helps


RACK = "rack"


@pytest.mark.parametrize(
    ("waiting", "others", "changed", "helps"),
    [
        pytest.param(AWAY, [], ZONE, True, id="its own topology key"),
        pytest.param(AWAY, [], RACK, False, id="another label"),
        pytest.param(NEAR_WEB, [], RACK, False, id="near: another label"),
        pytest.param(pod("waiting"), [], RACK, False, id="no rules: any label"),
        pytest.param(
            AWAY,
            [pod("r", node="x", spec=terms(away=[term(key=RACK)]))],
            RACK,
            True,
            id="the topology key of a pod that keeps it away",
        ),
        pytest.param(
            pod("waiting", labels={"app": "web"}),
            [pod("r", node="x", spec=terms(away=[term(key=RACK)]))],
            RACK,
            True,
            id="no rules: the topology key of a pod that keeps it away",
        ),
        pytest.param(
            AWAY,
            [pod("r", node="x", spec=terms(away=[term(DB, key=RACK)]))],
            RACK,
            False,
            id="the topology key of a pod that keeps others away",
        ),
        pytest.param(
            AWAY,
            [pod("r", node="x", spec=terms(near=[term(key=RACK)]))],
            RACK,
            False,
            id="the topology key of a pod that wants to be near",
        ),
    ],
)
def test_only_labels_that_decide_wake_a_pod_where_the_cluster_is_known(
    waiting: Pod, others: list[Pod], changed: str, helps: bool
) -> None:
    before, after = (node("x", labels={changed: value}) for value in "ab")
    nodes = cluster(after, *others).nodes
    plugin = InterPodAffinity(InterPodAffinityArgs())
    plugin.see_cluster(nodes)
    event = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)
    (wakeup,) = (each for each in plugin.wakeups() if each.event.hears(event))

    assert wakeup.hint is not None
    assert wakeup.hint(waiting, before, after) is helps


def test_while_a_pod_is_nominated_any_label_may_decide() -> None:
    made = cluster(node("x"))
    made.nominate(pod("n", spec=terms(away=[term(key=RACK)])), "x")

    assert node_helps(made.nodes, AWAY, node("x"), node("x", labels={RACK: "a"}))


def test_the_signature_tells_pods_apart_by_what_is_read() -> None:
    same = [pod("1", cpu=1, spec=AWAY_FROM_WEB), pod("2", cpu=2, spec=AWAY_FROM_WEB)]
    others = [pod(), pod(namespace="prod"), pod(spec=AWAY_FROM_WEB, labels={"app": "web"})]
    assert len({PLUGIN.sign(each, EMPTY) for each in (*same, *others)}) == 1 + len(others)


def test_a_label_is_signed_only_while_some_selector_reads_it() -> None:
    labelled = pod(labels={"app": "web"})
    assert PLUGIN.sign(labelled, EMPTY) == PLUGIN.sign(pod(), EMPTY)

    reading = cluster(node("a"), pod("reader", node="a", spec=AWAY_FROM_WEB)).nodes
    assert PLUGIN.sign(labelled, reading) != PLUGIN.sign(pod(), reading)


@pytest.mark.parametrize(("weight", "valid"), [(-1, False), (0, True), (100, True), (101, False)])
def test_args(weight: int, valid: bool) -> None:
    args = msgspec.convert({"hardPodAffinityWeight": weight}, InterPodAffinityArgs)
    paths = [path for path, _ in args.problems()]
    assert paths == ([] if valid else ["hardPodAffinityWeight"])


# Against counting pod by pod

selectors = st.sampled_from([WEB, DB, WEB_OR_DB, {}, None])
namespaces = st.sampled_from(
    [{}, {"namespaces": ["prod"]}, {"namespaceSelector": PROD}, {"namespaceSelector": NOT_PROD}]
)
one_term = st.builds(
    lambda selector, key, given: term(selector, key, **given),
    selectors,
    st.sampled_from([ZONE, HOSTNAME, "rack"]),
    namespaces,
)
some_terms = st.lists(one_term, max_size=2)
weighted = st.lists(st.tuples(st.integers(1, 100), one_term), max_size=2)
specs = st.builds(terms, some_terms, some_terms, weighted, weighted)
node_labels = st.fixed_dictionaries(
    {},
    optional={ZONE: st.sampled_from("ab"), HOSTNAME: st.sampled_from("xyz"), "rack": st.just("")},
)


@st.composite
def pods(draw: st.DrawFn, name: str = "pod", at: str = "") -> Pod:
    return pod(
        name,
        node=at,
        namespace=draw(st.sampled_from(["default", "prod", "test"])),
        labels={"app": draw(st.sampled_from(["web", "db", "other"]))},
        spec=draw(st.one_of(st.just({}), specs)),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Nodes of which some were relabelled and some were removed after pods came to them."""
    made = zones()
    counts = st.integers(0, 2)
    for name in [*"abcd", *"abc"][: draw(st.integers(1, 7))]:
        made.put_node(msgspec.structs.replace(node(name), labels=draw(node_labels)))
        for at in range(draw(counts)):
            made.put_pod(draw(pods(f"{name}{at}", name)))
    if draw(st.booleans()):
        made.remove_node("a1")
    return made


class Oracle:
    """The rules once more, pod by pod and node by node."""

    def __init__(self, made: Cluster, asks: Pod) -> None:
        rows = made.nodes.rows.tolist()
        self.nodes = [made.nodes.node(row) for row in rows]
        self.running = [
            (other, made.nodes.node(row)) for row in rows for other in made.nodes.pods(row).values()
        ]
        self.asks = asks
        self.namespaces = {
            name: each.labels for name, each in made.nodes.workloads.namespaces.items()
        }

    def likes(self, term: AffinityTerm, other: Pod) -> bool:
        """Whether a term of the pod that comes matches another pod."""
        labels = self.namespaces.get(other.namespace, {})
        return any(term.matches(other.namespace, other.labels, each) for each in (labels, {}))

    def liked(self, term: AffinityTerm) -> bool:
        """Whether a term of a running pod matches the pod that comes."""
        labels = self.namespaces.get(self.asks.namespace, {})
        return term.matches(self.asks.namespace, self.asks.labels, labels)

    def reason(self, on: Node) -> str | None:
        if not self.is_near(on):
            return AFFINITY
        for other, at in self.running:
            for term in self.asks.terms.anti_affinity:
                if self.likes(term, other) and together(term, on, at):
                    return ANTI_AFFINITY
        for other, at in self.running:
            for term in other.terms.anti_affinity:
                if self.liked(term) and together(term, on, at):
                    return REPELLED
        return None

    def is_near(self, on: Node) -> bool:
        terms = self.asks.terms.affinity
        if not all(term.topology_key in on.labels for term in terms):
            return False
        near = [
            (other, at)
            for other, at in self.running
            if terms and all(self.likes(term, other) for term in terms)
        ]
        if all(any(together(term, on, at) for _, at in near) for term in terms):
            return True
        alone = not any(term.topology_key in at.labels for _, at in near for term in terms)
        return alone and all(self.likes(term, self.asks) for term in terms)

    def pulls(self) -> list[tuple[AffinityTerm, Node, int]]:
        """Every term that matches somebody in a domain, and what it weighs there."""
        found = []
        for other, at in self.running:
            ours, theirs = self.asks.terms, other.terms
            found += [(t, at, w) for t, w in ours.preferred if self.likes(t, other)]
            found += [(t, at, -w) for t, w in ours.preferred_anti if self.likes(t, other)]
            found += [(t, at, 1) for t in theirs.affinity if self.liked(t)]
            found += [(t, at, w) for t, w in theirs.preferred if self.liked(t)]
            found += [(t, at, -w) for t, w in theirs.preferred_anti if self.liked(t)]
        return [(term, at, weight) for term, at, weight in found if together(term, at, at)]

    def scores(self) -> dict[str, int] | None:
        pulls = self.pulls()
        if not pulls:
            return None
        raw = {
            on.name: sum(weight for term, at, weight in pulls if together(term, on, at))
            for on in self.nodes
        }
        low, high = min(raw.values()), max(raw.values())
        if low == high:
            return dict.fromkeys(raw, 0)
        return {name: int(100 * ((score - low) / (high - low))) for name, score in raw.items()}


def together(term: AffinityTerm, one: Node, other: Node) -> bool:
    value = one.labels.get(term.topology_key)
    return value is not None and value == other.labels.get(term.topology_key)


@given(clusters(), pods())
def test_columns_agree_with_counting_pods(made: Cluster, asks: Pod) -> None:
    oracle = Oracle(made, asks)

    reasons = {on.name: oracle.reason(on) for on in oracle.nodes}
    assert rejected(made, asks) == {name: why for name, why in reasons.items() if why}
    assert scores(made, asks) == oracle.scores()
    check(made)


@given(clusters(), pods(), st.data())
def test_what_if_agrees_with_doing_it(made: Cluster, asks: Pod, data: st.DataObject) -> None:
    before = PLUGIN.pre_filter(asks, made.nodes)
    row = data.draw(st.sampled_from(made.nodes.rows.tolist()))
    gone = data.draw(st.sampled_from([*made.nodes.pods(row).values(), None]))
    comes = data.draw(pods("comes"))
    if before is None:
        return
    assert isinstance(before, AffinityRules)

    after = PLUGIN.add_pod(before, made.nodes, comes, row)
    if gone is not None:
        after = PLUGIN.remove_pod(after, made.nodes, gone, row)
    as_if = told(after, made)

    made.assume(comes, made.nodes.name(row))
    if gone is not None:
        made.remove_pod(gone.uid)
    assert as_if == rejected(made, asks)


@given(clusters(), pods(), st.data())
def test_some_rows_get_the_answers_that_all_rows_get(
    made: Cluster, asks: Pod, data: st.DataObject
) -> None:
    nodes = made.nodes
    rows = np.array(data.draw(st.permutations(nodes.rows.tolist())), np.intp)[:2]
    prepared = PLUGIN.pre_filter(asks, nodes)
    if isinstance(prepared, AffinityRules):
        whole = PLUGIN.filter(prepared, nodes, nodes.everything)
        assert (
            PLUGIN.filter(prepared, nodes, rows).failed.tolist() == whole.failed[:, rows].tolist()
        )
    pull = PLUGIN.pre_score(asks, nodes, nodes.rows)
    if pull is not None:
        whole_scores = PLUGIN.score(pull, nodes, nodes.everything)
        assert PLUGIN.score(pull, nodes, rows).tolist() == whole_scores[rows].tolist()
