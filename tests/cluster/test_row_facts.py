"""Rows in plain numbers follow what happens on them."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moorage.cluster import Cluster, check
from moorage.objects.pod import Pod
from tests.builders import cluster, node, pod
from tests.strategies import pods


@given(comers=st.tuples(pods("a", "n"), pods("b", "n"), pods("c", "n")), leaving=st.integers(0, 2))
def test_facts_that_were_asked_for_stay_true(comers: tuple[Pod, Pod, Pod], leaving: int) -> None:
    made = cluster(node("n"))
    for comer in comers:
        made.nodes.facts(0)
        made.put_pod(comer)
    made.remove_pod(comers[leaving].uid)

    # Compares facts with the columns, among other things.
    check(made)


@pytest.mark.parametrize("comes", [True, False])
def test_what_was_derived_is_forgotten_when_a_pod_comes_or_goes(comes: bool) -> None:
    placed = pod("a", spec={"nodeName": "n"}, cpu=1)
    made: Cluster = cluster(node("n")) if comes else cluster(node("n"), placed)
    made.nodes.facts(0).derived["balance"] = 7

    if comes:
        made.put_pod(placed)
    else:
        made.remove_pod(placed.uid)

    assert not made.nodes.facts(0).derived
