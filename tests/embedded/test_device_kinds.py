"""Claims, templates, classes and slices are refused with the API server's own words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from moorage.embedded.api.kind import ServedKinds
from moorage.embedded.api.object_api import ObjectApi
from moorage.embedded.kinds.catalogue import catalogue
from moorage.embedded.request_refusals import RequestRefused
from moorage.embedded.server import make_initial_objects
from moorage.embedded.store.object_store import ObjectStore
from tests.embedded.device_objects import (
    CLAIMS,
    DEVICE_CLASSES,
    SLICES,
    TAINT_RULES,
    TEMPLATES,
    Json,
    allocation,
    claim_spec,
    device,
    exactly,
    selecting,
    slice_spec,
)
from tests.embedded.serving import pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def api() -> ObjectApi:
    api = ObjectApi(ObjectStore(), ServedKinds(catalogue()), lambda: NOW)
    make_initial_objects(api)
    return api


def create(api: ObjectApi, resource: str, spec: Json, **metadata: Any) -> Json:
    kind = api.kinds[resource]
    item = {"metadata": {"name": "x", **metadata}, "spec": spec}
    return api.create(kind, "default" if kind.namespaced else "", item).object


def refusal(api: ObjectApi, resource: str, spec: Json) -> str:
    with pytest.raises(RequestRefused) as refused:
        create(api, resource, spec)
    return refused.value.message


def set_status(api: ObjectApi, item: Json, **status: Any) -> Json:
    whole = {**item, "status": {**(item.get("status") or {}), **status}}
    return api.update_status(api.kinds[CLAIMS], "default", "x", whole).object


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            claim_spec({"name": "gpu"}),
            "spec.devices.requests[0]: Required value: exactly one of `exactly` or "
            "`firstAvailable` is required",
        ),
        (
            claim_spec({**exactly(), "firstAvailable": [{"name": "a", "deviceClassName": "b"}]}),
            "is required, but multiple fields are set",
        ),
        (
            claim_spec({"name": "gpu", "exactly": {"deviceClassName": ""}}),
            "spec.devices.requests[0].exactly.deviceClassName: Required value",
        ),
        (claim_spec(exactly("A_b")), "a lowercase RFC 1123 label must consist of"),
        (
            claim_spec(exactly(), exactly()),
            'spec.devices.requests[1]: Duplicate value: "gpu"',
        ),
        (
            claim_spec(*(exactly(f"r{number}") for number in range(33))),
            "spec.devices.requests: Too many: 33: must have at most 32 items",
        ),
        (
            claim_spec(exactly(allocationMode="All", count=2)),
            "exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'",
        ),
        (claim_spec(exactly(count=-1)), "exactly.count: Invalid value: -1: must be greater"),
        (
            claim_spec(exactly(allocationMode="Some")),
            'Unsupported value: "Some": supported values: "All", "ExactCount"',
        ),
        (
            claim_spec(exactly(selectors=[{}])),
            "exactly.selectors[0].cel: Required value",
        ),
        (
            claim_spec(selecting("device.driver ==")),
            "exactly.selectors[0].cel.expression: Invalid value: "
            '"device.driver ==": compilation failed: ERROR: <input>:1:17: Syntax error',
        ),
        (
            claim_spec(selecting("1 + 1")),
            "must evaluate to bool or the unknown type, not int",
        ),
        (
            claim_spec(selecting("a" * 10_241)),
            "cel.expression: Too long: may not be more than 10240 bytes",
        ),
        (
            claim_spec(exactly(tolerations=[{"operator": "Exists", "value": "a"}])),
            "must be empty for operator `Exists`",
        ),
        (
            claim_spec(constraints=[{"requests": ["nic"], "matchAttribute": "a.example/b"}]),
            'constraints[0].requests[0]: Invalid value: "nic": must be the name of a request',
        ),
        (claim_spec(constraints=[{}]), "spec.devices.constraints[0]: Required value"),
        (claim_spec(config=[{}]), "spec.devices.config[0].opaque: Required value"),
        (
            claim_spec(config=[{"opaque": {"driver": "d", "parameters": {"a": "b" * 10_240}}}]),
            "config[0].opaque.parameters: Too long: may not be more than 10240 bytes",
        ),
        (
            claim_spec(exactly(adminAccess=True)),
            "requests[0].adminAccess: Forbidden: admin access to devices requires the "
            "`resource.kubernetes.io/admin-access: true` "
            "label on the containing namespace",
        ),
    ],
)
def test_claims_are_refused(api: ObjectApi, spec: Json, told: str) -> None:
    assert told in refusal(api, CLAIMS, spec)
    assert told.replace("spec.devices", "spec.spec.devices") in refusal(
        api, TEMPLATES, {"spec": spec}
    )


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (slice_spec(driver=""), "spec.driver: Required value"),
        (slice_spec(pool={"name": ""}), "spec.pool.name: Required value"),
        (slice_spec(allNodes=True), "is required, but multiple fields are set"),
        (slice_spec(nodeName=None), "exactly one of `nodeName`, `nodeSelector`, `allNodes`"),
        (slice_spec(device(), device()), 'spec.devices[1]: Duplicate value: "gpu-0"'),
        (
            slice_spec(*(device(f"gpu-{number}") for number in range(129))),
            "spec.devices: Too many: 129: must have at most 128 items",
        ),
        (
            slice_spec(device(attributes={"model": {}})),
            "exactly one value must be specified",
        ),
        (
            slice_spec(device(attributes={"v": {"version": "1.0"}})),
            "must be a string compatible with semver.org spec 2.0.0",
        ),
        (
            slice_spec(device(attributes={"1a": {"int": 1}})),
            "a valid C identifier must start with alphabetic character",
        ),
        (
            slice_spec(device(nodeName="n")),
            "can only be set if `perDeviceNodeSelection` is set to true",
        ),
        (
            slice_spec(device(taints=[{"key": "a", "effect": "Sometimes"}])),
            'taints[0].effect: Unsupported value: "Sometimes"',
        ),
        (
            slice_spec(device(capacity={"m": {"value": "1", "requestPolicy": {}}})),
            "requestPolicy: Forbidden: allowMultipleAllocations must be true",
        ),
        (
            slice_spec(
                device(
                    allowMultipleAllocations=True,
                    capacity={
                        "m": {
                            "value": "4",
                            "requestPolicy": {
                                "default": "8",
                                "validRange": {"min": "1", "max": "4"},
                            },
                        }
                    },
                )
            ),
            'validRange.max: Invalid value: "8": default is more than max: 4',
        ),
        (
            slice_spec(device(consumesCounters=[{"counterSet": "s", "counters": {}}])),
            "consumesCounters[0].counters: Required value",
        ),
        (
            slice_spec(device(bindingConditions=["a"])),
            "bindingFailureConditions are required to use bindingConditions",
        ),
    ],
)
def test_slices_are_refused(api: ObjectApi, spec: Json, told: str) -> None:
    assert told in refusal(api, SLICES, spec)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"selectors": [{"cel": {"expression": "nobody(device)"}}]}, "undeclared reference"),
        ({"extendedResourceName": "cpu"}, "must be a valid extended resource name"),
    ],
)
def test_classes_are_refused(api: ObjectApi, spec: Json, told: str) -> None:
    assert told in refusal(api, DEVICE_CLASSES, spec)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            {"resourceClaims": [{"name": "gpu"}]},
            "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
        ),
        (
            {
                "resourceClaims": [
                    {"name": "gpu", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}
                ]
            },
            "at most one of `resourceClaimName` or `resourceClaimTemplateName`",
        ),
        (
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": "a"}] * 2},
            'spec.resourceClaims[1].name: Duplicate value: "gpu"',
        ),
        (
            {
                "containers": [
                    {"name": "main", "image": "a", "resources": {"claims": [{"name": "gpu"}]}}
                ]
            },
            'spec.containers[0].resources.claims[0]: Not found: "gpu": must be one of the names in '
            "pod.spec.resourceClaims which is empty",
        ),
    ],
)
def test_references_of_pods_are_refused(api: ObjectApi, spec: Json, told: str) -> None:
    assert told in refusal(api, "pods", pod("x", **spec)["spec"])


def test_requests_are_filled_in(api: ObjectApi) -> None:
    tolerant = exactly(tolerations=[{"key": "a", "value": "b"}])
    first = {"name": "any", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]}
    every = exactly("all", allocationMode="All")

    made = create(api, CLAIMS, claim_spec(tolerant, first, every))["spec"]["devices"]["requests"]

    one = {"allocationMode": "ExactCount", "count": 1, "deviceClassName": "gpu"}
    assert made[0]["exactly"] == {
        **one,
        "tolerations": [{"key": "a", "value": "b", "operator": "Equal"}],
    }
    assert made[1]["firstAvailable"] == [{"name": "a", **one}]
    assert made[2]["exactly"] == {"allocationMode": "All", "deviceClassName": "gpu"}


def test_admins_may_where_the_namespace_says_so(api: ObjectApi) -> None:
    label = {"resource.kubernetes.io/admin-access": "true"}
    namespace = {"metadata": {"name": "default", "labels": label}}
    api.update(api.kinds["namespaces"], "", "default", namespace)

    assert create(api, CLAIMS, claim_spec(exactly(adminAccess=True)))


def test_what_a_claim_asks_for_stays(api: ObjectApi) -> None:
    made = create(api, CLAIMS, claim_spec())
    template = create(api, TEMPLATES, {"spec": claim_spec()})
    made["spec"] = claim_spec(exactly(count=2))
    template["spec"]["spec"] = made["spec"]

    for resource, item in ((CLAIMS, made), (TEMPLATES, template)):
        with pytest.raises(RequestRefused, match="field is immutable"):
            api.update(api.kinds[resource], "default", "x", item)


USER = {"resource": "pods", "name": "p", "uid": "u"}


def test_what_a_claim_got_is_set_and_cleared(api: ObjectApi) -> None:
    made = create(api, CLAIMS, claim_spec())

    with pytest.raises(RequestRefused, match="may not be specified when `allocated` is not set"):
        set_status(api, made, reservedFor=[USER])
    got = set_status(api, made, allocation=allocation(), reservedFor=[USER])
    with pytest.raises(RequestRefused, match=r"status\.allocation: Invalid value: .*immutable"):
        set_status(api, got, allocation=allocation("gpu-1"))
    stamped = {**allocation(), "allocationTimestamp": "2026-01-01T00:00:00Z"}
    with pytest.raises(RequestRefused, match="field is immutable"):
        set_status(api, got, allocation=stamped)
    free = set_status(api, got, allocation=None, reservedFor=None)

    assert free["status"] == {}
    assert set_status(api, free, allocation=allocation("gpu-1"))


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (
            {"allocation": allocation(request="nic")},
            'results[0].request: Invalid value: "nic": must be the name of a request',
        ),
        (
            {"allocation": allocation(), "reservedFor": [USER, {**USER, "name": "q"}]},
            'status.reservedFor[1]: Duplicate value: "u"',
        ),
        (
            {"allocation": allocation(), "reservedFor": [{"resource": "pods"}]},
            "status.reservedFor[0].uid: Required value",
        ),
        (
            {
                "allocation": allocation(),
                "devices": [{"driver": "gpu.example.com", "pool": "n", "device": "gpu-9"}],
            },
            '"gpu.example.com/n/gpu-9": must be an allocated device in the claim',
        ),
    ],
)
def test_statuses_are_refused(api: ObjectApi, status: Json, told: str) -> None:
    made = create(api, CLAIMS, claim_spec())

    with pytest.raises(RequestRefused) as refused:
        set_status(api, made, **status)

    assert told in refused.value.message


def test_a_claim_that_goes_gets_no_more_users(api: ObjectApi) -> None:
    made = create(api, CLAIMS, claim_spec(), finalizers=["example.com/keep"])
    set_status(api, made, allocation=allocation(), reservedFor=[USER])
    api.delete(api.kinds[CLAIMS], "default", "x")
    going = api.get(api.kinds[CLAIMS], "default", "x").object

    with pytest.raises(RequestRefused, match="new entries may not be added"):
        set_status(api, going, reservedFor=[USER, {**USER, "uid": "v"}])
    assert set_status(api, going, reservedFor=[])


def test_slices_keep_their_pool(api: ObjectApi) -> None:
    made = create(api, SLICES, slice_spec(device()))
    assert made["metadata"]["generation"] == 1
    made["spec"]["pool"]["name"] = "other"

    with pytest.raises(RequestRefused, match=r"spec\.pool\.name: Invalid value"):
        api.update(api.kinds[SLICES], "", "x", made)


@pytest.mark.parametrize(
    ("metadata", "status", "state"),
    [
        ({}, {}, "pending"),
        ({}, {"allocation": allocation()}, "allocated"),
        ({}, {"allocation": allocation(), "reservedFor": [USER]}, "allocated,reserved"),
        (
            {"deletionTimestamp": "2026-01-01T00:00:00Z"},
            {"allocation": allocation(), "reservedFor": [USER]},
            "deleted,allocated,reserved",
        ),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, {}, "deleted"),
    ],
)
def test_columns_of_claims(api: ObjectApi, metadata: Json, status: Json, state: str) -> None:
    columns = {each.name: each for each in api.kinds[CLAIMS].columns}
    item = {"metadata": {"name": "x", **metadata}, "status": status}

    assert list(columns) == ["Name", "State", "Age"]
    assert columns["State"].cell(item, NOW) == state


def test_columns_of_slices(api: ObjectApi) -> None:
    item = {"metadata": {"name": "x"}, "spec": slice_spec()}

    cells = [each.cell(item, NOW) for each in api.kinds[SLICES].columns][:4]

    assert cells == ["x", "n", "gpu.example.com", "n"]


TAINT = {"key": "broken", "effect": "NoSchedule"}


def test_a_taint_rule_is_stored_with_its_status_apart(api: ObjectApi) -> None:
    made = create(api, TAINT_RULES, {"deviceSelector": {"pool": "n1"}, "taint": TAINT})

    assert made["apiVersion"] == "resource.k8s.io/v1"
    assert made["spec"] == {"deviceSelector": {"pool": "n1"}, "taint": TAINT}
    assert create(api, TAINT_RULES, {"taint": TAINT}, name="y")["metadata"]["generation"] == 1
    kind = api.kinds[TAINT_RULES]
    told = {**made, "status": {"conditions": []}, "spec": {"taint": TAINT}}
    assert api.update_status(kind, "", "x", told).object["spec"] == made["spec"]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        pytest.param({}, "spec.taint.effect: Required value", id="no taint"),
        pytest.param(
            {"taint": {**TAINT, "effect": "PreferNoSchedule"}},
            'spec.taint.effect: Unsupported value: "PreferNoSchedule"',
            id="an unknown effect",
        ),
        pytest.param(
            {"taint": {**TAINT, "key": "a b"}}, 'spec.taint.key: Invalid value: "a b"', id="a key"
        ),
        pytest.param(
            {"taint": TAINT, "deviceSelector": {"driver": "A"}},
            'spec.deviceSelector.driver: Invalid value: "A"',
            id="a driver",
        ),
        pytest.param(
            {"taint": TAINT, "deviceSelector": {"pool": "a/B"}},
            'spec.deviceSelector.pool: Invalid value: "B"',
            id="a pool",
        ),
        pytest.param(
            {"taint": TAINT, "deviceSelector": {"device": ""}},
            "spec.deviceSelector.device: Required value",
            id="a device",
        ),
    ],
)
def test_taint_rules_that_are_refused(api: ObjectApi, spec: Json, told: str) -> None:
    assert told in refusal(api, TAINT_RULES, spec)
