"""Fleets in which every device differs: expressions are asked by what they read, bit by bit."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec import convert

from moorage.cel import DeviceExpression, DeviceView
from moorage.cluster.devices.models import DeviceContent, Models
from moorage.config import default
from moorage.engine import Engine
from moorage.engine.actions import Action, PatchPodStatus, WriteClaims
from moorage.engine.events import Applied
from moorage.framework.profile import known_plugins
from moorage.objects.device import SliceDevice
from moorage.objects.pod import Pod
from moorage.plugins import REGISTRY
from moorage.plugins.dynamic_resources import device_allocation, preparation
from moorage.plugins.dynamic_resources.selectors import SelectorAnswers, SelectorProblem
from tests.builders import node, pod
from tests.cel.recorded_cases import ask, read_cases, view_of
from tests.device_builders import claim, device, device_class, request, resource_slice

MODEL = 'device.attributes["gpu.example.com"].model == "fast"'


def content_of(case: dict[str, Any], serial: int) -> DeviceContent:
    """The device of a recorded case, with attributes that nobody reads."""
    more = {"serial": {"int": serial}, "other.example/uuid": {"string": f"u-{serial}"}}
    attributes = {**case["device"].get("attributes", {}), **more}
    raw = {"name": "", **case["device"], "attributes": attributes}
    return Models().content(case["driver"], convert(raw, SliceDevice))


def test_what_is_not_read_changes_no_recorded_answer() -> None:
    answers = SelectorAnswers()
    counts: Counter[str] = Counter()
    for serial, case in enumerate(read_cases()):
        selector = DeviceExpression(case["expr"])
        if selector.problem or selector.reads is None:
            counts["all"] += 1
            continue
        counts["by name"] += 1
        try:
            found: bool | str = answers.matches(case["expr"], content_of(case, serial))
        except SelectorProblem as problem:
            found = problem.text.removeprefix("CEL runtime error: ")
        assert found == ask(selector, view_of(case)), case
    assert counts["by name"] > 300, counts


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each expression was asked about a device."""
    counts: Counter[str] = Counter()
    really = DeviceExpression.matches

    def matches(self: DeviceExpression, view: DeviceView, *more: Any) -> bool:
        counts[self.expression] += 1
        return really(self, view, *more)

    monkeypatch.setattr(DeviceExpression, "matches", matches)
    return counts


class Fleet:
    """Nodes with eight devices each that all differ."""

    def __init__(self, nodes: int) -> None:
        self.engine = Engine(default(known_plugins(REGISTRY)), REGISTRY)
        self.now = 0.0
        self.put(device_class("gpu", 'device.driver == "gpu.example.com"'))
        for number in range(nodes):
            devices = [
                device(
                    f"gpu-{at}",
                    attributes={
                        "uuid": {"string": f"u-{number}-{at}"},
                        "model": {"string": "fast" if number == 1 else "slow"},
                    },
                )
                for at in range(8)
            ]
            self.put(node(f"n{number}"), resource_slice(f"n{number}", devices))

    def put(self, *items: Any) -> None:
        for item in items:
            self.engine.handle(Applied(item), self.now)

    def ask_for(self, name: str, expression: str) -> None:
        made = pod(
            name,
            spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]},
            status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]},
        )
        assert isinstance(made, Pod)
        owner = {"kind": "Pod", "name": name, "uid": made.uid, "controller": True}
        wanted = request(selectors=[{"cel": {"expression": expression}}])
        self.put(claim(name, wanted, metadata={"ownerReferences": [owner]}), made)

    def step(self, seconds: float = 0.0) -> list[Action]:
        self.now += seconds
        return self.engine.step(self.now, 1)


def written(actions: list[Action]) -> list[str]:
    """Which pods get which devices."""
    return [
        f"{each.pod.name} {grant.allocation['devices']['results'][0]['pool']}"
        for each in actions
        if isinstance(each, WriteClaims)
        for grant in each.writes.grants
        if grant.allocation is not None
    ]


def test_an_expression_is_asked_once_about_devices_that_differ_in_other_things(
    asked: Counter[str],
) -> None:
    fleet = Fleet(20)
    fleet.ask_for("p", MODEL)

    assert written(fleet.step()) == ["p n1"]
    assert asked == {'device.driver == "gpu.example.com"': 1, MODEL: 2}


def test_a_decision_asks_about_so_many_devices_and_the_next_goes_on(
    asked: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_allocation, "MOST_STEPS_OF_ANSWERS", 1_500)
    fleet = Fleet(20)
    expression = 'device.attributes["gpu.example.com"].uuid == "u-19-7"'
    fleet.ask_for("p", expression)

    told = [each for each in fleet.step() if isinstance(each, PatchPodStatus)]
    assert told[0].condition is not None
    assert "the next attempt goes on from there" in told[0].condition.message
    assert 0 < asked[expression] < 100
    # Others do not wait for it.
    fleet.ask_for("q", MODEL)
    assert written(fleet.step()) == ["q n1"]

    rounds: list[list[str]] = []
    while not rounds or not rounds[-1]:
        rounds.append(written(fleet.step(seconds=11.0)))
    assert rounds[-1] == ["p n19"]
    assert asked[expression] == 160
    assert len(rounds) <= 5


@pytest.mark.parametrize(
    ("expression", "reads"),
    [
        ('device.attributes["d"].a == 1', [("d", "a")]),
        ('device.attributes["d"]["a"] == 1 && device.driver == "x"', [("d", "a")]),
        ('device.attributes["d"].?a.orValue(1) == 1', [("d", "a")]),
        ('has(device.attributes["d"].a)', [("d", "a")]),
        ('device.capacity["d"].m.compareTo(quantity("1Gi")) > 0', []),
        ('device.capacity.exists(d, d == "x")', []),
        ('"d" in device.attributes', None),
        ('size(device.attributes["d"]) == 1', None),
        ('"a" in device.attributes["d"]', None),
        ('device.attributes[?"d"].?a.orValue(1) == 1', None),
        ('cel.bind(x, device.attributes["d"], x.a == 1)', None),
        ("device.attributes.all(d, true)", None),
        ("no such thing", []),
    ],
)
def test_what_an_expression_reads(expression: str, reads: list[tuple[str, str]] | None) -> None:
    found = DeviceExpression(expression).reads
    assert (None if found is None else list(found.attributes)) == reads


def test_what_is_known_of_many_groups_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty nodes that all differ are as many groups, and one for nodes without devices."""
    monkeypatch.setattr(preparation, "_MOST_KNOWN", 50)
    known: list[int] = []
    really = preparation.ClaimPlans.plan

    def plan(self: preparation.ClaimPlans, *given: Any) -> device_allocation.ClaimsPlan:
        made = really(self, *given)
        known.append(sum(map(len, self._plans)))
        return made

    monkeypatch.setattr(preparation.ClaimPlans, "plan", plan)
    fleet = Fleet(20)
    for number in range(8):
        fleet.ask_for(f"p{number}", f'{MODEL} && device.driver != "{number}"')
        assert written(fleet.step()) == [f"p{number} n1"]

    assert 40 < max(known) < 90
    assert min(known[len(known) // 2 :]) < 50
