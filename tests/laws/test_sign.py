"""Pods that a plugin signs alike get the same answers from it."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from mooring.cluster import Cluster
from mooring.framework.plugin import UNSIGNABLE, Plugin, Sign
from mooring.objects.pod import Pod
from tests.laws.answers import FILTERS, SCORES, build, everything_said
from tests.strategies import clusters, pods

SIGNING = sorted(
    (kind for kind in {*FILTERS, *SCORES} if issubclass(kind, Sign)), key=lambda kind: kind.name
)
POD_FIELDS = ("namespace", "labels", "owner", "node_name", "terminating")


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Pod, Pod]:
    """Two pods of which the second differs in its name and in at most one more thing."""
    one, other = draw(pods("one")), draw(pods("two", draw(st.sampled_from(["", "n1"]))))
    same: dict[str, Any] = {field: getattr(one, field) for field in POD_FIELDS}
    spec = {field: getattr(one.spec, field) for field in one.spec.__struct_fields__}
    keeping = draw(st.sampled_from([None, *POD_FIELDS, *sorted(spec)]))
    if keeping in same:
        same[keeping] = getattr(other, keeping)
    elif keeping is not None:
        spec[keeping] = getattr(other.spec, keeping)
    return one, msgspec.structs.replace(other, spec=type(one.spec)(**spec), **same)


@pytest.mark.parametrize("kind", SIGNING, ids=lambda kind: kind.name)
@given(made=clusters(least=2), pair=pairs())
@settings(max_examples=50)
def test_equal_signatures_mean_equal_answers(
    kind: type[Plugin], made: Cluster, pair: tuple[Pod, Pod]
) -> None:
    plugin = build(kind)
    one, other = pair
    signature = plugin.sign(one, made.nodes)
    hash(signature)
    if signature is UNSIGNABLE or signature != plugin.sign(other, made.nodes):
        return

    assert everything_said(plugin, one, made.nodes) == everything_said(plugin, other, made.nodes)


@pytest.mark.parametrize("kind", SIGNING, ids=lambda kind: kind.name)
@given(made=clusters(), one=pods("one"))
@settings(max_examples=25)
def test_pods_of_one_template_are_signed_alike(kind: type[Plugin], made: Cluster, one: Pod) -> None:
    plugin = build(kind)
    twin = msgspec.structs.replace(one, name="two", uid="two", resource_version="7", created=5.0)

    assert plugin.sign(one, made.nodes) == plugin.sign(twin, made.nodes)
