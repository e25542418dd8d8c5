"""Whole configurations as clusters use them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.config import (
    ClientConnection,
    Duration,
    FeatureGates,
    LeaderElection,
    default,
    load,
)
from moorage.objects.node_selector import NodeAffinityRules
from tests.config.fakes import (
    KNOWN,
    BalancedArgs,
    FitArgs,
    NodeAffinityArgs,
    PreemptionArgs,
    Ratio,
    Resource,
    ShapePoint,
    SpreadArgs,
    Strategy,
    VolumeBindingArgs,
    loaded,
    only,
    weights,
)

V1 = "kubescheduler.config.k8s.io/v1"


def test_defaults() -> None:
    configuration = default(KNOWN)

    assert configuration.parallelism == 16
    assert configuration.leader_election == LeaderElection(
        leader_elect=True,
        lease_duration=Duration.parse("15s"),
        renew_deadline=Duration.parse("10s"),
        retry_period=Duration.parse("2s"),
        resource_lock="leases",
        resource_name="kube-scheduler",
        resource_namespace="kube-system",
    )
    assert configuration.client_connection == ClientConnection(
        kubeconfig="",
        accept_content_types="",
        content_type="application/vnd.kubernetes.protobuf",
        qps=0,
        burst=0,
    )
    assert configuration.enable_profiling is True
    assert configuration.enable_contention_profiling is True
    assert configuration.percentage_of_nodes_to_score is None
    assert configuration.pod_initial_backoff_seconds == 1
    assert configuration.pod_max_backoff_seconds == 10
    assert configuration.delay_cache_until_active is False
    assert configuration.gates == FeatureGates()
    assert only(configuration).scheduler_name == "default-scheduler"
    assert only(configuration).percentage_of_nodes_to_score == 0


def test_everything_can_be_said() -> None:
    text = f"""
    apiVersion: {V1}
    kind: KubeSchedulerConfiguration
    parallelism: 4
    leaderElection:
      leaderElect: false
      leaseDuration: 1m30s
      renewDeadline: 60s
      retryPeriod: 500ms
      resourceName: moorage
      resourceNamespace: scheduling
    clientConnection: {{kubeconfig: /etc/kubeconfig, qps: 12.5, burst: 7, contentType: json}}
    enableProfiling: false
    enableContentionProfiling: false
    percentageOfNodesToScore: 40
    podInitialBackoffSeconds: 2
    podMaxBackoffSeconds: 2
    delayCacheUntilActive: true
    extenders: []
    profiles:
    - schedulerName: one
      percentageOfNodesToScore: 0
    - schedulerName: two
    """
    gates = FeatureGates(StorageCapacityScoring=True)
    configuration = load(text, known=KNOWN, gates=gates)

    assert configuration.parallelism == 4
    assert configuration.leader_election == LeaderElection(
        leader_elect=False,
        lease_duration=Duration(90 * 10**9),
        renew_deadline=Duration(60 * 10**9),
        retry_period=Duration(5 * 10**8),
        resource_name="moorage",
        resource_namespace="scheduling",
    )
    assert configuration.client_connection == ClientConnection(
        kubeconfig="/etc/kubeconfig", qps=12.5, burst=7, content_type="json"
    )
    assert not configuration.enable_profiling
    assert not configuration.enable_contention_profiling
    assert configuration.percentage_of_nodes_to_score == 40
    assert configuration.pod_initial_backoff_seconds == 2
    assert configuration.pod_max_backoff_seconds == 2
    assert configuration.delay_cache_until_active
    assert configuration.gates is gates
    assert [
        (profile.scheduler_name, profile.percentage_of_nodes_to_score)
        for profile in configuration.profiles
    ] == [("one", 0), ("two", 40)]


def test_empty_and_zero_mean_the_default_in_the_shared_sections() -> None:
    configuration = loaded(
        leaderElection={"resourceLock": "", "leaseDuration": "0s"},
        clientConnection={"qps": 0, "burst": 0, "contentType": ""},
    )

    assert configuration.leader_election == LeaderElection()
    assert configuration.client_connection == ClientConnection()


def test_without_leader_election_its_settings_do_not_matter() -> None:
    election = loaded(leaderElection={"leaderElect": False, "retryPeriod": "1h"}).leader_election

    assert not election.leader_elect
    assert election.retry_period == Duration.parse("1h")


def test_null_means_not_given() -> None:
    assert loaded(parallelism=None, leaderElection=None, profiles=None) == default(KNOWN)
    assert loaded(profiles=[]) == default(KNOWN)


def test_json_is_read_as_well() -> None:
    text = (
        b'{"apiVersion": "%s",\n\t"kind": "KubeSchedulerConfiguration", "parallelism": 3}'
        % V1.encode()
    )

    assert load(text, known=KNOWN).parallelism == 3


@pytest.mark.parametrize(
    ("plugin", "given", "expected"),
    [
        pytest.param(
            "NodeResourcesFit",
            {
                "apiVersion": V1,
                "kind": "NodeResourcesFitArgs",
                "ignoredResourceGroups": ["vendor.io"],
                "scoringStrategy": {
                    "requestedToCapacityRatio": {
                        "shape": [{"score": 0, "utilization": 0}, {"score": 10, "utilization": 61}]
                    },
                    "resources": [{"name": "memory", "weight": 100}, {"name": "example.com/gpu"}],
                    "type": "RequestedToCapacityRatio",
                },
            },
            FitArgs(
                ignored_resource_groups=("vendor.io",),
                scoring_strategy=Strategy(
                    type="RequestedToCapacityRatio",
                    resources=(
                        Resource(name="memory", weight=100),
                        Resource(name="example.com/gpu", weight=1),
                    ),
                    requested_to_capacity_ratio=Ratio(
                        shape=(
                            ShapePoint(utilization=0, score=0),
                            ShapePoint(utilization=61, score=10),
                        )
                    ),
                ),
            ),
            id="requested to capacity ratio",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated"}},
            FitArgs(scoring_strategy=Strategy(type="MostAllocated")),
            id="no header",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {
                "apiVersion": V1,
                "kind": "NodeResourcesBalancedAllocationArgs",
                "resources": [{"name": "cpu", "weight": 1}],
            },
            BalancedArgs(resources=(Resource(name="cpu", weight=1),)),
            id="balanced allocation",
        ),
        pytest.param(
            "PodTopologySpread",
            {
                "apiVersion": V1,
                "kind": "PodTopologySpreadArgs",
                "defaultConstraints": [],
                "defaultingType": "List",
            },
            SpreadArgs(defaulting_type="List"),
            id="no default spreading",
        ),
        pytest.param(
            "NodeAffinity",
            {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "generation", "operator": "Lt", "values": ["6"]}
                                ]
                            }
                        ]
                    }
                }
            },
            NodeAffinityArgs(
                added_affinity=msgspec.convert(
                    {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        {"key": "generation", "operator": "Lt", "values": ["6"]}
                                    ]
                                }
                            ]
                        }
                    },
                    NodeAffinityRules,
                )
            ),
            id="added affinity",
        ),
        pytest.param(
            "VolumeBinding",
            {"bindTimeoutSeconds": 30, "shape": [{"score": 10, "utilization": 0}]},
            VolumeBindingArgs(
                bind_timeout_seconds=30, shape=(ShapePoint(utilization=0, score=10),)
            ),
            id="storage capacity shape",
        ),
        pytest.param("DefaultPreemption", None, PreemptionArgs(), id="null args"),
    ],
)
def test_args(plugin: str, given: Any, expected: msgspec.Struct) -> None:
    profile = only(loaded({"pluginConfig": [{"name": plugin, "args": given}]}))

    assert profile.args[plugin] == expected


def test_args_are_there_for_every_enabled_plugin_and_no_other() -> None:
    args = only(loaded({"plugins": {"multiPoint": {"disabled": [{"name": "VolumeBinding"}]}}})).args

    assert args.keys() == KNOWN.keys() - {"VolumeBinding"}
    assert args["NodeResourcesFit"] == FitArgs()
    assert args["ImageLocality"] is None


def test_args_of_a_plugin_that_is_not_enabled_are_checked_and_left_out() -> None:
    profile = only(
        loaded(
            {
                "plugins": {"multiPoint": {"disabled": [{"name": "VolumeBinding"}]}},
                "pluginConfig": [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 1}}],
            }
        )
    )

    assert "VolumeBinding" not in profile.args


def test_three_profiles_each_its_own_way() -> None:
    default_profile, packer, spreader = loaded(
        {
            "schedulerName": "default-scheduler",
            "plugins": {
                "score": {
                    "disabled": [{"name": "*"}],
                    "enabled": [{"name": "ImageLocality", "weight": 1}],
                }
            },
        },
        {
            "schedulerName": "packer",
            "plugins": {
                "multiPoint": {
                    "disabled": [{"name": "*"}],
                    "enabled": [
                        {"name": "PrioritySort"},
                        {"name": "DefaultBinder"},
                        {"name": "TaintToleration", "weight": 2},
                        {"name": "NodeResourcesFit", "weight": 4},
                    ],
                }
            },
        },
        {
            "schedulerName": "spreader",
            "plugins": {"postFilter": {"disabled": [{"name": "DynamicResources"}]}},
            "pluginConfig": [
                {
                    "name": "InterPodAffinity",
                    "args": {
                        "apiVersion": V1,
                        "kind": "InterPodAffinityArgs",
                        "hardPodAffinityWeight": 50,
                    },
                }
            ],
        },
    ).profiles

    assert weights(default_profile) == {"ImageLocality": 1}
    assert weights(packer) == {"TaintToleration": 2, "NodeResourcesFit": 4}
    assert packer.args.keys() == {
        "PrioritySort",
        "DefaultBinder",
        "TaintToleration",
        "NodeResourcesFit",
    }
    assert [plugin.name for plugin in spreader.points["postFilter"]] == ["DefaultPreemption"]
    assert spreader.args["InterPodAffinity"] != default_profile.args.get("InterPodAffinity")
