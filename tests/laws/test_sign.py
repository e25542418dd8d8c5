"""Pods that a plugin signs alike get the same answers from it."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from moorage.framework.plugin import Plugin, Sign
from moorage.framework.signing import SignedTemplates, has_no_say
from moorage.objects.pod import Pod
from moorage.testing import check_signatures, check_skips
from moorage.testing.variations import variations
from tests.builders import pod
from tests.laws.answers import EITHER, build
from tests.registered import REGISTRY
from tests.strategies import clusters, pods

SIGNING = [kind for kind in EITHER if issubclass(kind, Sign)]
POD_FIELDS = ("namespace", "labels", "annotations", "owner", "node_name", "terminating")

#: The fields that a plugin is about, which are to differ more often.
ABOUT = {
    "CoexistPolicy": ("coexist_policy", "annotations", "owner"),
    "DiskIO": ("annotations",),
    "QuietDisk": ("annotations",),
    "InterPodAffinity": ("affinity", "labels", "namespace"),
    "NodeAffinity": ("affinity", "node_selector"),
    "NodePorts": ("containers",),
    "PodTopologySpread": ("topology_spread_constraints", "labels", "tolerations"),
    "TaintToleration": ("tolerations",),
    "NodeUnschedulable": ("tolerations",),
    "VolumeBinding": ("volumes",),
    "VolumeRestrictions": ("volumes",),
    "NodeVolumeLimits": ("volumes",),
    "VolumeZone": ("volumes",),
}


@st.composite
def pairs(draw: st.DrawFn, focus: str) -> tuple[Pod, Pod]:
    """Two pods of which the second differs in its name and in at most one more thing."""
    one = draw(pods("one", focus=focus))
    other = draw(pods("two", draw(st.sampled_from(["", "n1"])), focus=focus))
    same: dict[str, Any] = {field: getattr(one, field) for field in POD_FIELDS}
    spec = {field: getattr(one.spec, field) for field in one.spec.__struct_fields__}
    different = [field for field in POD_FIELDS if getattr(other, field) != same[field]]
    different += [field for field in spec if getattr(other.spec, field) != spec[field]]
    likely = [field for field in different if field in ABOUT.get(focus, ())]
    keeping = draw(st.sampled_from([*different, *likely * 3, ""]))
    if keeping in same:
        same[keeping] = getattr(other, keeping)
    elif keeping:
        spec[keeping] = getattr(other.spec, keeping)
    return one, msgspec.structs.replace(other, spec=type(one.spec)(**spec), **same)


@pytest.mark.parametrize("kind", SIGNING, ids=lambda kind: kind.name)
@given(data=st.data())
@settings(max_examples=15)
def test_equal_signatures_mean_equal_answers(kind: type[Plugin], data: st.DataObject) -> None:
    plugin = build(kind)
    nodes = data.draw(clusters(least=2, focus=kind.name)).nodes
    for _ in range(4):
        one, other = data.draw(pairs(kind.name))
        check_signatures(plugin, one, other, nodes)


@pytest.mark.parametrize("kind", SIGNING, ids=lambda kind: kind.name)
@given(data=st.data())
@settings(max_examples=10)
def test_what_is_remembered_is_what_it_signs(kind: type[Plugin], data: st.DataObject) -> None:
    """Each pod comes after others that share some of what the plugin reads."""
    plugin = build(kind)
    nodes = data.draw(clusters(focus=kind.name)).nodes
    one = data.draw(pods("one", focus=kind.name))
    templates = SignedTemplates([plugin])
    for each in (one, *variations(one), data.draw(pods("two", focus=kind.name))):
        known = templates.find(each, nodes)
        signed = templates.sign_again(known, each, nodes) or list(known.parts)
        assert signed == [plugin.sign(each, nodes)]


@pytest.mark.parametrize("name", ["DynamicResources", "SchedulingGates", "VolumeBinding"])
@given(data=st.data())
@settings(max_examples=10)
def test_who_skips_a_pod_does_nothing_for_it(name: str, data: st.DataObject) -> None:
    plugin = build(REGISTRY[name])
    nodes = data.draw(clusters(least=1, focus=name)).nodes
    one = data.draw(pods("one", focus=name))

    check_skips(plugin, one, nodes)
    assert has_no_say(plugin, pod())


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("DynamicResources", {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}),
        (
            "DynamicResources",
            {"containers": [{"resources": {"requests": {"example.com/gpu": 1}}, "name": "main"}]},
        ),
        ("SchedulingGates", {"schedulingGates": [{"name": "example.com/wait"}]}),
        (
            "VolumeBinding",
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
        ),
    ],
)
def test_pods_that_a_plugin_is_about_are_not_skipped(name: str, spec: dict[str, Any]) -> None:
    assert not has_no_say(build(REGISTRY[name]), pod(spec=spec))
