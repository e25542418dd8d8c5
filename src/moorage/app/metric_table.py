"""All metrics: name, type, labels, buckets and stability, as kube-scheduler has them."""

from __future__ import annotations

from moorage.framework.series import Bounds, Kind, Level, Metric, exponential

from .group_metric_table import GROUP_METRICS

_MILLISECOND = exponential(0.001, 2, 15)
_POINT = exponential(0.0001, 2, 12)
_PLUGIN = exponential(0.00001, 1.5, 20)
# kube-scheduler's end at 22 ms. An objective of 100 ms needs buckets on both sides of it.
_PLUGIN_EXECUTION = exponential(0.00001, 1.5, 26)
_HINT = exponential(0.00001, 2, 12)
_LONG = exponential(0.01, 2, 20)
_REQUEST: Bounds = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


def _counter(name: str, level: Level, help_text: str, *labels: str) -> Metric:
    return Metric(name, Kind.COUNTER, level, help_text, labels)


def _gauge(name: str, level: Level, help_text: str, *labels: str) -> Metric:
    return Metric(name, Kind.GAUGE, level, help_text, labels)


def _histogram(name: str, level: Level, help_text: str, buckets: Bounds, *labels: str) -> Metric:
    return Metric(name, Kind.HISTOGRAM, level, help_text, labels, buckets)


SCHEDULE_ATTEMPTS = _counter(
    "scheduler_schedule_attempts_total",
    Level.STABLE,
    "Attempts to schedule pods by result: scheduled, unschedulable (no node was found) or error.",
    "result",
    "profile",
)
SCHEDULING_ATTEMPT_DURATION = _histogram(
    "scheduler_scheduling_attempt_duration_seconds",
    Level.STABLE,
    "How long attempts took, from the queue to the binding or the failure.",
    _MILLISECOND,
    "result",
    "profile",
)
SCHEDULING_ALGORITHM_DURATION = _histogram(
    "scheduler_scheduling_algorithm_duration_seconds",
    Level.ALPHA,
    "How long it took to find a node, or to look for one and for a remedy in vain.",
    _MILLISECOND,
)
PREEMPTION_VICTIMS = _histogram(
    "scheduler_preemption_victims",
    Level.STABLE,
    "How many victims a preemption had.",
    exponential(1, 2, 7),
)
PREEMPTION_ATTEMPTS = _counter(
    "scheduler_preemption_attempts_total", Level.STABLE, "Attempts to find a remedy by preemption."
)
PENDING_PODS = _gauge(
    "scheduler_pending_pods",
    Level.STABLE,
    "Waiting pods by queue: active, backoff, unschedulable (tried in vain) or gated (not tried).",
    "queue",
)
POD_SCHEDULING_ATTEMPTS = _histogram(
    "scheduler_pod_scheduling_attempts",
    Level.STABLE,
    "How many attempts it took to schedule a pod.",
    exponential(1, 2, 5),
)
POD_SCHEDULING_SLI_DURATION = _histogram(
    "scheduler_pod_scheduling_sli_duration_seconds",
    Level.BETA,
    "From when a pod was first let into the queue until it was bound, over all its attempts.",
    _LONG,
    "attempts",
)
EXTENSION_POINT_DURATION = _histogram(
    "scheduler_framework_extension_point_duration_seconds",
    Level.STABLE,
    "How long all plugins of an extension point took together.",
    _POINT,
    "extension_point",
    "status",
    "profile",
)
PLUGIN_EXECUTION_DURATION = _histogram(
    "scheduler_plugin_execution_duration_seconds",
    Level.ALPHA,
    "How long one plugin took at an extension point, in every tenth attempt.",
    _PLUGIN_EXECUTION,
    "plugin",
    "extension_point",
    "status",
)
PLUGIN_EVALUATION = _counter(
    "scheduler_plugin_evaluation_total",
    Level.BETA,
    "How often a plugin was evaluated at an extension point.",
    "plugin",
    "extension_point",
    "profile",
)
QUEUE_INCOMING_PODS = _counter(
    "scheduler_queue_incoming_pods_total",
    Level.STABLE,
    "Pods that came into a queue, by queue and by what brought them there.",
    "queue",
    "event",
)
PERMIT_WAIT_DURATION = _histogram(
    "scheduler_permit_wait_duration_seconds",
    Level.BETA,
    "How long pods waited for permits.",
    _MILLISECOND,
    "result",
)
UNSCHEDULABLE_PODS = _gauge(
    "scheduler_unschedulable_pods",
    Level.BETA,
    "Waiting pods that a plugin rejected. A pod counts for each plugin that did.",
    "plugin",
    "profile",
)
EVENT_HANDLING_DURATION = _histogram(
    "scheduler_event_handling_duration_seconds",
    Level.ALPHA,
    "How long it took to take in an event.",
    _POINT,
    "event",
)
QUEUEING_HINT_DURATION = _histogram(
    "scheduler_queueing_hint_execution_duration_seconds",
    Level.ALPHA,
    "How long a plugin took to say whether an event concerns a waiting pod.",
    _PLUGIN,
    "plugin",
    "event",
    "hint",
)
INFLIGHT_EVENTS = _gauge(
    "scheduler_inflight_events",
    Level.ALPHA,
    "Events that are remembered for pods being scheduled; PodPopped is the number of such pods.",
    "event",
)
CACHE_SIZE = _gauge(
    "scheduler_cache_size", Level.ALPHA, "Nodes, pods and assumed pods that are known.", "type"
)
SCHEDULED_AFTER_FLUSH = _counter(
    "scheduler_pod_scheduled_after_flush_total",
    Level.ALPHA,
    "Pods that were scheduled after being woken only because they had waited for too long.",
)
BATCH_ATTEMPTS = _counter(
    "scheduler_batch_attempts_total",
    Level.ALPHA,
    "Decisions by whether the answers for like pods were used: hint_used or no_hint.",
    "profile",
    "result",
)
BATCH_CACHE_FLUSHED = _counter(
    "scheduler_batch_cache_flushed_total",
    Level.ALPHA,
    "How often answers for like pods had to be found anew, by reason.",
    "profile",
    "reason",
)
GET_NODE_HINT_DURATION = _histogram(
    "scheduler_get_node_hint_duration_seconds",
    Level.ALPHA,
    "How long decisions took with the answers for like pods (hint), and without (no_hint).",
    _HINT,
    "hinted",
    "profile",
)
STORE_RESULTS_DURATION = _histogram(
    "scheduler_store_schedule_results_duration_seconds",
    Level.ALPHA,
    "How long it took to find and keep the answers for the first of many like pods.",
    _HINT,
    "profile",
)
LEADER = _gauge(
    "leader_election_master_status", Level.ALPHA, "1 while this process holds the lease.", "name"
)
REQUESTS = _counter(
    "rest_client_requests_total",
    Level.ALPHA,
    "Requests to the API server. The code is <error> where there was no answer.",
    "code",
    "method",
    "host",
)
REQUEST_DURATION = _histogram(
    "rest_client_request_duration_seconds",
    Level.ALPHA,
    "How long requests to the API server took.",
    _REQUEST,
    "verb",
    "host",
)
FEATURE_ENABLED = _gauge(
    "kubernetes_feature_enabled", Level.BETA, "1 where a feature gate is on.", "name", "stage"
)
LEFT_OUT = _counter(
    "moorage_unreadable_objects_total",
    Level.OURS,
    "How often an object of a kind could not be read and was left out.",
    "kind",
)
ABSENT_KIND = _gauge(
    "moorage_absent_kind",
    Level.OURS,
    "1 for a kind that counts as empty because the API server does not have it or refuses it.",
    "kind",
)
DROPPED_EVENTS = _counter(
    "moorage_dropped_events_total",
    Level.OURS,
    "Events that were not written, because they came faster than the API server took them.",
)
CLAIM_CREATES = _counter(
    "scheduler_resourceclaim_creates_total",
    Level.ALPHA,
    "Requests to make a claim for the extended resources of a pod, by status: success or failure.",
    "status",
)
DEVICES_WAITED = _counter(
    "scheduler_dra_bindingconditions_allocations_total",
    Level.ALPHA,
    "Devices that drivers had to make ready, by how that ended: success, failed, timeout or error.",
    "profile",
    "driver",
    "status",
)
DEVICE_WAIT_DURATION = _histogram(
    "scheduler_dra_bindingconditions_wait_duration_seconds",
    Level.ALPHA,
    "How long it took until drivers had made devices ready, or would not any more.",
    exponential(0.1, 2, 14),
    "profile",
    "driver",
    "status",
)
EXTENDER_CALLS = _counter(
    "moorage_extender_calls_total",
    Level.OURS,
    "Calls of extenders, by URL prefix, verb and result: success or error.",
    "extender",
    "verb",
    "result",
)
EXTENDER_DURATION = _histogram(
    "moorage_extender_duration_seconds",
    Level.OURS,
    "How long extenders took to answer, or to fail.",
    _MILLISECOND,
    "extender",
    "verb",
)
CAUGHT_ERRORS = _counter(
    "moorage_caught_errors_total",
    Level.OURS,
    "Exceptions that left out an object, ignored an outcome or failed an attempt.",
    "source",
)
STALL = _gauge(
    "moorage_deciding_stall_seconds",
    Level.OURS,
    "Seconds for which the deciding thread has been busy with one decision.",
)
TOO_COSTLY_PODS = _counter(
    "moorage_too_costly_pods_total",
    Level.OURS,
    "Attempts to schedule pods whose rules need more work than a decision may take.",
    "profile",
)
UNSIGNED_PODS = _counter(
    "moorage_unsigned_pods_total",
    Level.OURS,
    "Decisions without the answers for like pods because of a plugin: it signs no pods (silent), "
    "not this one (unsignable), or raised something (broken).",
    "profile",
    "plugin",
    "reason",
)
LIKE_PODS = _counter(
    "moorage_like_pods_total",
    Level.OURS,
    "Decisions by whether answers could be shared, also while reuse is off: the pod was like one "
    "before (alike), the first of its kind (first), or not signed (unsigned).",
    "profile",
    "result",
)
TOLD_APART = _counter(
    "moorage_pods_told_apart_total",
    Level.OURS,
    "Decisions for pods unlike the last one of the same owner, by each plugin that told them "
    "apart.",
    "profile",
    "plugin",
)
CLASSES = _gauge(
    "moorage_classes", Level.OURS, "Classes of like pods whose answers are kept.", "profile"
)
CLASS_BYTES = _gauge(
    "moorage_class_bytes",
    Level.OURS,
    "Bytes that the answers for like pods take, at most.",
    "profile",
)
EXCLUSIVE_PODS = _gauge(
    "moorage_exclusive_pods",
    Level.OURS,
    "Pods on nodes that by their coexist policy share the node with no ordinary pod.",
)
EXCLUSIVE_NODES = _gauge(
    "moorage_exclusive_nodes",
    Level.OURS,
    "Nodes that exclusive pods of a namespace hold.",
    "namespace",
)
STRANDED_RESOURCES = _gauge(
    "moorage_exclusive_nodes_unrequested",
    Level.OURS,
    "What no pod requests of the nodes that exclusive pods of a namespace hold: cores, or bytes.",
    "namespace",
    "resource",
)
EXTENDED_RESOURCE = _gauge(
    "moorage_extended_resource",
    Level.OURS,
    "Figures of an extended resource, such as its capacity and what is used, over all nodes.",
    "resource",
    "figure",
)
BUILD_INFO = _gauge("moorage_build_info", Level.OURS, "Always 1.", "version", "python_version")

METRICS: tuple[Metric, ...] = (
    SCHEDULE_ATTEMPTS,
    SCHEDULING_ATTEMPT_DURATION,
    SCHEDULING_ALGORITHM_DURATION,
    PREEMPTION_VICTIMS,
    PREEMPTION_ATTEMPTS,
    PENDING_PODS,
    POD_SCHEDULING_ATTEMPTS,
    POD_SCHEDULING_SLI_DURATION,
    EXTENSION_POINT_DURATION,
    PLUGIN_EXECUTION_DURATION,
    PLUGIN_EVALUATION,
    QUEUE_INCOMING_PODS,
    PERMIT_WAIT_DURATION,
    UNSCHEDULABLE_PODS,
    EVENT_HANDLING_DURATION,
    QUEUEING_HINT_DURATION,
    INFLIGHT_EVENTS,
    CACHE_SIZE,
    SCHEDULED_AFTER_FLUSH,
    BATCH_ATTEMPTS,
    BATCH_CACHE_FLUSHED,
    GET_NODE_HINT_DURATION,
    STORE_RESULTS_DURATION,
    LEADER,
    REQUESTS,
    REQUEST_DURATION,
    FEATURE_ENABLED,
    LEFT_OUT,
    ABSENT_KIND,
    DROPPED_EVENTS,
    CLAIM_CREATES,
    DEVICES_WAITED,
    DEVICE_WAIT_DURATION,
    EXTENDER_CALLS,
    EXTENDER_DURATION,
    CAUGHT_ERRORS,
    STALL,
    TOO_COSTLY_PODS,
    UNSIGNED_PODS,
    LIKE_PODS,
    TOLD_APART,
    CLASSES,
    CLASS_BYTES,
    EXCLUSIVE_PODS,
    EXCLUSIVE_NODES,
    STRANDED_RESOURCES,
    EXTENDED_RESOURCE,
    BUILD_INFO,
    *GROUP_METRICS,
)

_NO_DISPATCHER = "API calls are actions whose outcome is an event; see rest_client_*"
_NO_VOLUME_STAGES = "volumes are decided with the pod; failures are attempts with result error"

#: kube-scheduler's metrics that are not exposed, and why.
ABSENT: dict[str, str] = {
    "scheduler_goroutines": "there are none: deciding is one thread",
    "scheduler_preemption_goroutines_duration_seconds": "evictions are actions, not goroutines",
    "scheduler_preemption_goroutines_execution_total": "evictions are actions, not goroutines",
    "scheduler_async_api_call_execution_total": _NO_DISPATCHER,
    "scheduler_async_api_call_execution_duration_seconds": _NO_DISPATCHER,
    "scheduler_pending_async_api_calls": _NO_DISPATCHER,
    "scheduler_volume_scheduling_stage_error_total": _NO_VOLUME_STAGES,
    "scheduler_volume_binder_cache_requests_total": _NO_VOLUME_STAGES,
}
