"""DynamicResources."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moorage.cluster import Cluster
from moorage.cluster.devices.claims import DecidedClaim, Decision
from moorage.documents.conversion import to_struct
from moorage.framework.plugin import UNSIGNABLE
from moorage.framework.status import Code, Rejected, unresolvable
from moorage.objects.pod import Pod
from moorage.objects.resource_claim import Allocation
from moorage.plugins.dynamic_resources.dynamic_resources import (
    DynamicResources,
    DynamicResourcesArgs,
)
from moorage.plugins.dynamic_resources.extended import find_extended
from moorage.plugins.dynamic_resources.preparation import PreparedClaims
from moorage.plugins.dynamic_resources.search import MOST_STEPS
from tests.builders import EMPTY, cluster, node, pod
from tests.device_builders import (
    DRIVER,
    claim,
    device,
    device_class,
    request,
    resource_slice,
)

CLAIMING = pod("p", spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]})
TEMPLATE = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
OWNED = {"ownerReferences": [{"kind": "Pod", "name": "p", "uid": "default/p", "controller": True}]}


def from_template(name: str | None = None) -> Pod:
    statuses = [] if name is None else [{"name": "gpu", "resourceClaimName": name}]
    return pod("p", spec=TEMPLATE, status={"resourceClaimStatuses": statuses})


def known(*devices: Any) -> Cluster:
    made = cluster(node("n1"))
    for each in devices:
        made.put_device(each)
    return made


@pytest.mark.parametrize(
    ("asking", "claims", "told"),
    [
        pytest.param(CLAIMING, [], 'could not find ResourceClaim "default/c"', id="missing"),
        pytest.param(
            from_template(), [], 'pod "default/p": ResourceClaim not created yet', id="not made yet"
        ),
        pytest.param(
            pod("p", spec={"resourceClaims": [{"name": "gpu"}]}),
            [],
            'pod "default/p", spec.resourceClaim "gpu": none of the supported fields are set',
            id="of an unknown kind",
        ),
        pytest.param(
            CLAIMING,
            [claim("c", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            'resourceclaim "c" is being deleted',
            id="being deleted",
        ),
        pytest.param(
            from_template("c"),
            [claim("c")],
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
            id="made for another pod",
        ),
        pytest.param(from_template("c"), [claim("c", metadata=OWNED)], None, id="made for it"),
    ],
)
def test_claims_are_resolved(asking: Pod, claims: list[Any], told: str | None) -> None:
    plugin, nodes = DynamicResources(), known(device_class(), *claims).nodes
    plugin.see_cluster(nodes)

    expected = None if told is None else unresolvable(told)
    assert plugin.pre_enqueue(asking) == expected
    if told is not None:
        assert plugin.pre_filter(asking, nodes) == expected


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        pytest.param(
            request(class_name="none"),
            unresolvable("request r0: device class none does not exist"),
            id="no such class",
        ),
        pytest.param(
            {"name": "r0", "firstAvailable": [{"name": "s", "deviceClassName": "none"}]},
            unresolvable("request r0/s: device class none does not exist"),
            id="no such class among alternatives",
        ),
        pytest.param(
            {"name": "r0"},
            unresolvable("resource claim default/c, request r0: unknown request type"),
            id="neither",
        ),
        pytest.param(
            request(class_name=""),
            Rejected(Code.ERROR, ("request r0: unsupported request type",)),
            id="no class name",
        ),
    ],
)
def test_requests_are_checked_before_any_node(asked: Any, answer: Rejected) -> None:
    nodes = known(device_class(), claim("c", asked)).nodes

    assert DynamicResources().pre_filter(CLAIMING, nodes) == answer


def test_a_claim_in_flight_is_not_allocated_again() -> None:
    made = known(device_class(), claim("c"))
    decided = DecidedClaim("default/c", "uid-c", Allocation())
    made.nodes.device_decisions.decide("other", Decision("n1", (decided,)))

    assert DynamicResources().pre_filter(CLAIMING, made.nodes) == unresolvable(
        "resource claim default/c is in the process of being allocated"
    )


def test_any_other_pod_is_skipped() -> None:
    assert DynamicResources().pre_filter(pod(), known().nodes) is None


def test_pods_without_claims_are_signed() -> None:
    plugin = DynamicResources()

    assert plugin.sign(CLAIMING, EMPTY) is UNSIGNABLE
    assert plugin.sign(pod(), EMPTY) == plugin.sign(pod("other"), EMPTY)


def attribute(value: Any) -> dict[str, Any]:
    return {"attributes": {"model": {"string": value}}}


def refusals(made: Cluster, asking: Pod = CLAIMING) -> list[tuple[str, ...]]:
    plugin = DynamicResources()
    prepared = plugin.pre_filter(asking, made.nodes)
    assert isinstance(prepared, PreparedClaims)
    verdict = plugin.filter(prepared, made.nodes, made.nodes.rows)
    return [verdict.texts(at) for at in range(len(made.nodes.rows))]


def test_a_search_that_takes_too_long_ends_with_a_message() -> None:
    """Twelve requests of which each differs from all others, for eleven values: no solution."""
    devices = [device(f"d{at}", **attribute(f"m{at % 11}")) for at in range(44)]
    requests = [request(f"r{at}") for at in range(12)]
    constraint = [{"distinctAttribute": f"{DRIVER}/model"}]
    made = known(
        device_class(),
        resource_slice("n1", devices),
        claim("c", *requests, constraints=constraint),
    )
    plugin = DynamicResources()
    prepared = plugin.pre_filter(CLAIMING, made.nodes)
    assert isinstance(prepared, PreparedClaims)

    verdict = plugin.filter(prepared, made.nodes, made.nodes.rows)

    assert verdict.broken is not None
    assert verdict.broken.tolist() == [True]
    text = f"node n1: gave up trying to allocate devices after {MOST_STEPS} steps"
    assert verdict.describe(0) == text


def test_equal_requests_that_lack_one_device_are_refused_at_once() -> None:
    devices = [device(f"d{at}", **attribute("a")) for at in range(31)]
    requests = [request(f"r{at}", count=8) for at in range(4)]
    made = known(device_class(), resource_slice("n1", devices), claim("c", *requests))

    assert refusals(made) == [("cannot allocate all claims",)]


@pytest.mark.parametrize(
    ("args", "problems"),
    [
        ({}, []),
        ({"filterTimeout": "0s", "bindingTimeout": "1s"}, []),
        ({"filterTimeout": "-1s"}, ["filterTimeout"]),
        ({"bindingTimeout": "500ms"}, ["bindingTimeout"]),
    ],
)
def test_arguments(args: dict[str, str], problems: list[str]) -> None:
    read = _read_args(args)

    assert [where for where, _ in read.problems()] == problems


def _read_args(raw: dict[str, str]) -> DynamicResourcesArgs:
    return to_struct(DynamicResourcesArgs, raw)


def test_a_pod_may_ask_for_more_resources_than_a_number_has_bits() -> None:
    names = [f"example.com/r{number}" for number in range(130)]
    made = Cluster()
    for at, name in enumerate(names):
        made.put_device(device_class(f"c{at}", extendedResourceName=name))
    # Each node has one of them itself, the third as the first.
    for at, own in enumerate((names[0], names[129], names[0], names[64])):
        made.put_node(node(f"n{at}", **{own: 1}))
    asked = find_extended(pod("p", **dict.fromkeys(names, 1)), made.nodes)
    assert asked is not None

    found = asked.combinations(made.nodes, made.nodes.rows)

    rows = {
        frozenset(names) - wanted: np.flatnonzero(mask).tolist()
        for wanted, mask in found
        if mask is not None
    }
    assert rows == {
        frozenset({names[0]}): [0, 2],
        frozenset({names[129]}): [1],
        frozenset({names[64]}): [3],
    }
