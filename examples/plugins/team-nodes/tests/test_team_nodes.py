"""TeamNodes, asked about one node and about a whole cluster."""

from __future__ import annotations

import pytest
from moorage_team_nodes import TeamNodes

from moorage import testing
from moorage.config import load_mapping
from moorage.engine import Engine
from moorage.engine.events import Applied
from moorage.engine.explain import explain
from moorage.engine.registry import registry
from moorage.framework.plugin import Registry
from moorage.framework.profile import known_plugins
from moorage.plugin import Code, Node, NodeView, Pod

PLUGIN = TeamNodes()


def node(name: str, *teams: str) -> Node:
    return testing.node(name, labels={f"team.example.com/{team}": "" for team in teams})


def pod(team: str | None) -> Pod:
    return testing.pod(labels={} if team is None else {"team": team})


def view(*teams: str) -> NodeView:
    return testing.cluster(node("node", *teams)).nodes.view(0)


@pytest.mark.parametrize(
    ("team", "owners"),
    [
        pytest.param(None, (), id="a pod without a team on a shared node"),
        pytest.param("search", (), id="a team's pod on a shared node"),
        pytest.param("search", ("search",), id="its own node"),
        pytest.param("search", ("payments", "search"), id="a node of two teams"),
    ],
)
def test_accepts(team: str | None, owners: tuple[str, ...]) -> None:
    assert PLUGIN.filter_node(pod(team), view(*owners)) is None


@pytest.mark.parametrize("team", [None, "ads"])
def test_rejects_and_names_the_owners(team: str | None) -> None:
    reason = PLUGIN.filter_node(pod(team), view("search", "payments"))

    assert reason is not None
    assert reason.text == "node(s) belong to payments, search"
    assert reason.code is Code.UNRESOLVABLE


def test_answers_for_all_nodes_at_once() -> None:
    nodes = testing.cluster(
        node("ours", "search"), node("shared"), node("theirs", "payments")
    ).nodes

    verdict = PLUGIN.filter(pod("search"), nodes, nodes.everything)

    assert verdict.ok.tolist() == [True, True, False]
    assert verdict.texts(2) == ("node(s) belong to payments",)


def test_prefers_the_nodes_of_its_own_team() -> None:
    nodes = testing.cluster(node("ours", "search"), node("shared")).nodes

    assert PLUGIN.score(pod("search"), nodes, nodes.rows).tolist() == [100, 0]
    assert PLUGIN.score(pod(None), nodes, nodes.rows).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("owners", "woken"), [((), True), (("search",), True), (("payments",), False)]
)
def test_a_rejected_pod_waits_for_a_node_that_would_take_it(
    owners: tuple[str, ...], woken: bool
) -> None:
    (after_node, _) = PLUGIN.wakeups()

    assert after_node.hint is not None
    assert after_node.hint(pod("search"), None, node("late", *owners)) is woken


def test_the_owner_of_a_pod_is_told_which_team_would_do() -> None:
    plugins: Registry = {**registry(), TeamNodes.name: TeamNodes}
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "TeamNodes"}]}}}
    version = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    configuration = load_mapping({**version, "profiles": [profile]}, known=known_plugins(plugins))
    engine = Engine(configuration, plugins)
    for each in (node("s1", "search"), node("s2", "search"), node("p1", "payments")):
        engine.handle(Applied(each), 0.0)

    suggestions = explain(engine.decider, pod("ads")).suggestions

    # Every piece of advice was tried: the nodes are those that take the pod then.
    assert [(each.remedy, each.problem, each.nodes) for each in suggestions] == [
        ("its label team were search", "2 nodes of team search", ("s1", "s2")),
        ("its label team were payments", "1 node of team payments", ("p1",)),
    ]


def test_the_laws_of_plugins_hold() -> None:
    objects = [node("ours", "search"), node("shared"), node("theirs", "payments", "ads")]
    testing.check_laws(PLUGIN, objects, [pod("search"), pod("ads"), pod(None)])
