"""CoexistPolicy: what pods say, and what a kubelet makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.objects.coexist import (
    ANNOTATION,
    ANY,
    DAEMONSET_AND_STATIC_PODS,
    EXCLUSIVE_THERE,
    OTHERS_THERE,
    admit,
    conflict,
    is_exclusive,
    policy_of,
    unknown_policy,
)
from moorage.objects.daemons import is_ordinary
from moorage.objects.pod import Pod
from moorage.objects.pod_refusal import PodRefusal
from tests.builders import pod
from tests.coexisting import annotated, daemon, exclusive, exclusive_daemon, static


def saying(field: str | None = None, annotation: str | None = None) -> Pod:
    """A pod with the policy in either place."""
    metadata = {} if annotation is None else {"annotations": {ANNOTATION: annotation}}
    return pod(spec={} if field is None else {"coexistPolicy": field}, metadata=metadata)


@pytest.mark.parametrize(
    ("says", "policy"),
    [
        pytest.param(saying(), ANY, id="Any is the default"),
        pytest.param(saying(ANY), ANY, id="field"),
        pytest.param(saying(DAEMONSET_AND_STATIC_PODS), DAEMONSET_AND_STATIC_PODS, id="exclusive"),
        pytest.param(
            saying(None, DAEMONSET_AND_STATIC_PODS), DAEMONSET_AND_STATIC_PODS, id="annotation"
        ),
        pytest.param(saying(ANY, DAEMONSET_AND_STATIC_PODS), ANY, id="the field wins"),
        pytest.param(
            saying(DAEMONSET_AND_STATIC_PODS, ANY), DAEMONSET_AND_STATIC_PODS, id="it wins always"
        ),
        pytest.param(saying("", DAEMONSET_AND_STATIC_PODS), DAEMONSET_AND_STATIC_PODS, id="unset"),
        pytest.param(saying("Alone"), "Alone", id="a wrong value is kept"),
    ],
)
def test_policy(says: Pod, policy: str) -> None:
    assert policy_of(says) == policy
    assert is_exclusive(says) == (policy == DAEMONSET_AND_STATIC_PODS)


def test_a_field_that_is_null_is_none() -> None:
    assert policy_of(pod(spec={"coexistPolicy": None})) == ANY


@pytest.mark.parametrize(
    ("says", "wrong"),
    [
        pytest.param(saying(), None, id="nothing"),
        pytest.param(saying(ANY), None, id="Any"),
        pytest.param(saying(None, DAEMONSET_AND_STATIC_PODS), None, id="exclusive"),
        pytest.param(saying(ANY, "x"), None, id="the field wins over a wrong annotation"),
        pytest.param(saying("any"), 'spec.coexistPolicy must be {}, got "any"', id="field"),
        pytest.param(
            saying(None, ""), f'annotation {ANNOTATION} must be {{}}, got ""', id="empty annotation"
        ),
        pytest.param(
            saying("x" * 50), f'spec.coexistPolicy must be {{}}, got "{"x" * 40}…"', id="cut short"
        ),
        pytest.param(
            saying('a"\n\x1b['), r'spec.coexistPolicy must be {}, got "a\"\n\u001b["', id="escaped"
        ),
    ],
)
def test_unknown_policy(says: Pod, wrong: str | None) -> None:
    values = f"{ANY} or {DAEMONSET_AND_STATIC_PODS}"
    expected = None if wrong is None else f"failed CoexistPolicy: {wrong.format(values)}"
    assert unknown_policy(says) == expected


def owned(kind: str, *, controller: bool = True) -> Pod:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": "owner", "controller": controller}
    return pod(metadata={"ownerReferences": [reference]})


@pytest.mark.parametrize(
    ("of", "ordinary"),
    [
        pytest.param(pod(), True, id="nobody's pod"),
        pytest.param(owned("ReplicaSet"), True, id="a replica set's"),
        pytest.param(owned("DaemonSet"), False, id="a daemonset's"),
        pytest.param(owned("DaemonSet", controller=False), True, id="not its controller"),
        pytest.param(static(), False, id="a mirror pod"),
        pytest.param(exclusive(), True, id="an exclusive pod"),
        pytest.param(exclusive_daemon(), False, id="an exclusive daemonset pod"),
        pytest.param(
            pod(metadata={"annotations": {"kubernetes.io/config.source": "file"}}),
            True,
            id="a claim that anybody can make",
        ),
    ],
)
def test_ordinary_pods(of: Pod, ordinary: bool) -> None:
    assert is_ordinary(of) == ordinary


#: Who comes to whom, and why not.
PAIRS = [
    pytest.param(pod(), pod("p"), None, id="ordinary pods go together"),
    pytest.param(pod(), exclusive(), EXCLUSIVE_THERE, id="ordinary to exclusive"),
    pytest.param(pod(), annotated(), EXCLUSIVE_THERE, id="ordinary to annotated"),
    pytest.param(exclusive(), pod(), OTHERS_THERE, id="exclusive to ordinary"),
    pytest.param(annotated(), pod(), OTHERS_THERE, id="annotated to ordinary"),
    pytest.param(exclusive(), exclusive("e"), EXCLUSIVE_THERE, id="exclusive to exclusive"),
    pytest.param(daemon(), exclusive(), None, id="daemonset pod to exclusive"),
    pytest.param(static(), exclusive(), None, id="static pod to exclusive"),
    pytest.param(exclusive(), daemon(), None, id="exclusive to daemonset pod"),
    pytest.param(exclusive(), static(), None, id="exclusive to static pod"),
    pytest.param(exclusive_daemon(), pod(), OTHERS_THERE, id="exclusive daemon to ordinary"),
    pytest.param(exclusive_daemon(), exclusive(), OTHERS_THERE, id="exclusive daemon to exclusive"),
    pytest.param(exclusive_daemon(), daemon(), None, id="exclusive daemon to daemonset pod"),
    pytest.param(
        exclusive_daemon(), exclusive_daemon("e"), None, id="two exclusive daemonset pods"
    ),
    pytest.param(pod(), exclusive_daemon(), EXCLUSIVE_THERE, id="ordinary to exclusive daemon"),
]


@pytest.mark.parametrize(("comes", "present", "why"), PAIRS)
def test_conflict(comes: Pod, present: Pod, why: str | None) -> None:
    assert conflict(comes, present) == why


# The kubelet


@pytest.mark.parametrize(("comes", "present", "why"), PAIRS)
def test_kubelet_rejects_a_pod_that_was_assigned_directly(
    comes: Pod, present: Pod, why: str | None
) -> None:
    """Among pods that do not matter; the one that does is named."""
    others = [daemon("d"), static("s"), present]
    expected = None if why is None else PodRefusal("CoexistPolicy", f"{why}: {present.key}")
    assert admit(comes, others, enabled=True) == expected


@pytest.mark.parametrize(("comes", "present", "why"), PAIRS)
def test_kubelet_admits_everything_while_the_gate_is_off(
    comes: Pod, present: Pod, why: str | None
) -> None:
    assert admit(comes, [present], enabled=False) is None
    assert admit(saying("Alone"), [present], enabled=False) is None


@pytest.mark.parametrize(
    "present",
    [
        pytest.param([], id="an empty node"),
        pytest.param([exclusive()], id="the pod itself"),
        pytest.param([pod("p", status={"phase": "Succeeded"})], id="a pod that is done"),
        pytest.param([exclusive("p", status={"phase": "Failed"})], id="a pod that failed"),
    ],
)
def test_kubelet_counts_running_pods_only(present: list[Pod]) -> None:
    assert admit(exclusive(), present, enabled=True) is None


def test_kubelet_rejects_a_policy_that_it_does_not_know() -> None:
    refusal = admit(saying("Alone"), [], enabled=True)
    assert refusal is not None
    assert refusal.message == unknown_policy(saying("Alone"))


def test_pods_of_one_template_share_their_spec_whatever_the_policy() -> None:
    given: dict[str, Any] = {"spec": {"coexistPolicy": ANY}}
    assert pod("a", **given).spec is pod("b", **given).spec
    assert pod("a", **given).spec is not exclusive("b").spec
