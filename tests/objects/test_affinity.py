"""Compiled inter-pod affinity terms: which pods they mean."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.objects.placement_rules import NO_TERMS, Affinity, AffinityTerm, compile_terms
from moorage.objects.selector import equality

WEB: dict[str, Any] = {"matchLabels": {"app": "web"}}


def written(raw: dict[str, Any]) -> Affinity:
    return msgspec.convert(raw, Affinity)


def required(*terms: dict[str, Any]) -> Affinity:
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}
    return written({"podAffinity": rule})


def term(**fields: Any) -> AffinityTerm:
    (compiled,) = compile_terms(required({"topologyKey": "zone", **fields}), "own").affinity
    return compiled


@pytest.mark.parametrize(
    ("fields", "namespace", "labels", "matches"),
    [
        pytest.param({"labelSelector": WEB}, "own", {}, True, id="the pod's own namespace"),
        pytest.param({"labelSelector": WEB}, "other", {}, False, id="another namespace"),
        pytest.param(
            {"labelSelector": WEB, "namespaces": ["other"]}, "other", {}, True, id="a named one"
        ),
        pytest.param(
            {"labelSelector": WEB, "namespaces": ["other"]}, "own", {}, False, id="only named ones"
        ),
        pytest.param(
            {"labelSelector": WEB, "namespaceSelector": {}}, "other", {}, True, id="all of them"
        ),
        pytest.param(
            {"labelSelector": WEB, "namespaceSelector": {"matchLabels": {"team": "a"}}},
            "other",
            {"team": "a"},
            True,
            id="a selected namespace",
        ),
        pytest.param(
            {"labelSelector": WEB, "namespaceSelector": {"matchLabels": {"team": "a"}}},
            "own",
            {},
            False,
            id="a selector leaves the own namespace out",
        ),
        pytest.param(
            {
                "labelSelector": WEB,
                "namespaceSelector": {"matchLabels": {"team": "a"}},
                "namespaces": ["other"],
            },
            "other",
            {},
            True,
            id="named or selected",
        ),
        pytest.param({}, "own", {}, False, id="without a selector nobody is meant"),
        pytest.param({"labelSelector": {}}, "own", {}, True, id="an empty selector means all"),
        pytest.param(
            {"labelSelector": {"matchLabels": {"app": "db"}}}, "own", {}, False, id="other labels"
        ),
    ],
)
def test_who_is_meant(
    fields: dict[str, Any], namespace: str, labels: dict[str, str], matches: bool
) -> None:
    assert term(**fields).matches(namespace, {"app": "web"}, labels) is matches


def test_all_four_kinds_are_compiled() -> None:
    def weighted(weight: int, key: str) -> dict[str, Any]:
        return {"weight": weight, "podAffinityTerm": {"topologyKey": key, "labelSelector": WEB}}

    terms = compile_terms(
        written(
            {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a"}],
                    "preferredDuringSchedulingIgnoredDuringExecution": [weighted(2, "b")],
                },
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "c"}],
                    "preferredDuringSchedulingIgnoredDuringExecution": [weighted(3, "d")],
                },
            }
        ),
        "own",
    )

    own = frozenset({"own"})
    web = equality({"app": "web"})
    assert terms.affinity == (AffinityTerm("a", None, own),)
    assert terms.anti_affinity == (AffinityTerm("c", None, own),)
    assert terms.preferred == ((AffinityTerm("b", web, own), 2),)
    assert terms.preferred_anti == ((AffinityTerm("d", web, own), 3),)
    assert [each.topology_key for each in terms] == ["a", "c", "b", "d"]
    assert terms


def test_no_rules_are_no_terms() -> None:
    assert compile_terms(None, "own") is NO_TERMS
    assert not compile_terms(written({}), "own")


def test_a_malformed_selector_is_told_and_leaves_no_terms() -> None:
    bad = {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}
    terms = compile_terms(
        required(
            {"topologyKey": "zone", "labelSelector": WEB},
            {"topologyKey": "zone", "labelSelector": bad},
        ),
        "own",
    )

    assert terms.problem.startswith("values: Invalid value: []")
    assert not terms
    assert list(terms) == []


def test_equal_terms_are_equal_values() -> None:
    one = term(labelSelector={"matchLabels": {"a": "1", "b": "2"}}, namespaces=["x", "y"])
    other = term(labelSelector={"matchLabels": {"b": "2", "a": "1"}}, namespaces=["y", "x"])

    assert one == other
    assert hash(one) == hash(other)
