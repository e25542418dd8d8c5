"""Configurations of the coscheduling plugin are taken as they are."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.config import ConfigError, FeatureGates, load
from moorage.engine import Engine
from moorage.framework.profile import known_plugins
from moorage.objects.pod_group import COSCHEDULING, GROUP_LABEL
from moorage.plugins import REGISTRY
from moorage.testing.builders import node, pod
from moorage.testing.driver import Driver, bindings
from tests.engine.gangs import gang

#: As the documents of scheduler-plugins have it.
WRITTEN = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled: [{name: Coscheduling}]
      disabled: [{name: PrioritySort}]
    queueSort:
      enabled: [{name: Coscheduling}]
      disabled: [{name: "*"}]
    permit: {enabled: [{name: Coscheduling}]}
  pluginConfig:
  - name: Coscheduling
    args: {permitWaitingTimeSeconds: 10, podGroupBackoffSeconds: 5}
"""


def read(text: str = WRITTEN, **gates: bool) -> Any:
    return load(text, known=known_plugins(REGISTRY), gates=FeatureGates(**gates))


def test_groups_count_without_the_gate() -> None:
    configuration = read(GenericWorkload=True)
    assert configuration.gates["Coscheduling"]
    assert configuration.gates["GenericWorkload"]

    driver = Driver(Engine(configuration, REGISTRY))
    pods = [pod(f"g-{number}", cpu=1, labels={GROUP_LABEL: "g"}) for number in range(2)]
    driver.apply(node("n", cpu=2), gang("g", 2, api_version=COSCHEDULING), pods[0])
    assert driver.step() == []
    driver.apply(pods[1])
    assert sorted(bindings(driver.step())) == ["g-0", "g-1"]


def test_the_queue_is_sorted_as_usual() -> None:
    (profile,) = read().profiles

    assert [plugin.name for plugin in profile.points["queueSort"]] == ["PrioritySort"]
    assert "Coscheduling" not in {each.name for point in profile.points.values() for each in point}


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("podGroupBackoffSeconds", "backoff", "profiles[0].pluginConfig[0].args.backoff: unknown"),
        ("permit:", "score:", "score.enabled[0].name: unknown plugin"),
    ],
)
def test_what_is_misspelt_is_refused(before: str, after: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        read(WRITTEN.replace(before, after))
    assert problem in str(refusal.value)
