"""The affinity terms of pods that run."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cluster import Cluster
from moorage.cluster.standing_terms import TermKind
from moorage.objects.pod import Pod
from moorage.objects.workload import Namespace
from tests.builders import cluster, node, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(**more: Any) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **more}


def carrying(name: str, on: str, rule: str, when: str, *terms: dict[str, Any]) -> Pod:
    return pod(name, node=on, spec={"affinity": {rule: {when: list(terms)}}})


def concerning(of: Cluster, kind: TermKind, asking: Pod) -> dict[str, int]:
    """Per zone the pods whose terms concern a pod, weighed."""
    found: dict[str, int] = {}
    for standing in of.nodes.standing(kind, asking):
        values = standing.domains.column.vocabulary.in_use()
        counts = standing.domains.counts()
        for value, code in values.items():
            if counts[code]:
                weight = standing.weight or 1
                found[value] = found.get(value, 0) + weight * int(counts[code])
    return found


ZONES = (node("one", labels={"zone": "a"}), node("two", labels={"zone": "b"}), node("none"))


@pytest.mark.parametrize(
    ("kind", "rule", "when", "written", "weighs"),
    [
        (TermKind.AFFINITY, "podAffinity", REQUIRED, term(), 1),
        (TermKind.ANTI_AFFINITY, "podAntiAffinity", REQUIRED, term(), 1),
        (
            TermKind.PREFERRED,
            "podAffinity",
            PREFERRED,
            {"weight": 5, "podAffinityTerm": term()},
            5,
        ),
        (
            TermKind.PREFERRED_ANTI,
            "podAntiAffinity",
            PREFERRED,
            {"weight": 7, "podAffinityTerm": term()},
            7,
        ),
    ],
)
def test_kinds(kind: TermKind, rule: str, when: str, written: dict[str, Any], weighs: int) -> None:
    made = cluster(*ZONES)
    for at, on in enumerate(("one", "one", "two", "none")):
        made.put_pod(carrying(f"p{at}", on, rule, when, written))
    web = pod("web", labels={"app": "web"})

    assert concerning(made, kind, web) == {"a": 2 * weighs, "b": weighs}
    assert concerning(made, kind, pod("db", labels={"app": "db"})) == {}
    assert concerning(made, kind, pod("web", labels={"app": "web"}, namespace="other")) == {}
    for other in set(TermKind) - {kind}:
        assert concerning(made, other, web) == {}


def test_terms_go_with_the_last_pod_that_carries_them() -> None:
    made = cluster(*ZONES)
    made.put_pod(carrying("p", "one", "podAntiAffinity", REQUIRED, term()))
    made.put_pod(carrying("q", "two", "podAntiAffinity", REQUIRED, term()))
    web = pod("web", labels={"app": "web"})

    made.remove_pod("default/p")
    assert concerning(made, TermKind.ANTI_AFFINITY, web) == {"b": 1}
    made.remove_node("two")
    assert concerning(made, TermKind.ANTI_AFFINITY, web) == {}
    assert list(made._state.standing) == []


def test_pods_move_with_the_labels_of_their_node() -> None:
    made = cluster(*ZONES)
    made.put_pod(carrying("p", "one", "podAffinity", REQUIRED, term()))
    made.put_node(node("one", labels={"zone": "c"}))

    assert concerning(made, TermKind.AFFINITY, pod("w", labels={"app": "web"})) == {"c": 1}


def test_namespaces_are_selected_by_their_labels_now() -> None:
    made = cluster(*ZONES)
    chosen = term(namespaceSelector={"matchLabels": {"team": "a"}})
    made.put_pod(carrying("p", "one", "podAffinity", REQUIRED, chosen))
    web = pod("w", labels={"app": "web"}, namespace="shop")
    assert concerning(made, TermKind.AFFINITY, web) == {}

    made.put_workload(Namespace(name="shop", labels={"team": "a"}))
    assert concerning(made, TermKind.AFFINITY, web) == {"a": 1}


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, id="loose"),
        pytest.param({}, id="everything"),
        pytest.param(
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "web"]}]},
            id="one of several values",
        ),
    ],
)
def test_selectors_without_a_single_value_are_found_too(selector: dict[str, Any]) -> None:
    made = cluster(*ZONES)
    written = term(labelSelector=selector)
    made.put_pod(carrying("p", "one", "podAffinity", REQUIRED, written))
    web = pod("web", labels={"app": "web"})

    assert concerning(made, TermKind.AFFINITY, web) == {"a": 1}
    made.remove_pod("default/p")
    assert concerning(made, TermKind.AFFINITY, web) == {}


def test_a_term_without_a_selector_concerns_nobody() -> None:
    made = cluster(*ZONES)
    made.put_pod(carrying("p", "one", "podAffinity", REQUIRED, {"topologyKey": "zone"}))

    assert concerning(made, TermKind.AFFINITY, pod("web", labels={"app": "web"})) == {}
