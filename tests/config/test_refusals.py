"""Every rule that a configuration can break, and what the refusal says."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.config import ConfigError, KnownPlugin, Problem, load
from moorage.objects.meta import Wire
from tests.config.fakes import KNOWN, off, on, refused

V1 = "kubescheduler.config.k8s.io/v1"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param(
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            f'apiVersion: must be "{V1}", got "kubescheduler.config.k8s.io/v1beta3"',
            id="other version",
        ),
        pytest.param(
            {"apiVersion": None}, f'apiVersion: must be "{V1}", got null', id="no version"
        ),
        pytest.param(
            {"kind": "Policy"},
            'kind: must be "KubeSchedulerConfiguration", got "Policy"',
            id="other kind",
        ),
        pytest.param({"algorithm": {}}, "algorithm: unknown field", id="unknown field"),
        pytest.param(
            {"parallelism": 0}, "parallelism: must be greater than 0, got 0", id="parallelism"
        ),
        pytest.param(
            {"parallelism": "16"}, 'parallelism: must be an integer, got "16"', id="string"
        ),
        pytest.param(
            {"parallelism": 2**31},
            "parallelism: must be an integer <= 2147483647, got 2147483648",
            id="beyond 32 bits",
        ),
        pytest.param(
            {"parallelism": 1 << 50_000},
            "parallelism: must be an integer <= 2147483647, got an integer out of all range",
            id="beyond words",
        ),
        pytest.param(
            {"enableProfiling": "yes"},
            'enableProfiling: must be true or false, got "yes"',
            id="no boolean",
        ),
        pytest.param(
            {"percentageOfNodesToScore": 101},
            "percentageOfNodesToScore: must be between 0 and 100, got 101",
            id="percentage too large",
        ),
        pytest.param(
            {"percentageOfNodesToScore": -1},
            "percentageOfNodesToScore: must be between 0 and 100, got -1",
            id="percentage too small",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 0},
            "podInitialBackoffSeconds: must be greater than 0, got 0",
            id="initial backoff",
        ),
        pytest.param(
            {"podInitialBackoffSeconds": 11},
            "podMaxBackoffSeconds: must not be less than podInitialBackoffSeconds (11), got 10",
            id="maximum backoff",
        ),
        pytest.param(
            {"leaderElection": []}, "leaderElection: must be a mapping, got a list", id="list"
        ),
        pytest.param(
            {"profiles": {}}, "profiles: must be a list, got a mapping", id="no list of profiles"
        ),
        pytest.param(
            {"profiles": ["x"]}, 'profiles[0]: must be a mapping, got "x"', id="no profile"
        ),
        pytest.param(
            {"clientConnection": {"burst": -1}},
            "clientConnection.burst: must be 0 or greater, got -1",
            id="burst",
        ),
        pytest.param(
            {"clientConnection": {"qps": float("nan")}},
            "clientConnection.qps: must be finite, got nan",
            id="qps",
        ),
        pytest.param(
            {"leaderElection": {"leaseDuration": 15}},
            "leaderElection.leaseDuration: must be a duration such as 15s, 1m30s or 500ms, got 15",
            id="duration without unit",
        ),
        pytest.param(
            {"leaderElection": {"retryPeriod": "-1s"}},
            "leaderElection.retryPeriod: must be greater than 0, got -1s",
            id="negative duration",
        ),
        pytest.param(
            {"leaderElection": {"leaseDuration": "10s"}},
            "leaderElection.leaseDuration: must be greater than renewDeadline (10s), got 10s",
            id="lease not longer than renewal",
        ),
        pytest.param(
            {"leaderElection": {"renewDeadline": "2.4s"}},
            "leaderElection.renewDeadline: "
            "must be greater than 1.2 times retryPeriod (2s), got 2.4s",
            id="renewal not longer than retries",
        ),
        pytest.param(
            {"leaderElection": {"resourceLock": "endpoints"}},
            'leaderElection.resourceLock: must be "leases", got "endpoints"',
            id="lock",
        ),
    ],
)
def test_settings(settings: dict[str, Any], problem: str) -> None:
    assert refused(**settings) == [problem]


@pytest.mark.parametrize(
    ("profile", "problem"),
    [
        pytest.param(
            {"schedulerName": ""}, "profiles[0].schedulerName: is required", id="empty name"
        ),
        pytest.param(
            {"percentageOfNodesToScore": 200},
            "profiles[0].percentageOfNodesToScore: must be between 0 and 100, got 200",
            id="percentage",
        ),
        pytest.param({"plugin": {}}, "profiles[0].plugin: unknown field", id="unknown field"),
        pytest.param(
            {"plugins": {"preRun": {}}},
            "profiles[0].plugins.preRun: unknown field",
            id="unknown point",
        ),
        pytest.param(
            {"plugins": {"filter": {"enabled": [{"name": "NodeName", "wieght": 1}]}}},
            "profiles[0].plugins.filter.enabled[0].wieght: unknown field",
            id="unknown field of a plugin",
        ),
        pytest.param(
            {"plugins": {"filter": {"enabled": [{"weight": 1}]}}},
            "profiles[0].plugins.filter.enabled[0].name: is required",
            id="plugin without name",
        ),
        pytest.param(
            {"plugins": {"filter": {"enabled": ["NodeName"]}}},
            'profiles[0].plugins.filter.enabled[0]: must be a mapping, got "NodeName"',
            id="plugin that is a string",
        ),
        pytest.param(
            {"plugins": {"filter": on("NodeNames")}},
            'profiles[0].plugins.filter.enabled[0].name: unknown plugin "NodeNames"',
            id="unknown plugin",
        ),
        pytest.param(
            {"plugins": {"multiPoint": on("NodeNames")}},
            'profiles[0].plugins.multiPoint.enabled[0].name: unknown plugin "NodeNames"',
            id="unknown plugin in multiPoint",
        ),
        pytest.param(
            {"plugins": {"score": off("ImageLocalty")}},
            'profiles[0].plugins.score.disabled[0].name: unknown plugin "ImageLocalty"',
            id="unknown plugin disabled",
        ),
        pytest.param(
            {"plugins": {"score": off("")}},
            "profiles[0].plugins.score.disabled[0].name: is required",
            id="plugin disabled without name",
        ),
        pytest.param(
            {"plugins": {"multiPoint": on("DeferredPodScheduling")}},
            "profiles[0].plugins.multiPoint.enabled[0].name: "
            'plugin "DeferredPodScheduling" is not supported by Moorage yet',
            id="plugin of kube-scheduler that Moorage lacks",
        ),
        pytest.param(
            {"plugins": {"filter": on("EBSLimits")}},
            "profiles[0].plugins.filter.enabled[0].name: "
            'plugin "EBSLimits" was removed, NodeVolumeLimits does its work',
            id="removed plugin",
        ),
        pytest.param(
            {"plugins": {"filter": on("NodeName", "NodePorts", "NodeName")}},
            'profiles[0].plugins.filter.enabled[2].name: plugin "NodeName" is enabled twice',
            id="enabled twice",
        ),
        pytest.param(
            {"plugins": {"multiPoint": on("NodeName", "NodeName")}},
            'profiles[0].plugins.multiPoint.enabled[1].name: plugin "NodeName" is enabled twice',
            id="enabled twice in multiPoint",
        ),
        pytest.param(
            {"plugins": {"score": on("NodeName")}},
            'profiles[0].plugins.score.enabled[0].name: plugin "NodeName" does not extend score',
            id="wrong point",
        ),
        pytest.param(
            {"plugins": {"queueSort": off("*")}},
            "profiles[0].plugins.queueSort: exactly one plugin must be enabled, got none",
            id="no queue sort",
        ),
        pytest.param(
            {"plugins": {"multiPoint": on("Fifo")}},
            "profiles[0].plugins.queueSort: "
            "exactly one plugin must be enabled, got PrioritySort, Fifo",
            id="two queue sorts",
        ),
        pytest.param(
            {"plugins": {"queueSort": off("*") | on("Lifo")}},
            'profiles[0].plugins.queueSort.enabled[0].name: unknown plugin "Lifo"',
            id="an unknown queue sort is not reported as a missing one",
        ),
        pytest.param(
            {"plugins": {"bind": off("DefaultBinder")}},
            "profiles[0].plugins.bind: at least one plugin must be enabled",
            id="no bind",
        ),
    ],
)
def test_profiles(profile: dict[str, Any], problem: str) -> None:
    known = KNOWN | {"Fifo": KnownPlugin(frozenset({"queueSort"}))}

    assert refused(profile, known=known) == [problem]


def test_a_default_plugin_that_is_not_known_may_be_disabled_but_not_named_otherwise() -> None:
    known = {name: plugin for name, plugin in KNOWN.items() if name != "DynamicResources"}
    profile = {
        "plugins": {"multiPoint": off("DynamicResources", "EBSLimits"), "filter": on("NodeName")},
        "pluginConfig": [{"name": "DynamicResources"}],
    }

    assert refused(profile, known=known) == [
        "profiles[0].pluginConfig[0].name: "
        'plugin "DynamicResources" is not supported by Moorage yet'
    ]


@pytest.mark.parametrize(
    ("plugin_config", "problem"),
    [
        pytest.param([{"args": {}}], "[0].name: is required", id="no name"),
        pytest.param([{"name": "Nope"}], '[0].name: unknown plugin "Nope"', id="unknown plugin"),
        pytest.param(
            [{"name": "CinderLimits"}],
            '[0].name: plugin "CinderLimits" was removed, NodeVolumeLimits does its work',
            id="removed plugin",
        ),
        pytest.param(
            [{"name": "NodeAffinity"}, {"name": "NodeName"}, {"name": "NodeAffinity"}],
            '[2].name: args of plugin "NodeAffinity" are given twice',
            id="given twice",
        ),
        pytest.param(
            [{"name": "NodeName", "args": {"x": 1}}],
            '[0].args: plugin "NodeName" takes no args',
            id="no args expected",
        ),
        pytest.param(
            [{"name": "NodeAffinity", "args": []}],
            "[0].args: must be a mapping, got a list",
            id="no mapping",
        ),
        pytest.param(
            [{"name": "NodeAffinity", "args": {"kind": "InterPodAffinityArgs"}}],
            '[0].args.kind: must be "NodeAffinityArgs", got "InterPodAffinityArgs"',
            id="other kind",
        ),
        pytest.param(
            [{"name": "NodeAffinity", "args": {"apiVersion": "v1"}}],
            f'[0].args.apiVersion: must be "{V1}", got "v1"',
            id="other version",
        ),
        pytest.param(
            [{"name": "InterPodAffinity", "args": {"weight": 1}}],
            "[0].args.weight: unknown field",
            id="unknown field",
        ),
        pytest.param(
            [{"name": "PodTopologySpread", "args": {"defaultingType": "Lists"}}],
            '[0].args.defaultingType: must be one of "System", "List", got "Lists"',
            id="not one of the choices",
        ),
        pytest.param(
            [{"name": "PodTopologySpread", "args": {"defaultConstraints": [{"maxSkew": 1}]}}],
            "[0].args.defaultConstraints[0].topologyKey: is required",
            id="required field",
        ),
        pytest.param(
            [{"name": "DynamicResources", "args": {"filterTimeout": "10"}}],
            '[0].args.filterTimeout: must be a duration such as 15s, 1m30s or 500ms, got "10"',
            id="duration",
        ),
        pytest.param(
            [
                {"name": "NodeName"},
                {
                    "name": "NodeResourcesFit",
                    "args": {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 0}]}},
                },
            ],
            "[1].args.scoringStrategy.resources[0].weight: must be between 1 and 100, got 0",
            id="what the args say of themselves",
        ),
        pytest.param(
            [
                {
                    "name": "DefaultPreemption",
                    "args": {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
                }
            ],
            "[0].args: minCandidateNodesPercentage and minCandidateNodesAbsolute are both 0",
            id="what the args say of the whole",
        ),
    ],
)
def test_plugin_config(plugin_config: list[Any], problem: str) -> None:
    assert refused({"pluginConfig": plugin_config})[0] == f"profiles[0].pluginConfig{problem}"


def test_a_plugin_whose_args_have_no_default_must_be_given_some() -> None:
    class Required(Wire, frozen=True):
        size: int

    known = KNOWN | {"Sized": KnownPlugin(frozenset({"filter"}), Required)}
    profile = {"plugins": {"multiPoint": on("Sized")}}

    assert refused(profile, known=known) == [
        "profiles[0].pluginConfig[Sized].args.size: is required"
    ]


class OrderArgs(Wire, frozen=True):
    reverse: bool = False


@pytest.mark.parametrize(
    ("second", "problems"),
    [
        pytest.param({}, ["profiles[1].schedulerName: is required"], id="no name"),
        pytest.param(
            {"schedulerName": "a"},
            ['profiles[1].schedulerName: "a" is used by another profile'],
            id="same name",
        ),
        pytest.param(
            {"schedulerName": "b", "plugins": {"queueSort": off("*") | on("Fifo")}},
            ["profiles[1].plugins.queueSort: must be the same in all profiles"],
            id="other queue sort",
        ),
        pytest.param(
            {
                "schedulerName": "b",
                "pluginConfig": [{"name": "PrioritySort", "args": {"reverse": True}}],
            },
            [
                "profiles[1].pluginConfig: "
                "the args of the queueSort plugin must be the same in all profiles"
            ],
            id="same queue sort, other args",
        ),
    ],
)
def test_profiles_together(second: dict[str, Any], problems: list[str]) -> None:
    known = KNOWN | {
        "Fifo": KnownPlugin(frozenset({"queueSort"})),
        "PrioritySort": KnownPlugin(frozenset({"queueSort"}), OrderArgs),
    }

    assert refused({"schedulerName": "a"}, second, known=known) == problems


def test_the_first_of_several_profiles_needs_a_name_too() -> None:
    assert refused({}, {"schedulerName": "b"}) == ["profiles[0].schedulerName: is required"]


def test_all_problems_are_told_at_once() -> None:
    text = f"""
apiVersion: {V1}
kind: KubeSchedulerConfiguration
colour: red
podMaxBackoffSeconds: never
podInitialBackoffSeconds: 20
leaderElection:
  leaseDuration: soon
  resourceLock: endpoints
profiles:
- schedulerName: a
  plugins:
    filter:
      enabled: [name, {{name: Nope}}]
    bind:
      disabled: [{{name: "*"}}]
  pluginConfig:
  - name: NodeName
  - name: NodeResourcesFit
    args:
      size: 1
      scoringStrategy:
        type: Tallest
        resources: [{{name: cpu, weight: 0}}, {{name: memory, weight: 101}}]
- 7
- schedulerName: a
  percentageOfNodesToScore: 120
"""
    with pytest.raises(ConfigError) as caught:
        load(text, known=KNOWN, source="scheduler.yaml")

    assert str(caught.value).splitlines() == [
        "scheduler.yaml: colour: unknown field",
        "scheduler.yaml: leaderElection.leaseDuration: "
        'must be a duration such as 15s, 1m30s or 500ms, got "soon"',
        'scheduler.yaml: podMaxBackoffSeconds: must be an integer, got "never"',
        'scheduler.yaml: profiles[0].plugins.filter.enabled[0]: must be a mapping, got "name"',
        "scheduler.yaml: profiles[1]: must be a mapping, got 7",
        'scheduler.yaml: leaderElection.resourceLock: must be "leases", got "endpoints"',
        'scheduler.yaml: profiles[0].plugins.filter.enabled[1].name: unknown plugin "Nope"',
        "scheduler.yaml: profiles[0].plugins.bind: at least one plugin must be enabled",
        "scheduler.yaml: profiles[0].pluginConfig[1].args.size: unknown field",
        "scheduler.yaml: profiles[0].pluginConfig[1].args.scoringStrategy.type: must be one of "
        '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio", got "Tallest"',
        "scheduler.yaml: profiles[0].pluginConfig[1].args.scoringStrategy.resources[0].weight: "
        "must be between 1 and 100, got 0",
        "scheduler.yaml: profiles[0].pluginConfig[1].args.scoringStrategy.resources[1].weight: "
        "must be between 1 and 100, got 101",
        "scheduler.yaml: profiles[2].percentageOfNodesToScore: must be between 0 and 100, got 120",
        'scheduler.yaml: profiles[2].schedulerName: "a" is used by another profile',
    ]
    assert caught.value.source == "scheduler.yaml"
    assert Problem("colour", "unknown field") in caught.value.problems
