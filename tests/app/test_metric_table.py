"""Names, types, labels, buckets and levels are those of kube-scheduler."""

from __future__ import annotations

import pytest

from moorage.app.metric_table import ABSENT, METRICS
from moorage.framework.series import Kind, Metric, as_go, exponential

COUNTER, GAUGE, HISTOGRAM = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM
STABLE, BETA, ALPHA = "STABLE", "BETA", "ALPHA"

#: kube-scheduler v1.36: type, level, labels, and start, factor and number of buckets.
KUBERNETES = {
    "schedule_attempts_total": (COUNTER, STABLE, "result profile", None),
    "scheduling_attempt_duration_seconds": (HISTOGRAM, STABLE, "result profile", (0.001, 2, 15)),
    "preemption_victims": (HISTOGRAM, STABLE, "", (1, 2, 7)),
    "preemption_attempts_total": (COUNTER, STABLE, "", None),
    "pending_pods": (GAUGE, STABLE, "queue", None),
    "pod_scheduling_attempts": (HISTOGRAM, STABLE, "", (1, 2, 5)),
    "framework_extension_point_duration_seconds": (
        HISTOGRAM,
        STABLE,
        "extension_point status profile",
        (0.0001, 2, 12),
    ),
    "queue_incoming_pods_total": (COUNTER, STABLE, "queue event", None),
    "pod_scheduling_sli_duration_seconds": (HISTOGRAM, BETA, "attempts", (0.01, 2, 20)),
    "permit_wait_duration_seconds": (HISTOGRAM, BETA, "result", (0.001, 2, 15)),
    "goroutines": (GAUGE, BETA, "operation", None),
    "unschedulable_pods": (GAUGE, BETA, "plugin profile", None),
    "plugin_evaluation_total": (COUNTER, BETA, "plugin extension_point profile", None),
    "scheduling_algorithm_duration_seconds": (HISTOGRAM, ALPHA, "", (0.001, 2, 15)),
    "event_handling_duration_seconds": (HISTOGRAM, ALPHA, "event", (0.0001, 2, 12)),
    "plugin_execution_duration_seconds": (
        HISTOGRAM,
        ALPHA,
        "plugin extension_point status",
        (0.00001, 1.5, 20),
    ),
    "queueing_hint_execution_duration_seconds": (
        HISTOGRAM,
        ALPHA,
        "plugin event hint",
        (0.00001, 1.5, 20),
    ),
    "inflight_events": (GAUGE, ALPHA, "event", None),
    "cache_size": (GAUGE, ALPHA, "type", None),
    "pod_scheduled_after_flush_total": (COUNTER, ALPHA, "", None),
    "batch_attempts_total": (COUNTER, ALPHA, "profile result", None),
    "batch_cache_flushed_total": (COUNTER, ALPHA, "profile reason", None),
    "get_node_hint_duration_seconds": (HISTOGRAM, ALPHA, "hinted profile", (0.00001, 2, 12)),
    "store_schedule_results_duration_seconds": (HISTOGRAM, ALPHA, "profile", (0.00001, 2, 12)),
    "preemption_goroutines_duration_seconds": (HISTOGRAM, ALPHA, "result", (0.01, 2, 20)),
    "preemption_goroutines_execution_total": (COUNTER, ALPHA, "result", None),
    "resourceclaim_creates_total": (COUNTER, ALPHA, "status", None),
    "dra_bindingconditions_allocations_total": (COUNTER, ALPHA, "profile driver status", None),
    "dra_bindingconditions_wait_duration_seconds": (
        HISTOGRAM,
        ALPHA,
        "profile driver status",
        (0.1, 2, 14),
    ),
    "async_api_call_execution_total": (COUNTER, ALPHA, "call_type result", None),
    "async_api_call_execution_duration_seconds": (
        HISTOGRAM,
        ALPHA,
        "call_type result",
        (0.001, 2, 15),
    ),
    "pending_async_api_calls": (GAUGE, ALPHA, "call_type", None),
    "podgroup_schedule_attempts_total": (COUNTER, ALPHA, "result profile", None),
    "podgroup_scheduling_attempt_duration_seconds": (
        HISTOGRAM,
        ALPHA,
        "result profile",
        (0.001, 2, 15),
    ),
    "podgroup_scheduling_algorithm_duration_seconds": (HISTOGRAM, ALPHA, "", (0.001, 2, 15)),
    # Those of 1.37.
    "queued_entities": (GAUGE, ALPHA, "queue type", None),
    "queue_incoming_entities_total": (COUNTER, ALPHA, "queue event type", None),
    "generated_placements_total": (COUNTER, ALPHA, "profile", None),
    "placement_evaluations_total": (COUNTER, ALPHA, "result profile", None),
    "placement_evaluation_duration_seconds": (
        HISTOGRAM,
        ALPHA,
        "result profile",
        (0.001, 2, 15),
    ),
    "workload_preemption_attempts_total": (COUNTER, ALPHA, "result", None),
    "workload_preemption_victims": (HISTOGRAM, ALPHA, "", (1, 2, 11)),
    "preemption_workload_disruptions": (HISTOGRAM, ALPHA, "preemptor", (1, 2, 11)),
    "preemption_evaluation_duration_seconds": (
        HISTOGRAM,
        ALPHA,
        "preemptor result",
        (0.001, 2, 16),
    ),
    "preemption_execution_duration_seconds": (
        HISTOGRAM,
        ALPHA,
        "preemptor result",
        (0.001, 2, 16),
    ),
    "preemption_pdb_violations_total": (COUNTER, ALPHA, "preemptor", None),
    "volume_scheduling_stage_error_total": (COUNTER, ALPHA, "operation", None),
    "volume_binder_cache_requests_total": (COUNTER, ALPHA, "operation", None),
}
OURS = {metric.name.removeprefix("scheduler_"): metric for metric in METRICS}


def test_every_metric_of_kube_scheduler_is_exposed_or_said_to_be_absent() -> None:
    told = {name for name in OURS if OURS[name].name.startswith("scheduler_")}
    absent = {name.removeprefix("scheduler_") for name in ABSENT}

    assert told | absent == KUBERNETES.keys()
    assert not told & absent


@pytest.mark.parametrize("name", sorted(KUBERNETES.keys() & OURS.keys()))
def test_a_metric_is_as_in_kube_scheduler(name: str) -> None:
    kind, level, labels, buckets = KUBERNETES[name]
    bounds = exponential(*buckets) if buckets else ()

    assert _told(OURS[name], len(bounds)) == (kind, level, tuple(labels.split()), bounds)


def _told(metric: Metric, count: int) -> tuple[Kind, str, tuple[str, ...], tuple[float, ...]]:
    # Further buckets at the end disturb nobody.
    return metric.kind, metric.level, metric.labels, metric.buckets[:count]


def test_bounds_are_written_as_kube_scheduler_writes_them() -> None:
    """Read from its /metrics: dashboards compare these texts."""
    plugin = [as_go(each) for each in OURS["plugin_execution_duration_seconds"].buckets]
    sli = [as_go(each) for each in OURS["pod_scheduling_sli_duration_seconds"].buckets]
    attempts = [as_go(each) for each in OURS["pod_scheduling_attempts"].buckets]

    assert plugin[:3] == ["1e-05", "1.5000000000000002e-05", "2.2500000000000005e-05"]
    assert sli[:2] + sli[-1:] == ["0.01", "0.02", "5242.88"]
    assert attempts == ["1", "2", "4", "8", "16"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.25, "0.25"),
        (100.0, "100"),
        (67108864.0, "6.7108864e+07"),
        (1e6, "1e+06"),
        (123456.0, "123456"),
        (0.0001, "0.0001"),
        (0.00002, "2e-05"),
        (-67108864.0, "-6.7108864e+07"),
    ],
)
def test_numbers_are_written_as_go_writes_them(value: float, text: str) -> None:
    assert as_go(value) == text
