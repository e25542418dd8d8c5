"""PodTopologySpread: hard and soft constraints, a pod's own and the default ones."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st

from moorage.cluster import BareNodes, Cluster
from moorage.cluster.check import check
from moorage.framework.plugin import UNSIGNABLE
from moorage.framework.status import Code, PluginError
from moorage.framework.wakeups import Action, ClusterEvent, Resource
from moorage.objects.node import HOSTNAME, ZONE, Node
from moorage.objects.placement_rules import is_tolerated
from moorage.objects.pod import Pod
from moorage.objects.selector import equality
from moorage.objects.workload import ReplicaSet, Service
from moorage.plugins.topology_spread.pod_topology_spread import (
    PodTopologySpread,
    PodTopologySpreadArgs,
)
from moorage.plugins.topology_spread.spread_constraints import Constraint, own_constraints
from moorage.plugins.topology_spread.spread_costs import Cost, Costs
from moorage.plugins.topology_spread.spread_counts import Lowest, Spreads
from moorage.testing.laws import check_score_rows
from tests.builders import (
    EMPTY,
    cluster,
    node,
    pod,
)

PLUGIN = PodTopologySpread(PodTopologySpreadArgs())

SKEWED = "node(s) didn't match pod topology spread constraints"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"

WEB = {"matchLabels": {"app": "web"}}
HAS_APP = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
MALFORMED = {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def constraint(
    key: str = ZONE, skew: int = 1, selector: Any = WEB, *, soft: bool = False, **given: Any
) -> dict[str, Any]:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway" if soft else "DoNotSchedule",
        "labelSelector": selector,
        **given,
    }


def soft(key: str = ZONE, skew: int = 1, selector: Any = WEB, **given: Any) -> dict[str, Any]:
    return constraint(key, skew, selector, soft=True, **given)


def web(name: str = "web", at: str = "", *constraints: Any, **given: Any) -> Pod:
    spec = {"topologySpreadConstraints": list(constraints), **given.pop("spec", {})}
    return pod(name, node=at, **{"labels": {"app": "web"}, **given}, spec=spec)


def webs(**counts: int) -> list[Pod]:
    return [web(f"{at}-{n}", at) for at, count in counts.items() for n in range(count)]


def asks(*constraints: Any, **given: Any) -> Pod:
    return web("asks", "", *constraints, **given)


def zones(*pods: Pod) -> Cluster:
    """Two nodes in zone a, one each in b and c; c's node is tainted, `bare` has no zone."""
    taint = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    return cluster(
        node("a1", labels={ZONE: "a"}),
        node("a2", labels={ZONE: "a"}),
        node("b1", labels={ZONE: "b"}),
        node("c1", labels={ZONE: "c"}, spec=taint),
        node("bare"),
        *pods,
    )


def rejected(
    made: Cluster, pending: Pod, plugin: PodTopologySpread = PLUGIN
) -> dict[str, str] | None:
    """Why which node is rejected; None if the plugin skips itself."""
    prepared = plugin.pre_filter(pending, made.nodes)
    return None if prepared is None else told(prepared, made)


def told(prepared: Spreads, made: Cluster) -> dict[str, str]:
    verdict = PLUGIN.filter(prepared, made.nodes, made.nodes.everything)
    reasons = {}
    for row in made.nodes.rows.tolist():
        if verdict.rejected[row]:
            (reasons[made.nodes.name(row)],) = verdict.texts(row)
            wanted = Code.UNRESOLVABLE if verdict.texts(row) == (NO_LABEL,) else Code.UNSCHEDULABLE
            assert verdict.code(row) is wanted
    return reasons


def scores(
    made: Cluster, pending: Pod, plugin: PodTopologySpread = PLUGIN, without: str = ""
) -> dict[str, int] | None:
    """The scores of all nodes but one."""
    rows = np.array([row for row in made.nodes.rows if made.nodes.name(row) != without], np.intp)
    prepared = plugin.pre_score(pending, made.nodes, rows)
    if prepared is None:
        return None
    normal = plugin.normalize(prepared, plugin.score(prepared, made.nodes, rows)).tolist()
    return dict(zip(made.nodes.names(rows), normal, strict=True))


BARE = {"bare": NO_LABEL}
IN_A = {"a1": SKEWED, "a2": SKEWED}


@pytest.mark.parametrize(
    ("running", "pending", "expected"),
    [
        pytest.param([], asks(), None, id="no constraints"),
        pytest.param([], asks(soft()), None, id="no hard constraints"),
        pytest.param([], asks(constraint()), BARE, id="the key must be there"),
        pytest.param(
            webs(a1=1, b1=1),
            asks(constraint()),
            {**IN_A, "b1": SKEWED, **BARE},
            id="only the empty domain is left",
        ),
        pytest.param(
            webs(a1=1, b1=1, c1=1), asks(constraint()), BARE, id="even: the next goes anywhere"
        ),
        pytest.param(webs(a1=2, b1=1), asks(constraint(skew=2)), {**IN_A, **BARE}, id="skew of 2"),
        pytest.param(
            webs(a1=1),
            asks(constraint(), labels={"app": "db"}),
            BARE,
            id="who comes is not counted",
        ),
        pytest.param(
            [*webs(a1=1), web("2", "a1", namespace="other"), pod("3", node="b1")],
            asks(constraint()),
            {**IN_A, **BARE},
            id="others are not counted",
        ),
        pytest.param(
            [web("1", "a1", metadata=DELETED)], asks(constraint()), BARE, id="nor who terminates"
        ),
        pytest.param(
            webs(a1=3), asks(constraint(selector={})), BARE, id="an empty selector counts nobody"
        ),
        pytest.param(
            webs(a1=3),
            asks(constraint(selector={}, skew=0)),
            {**IN_A, "b1": SKEWED, "c1": SKEWED, **BARE},
            id="an empty selector selects who comes",
        ),
        pytest.param(webs(a1=3), asks(constraint(selector=None)), BARE, id="no selector"),
        pytest.param(
            webs(a1=1, bare=1),
            asks(constraint(key=HOSTNAME)),
            {"a1": SKEWED, "bare": SKEWED},
            id="every node is a domain",
        ),
        pytest.param(
            webs(a1=2, a2=1, b1=1, c1=1),
            asks(constraint(key=HOSTNAME), constraint(skew=9)),
            {"a1": SKEWED, **BARE},
            id="a node without all keys does not hold the minimum down",
        ),
        pytest.param(
            webs(a1=1, b1=1, c1=1), asks(constraint(minDomains=3)), BARE, id="enough domains"
        ),
        pytest.param(
            webs(a1=1, b1=1, c1=1),
            asks(constraint(minDomains=4)),
            {**IN_A, "b1": SKEWED, "c1": SKEWED, **BARE},
            id="too few domains: the minimum is 0",
        ),
        pytest.param(
            webs(a1=1, b1=1),
            asks(constraint(), spec={"nodeSelector": {ZONE: "a"}}),
            BARE,
            id="nodes that the pod does not select are no domains",
        ),
        pytest.param(
            webs(a1=1, b1=1),
            asks(constraint(nodeAffinityPolicy="Ignore"), spec={"nodeSelector": {ZONE: "a"}}),
            {**IN_A, "b1": SKEWED, **BARE},
            id="unless that is ignored",
        ),
        pytest.param(
            webs(a1=1, a2=1, b1=1),
            asks(constraint(key=HOSTNAME), spec={"nodeSelector": {HOSTNAME: "a1"}}),
            {},
            id="elsewhere nobody is counted",
        ),
        pytest.param(
            webs(a1=1, b1=1),
            asks(constraint(nodeTaintsPolicy="Honor")),
            BARE,
            id="tainted nodes are no domains if the constraint says so",
        ),
        pytest.param(
            webs(a1=1, b1=1),
            asks(
                constraint(nodeTaintsPolicy="Honor"),
                spec={"tolerations": [{"key": "gpu", "operator": "Exists"}]},
            ),
            {**IN_A, "b1": SKEWED, **BARE},
            id="unless the taint is tolerated",
        ),
        pytest.param(
            [web("1", "a1", labels={"app": "web", "version": "1"})],
            asks(
                constraint(selector=HAS_APP, matchLabelKeys=["version", "other"]),
                labels={"app": "web", "version": "2"},
            ),
            BARE,
            id="matchLabelKeys: another value",
        ),
        pytest.param(
            [web("1", "a1", labels={"app": "web", "version": "2"})],
            asks(
                constraint(selector={}, matchLabelKeys=["version", "other"]),
                labels={"app": "web", "version": "2"},
            ),
            {**IN_A, **BARE},
            id="matchLabelKeys: the same value",
        ),
        pytest.param(
            webs(a1=1),
            asks(constraint(selector=None, matchLabelKeys=["app"])),
            BARE,
            id="matchLabelKeys: no selector stays none",
        ),
    ],
)
def test_filter(running: list[Pod], pending: Pod, expected: dict[str, str] | None) -> None:
    assert rejected(zones(*running), pending) == expected


@pytest.mark.parametrize(
    ("effect", "included"),
    [("NoSchedule", False), ("NoExecute", False), ("PreferNoSchedule", True)],
)
def test_soft_taints_exclude_no_node(effect: str, included: bool) -> None:
    taints = {"taints": [{"key": "gpu", "effect": effect}]}
    made = cluster(node("n1", labels={ZONE: "a"}), node("n2", labels={ZONE: "b"}, spec=taints))
    made.put_pod(web("1", "n1"))
    pending = asks(constraint(nodeTaintsPolicy="Honor"))
    assert rejected(made, pending) == ({"n1": SKEWED} if included else {})


def test_a_domain_without_nodes_does_not_hold_the_minimum_down() -> None:
    made = cluster(*(node(name, labels={ZONE: name}) for name in "abc"), *webs(a=1, b=1))
    assert rejected(made, asks(constraint())) == {"a": SKEWED, "b": SKEWED}
    made.remove_node("c")
    assert rejected(made, asks(constraint())) == {}


@pytest.mark.parametrize(("keys", "reason"), [((ZONE, "rack"), SKEWED), (("rack", ZONE), NO_LABEL)])
def test_the_first_constraint_that_fails_is_told(keys: tuple[str, str], reason: str) -> None:
    made = cluster(
        node("full", labels={ZONE: "a", "rack": "r"}),
        node("partial", labels={ZONE: "a"}),
        node("free", labels={ZONE: "b", "rack": "r"}),
        *webs(full=1),
    )
    pending = asks(*(constraint(key, skew=1) for key in keys))
    assert rejected(made, pending) == {"full": SKEWED, "partial": reason}


def test_without_any_domain_nothing_is_skewed() -> None:
    made = cluster(node("bare"))
    assert rejected(made, asks(constraint())) == BARE
    assert rejected(made, asks(constraint(minDomains=0))) == BARE


def test_a_selector_that_cannot_be_read_is_an_error() -> None:
    for point, unreadable in (
        (PLUGIN.pre_filter, asks(constraint(selector=MALFORMED))),
        (lambda p, nodes: PLUGIN.pre_score(p, nodes, nodes.rows), asks(soft(selector=MALFORMED))),
    ):
        with pytest.raises(PluginError, match="topology spread constraints: values: Invalid"):
            point(unreadable, zones().nodes)


def defaults(*constraints: dict[str, Any]) -> PodTopologySpread:
    raw = [{k: v for k, v in each.items() if k != "labelSelector"} for each in constraints]
    args = {"defaultingType": "List", "defaultConstraints": raw}
    return PodTopologySpread(msgspec.convert(args, PodTopologySpreadArgs))


def with_service(*pods: Pod) -> Cluster:
    made = zones(*pods)
    made.put_workload(Service(namespace="default", name="s", selector=equality({"app": "web"})))
    return made


def test_default_constraints_count_the_pods_that_belong_together() -> None:
    plugin = defaults(constraint())
    pods = [*webs(a1=1), web("other", "b1", labels={"app": "web", "owned": "yes"})]
    assert rejected(zones(*pods), asks(), plugin) is None
    assert rejected(with_service(*pods), asks(), plugin) == {**IN_A, "b1": SKEWED, **BARE}
    assert rejected(with_service(*pods), asks(soft()), plugin) is None

    owner = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "rs", "controller": True}
    made = with_service(*pods)
    selector = equality({"owned": "yes"})
    made.put_workload(ReplicaSet(namespace="default", name="rs", selector=selector))
    labels = {"app": "web", "owned": "yes"}
    owned = asks(labels=labels, metadata={"ownerReferences": [owner]})
    assert rejected(made, owned, plugin) == {"b1": SKEWED, **BARE}


def normal(raw: dict[str, float]) -> dict[str, int]:
    """Scores from costs, of nodes that are all compared."""
    rounded = {name: math.floor(cost + 0.5) for name, cost in raw.items()}
    low, high = min(rounded.values()), max(rounded.values())
    return {name: 100 * (high + low - cost) // high for name, cost in rounded.items()}


@pytest.mark.parametrize(
    ("running", "pending", "expected"),
    [
        pytest.param([], asks(), None, id="no constraints"),
        pytest.param([], asks(constraint()), None, id="no soft constraints"),
        pytest.param(
            [],
            asks(soft()),
            {"a1": 100, "a2": 100, "b1": 100, "c1": 100, "bare": 0},
            id="nobody is there yet; a node without the key is ignored",
        ),
        pytest.param(
            webs(a1=2, a2=2, b1=1),
            asks(soft()),
            # Three zones weigh ln 5: 4 pods cost 6, 1 costs 2, none costs nothing.
            {"a1": 0, "a2": 0, "b1": 66, "c1": 100, "bare": 0},
            id="zones with fewer pods are better",
        ),
        pytest.param(
            webs(a1=2, a2=2, b1=1),
            asks(soft(skew=5)),
            # The skew that is allowed is added to every cost: 10, 6 and 4.
            {"a1": 40, "a2": 40, "b1": 80, "c1": 100, "bare": 0},
            id="a large skew waters differences down",
        ),
        pytest.param(
            webs(a1=2, a2=1, b1=1),
            asks(soft(key=HOSTNAME)),
            # Five nodes weigh ln 7.
            normal(
                {"a1": 2 * math.log(7), "a2": math.log(7), "b1": math.log(7), "c1": 0, "bare": 0}
            ),
            id="by host name the node's own pods count",
        ),
        pytest.param(
            webs(a1=2, a2=1, b1=1),
            asks(soft(key=HOSTNAME), soft()),
            {
                **normal(
                    {
                        "a1": 2 * math.log(6) + 3 * math.log(5),
                        "a2": math.log(6) + 3 * math.log(5),
                        "b1": math.log(6) + math.log(5),
                        "c1": 0,
                    }
                ),
                "bare": 0,
            },
            id="costs add up over the nodes that are compared",
        ),
        pytest.param(
            webs(a1=2, b1=1),
            asks(soft(), spec={"nodeSelector": {ZONE: "b"}}),
            {"a1": 100, "a2": 100, "b1": 0, "c1": 100, "bare": 0},
            id="pods on nodes that are not included do not count",
        ),
        pytest.param(
            webs(a1=2, b1=1),
            asks(soft(key=HOSTNAME), spec={"nodeSelector": {ZONE: "b"}}),
            {"a1": 0, "a2": 100, "b1": 50, "c1": 100, "bare": 100},
            id="but by host name they do",
        ),
        pytest.param(
            webs(a1=2),
            asks(soft(selector={})),
            dict.fromkeys(["a1", "a2", "b1", "c1"], 100),
            id="an empty selector counts nobody",
        ),
    ],
)
def test_score(running: list[Pod], pending: Pod, expected: dict[str, int] | None) -> None:
    if expected is not None:
        expected = {"bare": 0, **expected}
    assert scores(zones(*running), pending) == expected


def test_on_nodes_that_an_extender_sent_back_pods_count_by_zone_alone() -> None:
    nodes = BareNodes(zones(*webs(a1=2)).nodes)
    by_key = {}
    for key in (HOSTNAME, ZONE):
        costs = PLUGIN.pre_score(asks(soft(key)), nodes, nodes.rows)
        assert costs is not None
        raw = PLUGIN.score(costs, nodes, nodes.rows).tolist()
        by_key[key] = dict(zip(nodes.names(nodes.rows), raw, strict=True))

    assert by_key[HOSTNAME]["a1"] == by_key[HOSTNAME]["b1"]
    assert by_key[ZONE]["a1"] > by_key[ZONE]["b1"]


def test_pods_on_nodes_that_are_not_feasible_count_but_their_domain_does_not() -> None:
    made = zones(*webs(a1=2, b1=1))
    # Without b there are two zones, which weigh ln 4: a costs 3, c nothing.
    assert scores(made, asks(soft(skew=3)), without="b1") == {
        "a1": 40,
        "a2": 40,
        "c1": 100,
        "bare": 0,
    }
    assert scores(made, asks(soft()), without="a1") == {"a2": 0, "b1": 33, "c1": 100, "bare": 0}


def test_system_defaults_compare_nodes_without_a_zone_too() -> None:
    made = with_service(*webs(a1=1, b1=1, bare=2))
    # Five names weigh ln 7, three zones and no zone at all ln 6.
    name, zone = math.log(7), math.log(6)
    costs = {
        "a1": name + 2 + zone + 4,
        "a2": 2 + zone + 4,
        "b1": name + 2 + zone + 4,
        "c1": 2 + 4,
        "bare": 2 * name + 2,
    }
    assert scores(made, asks()) == normal(costs)
    assert scores(zones(*webs(a1=1)), asks()) is None
    assert scores(made, asks(constraint())) is None


def test_system_defaults_take_nodes_without_a_zone_for_nodes_whose_zone_has_no_name() -> None:
    made = with_service(*webs(a1=1, bare=2))
    for each in ("b1", "c1"):
        before = made.nodes.node(row_of(made, each))
        made.put_node(msgspec.structs.replace(before, labels={**before.labels, ZONE: ""}))
    # Five names weigh ln 7, and two zones ln 4: that of a1 and a2, and that of all others.
    name, zone = math.log(7), math.log(4)
    costs = {
        "a1": name + 2 + zone + 4,
        "a2": 2 + zone + 4,
        "b1": 2 + 2 * zone + 4,
        "c1": 2 + 2 * zone + 4,
        "bare": 2 * name + 2,
    }
    assert scores(made, asks()) == normal(costs)
    # Without c1 there are four names, and still two zones.
    fewer = {**costs, "a1": math.log(6) + 2 + zone + 4, "bare": 2 * math.log(6) + 2}
    del fewer["c1"]
    assert scores(made, asks(), without="c1") == normal(fewer)


def test_system_defaults_count_pods_on_the_nodes_that_the_pod_selects() -> None:
    made = with_service(*webs(a1=1, b1=3, bare=2))
    for name in ("a1", "bare"):
        before = made.nodes.node(row_of(made, name))
        labels = {**before.labels, "disk": "ssd"}
        made.put_node(msgspec.structs.replace(before, labels=labels))
    by_name, zone = math.log(7), math.log(6)
    costs = {
        "a1": by_name + 2 + zone + 4,
        "a2": 2 + zone + 4,
        "b1": 3 * by_name + 2 + 4,
        "c1": 2 + 4,
        "bare": 2 * by_name + 2,
    }
    assert scores(made, asks(spec={"nodeSelector": {"disk": "ssd"}})) == normal(costs)


def test_defaults_from_the_configuration_want_every_key() -> None:
    plugin = defaults(soft(key=HOSTNAME), soft())
    made = with_service(*webs(bare=1))
    assert scores(made, asks(), plugin) == {"a1": 100, "a2": 100, "b1": 100, "c1": 100, "bare": 0}


def test_halves_are_rounded_up() -> None:
    made = zones(*webs(a1=1))
    amounts = np.array([0.5, 1.5, 2.5, 2.4999999999999996, 0.49999999999999994])
    costs = Costs((Cost(amounts, np.arange(5)),), None)
    assert PLUGIN.score(costs, made.nodes, made.nodes.rows).tolist() == [1, 2, 3, 2, 0]


def prepared_for(pending: Pod, made: Cluster) -> Spreads:
    prepared = PLUGIN.pre_filter(pending, made.nodes)
    assert prepared is not None
    return prepared


def row_of(made: Cluster, name: str) -> int:
    row = made.nodes.row(name)
    assert row is not None
    return row


@pytest.mark.parametrize(
    ("pending", "other", "at", "matters"),
    [
        pytest.param(asks(constraint()), web("other"), "b1", True, id="it counts"),
        pytest.param(asks(constraint()), web("other", labels={}), "b1", False, id="not selected"),
        pytest.param(
            asks(constraint()), web("other", namespace="x"), "b1", False, id="another namespace"
        ),
        pytest.param(asks(constraint()), web("other"), "bare", False, id="no domain"),
        pytest.param(
            asks(constraint(key=HOSTNAME), constraint()),
            web("other"),
            "bare",
            False,
            id="a key is missing",
        ),
        pytest.param(
            asks(constraint(), spec={"nodeSelector": {ZONE: "a"}}),
            web("other"),
            "b1",
            False,
            id="not included",
        ),
        pytest.param(
            asks(constraint(nodeTaintsPolicy="Honor")), web("other"), "c1", False, id="tainted"
        ),
    ],
)
def test_adding_a_pod(pending: Pod, other: Pod, at: str, matters: bool) -> None:
    made = zones(*webs(a1=1))
    row = row_of(made, at)
    before = prepared_for(pending, made)

    added = PLUGIN.add_pod(before, made.nodes, other, row)

    assert (added is not before) is matters
    assert told(added, made) == rejected(zones(*webs(a1=1), other.on(at)), pending)
    assert told(PLUGIN.remove_pod(added, made.nodes, other, row), made) == told(before, made)


def test_removing_a_pod_that_terminates_counts_although_it_was_not_counted() -> None:
    dying = web("dying", "b1", metadata=DELETED)
    made = zones(dying)
    before = prepared_for(asks(constraint(skew=1)), made)
    after = PLUGIN.remove_pod(before, made.nodes, dying, row_of(made, "b1"))
    # b now has -1 pods, which is the minimum: one more anywhere else is two more than that.
    assert told(after, made) == {**IN_A, "c1": SKEWED, **BARE}


def test_removing_a_pod_under_an_empty_selector_counts_too() -> None:
    gone = web("gone", "b1")
    made = zones(gone)
    before = prepared_for(asks(constraint(selector={})), made)
    after = PLUGIN.remove_pod(before, made.nodes, gone, row_of(made, "b1"))
    assert told(after, made) == {**IN_A, "c1": SKEWED, **BARE}


@pytest.mark.parametrize(
    ("code", "count", "expected"),
    [
        pytest.param(1, 2, Lowest(1, 2, 2, 3), id="the lowest stays the lowest"),
        pytest.param(1, 3, Lowest(1, 3, 2, 3), id="a tie changes no order"),
        pytest.param(1, 4, Lowest(2, 3, 1, 4), id="the lowest becomes the second"),
        pytest.param(2, 5, Lowest(1, 1, 2, 5), id="the second rises"),
        pytest.param(2, 0, Lowest(2, 0, 1, 1), id="the second becomes the lowest"),
        pytest.param(9, 0, Lowest(9, 0, 1, 1), id="another becomes the lowest"),
        pytest.param(9, 2, Lowest(1, 1, 9, 2), id="another becomes the second"),
        pytest.param(9, 3, Lowest(1, 1, 2, 3), id="another does not matter"),
    ],
)
def test_only_two_domains_are_known(code: int, count: int, expected: Lowest) -> None:
    assert Lowest(1, 1, 2, 3).updated(code, count) == expected


def hint(resource: Resource, action: Action, plugin: PodTopologySpread = PLUGIN) -> Any:
    (wakeup,) = (w for w in plugin.wakeups() if w.event.hears(ClusterEvent(resource, action)))
    return wakeup.hint


WAITING = asks(constraint(), soft(selector={}))
HONORS = asks(constraint(nodeTaintsPolicy="Honor"))
TOLERANT = asks(spec={"tolerations": [{"operator": "Exists"}]})
OTHER, DB = web("other", "a1"), web("other", "a1", labels={"app": "db"})


@pytest.mark.parametrize(
    ("waiting", "old", "new", "helps"),
    [
        pytest.param(WAITING, None, OTHER, True, id="one comes that counts"),
        pytest.param(WAITING, None, DB, False, id="one comes that does not"),
        pytest.param(WAITING, None, web("other"), False, id="one that is nowhere yet"),
        pytest.param(
            WAITING,
            None,
            web("other", status={"nominatedNodeName": "a1"}),
            True,
            id="one is nominated",
        ),
        pytest.param(
            WAITING, None, web("o", "a1", namespace="x"), False, id="in another namespace"
        ),
        pytest.param(WAITING, OTHER, None, True, id="one goes that counted"),
        pytest.param(WAITING, DB, None, False, id="one goes that did not"),
        pytest.param(WAITING, DB, OTHER, True, id="one begins to count"),
        pytest.param(WAITING, OTHER, DB, True, id="one ceases to count"),
        pytest.param(WAITING, OTHER, OTHER, False, id="nothing changes"),
        pytest.param(
            WAITING, DB, web("other", "a1", labels={"app": "x"}), False, id="it counts as before"
        ),
        pytest.param(WAITING, WAITING, asks(labels={"app": "db"}), True, id="the pod's own labels"),
        pytest.param(HONORS, HONORS, TOLERANT, True, id="own tolerations, and taints matter"),
        pytest.param(WAITING, WAITING, TOLERANT, False, id="own tolerations, but taints do not"),
        pytest.param(asks(), None, DB, True, id="defaults: who counts is not known here"),
        pytest.param(asks(), DB, DB, False, id="defaults: nothing changes"),
        pytest.param(asks(), DB, OTHER, True, id="defaults: labels change"),
        pytest.param(asks(constraint(selector=MALFORMED)), None, DB, True, id="unreadable"),
        pytest.param(asks(constraint(selector=MALFORMED)), DB, DB, True, id="unreadable, update"),
    ],
)
def test_pod_hints(waiting: Pod, old: Pod | None, new: Pod | None, helps: bool) -> None:
    for action in (
        Action.ADD,
        Action.UPDATE_POD_LABEL,
        Action.UPDATE_POD_TOLERATION,
        Action.DELETE,
    ):
        assert hint(Resource.ASSIGNED_POD, action)(waiting, old, new) is helps


IN_ZONE, MOVED, BARE_NODE = node("x", labels={ZONE: "a"}), node("x", labels={ZONE: "b"}), node("x")
TAINTED = node("x", labels={ZONE: "a"}, spec={"taints": [{"key": "gpu", "effect": "NoSchedule"}]})


@pytest.mark.parametrize(
    ("old", "new", "helps"),
    [
        pytest.param(None, IN_ZONE, True, id="comes with the key"),
        pytest.param(None, BARE_NODE, False, id="comes without the key"),
        pytest.param(IN_ZONE, None, True, id="goes with the key"),
        pytest.param(BARE_NODE, None, False, id="goes without the key"),
        pytest.param(BARE_NODE, IN_ZONE, True, id="gains the key"),
        pytest.param(IN_ZONE, BARE_NODE, True, id="loses the key"),
        pytest.param(IN_ZONE, MOVED, True, id="changes its domain"),
        pytest.param(IN_ZONE, TAINTED, True, id="is tainted"),
        pytest.param(IN_ZONE, IN_ZONE, False, id="nothing"),
        pytest.param(
            BARE_NODE, node("x", spec={"unschedulable": True}), False, id="nothing, without the key"
        ),
    ],
)
def test_node_hints(old: Node | None, new: Node | None, helps: bool) -> None:
    for action in (
        Action.ADD,
        Action.DELETE,
        Action.UPDATE_NODE_LABEL,
        Action.UPDATE_NODE_TAINT,
    ):
        assert hint(Resource.NODE, action)(WAITING, old, new) is helps
        by_default = defaults(constraint(), soft(key="rack"))
        assert hint(Resource.NODE, action, by_default)(asks(), old, new) is helps


def test_the_signature_tells_pods_apart_by_what_is_read() -> None:
    same = [asks(constraint(), cpu=1), web("2", "", constraint(), cpu=2)]
    others = [
        asks(),
        asks(constraint(), namespace="x"),
        asks(constraint(), labels={}),
        asks(constraint(skew=2)),
        asks(soft()),
        asks(constraint(), spec={"nodeSelector": {"a": "b"}}),
        asks(constraint(), spec={"tolerations": [{"operator": "Exists"}]}),
    ]
    assert len({PLUGIN.sign(each, EMPTY) for each in (*same, *others)}) == 1 + len(others)
    assert PLUGIN.sign(asks(constraint(selector=MALFORMED)), EMPTY) is UNSIGNABLE
    assert defaults().sign(asks(), EMPTY) == defaults().sign(asks(labels={}), EMPTY)


def test_by_default_what_a_pod_belongs_to_is_signed() -> None:
    owner = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "rs", "controller": True}
    owned = asks(metadata={"ownerReferences": [owner]})
    assert PLUGIN.sign(owned, EMPTY) == PLUGIN.sign(asks(), EMPTY)

    selector = equality({"app": "web"})
    known = cluster(node("a"))
    known.put_workload(ReplicaSet(namespace="default", name="rs", selector=selector))
    assert PLUGIN.sign(owned, known.nodes) != PLUGIN.sign(asks(), known.nodes)


@pytest.mark.parametrize(
    ("raw", "paths"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"defaultingType": "List"}, [], id="an empty list"),
        pytest.param(
            {"defaultConstraints": [constraint(selector=None)]}, ["defaultingType"], id="s"
        ),
        pytest.param(
            {"defaultingType": "List", "defaultConstraints": [constraint("", 0)]},
            [
                "defaultConstraints[0].maxSkew",
                "defaultConstraints[0].topologyKey",
                "defaultConstraints[0].labelSelector",
            ],
            id="fields",
        ),
        pytest.param(
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    constraint(selector=None),
                    soft(selector=None),
                    constraint(selector=None, skew=2),
                ],
            },
            ["defaultConstraints[2]"],
            id="repeated",
        ),
    ],
)
def test_args(raw: dict[str, Any], paths: list[str]) -> None:
    args = msgspec.convert(raw, PodTopologySpreadArgs)
    assert [path for path, _ in args.problems()] == paths


def test_a_gate_lets_tolerations_compare_numbers() -> None:
    taints = [{"key": "tier", "value": "3", "effect": "NoSchedule"}]
    made = cluster(
        node("n1", labels={ZONE: "a"}), node("n2", labels={ZONE: "b"}, spec={"taints": taints})
    )
    made.put_pod(web("1", "n1"))
    tolerations = [{"key": "tier", "operator": "Gt", "value": "2", "effect": "NoSchedule"}]
    pending = asks(constraint(nodeTaintsPolicy="Honor"), spec={"tolerations": tolerations})
    for enabled, expected in ((False, {}), (True, {"n1": SKEWED})):
        gates = {"TaintTolerationComparisonOperators": enabled}
        plugin = PodTopologySpread.create(PodTopologySpreadArgs(), gates)
        assert rejected(made, pending, plugin) == expected


# Against counting pod by pod

policies = st.sampled_from([None, "Honor", "Ignore"])
some_constraints = st.lists(
    st.builds(
        lambda key, skew, selector, given: constraint(key, skew, selector, **given),
        st.sampled_from([ZONE, HOSTNAME, "rack"]),
        st.integers(1, 2),
        st.sampled_from([WEB, HAS_APP, {}, None]),
        st.fixed_dictionaries(
            {},
            optional={
                "soft": st.just(True),
                "minDomains": st.integers(1, 4),
                "nodeAffinityPolicy": policies,
                "nodeTaintsPolicy": policies,
                "matchLabelKeys": st.just(["app"]),
            },
        ),
    ),
    max_size=3,
)
some_specs = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": st.sampled_from([{ZONE: "a"}, {"rack": ""}]),
        "tolerations": st.just([{"key": "gpu", "operator": "Exists"}]),
    },
)
node_labels = st.fixed_dictionaries(
    {},
    optional={
        ZONE: st.sampled_from(["a", "b", ""]),
        HOSTNAME: st.sampled_from("xyz"),
        "rack": st.just(""),
    },
)
some_taints = st.sampled_from([(), (("gpu", "NoSchedule"),), (("slow", "PreferNoSchedule"),)])
apps = st.sampled_from([{"app": "web"}, {"app": "db"}, {}])


@st.composite
def pods(draw: st.DrawFn, name: str, at: str = "") -> Pod:
    return pod(
        name,
        node=at,
        namespace=draw(st.sampled_from(["default", "other"])),
        labels=draw(apps),
        metadata=draw(st.sampled_from([{}, {}, DELETED])),
    )


@st.composite
def pending_pods(draw: st.DrawFn) -> Pod:
    return web("asks", "", *draw(some_constraints), labels=draw(apps), spec=draw(some_specs))


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Nodes of which some were relabelled and some were removed after pods came to them."""
    made = with_service()
    for name in [*"abcd", *"abc"][: draw(st.integers(1, 7))]:
        taints = [{"key": key, "effect": effect} for key, effect in draw(some_taints)]
        new = node(name, spec={"taints": taints})
        made.put_node(msgspec.structs.replace(new, labels=draw(node_labels)))
        for at in range(draw(st.integers(0, 3))):
            made.put_pod(draw(pods(f"{name}{at}", name)))
    if draw(st.booleans()):
        made.remove_node("a1")
    return made


class Oracle:
    """The rules once more, pod by pod and node by node."""

    def __init__(self, made: Cluster, pending: Pod) -> None:
        self.nodes = [made.nodes.node(row) for row in made.nodes.rows]
        self.pods = {on.name: made.nodes.pods(made.nodes.row(on.name) or 0) for on in self.nodes}
        self.pending = pending

    def includes(self, constraint: Constraint, on: Node) -> bool:
        spec = self.pending.spec
        selects = (spec.node_selector or {}).items() <= on.labels.items()
        tolerates = all(
            taint.effect == "PreferNoSchedule" or is_tolerated(taint, spec.tolerations or ())
            for taint in on.taints
        )
        return (selects or not constraint.honors_node_affinity) and (
            tolerates or not constraint.honors_taints
        )

    def count(self, constraint: Constraint, on: Node) -> int:
        return sum(
            1
            for other in self.pods[on.name].values()
            if other.namespace == self.pending.namespace
            and not other.terminating
            and constraint.selector
            and constraint.selector.matches(other.labels)
        )

    def per_value(self, each: Constraint, all_keys: set[str]) -> Counter[str]:
        """The pods per value of the key; a value is there even if its count is 0."""
        counts: Counter[str] = Counter()
        for on in self.nodes:
            if all_keys <= on.labels.keys() and self.includes(each, on):
                counts[on.labels.get(each.topology_key, "")] += self.count(each, on)
        return counts

    def reason(self, constraints: tuple[Constraint, ...], on: Node) -> str | None:
        keys = {each.topology_key for each in constraints}
        for each in constraints:
            if each.topology_key not in on.labels:
                return NO_LABEL
            counts = self.per_value(each, keys)
            fewest = min(counts.values(), default=0) if len(counts) >= each.min_domains else 0
            own = each.selector is not None and each.selector.matches(self.pending.labels)
            if counts[on.labels[each.topology_key]] + own - fewest > each.max_skew:
                return SKEWED
        return None

    def scores(
        self, constraints: tuple[Constraint, ...], feasible: list[Node], *, strict: bool
    ) -> dict[str, int]:
        keys = {each.topology_key for each in constraints} if strict else set()
        compared = [on for on in feasible if keys <= on.labels.keys()]
        costs = dict.fromkeys((on.name for on in compared), 0.0)
        for each in constraints:
            key = each.topology_key
            counts = self.per_value(each, keys)
            size = len(compared)
            if key != HOSTNAME:
                size = len({on.labels.get(key, "") for on in compared})
            for on in compared:
                if key in on.labels:
                    own = self.count(each, on)
                    count = own if key == HOSTNAME else counts[on.labels[key]]
                    costs[on.name] += count * math.log(size + 2) + (each.max_skew - 1)
        highest = max(map(math.floor, (cost + 0.5 for cost in costs.values())), default=0)
        even = dict.fromkeys(costs, 100)
        return dict.fromkeys((on.name for on in feasible), 0) | (normal(costs) if highest else even)


@given(clusters(), pending_pods())
def test_columns_agree_with_counting_pods(made: Cluster, pending: Pod) -> None:
    oracle = Oracle(made, pending)
    hard = own_constraints(pending, "DoNotSchedule")

    reasons = {on.name: oracle.reason(hard, on) for on in oracle.nodes}
    assert (rejected(made, pending) or {}) == {name: why for name, why in reasons.items() if why}
    check(made)


@given(clusters(), pending_pods(), st.data())
def test_scores_agree_with_counting_pods(made: Cluster, pending: Pod, data: st.DataObject) -> None:
    oracle = Oracle(made, pending)
    without = data.draw(st.sampled_from([*"abcd", ""]))
    feasible = [on for on in oracle.nodes if on.name != without]
    own = own_constraints(pending, "ScheduleAnyway")

    if own:
        assert scores(made, pending, PLUGIN, without) == oracle.scores(own, feasible, strict=True)
    elif not pending.spec.topology_spread_constraints and pending.labels == {"app": "web"}:
        system = (Constraint(HOSTNAME, 3, WEB_ONLY), Constraint(ZONE, 5, WEB_ONLY))
        expected = oracle.scores(system, feasible, strict=False)
        assert scores(made, pending, PLUGIN, without) == expected
    else:
        assert scores(made, pending, PLUGIN, without) is None


WEB_ONLY = equality({"app": "web"})


@given(clusters(), pending_pods(), st.data())
def test_what_if_agrees_with_doing_it(made: Cluster, pending: Pod, data: st.DataObject) -> None:
    hard = own_constraints(pending, "DoNotSchedule")
    before = PLUGIN.pre_filter(pending, made.nodes)
    row = data.draw(st.sampled_from(made.nodes.rows.tolist()))
    running = [other for other in made.nodes.pods(row).values() if not other.terminating]
    gone = data.draw(st.sampled_from([*running, None]))
    comes = data.draw(pods("comes").filter(lambda drawn: not drawn.terminating))
    if before is None or not all(each.selector for each in hard):
        return

    after = PLUGIN.add_pod(before, made.nodes, comes, row)
    if gone is not None:
        after = PLUGIN.remove_pod(after, made.nodes, gone, row)
    as_if = told(after, made)

    made.assume(comes, made.nodes.name(row))
    if gone is not None:
        made.remove_pod(gone.uid)
    assert as_if == rejected(made, pending)


@given(clusters(), pending_pods(), st.data())
def test_some_rows_get_the_answers_that_all_rows_get(
    made: Cluster, pending: Pod, data: st.DataObject
) -> None:
    nodes = made.nodes
    rows = np.array(data.draw(st.permutations(nodes.rows.tolist())), np.intp)[:2]
    spreads = PLUGIN.pre_filter(pending, nodes)
    if spreads is not None:
        whole = PLUGIN.filter(spreads, nodes, nodes.everything)
        assert PLUGIN.filter(spreads, nodes, rows).failed.tolist() == whole.failed[:, rows].tolist()
    costs = PLUGIN.pre_score(pending, nodes, nodes.rows)
    if costs is not None:
        whole_scores = PLUGIN.score(costs, nodes, nodes.everything)
        assert PLUGIN.score(costs, nodes, rows).tolist() == whole_scores[rows].tolist()
        check_score_rows(PLUGIN, pending, nodes, np.sort(rows))
